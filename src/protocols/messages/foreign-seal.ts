// Signatures made by the gateway, for thinking and search results that no Messages backend made. A client replays what
// it was given; the mark tells that the block must not reach a Messages backend, which would refuse its signature, and
// the payload holds what the true origin needs back, e.g. the encrypted_content of a Responses item.
//
// Form: MARK, then base64url of a JSON object with short keys, or nothing. The whole is base64url.

import type { ProtocolName, ReasoningPart } from "../../generation/content.ts";
import { compact, type JsonObject, parseObject } from "../../lib/json.ts";
import { optionalText } from "../reading.ts";

const MARK = "sbx1_";

/** Longest payload; sealed thoughts of known vendors stay far below it. A longer one is left out. */
const MAX_PAYLOAD_LENGTH = 256 * 1024;

/** Search snippets come back with every turn, so they are kept short. In UTF-16 code units. */
const MAX_SNIPPET_LENGTH = 8 * 1024;

const ORIGINS: ReadonlySet<string> = new Set<ProtocolName>([
  ...["chat", "responses", "generate-content", "messages", "converse"],
]);

export type Seal = Pick<ReasoningPart, "signature" | "sealed" | "origin" | "itemId">;

export function isForeignMark(value: unknown): value is string {
  return typeof value === "string" && value.startsWith(MARK);
}

/** The signature of a thinking block whose proof, if it has one, belongs to another protocol. */
export function wrapSeal(seal: Seal): string {
  const { origin, signature, sealed, itemId } = seal;
  if (origin === undefined || (signature === undefined && sealed === undefined)) return MARK;
  return mark({ o: origin, s: signature, d: sealed, i: itemId });
}

/** What wrapSeal was given; empty for a mark without payload and for one that was tampered with. */
export function unwrapSeal(signature: string): Seal {
  const { o, s, d, i } = payloadOf(signature) ?? {};
  const proof = compact({ signature: optionalText(s), sealed: optionalText(d) });
  const origin = optionalText(o);
  if (origin === undefined || !ORIGINS.has(origin) || Object.keys(proof).length === 0) return {};
  return { origin, ...proof, ...compact({ itemId: optionalText(i) }) };
}

/** The encrypted_content of a search hit that the gateway found itself. */
export function wrapSnippet(snippet: string | undefined): string {
  return snippet === undefined ? MARK : mark({ t: snippet.slice(0, MAX_SNIPPET_LENGTH) });
}

export function unwrapSnippet(encryptedContent: string): string | undefined {
  return optionalText(payloadOf(encryptedContent)?.t);
}

function mark(payload: Record<string, string | undefined>): string {
  const encoded = Buffer.from(JSON.stringify(payload), "utf8").toString("base64url");
  return encoded.length > MAX_PAYLOAD_LENGTH ? MARK : MARK + encoded;
}

/** Undefined for the mark alone, and for a payload that was changed. */
function payloadOf(marked: string): JsonObject | undefined {
  if (!isForeignMark(marked) || marked.length > MARK.length + MAX_PAYLOAD_LENGTH) return undefined;
  return parseObject(Buffer.from(marked.slice(MARK.length), "base64url").toString("utf8"));
}
