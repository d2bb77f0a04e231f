// The proof of a thought whose origin is another format than the client's: what is written into a signature that the
// client sends back, and what is read from it.

import type { ProtocolName, ReasoningPart } from "../generation/content.ts";
import { compact, type JsonObject } from "../lib/json.ts";
import { optionalText } from "./reading.ts";

const ORIGINS: ReadonlySet<string> = new Set<ProtocolName>([
  ...["chat", "responses", "generate-content", "messages", "converse"],
]);

export type Seal = Pick<ReasoningPart, "signature" | "sealed" | "origin" | "itemId">;

/** Undefined where there is nothing to bring back. */
export function sealPayload({ origin, signature, sealed, itemId }: Seal): JsonObject | undefined {
  if (origin === undefined || (signature === undefined && sealed === undefined)) return undefined;
  return { o: origin, s: signature, d: sealed, i: itemId };
}

/** What sealPayload() was given; empty for a payload that was tampered with. */
export function sealIn({ o, s, d, i }: JsonObject): Seal {
  const proof = compact({ signature: optionalText(s), sealed: optionalText(d) });
  const origin = optionalText(o);
  if (origin === undefined || !ORIGINS.has(origin) || Object.keys(proof).length === 0) return {};
  return { origin, ...proof, ...compact({ itemId: optionalText(i) }) };
}
