// One request to a backend: over a connection that waits, else over a new one, and once more where the first was stale.

import type { BackendAnswer, BackendCall } from "../../backends/transport.ts";
import { inTime } from "../../lib/abortable-delay.ts";
import { Answer } from "./answer.ts";
import type { AnswerHead } from "./answer-head.ts";
import type { Exchange, HttpConnection } from "./connection.ts";
import { callAborted } from "./http-error.ts";
import type { Pool } from "./pool.ts";
import type { OutgoingRequest } from "./request-head.ts";

/** A connection that had been closed while it waited shows it at once; later, it is the backend that broke off. */
const STALE_WITHIN_MS = 5_000;

export class HttpCall implements BackendCall, Exchange {
  readonly answer: Promise<BackendAnswer>;
  readonly #pool: Pool;
  #connection: HttpConnection | undefined;
  /** Until the head of the answer has come. */
  #request: OutgoingRequest | undefined;
  /** The connection had been used before. */
  #isReused: boolean;
  readonly #begunMs: number;
  #answer: Answer | undefined;
  #resolve!: (answer: BackendAnswer) => void;
  #reject!: (error: unknown) => void;

  constructor(pool: Pool, request: OutgoingRequest) {
    this.#pool = pool;
    this.#request = request;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#begunMs = pool.now();
    const waiting = pool.take();
    this.#isReused = waiting !== undefined;
    this.#connection = waiting ?? pool.connect();
    this.#connection.begin(this, request);
  }

  abort(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#request = undefined;
    connection?.abort();
    if (this.#answer !== undefined) this.#answer.broke(callAborted());
    else this.#refuse(callAborted());
  }

  async connects(withinMs: number): Promise<boolean> {
    const connection = this.#connection;
    if (connection === undefined || this.#answer !== undefined) return true;
    if (connection.isConnecting) return settles(connection.settled(), withinMs);
    if (!this.#isReused) return true;
    const answers = await settles(this.#pool.probe(), withinMs);
    if (!answers) this.#pool.giveProbeUp();
    return answers;
  }

  headRead(head: AnswerHead): void {
    this.#request = undefined;
    this.#answer = new Answer(head, this.#connection as HttpConnection);
    this.#resolve(this.#answer);
  }

  pieceRead(piece: Uint8Array): void {
    this.#answer?.pieceRead(piece);
  }

  answerRead(): void {
    this.#connection = undefined;
    this.#answer?.answerRead();
  }

  get #mayBeStale(): boolean {
    return this.#isReused && this.#pool.now() - this.#begunMs < STALE_WITHIN_MS;
  }

  broke(error: unknown, isUntouched: boolean): void {
    const request = this.#request;
    this.#connection = undefined;
    if (this.#answer !== undefined) {
      this.#answer.broke(error);
    } else if (request !== undefined && isUntouched && this.#mayBeStale) {
      this.#isReused = false;
      this.#connection = this.#pool.connect();
      this.#pool.distrust();
      this.#connection.begin(this, request);
    } else {
      this.#refuse(error);
    }
  }

  /** Rejects `answer`; the empty catch keeps a call that is not awaited from ending the process. */
  #refuse(error: unknown): void {
    this.answer.catch(ignore);
    this.#reject(error);
  }
}

function ignore(): void {}

async function settles(promise: Promise<void>, withinMs: number): Promise<boolean> {
  const settled = promise.then(() => true);
  return (await inTime(settled, withinMs)) ?? false;
}
