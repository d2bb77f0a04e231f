// What proves a model's thoughts, as the encrypted_content of a reasoning item. That of a Responses backend passes as it
// is; that of other protocols travels in a token of the gateway's own. The token is no secret and protects nothing:
// the proof inside is checked by the vendor that made it.

import type { ProtocolName, ReasoningPart } from "../../generation/content.ts";
import { compact, parseObject } from "../../lib/json.ts";
import { invalidField } from "../fields.ts";
import { nonEmptyText } from "../reading.ts";

const PREFIX = "signalbox.1.";

const PROTOCOLS: readonly unknown[] = ["chat", "completions", "messages", "generate-content", "converse"];

export type Proof = Pick<ReasoningPart, "origin" | "signature" | "sealed">;

/** `hiddenText` are thoughts that the item itself does not show but that must come back with their proof. */
export function sealToken(proof: Proof, hiddenText = ""): string | undefined {
  const { origin, sealed, signature } = proof;
  if (origin === undefined || (sealed === undefined && signature === undefined)) return undefined;
  if (origin === "responses") return sealed;
  const content = { origin, signature, sealed, ...(hiddenText !== "" && { text: hiddenText }) };
  return PREFIX + Buffer.from(JSON.stringify(content), "utf8").toString("base64url");
}

/** Whether the gateway wrote it, for another protocol's proof. */
export function isOwnToken(encrypted: string): boolean {
  return encrypted.startsWith(PREFIX);
}

/** The proof in a reasoning item of a request. Throws a 400 for a token that was cut or changed. */
export function openSealToken(encrypted: string, param: string): Proof & { text?: string } {
  if (!isOwnToken(encrypted)) return { origin: "responses", sealed: encrypted };
  const content = parseObject(Buffer.from(encrypted.slice(PREFIX.length), "base64url").toString("utf8"));
  if (content === undefined || !PROTOCOLS.includes(content.origin)) {
    throw invalidField(
      param,
      "is not as this gateway wrote it; send reasoning items back unchanged, or leave them out.",
    );
  }
  return compact({
    origin: content.origin as ProtocolName,
    signature: nonEmptyText(content.signature),
    sealed: nonEmptyText(content.sealed),
    text: nonEmptyText(content.text),
  });
}
