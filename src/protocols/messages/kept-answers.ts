// Messages answers that are kept and given again.

import { isObject, isPresent, type JsonObject, parseObject } from "../../lib/json.ts";
import type { KeptAnswers } from "../kept-answers.ts";
import { objectOf, objectsOf, textOf } from "../reading.ts";
import { readEvents } from "../sse.ts";
import { asStream, asWhole } from "./change-form.ts";

/** The vendor's names for tools that the client runs itself, and for the search among tools; a date is behind each. */
const CLIENTS_OWN = /^(?:custom$|bash_|text_editor_|computer_|memory_|tool_search_tool_)/;

/** What the vendor only looks up for the model, and may find changed the next time. */
const LOOKS_UP = /^web_(?:search|fetch)_/;

/** Blocks that do nothing but say something, or ask the client to do it. */
const SAID: ReadonlySet<unknown> = new Set(["text", "thinking", "redacted_thinking", "tool_use"]);

/** Quotes in texts are escaped, so that this is a member of an event: an error, or a block of the vendor's own doing. */
const NOT_KEPT = /"type":\s*"(?:error|server_tool_use|mcp_tool_use|container_upload|\w+_tool_result)"/;

export const messagesKept: KeptAnswers = {
  withoutEffect: new Set(["metadata"]),
  hasSideEffect: ({ container, mcp_servers, tools }) =>
    isPresent(container) || objectsOf(mcp_servers).length > 0 || typesOf(tools).some((type) => !isHarmless(type)),
  dependsOnMore: ({ tools }) => typesOf(tools).some((type) => LOOKS_UP.test(type)),
  isWhole,
  isWholeStream,
  asStream(answer) {
    const message = parseObject(answer);
    return message !== undefined && isWhole(message) ? asStream(message, answer) : undefined;
  },
  asWhole: (events) => asWhole(readEvents(events)),
};

function isHarmless(type: string): boolean {
  return CLIENTS_OWN.test(type) || LOOKS_UP.test(type);
}

/** Of all tools; one without a type is the client's own. */
function typesOf(tools: unknown): string[] {
  return objectsOf(tools).map(({ type }) => (isPresent(type) ? textOf(type) : "custom"));
}

function isWhole({ error, content, container, stop_reason }: JsonObject): boolean {
  if (isPresent(error) || isPresent(container) || !hasEnded(stop_reason)) return false;
  return Array.isArray(content) && content.every((block) => isObject(block) && SAID.has(block.type));
}

/** A turn that the vendor has paused is to be gone on with. */
function hasEnded(stopReason: unknown): boolean {
  return typeof stopReason === "string" && stopReason !== "pause_turn";
}

function isWholeStream(text: string): boolean {
  if (NOT_KEPT.test(text)) return false;
  const events = readEvents(text);
  if (parseObject(events.at(-1)?.data ?? "")?.type !== "message_stop") return false;
  const end = events.findLast(({ data }) => data.includes('"message_delta"'));
  const { stop_reason, container } = objectOf(parseObject(end?.data ?? "")?.delta);
  return hasEnded(stop_reason) && !isPresent(container);
}
