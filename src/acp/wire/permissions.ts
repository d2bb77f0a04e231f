// Questions to the person in front of the editor, asked in both protocols' words and answered in either.

import type { PermissionAnswer } from "../../agent/editor.ts";
import type { ToolCallView } from "../../agent/updates.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { encodeCall } from "./updates.ts";

const KINDS = ["allow_once", "allow_always", "reject_once", "reject_always"] as const;

const ANSWERS: ReadonlySet<unknown> = new Set([...KINDS, "cancelled"]);

/** Where an answer may stand in an object, the most telling first. */
const PLACES = ["optionId", "outcome", "decision"];

/** @param outside - the folders for which an "always" will hold; none: the session's */
export function encodePermissionRequest(
  sessionId: string,
  call: ToolCallView,
  outside: readonly string[] = [],
): JsonObject {
  const { toolCallId, title, kind } = call;
  const toolCall = encodeCall(call);
  const options = optionsFor(outside.length === 0 ? "in this session" : `in ${outside.join(", ")}`);
  return { sessionId, toolCall, options, toolCallId, title, kind, locations: toolCall.locations };
}

/** An option's id is its kind, because clients of Signalbox's own form answer with the kind. */
function optionsFor(where: string): JsonObject[] {
  const names = ["Allow", `Always allow ${where}`, "Reject", `Always reject ${where}`];
  return KINDS.map((kind, index) => ({ optionId: kind, name: names[index], kind }));
}

/** "allow_once", {outcome: "allow_once"}, {optionId}, {decision}, {outcome: {outcome: "selected", optionId}}, ... */
export function decodePermission(result: unknown): PermissionAnswer {
  const inner = isObject(result) && isObject(result.outcome) ? result.outcome : result;
  // An answer that cancels selects nothing, whatever else it says.
  if (isObject(inner) && inner.outcome === "cancelled") return "cancelled";
  const words = isObject(inner) ? PLACES.map((place) => inner[place]) : [inner];
  const answer = words.find((word) => ANSWERS.has(word));
  return (answer as PermissionAnswer | undefined) ?? "reject_once";
}
