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
]);

/** The model wrote something that nobody can use. */
const FAILURES: ReadonlySet<string> = new Set([
  "MALFORMED_FUNCTION_CALL",
  "UNEXPECTED_TOOL_CALL",
  "TOO_MANY_TOOL_CALLS",
  "MALFORMED_RESPONSE",
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
export function failureOf(finishReason: string, finishMessage: string | undefined): Failure | undefined {
  if (!FAILURES.has(finishReason)) return undefined;
  const message = finishMessage === undefined ? "" : ` ${finishMessage}`;
  return {
    message: `The model's answer cannot be used (${finishReason}).${message}`,
    status: 502,
    type: "backend_error",
    code: finishReason.toLowerCase(),
  };
}
