// Stop reasons of the Messages format and what they mean in the neutral model.

import type { Finish, FinishReason } from "../../generation/result.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import { optionalText } from "../reading.ts";

const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ["end_turn", "stop"],
  ["stop_sequence", "stop-sequence"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "tool-calls"],
  ["refusal", "content-filter"],
  ["pause_turn", "pause"],
  ["compaction", "stop"],
]);

const STOP_REASONS: Record<FinishReason, string> = {
  stop: "end_turn",
  "stop-sequence": "stop_sequence",
  length: "max_tokens",
  "tool-calls": "tool_use",
  "content-filter": "refusal",
  pause: "pause_turn",
};

/** Without a stop reason the parts decide. */
export function decodeFinish(stopReason: unknown, stopSequence: unknown, hasToolCalls: boolean): Finish {
  if (typeof stopReason !== "string") return { reason: hasToolCalls ? "tool-calls" : "stop" };
  return {
    reason: REASONS.get(stopReason) ?? "stop",
    raw: { protocol: "messages", value: stopReason },
    ...compact({ stopSequence: optionalText(stopSequence) }),
  };
}

interface FinishShape {
  hasToolCalls: boolean;
  hasRefusal: boolean;
}

export function encodeFinish(finish: Finish, shape: FinishShape): JsonObject {
  const reason = stopReasonOf(finish, shape);
  return {
    stop_reason: reason,
    stop_sequence: reason === "stop_sequence" ? (finish.stopSequence ?? null) : null,
    stop_details: reason === "refusal" ? { type: "refusal", category: null, explanation: null } : null,
  };
}

function stopReasonOf({ reason, raw, stopSequence }: Finish, { hasToolCalls, hasRefusal }: FinishShape): string {
  if (raw?.protocol === "messages") return raw.value;
  // Clients wait for tool results by the reason, so it has to agree with the blocks.
  if (reason === "tool-calls") return hasToolCalls ? "tool_use" : "end_turn";
  if (reason === "stop" || reason === "stop-sequence") {
    if (hasToolCalls) return "tool_use";
    if (hasRefusal) return "refusal";
    return stopSequence === undefined ? "end_turn" : "stop_sequence";
  }
  return STOP_REASONS[reason];
}
