// The answer of a backend as its reader sees it, whichever content coding it came in.

import type { BackendAnswer, BodyReceiver } from "../../backends/transport.ts";
import type { AnswerHead } from "./answer-head.ts";
import type { HttpConnection } from "./connection.ts";
import { ContentDecoder } from "./content-decoder.ts";

export class Answer implements BackendAnswer, BodyReceiver {
  readonly status: number;
  readonly #head: AnswerHead;
  readonly #isDecoded: boolean;
  /** Where the body comes from; undefined once all of it has come, because the connection may be another's then. */
  #source: HttpConnection | ContentDecoder | undefined;
  /** Who takes what the connection brings: the answer itself, or what decodes it. */
  readonly #taker: BodyReceiver;
  #receiver: BodyReceiver | undefined;
  #isPaused = false;
  #isOver = false;
  /** Why the body broke off. */
  #failure: unknown;

  /** @throws HttpError for a content coding that is not known */
  constructor(head: AnswerHead, connection: HttpConnection) {
    this.status = head.status;
    this.#head = head;
    const coding = head.header("content-encoding")?.toLowerCase() ?? "";
    this.#isDecoded = coding !== "" && coding !== "identity";
    if (this.#isDecoded) {
      const decoder = new ContentDecoder(coding, connection, this);
      this.#source = decoder;
      this.#taker = decoder;
    } else {
      this.#source = connection;
      this.#taker = this;
    }
  }

  header(name: string): string | null {
    if (this.#isDecoded && (name === "content-encoding" || name === "content-length")) return null;
    return this.#head.header(name);
  }

  read(receiver: BodyReceiver): void {
    this.#receiver = receiver;
    if (this.#failure !== undefined) receiver.failed(this.#failure);
    else if (!this.#isPaused) this.#source?.resume();
  }

  pause(): void {
    this.#isPaused = true;
    this.#source?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (this.#receiver !== undefined) this.#source?.resume();
  }

  pieceRead(piece: Uint8Array): void {
    this.#taker.received(piece);
  }

  answerRead(): void {
    this.#taker.ended();
  }

  broke(error: unknown): void {
    this.#taker.failed(error);
  }

  received(piece: Uint8Array): void {
    this.#receiver?.received(piece);
  }

  ended(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#source = undefined;
    this.#receiver?.ended();
  }

  /** Does nothing when the body is over. */
  failed(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#failure = error;
    this.#source = undefined;
    this.#receiver?.failed(error);
  }
}
