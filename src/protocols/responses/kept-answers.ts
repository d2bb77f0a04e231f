// Responses answers that are kept and given again. An answer repeats much of its request, so that every member of a
// request counts.

import { isObject, isPresent, type JsonObject, parseObject } from "../../lib/json.ts";
import type { KeptAnswers } from "../kept-answers.ts";
import { objectOf, objectsOf, textOf } from "../reading.ts";
import { readEvents } from "../sse.ts";
import { NAMESPACE } from "./namespaces.ts";
import { wholeAsEvents } from "./whole-as-events.ts";

/** Tools that the client runs itself: to offer them does nothing. */
const CLIENTS_OWN: ReadonlySet<string> = new Set(["function", "custom", "local_shell", "apply_patch"]);

/** What a vendor only looks up for the model, and may find changed the next time. */
const LOOKS_UP = /^(?:web_search|file_search|tool_search)/;

/** Items that do nothing but say something, or ask the client to do it. */
const SAID: ReadonlySet<string> = new Set([
  ...["message", "reasoning", "function_call", "custom_tool_call"],
  ...["local_shell_call", "apply_patch_call"],
]);

/** Quotes in texts are escaped, so that this is a member of an event. */
const ERROR_EVENT = /"type":\s*"error"/;

const ITEM_DONE = '"response.output_item.done"';

export const responsesKept: KeptAnswers = {
  withoutEffect: new Set(),
  // That a vendor keeps the answer, which it does unless asked not to, is seen to by those who take it up
  // (docs/decisions/0045).
  hasSideEffect: (body) =>
    body.background === true || isPresent(body.conversation) || offered(body).some((type) => !isHarmless(type)),
  keepingNothing: ({ store }) => (store === false ? undefined : { store: false }),
  // A prompt that the vendor keeps may be another one tomorrow.
  dependsOnMore: (body) => isPresent(body.prompt) || offered(body).some((type) => LOOKS_UP.test(type)),
  isWhole,
  isWholeStream: (events) => !ERROR_EVENT.test(events) && finalResponse(events) !== undefined,
  asStream(answer) {
    const response = parseObject(answer);
    return response !== undefined && isWhole(response) ? wholeAsEvents(response) : undefined;
  },
  asWhole(events) {
    const response = finalResponse(events);
    return response && JSON.stringify(response);
  },
};

function isHarmless(type: string): boolean {
  return CLIENTS_OWN.has(type) || LOOKS_UP.test(type);
}

/** The types of all tools of a request, those that its items bring included. */
function offered({ tools, input }: JsonObject): string[] {
  const brought = objectsOf(input).filter(({ type }) => type === "additional_tools");
  return [tools, ...brought.map((item) => item.tools)].flatMap(objectsOf).flatMap(typesOf);
}

function typesOf(tool: JsonObject): string[] {
  return tool.type === NAMESPACE ? objectsOf(tool.tools).flatMap(typesOf) : [textOf(tool.type)];
}

function isWhole({ status, error, output }: JsonObject): boolean {
  if (status !== "completed" || isPresent(error)) return false;
  return Array.isArray(output) && output.length > 0 && output.every(isFinishedItem);
}

function isFinishedItem(item: unknown): boolean {
  if (!isObject(item) || !SAID.has(textOf(item.type))) return false;
  return !isPresent(item.status) || item.status === "completed";
}

/** What the last event of a complete stream holds; undefined also where that is less than what came before. */
function finalResponse(text: string): JsonObject | undefined {
  const events = readEvents(text);
  const last = parseObject(events.at(-1)?.data ?? "");
  if (last?.type !== "response.completed") return undefined;
  const response = objectOf(last.response);
  if (!isWhole(response)) return undefined;
  const told = events.filter(({ data }) => data.includes(ITEM_DONE)).length;
  return told === (response.output as unknown[]).length ? response : undefined;
}
