// Reads an answer that is neither JSON nor events, such as speech: its bytes go on as they come.

import type { AnswerReader, Verdict } from "./answer-reader.ts";

export class BytesReader implements AnswerReader {
  /** Only the end of the body says that it was complete. */
  readonly isOver = false;
  readonly failure = undefined;
  verdict: Verdict = "incomplete";

  push(received: Uint8Array): Uint8Array {
    return received;
  }

  end(rest?: Uint8Array): undefined {
    if (rest !== undefined) this.verdict = "done";
  }

  fail(): undefined {}
}
