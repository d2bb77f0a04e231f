// Ids of tool calls that stay unique over a whole conversation. Some engines count from 0
// in every answer; their ids reach clients as crt_<answer>x<count>_<id in base64url> and are decoded when they come back.

import type { AnswerTransform } from "./answer-transform.ts";
import type { ContentPart } from "./content.ts";
import type { GenerationRequest } from "./request.ts";

/** Ids of these forms are random: they pass unchanged. */
const UNIQUE_PREFIXES: readonly string[] = ["toolu_", "call_", "fc_", "chatcmpl-tool-"];

/** Digits of the answer's nonce: enough to tell the answers of one conversation apart. */
const NONCE_DIGITS = 10;
/** A longer id is not carried inside the new one; it is then not decoded either, which call and result do alike. */
const LONGEST_CARRIED_BYTES = 256;
const WRAPPED = /^crt_[0-9a-f]{10}x[0-9a-z]+_([A-Za-z0-9_-]+)$/;

export function needsWrapping(id: string): boolean {
  return !UNIQUE_PREFIXES.some((prefix) => id.startsWith(prefix));
}

/** `ordinal` counts the calls of the answer: one answer may use an id twice. */
export function wrapCallId(id: string, nonce: string, ordinal: number): string {
  if (!needsWrapping(id)) return id;
  const answer = nonce.slice(0, NONCE_DIGITS);
  const count = ordinal.toString(36);
  const bytes = Buffer.from(id, "utf8");
  const isCarried = bytes.length > 0 && bytes.length <= LONGEST_CARRIED_BYTES && id.isWellFormed();
  return isCarried ? `crt_${answer}x${count}_${bytes.toString("base64url")}` : `crt_${answer}o${count}`;
}

/** The backend's own id; any other text comes back as it is. */
export function unwrapCallId(id: string): string {
  if (!id.startsWith("crt_")) return id;
  const [, encoded] = WRAPPED.exec(id) ?? [];
  if (encoded === undefined) return id;
  const bytes = Buffer.from(encoded, "base64url");
  const text = bytes.toString("utf8");
  // What was not made here does not survive the way back.
  return Buffer.from(text, "utf8").toString("base64url") === encoded ? text : id;
}

/** Gives the calls of an answer their unique ids; calls that the backend runs itself keep theirs. */
export function wrapCallIds(nonce: string): AnswerTransform {
  return () => {
    let ordinal = 0;
    return {
      push(event) {
        if (event.type !== "part-start" || event.part.type !== "tool-call" || event.part.serverSide) return [event];
        const id = wrapCallId(event.part.id, nonce, ordinal++);
        return id === event.part.id ? [event] : [{ ...event, part: { ...event.part, id } }];
      },
      end: () => [],
    };
  };
}

/**
 * The request with the ids that its backend gave; `origin` and `extensions` stay as they are. Ids that would become the
 * same one again stay wrapped: backends look results up by their id, or refuse ids that appear twice.
 * @param signatureOf - the signature that is remembered under the id that the client knows, where it is of use
 */
export function unwrapCallIds(
  request: GenerationRequest,
  signatureOf?: (clientId: string) => string | undefined,
): GenerationRequest {
  const originals = originalCallIds(callIdsOf(request));
  if (originals.size === 0) return request;
  const unwrapped = (part: ContentPart): ContentPart => {
    if (part.type === "tool-result") return { ...part, callId: originals.get(part.callId) ?? part.callId };
    const id = part.type === "tool-call" ? originals.get(part.id) : undefined;
    if (part.type !== "tool-call" || id === undefined) return part;
    const signature = part.signature ?? signatureOf?.(part.id);
    return { ...part, id, ...(signature !== undefined && { signature }) };
  };
  const messages = request.messages.map((message) => ({ ...message, parts: message.parts.map(unwrapped) }));
  return { ...request, messages };
}

function callIdsOf({ messages }: GenerationRequest): string[] {
  return messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === "tool-call" ? part.id : part.type === "tool-result" ? part.callId : [])),
  );
}

/** The backend's own ids of those that were rewritten and stay apart without it, by the id that the client knows. */
export function originalCallIds(ids: Iterable<string>): Map<string, string> {
  const originals = new Map<string, string>();
  const plain = new Set<string>();
  for (const id of ids) {
    if (originals.has(id)) continue;
    const original = unwrapCallId(id);
    if (original === id) plain.add(id);
    else originals.set(id, original);
  }
  const uses = new Map<string, number>();
  for (const original of originals.values()) uses.set(original, (uses.get(original) ?? 0) + 1);
  return new Map([...originals].filter(([, original]) => uses.get(original) === 1 && !plain.has(original)));
}
