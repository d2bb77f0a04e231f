// The body of a recorded request as it is asked again.

import { parseObject } from "../lib/json.ts";
import { withMembers } from "../lib/json-members.ts";
import { bothHalves, passThrough } from "../protocols/registry.ts";
import { settingsFor } from "../protocols/request-settings.ts";
import type { RecordedBody } from "./recording.ts";
import type { ReplaySpec } from "./replay.ts";

/** A text says why it cannot be asked. */
export function replayBody(
  operation: string,
  { content, incomplete }: RecordedBody,
  { ask, set, instructions }: Pick<ReplaySpec, "ask" | "set" | "instructions">,
): Uint8Array | string {
  const format = bothHalves(operation);
  if (format === undefined)
    return `requests of the operation ${operation} are no conversations, and cannot be replayed`;
  if (incomplete !== null) return `the request was not kept as a whole (${incomplete})`;
  const value = parseObject(new TextDecoder().decode(content));
  if (value === undefined) return "the request is no JSON object";
  const merge = { strategy: "replace", separator: "" } as const;
  const prompted = instructions === null ? {} : passThrough(operation).injectPrompt?.(value, instructions, merge);
  if (prompted === undefined) return `requests of the format ${operation} have no place for a prompt`;
  // Gemini's requests name their model in the path.
  const named = ask !== null && typeof value.model === "string" ? { model: ask } : {};
  const changed = {
    ...prompted,
    ...(set !== null && settingsFor(format.client, { ...value, ...prompted }, set)),
    ...named,
  };
  return Object.keys(changed).length === 0 ? content : withMembers(content, changed);
}
