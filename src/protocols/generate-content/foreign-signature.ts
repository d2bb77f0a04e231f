// Signatures made by the gateway, for thoughts and calls that no Gemini model made. A client replays what it was given; the
// mark tells that the part must not reach a Gemini backend with it, which would refuse the signature, and the payload
// holds what the true origin needs back.
//
// Form: standard base64, because clients read a thoughtSignature as bytes and may write it again in the alphabet for URLs
// (google-genai of Python does). The bytes are MARK, then a JSON object with short keys, or nothing.

import { parseObject } from "../../lib/json.ts";
import { type Seal, sealIn, sealPayload } from "../seal-payload.ts";

/** Six bytes, so that its base64 is the same whatever follows. */
const MARK = "sbx-1:";
const ENCODED_MARK = Buffer.from(MARK, "utf8").toString("base64");

/** Longest signature; sealed thoughts of known vendors stay far below it. A longer one is left out. */
const MAX_LENGTH = 256 * 1024;

/** Marks a part that has no proof. */
export const FOREIGN_MARK = ENCODED_MARK;

export function isForeignMark(value: unknown): value is string {
  return typeof value === "string" && value.startsWith(ENCODED_MARK);
}

/** The signature of a thought that a backend of another format made; undefined where it has no proof. */
export function wrapSeal(seal: Seal): string | undefined {
  const payload = sealPayload(seal);
  if (payload === undefined) return undefined;
  const signature = Buffer.from(MARK + JSON.stringify(payload), "utf8").toString("base64");
  return signature.length > MAX_LENGTH ? undefined : signature;
}

/** What a signature proves: a Gemini model's own, or what the gateway wrapped for another; empty for a mark alone. */
export function sealOf(signature: unknown): Seal {
  if (typeof signature !== "string" || signature === "") return {};
  if (!isForeignMark(signature)) return { signature, origin: "generate-content" };
  if (signature.length > MAX_LENGTH) return {};
  const text = Buffer.from(signature, "base64").toString("utf8");
  return sealIn(parseObject(text.slice(MARK.length)) ?? {});
}
