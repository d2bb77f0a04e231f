// What of an answer a client's format has no place for: the same names stand in the log, the counter, the header
// X-Signalbox-Dropped and docs/api.md.

import type { Citation, ContentPart, MediaSource, ProtocolName } from "./content.ts";
import type { PartStart } from "./events.ts";

type AnswerLoss =
  | "answer.audio"
  | "answer.calls"
  | "answer.citations"
  | "answer.images"
  | "answer.items"
  | "answer.searches"
  | "answer.thoughts";

/** Of the citations of a stream, which are kept until their text is whole, those behind so many are lost. */
export const MAX_CITATIONS = 1_000;

type Part = ContentPart | PartStart;

/** What a client's format cannot show. */
export interface AnswerLosses {
  /** As what parts count; a kind of part that is left out is shown always. */
  parts: Readonly<Partial<Record<Part["type"], (part: Part) => AnswerLoss | undefined>>>;
  citation(citation: Citation): AnswerLoss | undefined;
}

export function lossOfPart(part: Part, { parts }: AnswerLosses): AnswerLoss | undefined {
  return parts[part.type]?.(part);
}

/** Of formats that have no place for the gateway's own searches. */
export function lossOfCall(part: Part): AnswerLoss | undefined {
  return part.type === "tool-call" && part.serverSide === true ? "answer.searches" : undefined;
}

/** Of a format that shows images from some sources. */
export function lossOfImage(shown: ReadonlySet<MediaSource["kind"]>) {
  return (part: Part): AnswerLoss | undefined =>
    part.type === "image" && shown.has(part.source.kind) ? undefined : "answer.images";
}

/** Of a format that shows the items which came in its own words. */
export function lossOfItem(own: ProtocolName) {
  return (part: Part): AnswerLoss | undefined =>
    part.type === "opaque" && part.protocol === own ? undefined : "answer.items";
}

/** Formats show where a web page is; places in documents only their own one can name. */
export function lossOfCitation(own: ProtocolName) {
  return ({ url, origin }: Citation): AnswerLoss | undefined =>
    url !== undefined || origin?.protocol === own ? undefined : "answer.citations";
}
