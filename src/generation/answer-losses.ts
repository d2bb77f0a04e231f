// What of an answer a client's format has no place for: the same names stand in the log, the counter, the header
// X-Signalbox-Dropped and docs/api.md.

import type { Citation, ContentPart, ProtocolName } from "./content.ts";
import type { PartStart } from "./events.ts";

export type AnswerLoss =
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

/** By the client's format: which parts it cannot show, and as what they count. Left out: it shows all of the kind. */
const LOSSES: Readonly<Record<string, Partial<Record<Part["type"], (part: Part) => AnswerLoss | undefined>>>> = {
  chat: {
    "tool-call": (part) => (isSearch(part) ? "answer.searches" : undefined),
    "search-result": () => "answer.searches",
    opaque: () => "answer.items",
    audio: () => "answer.audio",
    image: (part) => (imageKind(part) === "file" ? "answer.images" : undefined),
  },
  responses: {
    opaque: (part) => (isOf("responses", part) ? undefined : "answer.items"),
    audio: () => "answer.audio",
    image: (part) => (imageKind(part) === "base64" ? undefined : "answer.images"),
  },
  messages: {
    opaque: (part) => (isOf("messages", part) ? undefined : "answer.items"),
    audio: () => "answer.audio",
    image: () => "answer.images",
  },
  completions: {
    "tool-call": (part) => (isSearch(part) ? "answer.searches" : "answer.calls"),
    "search-result": () => "answer.searches",
    reasoning: () => "answer.thoughts",
    opaque: () => "answer.items",
    audio: () => "answer.audio",
    image: () => "answer.images",
  },
};

function isSearch(part: Part): boolean {
  return part.type === "tool-call" && part.serverSide === true;
}

function isOf(protocol: ProtocolName, part: Part): boolean {
  return part.type === "opaque" && part.protocol === protocol;
}

function imageKind(part: Part): string | undefined {
  return part.type === "image" ? part.source.kind : undefined;
}

/** Undefined for a part that the client gets. */
export function lossOfPart(part: Part, client: ProtocolName): AnswerLoss | undefined {
  return LOSSES[client]?.[part.type]?.(part);
}

/** Chat and the others show where a web page is; places in documents only their own format can name. */
export function lossOfCitation({ url, origin }: Citation, client: ProtocolName): AnswerLoss | undefined {
  if (client === "completions") return "answer.citations";
  const isShown = url !== undefined || (client !== "chat" && origin?.protocol === client);
  return isShown ? undefined : "answer.citations";
}
