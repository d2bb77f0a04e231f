// What of an answer a client's format has no place for: the same names stand in the log, the counter, the header
// X-Signalbox-Dropped and docs/api.md.

import type { Citation, ContentPart, MediaSource, ProtocolName, ToolCallPart } from "./content.ts";
import { DropList } from "./dropped.ts";
import type { PartStart } from "./events.ts";
import { WEB_SEARCH } from "./tools.ts";

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

type AnswerPart = ContentPart | PartStart;

/** What a client's format cannot show. */
export interface AnswerLosses {
  /** As what parts count; a kind of part that is left out is shown always. */
  parts: Readonly<Partial<Record<AnswerPart["type"], (part: AnswerPart) => AnswerLoss | undefined>>>;
  citation(citation: Citation): AnswerLoss | undefined;
  /** What a search found is shown with its call alone: where a vendor goes on in a turn, the call is in the answer before. */
  needsSearchCalls?: true;
}

/** Sees one answer in its order. */
export class LossWatch {
  readonly #losses: AnswerLosses;
  readonly #dropped = new DropList();
  readonly #searches = new Set<string>();

  constructor(losses: AnswerLosses) {
    this.#losses = losses;
  }

  get entries(): DropList["entries"] {
    return this.#dropped.entries;
  }

  part(part: AnswerPart): void {
    this.note(this.#losses.parts[part.type]?.(part));
    if (this.#losses.needsSearchCalls === undefined) return;
    if (part.type === "tool-call" && part.serverSide === true) this.#searches.add(part.id);
    else if (part.type === "search-result" && !this.#searches.has(part.callId)) this.note("answer.searches");
  }

  citation(citation: Citation): void {
    this.note(this.#losses.citation(citation));
  }

  note(loss: AnswerLoss | undefined): void {
    if (loss !== undefined) this.#dropped.add(loss);
  }
}

/** Of formats that have no place for calls that the vendor or the gateway runs. */
export function lossOfCall(part: AnswerPart): AnswerLoss | undefined {
  if (part.type !== "tool-call" || part.serverSide !== true) return undefined;
  return isSearch(part) ? "answer.searches" : "answer.items";
}

/** Of a format that shows searches of the web, and no calls of other tools that a vendor runs. */
export function lossOfOtherCall(part: AnswerPart): AnswerLoss | undefined {
  const loss = lossOfCall(part);
  return loss === "answer.searches" ? undefined : loss;
}

/** Whether a call that the client does not run is a search of the web. */
export function isSearch({ name }: Pick<ToolCallPart, "name">): boolean {
  return name === WEB_SEARCH;
}

/** Of a format that shows images from some sources. */
export function lossOfImage(shown: ReadonlySet<MediaSource["kind"]>) {
  return (part: AnswerPart): AnswerLoss | undefined =>
    part.type === "image" && shown.has(part.source.kind) ? undefined : "answer.images";
}

/** Of a format that shows the items which came in its own words. */
export function lossOfItem(own: ProtocolName) {
  return (part: AnswerPart): AnswerLoss | undefined =>
    part.type === "opaque" && part.protocol === own ? undefined : "answer.items";
}

/** Formats show where a web page is; places in documents only their own one can name. */
export function lossOfCitation(own: ProtocolName) {
  return ({ url, origin }: Citation): AnswerLoss | undefined =>
    url !== undefined || origin?.protocol === own ? undefined : "answer.citations";
}
