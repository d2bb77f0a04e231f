// What changes answers on their way, e.g. moves thoughts out of the text.

import type { GenerationEvent } from "./events.ts";

/** One per answer: a stream, or a whole answer as the stream that says the same. */
export type AnswerTransform = () => EventTransform;

export interface EventTransform {
  push(event: GenerationEvent): readonly GenerationEvent[];
  /** What is held back, when the stream is over. */
  end(): readonly GenerationEvent[];
}

/** All events of an answer. */
export function transformed(events: readonly GenerationEvent[], transform: AnswerTransform): GenerationEvent[] {
  const stream = transform();
  return [...events.flatMap((event) => stream.push(event)), ...stream.end()];
}
