// Questions to the person in front of the editor, asked in both protocols' words and answered in either.

import type { PermissionAnswer } from "../../agent/editor.ts";
import type { ToolCallView } from "../../agent/updates.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { encodeCall } from "./updates.ts";

/** An option's id is its kind, which is what the specification's clients answer. */
const OPTIONS = [
  { optionId: "allow_once", name: "Allow", kind: "allow_once" },
  { optionId: "allow_always", name: "Always allow in this session", kind: "allow_always" },
  { optionId: "reject_once", name: "Reject", kind: "reject_once" },
  { optionId: "reject_always", name: "Always reject in this session", kind: "reject_always" },
] as const;

const ANSWERS: ReadonlySet<unknown> = new Set([...OPTIONS.map(({ optionId }) => optionId), "cancelled"]);

/** Where an answer may stand in an object, the most telling first. */
const PLACES = ["optionId", "outcome", "decision"];

export function encodePermissionRequest(sessionId: string, call: ToolCallView): JsonObject {
  const { toolCallId, title, kind } = call;
  const toolCall = encodeCall(call);
  return { sessionId, toolCall, options: OPTIONS, toolCallId, title, kind, locations: toolCall.locations };
}

/** "allow_once", {outcome: "allow_once"}, {optionId}, {decision}, {outcome: {outcome: "selected", optionId}}, ... */
export function decodePermission(result: unknown): PermissionAnswer {
  const inner = isObject(result) && isObject(result.outcome) ? result.outcome : result;
  // Whoever cancels selects nothing, whatever else it says.
  if (isObject(inner) && inner.outcome === "cancelled") return "cancelled";
  const words = isObject(inner) ? PLACES.map((place) => inner[place]) : [inner];
  const answer = words.find((word) => ANSWERS.has(word));
  return (answer as PermissionAnswer | undefined) ?? "reject_once";
}
