// Under which ids a vendor keeps a Responses answer that passes untouched, read without looking into the whole of it.

import { isObject, type JsonObject } from "../../lib/json.ts";

/** The id stands at the beginning of a response. */
const START_BYTES = 4096;

const SCALAR = String.raw`"(?:[^"\\]|\\.)*"|[\w.+-]+`;

/** Only plain values may stand before the id: what a client can have echoed as an object is not taken for it. */
const START = String.raw`\{\s*(?:"\w+"\s*:\s*(?:${SCALAR})\s*,\s*)*?`;

const ID = String.raw`"id"\s*:\s*"([^"\\]{1,200})"`;

const OF_ANSWER = new RegExp(`^\\s*${START}${ID}`);
const OF_FIRST_EVENT = new RegExp(`^data:\\s*${START}"response"\\s*:\\s*${START}${ID}`, "m");

const decoder = new TextDecoder();

/** The id of a plain answer, or of the answer that the first events of a stream announce. */
export function responseIdAtStart(bytes: Uint8Array, form: "plain" | "stream"): string | undefined {
  const start = decoder.decode(bytes.subarray(0, START_BYTES));
  return (form === "plain" ? OF_ANSWER : OF_FIRST_EVENT).exec(start)?.[1];
}

/** The ids of the items of a complete answer. */
export function outputItemIds({ output }: JsonObject): string[] {
  if (!Array.isArray(output)) return [];
  return output.flatMap((item: unknown) => (isObject(item) && typeof item.id === "string" ? [item.id] : []));
}
