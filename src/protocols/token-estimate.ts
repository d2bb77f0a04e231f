// What estimates of input tokens share, for backends that cannot count.
//
// Heuristic: a token is about four ASCII letters; scripts beyond Latin need up to one token per character, which their
// length in UTF-8 tells (three bytes for most CJK characters). Pictures and files count by kind, not by their base64.
// Every turn and tool has a small overhead. The result is meant to be slightly high rather than low.

import { USUAL_BYTES_PER_TOKEN } from "../generation/token-facts.ts";

/** What each byte beyond the first of a character adds, in characters. */
const WEIGHT_OF_EXTRA_BYTE = 1.5;
const TOKENS_PER_PAGE = 2_000;
/** Base64 characters of a page in an ordinary PDF. */
const PAGE_LENGTH = 70_000;

export const TOKENS_PER_TURN = 4;
/** Of a block, or a part. */
export const TOKENS_PER_BLOCK = 2;
export const TOKENS_PER_TOOL = 12;
/** The instructions that a list of tools brings along. */
export const TOKENS_FOR_TOOLS = 300;

export function textTokens(text: string): number {
  const extraBytes = Buffer.byteLength(text, "utf8") - text.length;
  return (text.length + WEIGHT_OF_EXTRA_BYTE * extraBytes) / USUAL_BYTES_PER_TOKEN;
}

export function jsonTokens(value: unknown): number {
  return value === undefined ? 0 : textTokens(JSON.stringify(value));
}

export function pageTokens(base64: string): number {
  return TOKENS_PER_PAGE * Math.max(1, Math.ceil(base64.length / PAGE_LENGTH));
}
