// Why an answer ended, and which endings are failures.

import type { Failure, Finish, FinishReason } from "../../generation/result.ts";

const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ["STOP", "stop"],
  ["MAX_TOKENS", "length"],
  // The rest could be had with continuationToken. The gateway does not ask for it: to the client it was cut off.
  ["CONTINUATION", "length"],
  ["SAFETY", "content-filter"],
  ["RECITATION", "content-filter"],
  ["LANGUAGE", "content-filter"],
  ["BLOCKLIST", "content-filter"],
  ["PROHIBITED_CONTENT", "content-filter"],
  ["SPII", "content-filter"],
  ["IMAGE_SAFETY", "content-filter"],
  ["IMAGE_PROHIBITED_CONTENT", "content-filter"],
  ["IMAGE_RECITATION", "content-filter"],
  ["MODEL_ARMOR", "content-filter"],
]);

/** Endings that are no answer, with their HTTP status: the model wrote something that cannot be used. */
const FAILURES: ReadonlyMap<string, number> = new Map([
  ["MALFORMED_FUNCTION_CALL", 502],
  ["UNEXPECTED_TOOL_CALL", 502],
  ["TOO_MANY_TOOL_CALLS", 502],
  ["MALFORMED_RESPONSE", 502],
  // The conversation lacks a proof: asking again with the same history does not help.
  ["MISSING_THOUGHT_SIGNATURE", 400],
]);

/** No picture came of it; what was said instead, if anything, is the answer. */
const EMPTY_FAILURES: ReadonlyMap<string, number> = new Map([
  ["NO_IMAGE", 502],
  ["IMAGE_OTHER", 502],
]);

/** Reasons that no table knows, OTHER among them, mean that the model was done. Calls are to be run then. */
export function decodeFinish(value: string, hasToolCalls: boolean): Finish {
  const known = REASONS.get(value) ?? "stop";
  const reason = known === "stop" && hasToolCalls ? "tool-calls" : known;
  return value === "" ? { reason } : { reason, raw: { protocol: "generate-content", value } };
}

/** Nothing was answered because the prompt was refused. */
export function blockedFinish(blockReason: string): Finish {
  return { reason: "content-filter", raw: { protocol: "generate-content", value: blockReason } };
}

/** Undefined for an ending that is an answer. */
export function failureOf(
  finishReason: string,
  finishMessage: string | undefined,
  isEmpty: boolean,
): Failure | undefined {
  const status = FAILURES.get(finishReason) ?? (isEmpty ? EMPTY_FAILURES.get(finishReason) : undefined);
  if (status === undefined) return undefined;
  const message = finishMessage === undefined ? "" : ` ${finishMessage}`;
  return {
    message: `The model's answer cannot be used (${finishReason}).${message}`,
    status,
    type: status < 500 ? "invalid_request_error" : "backend_error",
    code: finishReason.toLowerCase(),
  };
}

const FINISH_REASONS: Record<FinishReason, string> = {
  stop: "STOP",
  "stop-sequence": "STOP",
  length: "MAX_TOKENS",
  // Clients see by the parts that there are functions to call.
  "tool-calls": "STOP",
  "content-filter": "SAFETY",
  pause: "OTHER",
};

/** The reason for clients; a Gemini backend's own stays as it was said. */
export function encodeFinish({ reason, raw }: Finish): string {
  return raw?.protocol === "generate-content" ? raw.value : FINISH_REASONS[reason];
}

/** Nothing was answered because the prompt was refused: why; undefined for any other ending. */
export function blockReasonOf({ reason, raw }: Finish): string | undefined {
  const isBlock = reason === "content-filter" && raw?.protocol === "generate-content" && !REASONS.has(raw.value);
  return isBlock ? raw.value : undefined;
}
