// The answer of a backend as its reader sees it, whichever content coding it came in.

import type { BackendAnswer, BodyReceiver } from "../../backends/transport.ts";
import type { AnswerHead } from "./answer-head.ts";
import type { Connection } from "./connection.ts";
import { ContentDecoder } from "./content-decoder.ts";

export class Answer implements BackendAnswer {
  readonly status: number;
  readonly #head: AnswerHead;
  /** Undefined once all has come, because the connection may be another's then. */
  #connection: Connection | undefined;
  readonly #decoder: ContentDecoder | undefined;
  #reader: BodyReceiver | undefined;
  /** What the reader is to be told of. */
  #failure: { error: unknown } | undefined;

  /** @throws HttpError for a content coding that is not known */
  constructor(head: AnswerHead, connection: Connection) {
    this.status = head.status;
    this.#head = head;
    this.#connection = connection;
    const coding = head.header("content-encoding")?.toLowerCase() ?? "";
    if (coding !== "" && coding !== "identity") this.#decoder = new ContentDecoder(coding, connection);
  }

  header(name: string): string | null {
    if (this.#decoder !== undefined && (name === "content-encoding" || name === "content-length")) return null;
    return this.#head.header(name);
  }

  read(reader: BodyReceiver): void {
    if (this.#failure !== undefined) {
      reader.failed(this.#failure.error);
      return;
    }
    this.#decoder?.read(reader);
    this.#reader = this.#decoder ?? reader;
    this.#connection?.resume();
  }

  pause(): void {
    this.#decoder?.pause();
    this.#connection?.pause();
  }

  resume(): void {
    this.#decoder?.resume();
    this.#connection?.resume();
  }

  pieceRead(piece: Uint8Array): void {
    this.#reader?.received(piece);
  }

  answerRead(): void {
    this.#connection = undefined;
    this.#reader?.ended();
    if (this.#decoder === undefined) this.#reader = undefined;
  }

  broke(error: unknown): void {
    this.#connection = undefined;
    if (this.#reader === undefined) this.#failure ??= { error };
    else this.#reader.failed(error);
  }
}
