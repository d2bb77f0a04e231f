// Why an answer ended, and which endings are failures.

import type { Failure, Finish, FinishReason } from "../../generation/result.ts";

const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ["end_turn", "stop"],
  ["tool_use", "tool-calls"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["stop_sequence", "stop-sequence"],
  ["guardrail_intervened", "content-filter"],
  ["content_filtered", "content-filter"],
]);

/** The model wrote something that cannot be used. */
const FAILURES: ReadonlySet<string> = new Set(["malformed_model_output", "malformed_tool_use"]);

/** Reasons that no table knows mean that the model was done. Calls are to be run then. */
export function decodeFinish(value: string, hasToolCalls: boolean): Finish {
  const known = REASONS.get(value) ?? "stop";
  const reason = known === "stop" && hasToolCalls ? "tool-calls" : known;
  return value === "" ? { reason } : { reason, raw: { protocol: "converse", value } };
}

/** Undefined for an ending that is an answer. */
export function failureOf(stopReason: string): Failure | undefined {
  if (!FAILURES.has(stopReason)) return undefined;
  return {
    message: `The model's answer cannot be used (${stopReason}).`,
    status: 502,
    type: "backend_error",
    code: stopReason,
  };
}
