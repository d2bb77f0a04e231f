// What a format says of its answers to those who keep them and give them again: which may be kept, and how one of its two
// forms, a whole answer and a stream of events, becomes the other.

import type { JsonObject } from "../lib/json.ts";

export interface KeptAnswers {
  /** Members of a request that change nothing of what its client gets. Any other one, known or not, counts. */
  withoutEffect: ReadonlySet<string>;
  /** A stream tells its counts only where stream_options.include_usage asks for them. */
  countsWhenAsked?: true;
  /** Where the format has the temperature in another place than at the top of a request. */
  temperatureOf?(body: JsonObject): unknown;
  /** Every such request must reach a backend, because something is done or kept there besides answering. */
  hasSideEffect(body: JsonObject): boolean;
  /** Members with which the backend keeps nothing of its answer; undefined: it keeps nothing anyway. */
  keepingNothing?(body: JsonObject): JsonObject | undefined;
  /** The answer depends on more than the request says, such as on what the web holds today. */
  dependsOnMore?(body: JsonObject): boolean;
  /** Whether an answer of status 200 is whole, and nothing in it failed. */
  isWhole(answer: JsonObject): boolean;
  /** The same of all events of a stream. */
  isWholeStream(events: string): boolean;
  /** A whole answer as the events of a stream; undefined where it has parts that cannot be carried over. */
  asStream(answer: string, includeUsage: boolean): string | undefined;
  /** The whole answer that a stream has told piece by piece; undefined likewise. */
  asWhole(events: string): string | undefined;
}

export function temperatureIn(kept: Pick<KeptAnswers, "temperatureOf"> | undefined, body: JsonObject): unknown {
  return kept?.temperatureOf === undefined ? body.temperature : kept.temperatureOf(body);
}
