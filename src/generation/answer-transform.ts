// What changes answers on their way, e.g. moves thoughts out of the text; a stream and a whole answer get the same.

import type { GenerationEvent } from "./events.ts";
import type { GenerationResult } from "./result.ts";

export interface AnswerTransform {
  result(result: GenerationResult): GenerationResult;
  /** One per stream. */
  stream(): EventTransform;
}

export interface EventTransform {
  push(event: GenerationEvent): readonly GenerationEvent[];
  /** What is held back, when the stream is over. */
  end(): readonly GenerationEvent[];
}
