// How gateways send each other messages of the queue: several in one envelope, with a number by which a lost one is noticed.

import type { FromOwner, ToOwner } from "./remote-admission.ts";

export interface Envelope {
  from: string;
  /** Of the owner that it comes from or goes to: those of an earlier owner are not read. */
  generation: number;
  /** The other gateway's own number for its time with this owner; it begins another one when a message was lost. */
  session: number;
  /** From 0 in each session and direction, without a gap. */
  number: number;
  /** By the clock of the server, not before the envelope was sent. */
  sentMs: number;
  /** The owner has missed something: the other gateway says again what it has. */
  again?: true;
  messages: readonly (ToOwner | FromOwner)[];
}

const KINDS: ReadonlySet<unknown> = new Set<(ToOwner | FromOwner)["kind"]>([
  ...(["take", "wait", "mayUse", "leave", "streamed", "ended", "holds"] as const),
  ...(["granted", "shed", "room"] as const),
]);

/** Undefined for a text that no gateway of this version has written. */
export function readEnvelope(text: string): Envelope | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(value)) return undefined;
  const { from, generation, session, number, sentMs, messages } = value;
  const isEnvelope =
    typeof from === "string" &&
    [generation, session, number].every(Number.isSafeInteger) &&
    Number.isFinite(sentMs) &&
    Array.isArray(messages);
  return isEnvelope && messages.every(isMessage) ? (value as unknown as Envelope) : undefined;
}

function isMessage(message: unknown): boolean {
  if (!isRecord(message) || !KINDS.has(message.kind)) return false;
  const { kind, id, ask, backend, backends, tokens, end, shed } = message;
  if (kind === "room") return typeof backend === "string";
  if (kind === "streamed") return Array.isArray(tokens) && tokens.every((pair) => isNumbers(pair));
  if (!Number.isSafeInteger(id)) return false;
  if (kind === "granted") return backend === undefined || typeof backend === "string";
  if (kind === "shed") return isRecord(shed) && isNumbers([shed.retryAfterMs, shed.waiting]);
  if (kind === "ended") return end === undefined || isEnd(end);
  if ((kind === "wait" || kind === "mayUse") && !isTexts(backends)) return false;
  if ((kind === "take" || kind === "holds") && typeof backend !== "string") return false;
  return kind === "mayUse" || kind === "leave" || isAsk(ask);
}

function isAsk(ask: unknown): boolean {
  if (!isRecord(ask)) return false;
  const { group, model, class: className, tenant, inputTokens, outputTokens, ageMs, patienceMs } = ask;
  return (
    isTexts([group, model, className]) && isTexts(tenant) && isNumbers([inputTokens, outputTokens, ageMs, patienceMs])
  );
}

function isEnd(end: unknown): boolean {
  if (!isRecord(end)) return false;
  const { durationMs, inputTokens = 0, cachedTokens = 0, outputTokens = 0, firstByteMs = 0 } = end;
  return isNumbers([durationMs, inputTokens, cachedTokens, outputTokens, firstByteMs]);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

function isNumbers(values: unknown): boolean {
  return Array.isArray(values) && values.every((value) => Number.isFinite(value));
}
