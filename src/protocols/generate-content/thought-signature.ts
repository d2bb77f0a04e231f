// Thought signatures of calls: newer models refuse a call of theirs that comes back without its own.

import type { ToolCallPart } from "../../generation/content.ts";
import type { BackendTarget } from "../protocol.ts";
import type { ModelRules } from "./model-rules.ts";

/** The value that Google documents for calls that another model made, or whose signature is lost. */
export const SKIP_VALIDATION = "skip_thought_signature_validator";

/**
 * What stands beside a call: the signature that it came with, or the one that the gateway remembers. Of the calls of one
 * answer only the first has one, so only the first gets a stand-in.
 */
export function signatureOfCall(
  call: ToolCallPart,
  isFirst: boolean,
  { signatures }: ModelRules,
  target: BackendTarget,
): string | undefined {
  if (signatures === "none") return undefined;
  const known = call.signature ?? target.signatureOf?.(call.id);
  if (known !== undefined && known !== "") return known;
  return isFirst && signatures === "required" ? SKIP_VALIDATION : undefined;
}
