// Signatures made by the gateway, for thinking and search results that no Messages backend made. A client replays what
// it was given; the mark tells that the block must not reach a Messages backend, which would refuse its signature, and
// the payload holds what the true origin needs back, e.g. the encrypted_content of a Responses item.
//
// Form: MARK, then base64url of a JSON object with short keys, or nothing. The whole is base64url.

import { type JsonObject, parseObject } from "../../lib/json.ts";
import { optionalText } from "../reading.ts";
import { type Seal, sealIn, sealPayload } from "../seal-payload.ts";

const MARK = "sbx1_";

/** Longest payload; sealed thoughts of known vendors stay far below it. A longer one is left out. */
const MAX_PAYLOAD_LENGTH = 256 * 1024;

/** Search snippets come back with every turn, so they are kept short. In UTF-16 code units. */
const MAX_SNIPPET_LENGTH = 8 * 1024;

export function isForeignMark(value: unknown): value is string {
  return typeof value === "string" && value.startsWith(MARK);
}

/** The signature of a thinking block whose proof, if it has one, belongs to another protocol. */
export function wrapSeal(seal: Seal): string {
  const payload = sealPayload(seal);
  return payload === undefined ? MARK : mark(payload);
}

/** What wrapSeal was given; empty for a mark without payload and for one that was tampered with. */
export function unwrapSeal(signature: string): Seal {
  return sealIn(payloadOf(signature) ?? {});
}

/** The encrypted_content of a search hit that the gateway found itself. */
export function wrapSnippet(snippet: string | undefined): string {
  return snippet === undefined ? MARK : mark({ t: snippet.slice(0, MAX_SNIPPET_LENGTH) });
}

export function unwrapSnippet(encryptedContent: string): string | undefined {
  return optionalText(payloadOf(encryptedContent)?.t);
}

function mark(payload: JsonObject): string {
  const encoded = Buffer.from(JSON.stringify(payload), "utf8").toString("base64url");
  return encoded.length > MAX_PAYLOAD_LENGTH ? MARK : MARK + encoded;
}

/** Undefined for the mark alone, and for a payload that was changed. */
function payloadOf(marked: string): JsonObject | undefined {
  if (!isForeignMark(marked) || marked.length > MARK.length + MAX_PAYLOAD_LENGTH) return undefined;
  return parseObject(Buffer.from(marked.slice(MARK.length), "base64url").toString("utf8"));
}
