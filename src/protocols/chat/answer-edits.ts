// What is changed in the answer of a chat engine that passes to a chat client: ids of tool calls that are not unique, and
// thoughts told in a member that few clients read. All other bytes are the engine's own.

import { needsWrapping, wrapCallId } from "../../generation/tool-call-ids.ts";
import { isObject, type JsonObject, parseObject } from "../../lib/json.ts";
import { withMembers } from "../../lib/json-members.ts";
import { hasMarker, type Markers, markersOf } from "../markers.ts";
import type { AnswerEdits } from "../protocol.ts";
import { readEvents, singleEvents } from "../sse.ts";
import type { ChatQuirks } from "./quirks.ts";

/** Only an event that has something in these members has these bytes: a quote inside a JSON string is escaped. */
const THOUGHTS = markersOf('"reasoning":"', '"reasoning": "');
const CALLS = markersOf('"tool_calls":[{', '"tool_calls": [{');
const BOTH = [...THOUGHTS, ...CALLS];

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** For one answer of a backend; undefined where nothing is ever changed. */
export function answerEdits({ tools }: JsonObject, { reasoning, uniqueCallIds }: ChatQuirks): AnswerEdits | undefined {
  const mayCall = !uniqueCallIds && Array.isArray(tools) && tools.length > 0;
  if (!reasoning.includes("reasoning")) return mayCall ? new ChatAnswerEdits(CALLS) : undefined;
  return new ChatAnswerEdits(mayCall ? BOTH : THOUGHTS);
}

class ChatAnswerEdits implements AnswerEdits {
  readonly #markers: Markers;
  #nonce: string | undefined;
  #calls = 0;

  constructor(markers: Markers) {
    this.#markers = markers;
  }

  whole(body: Uint8Array, parsed: JsonObject): Uint8Array {
    const choices = this.#editChoices(parsed.choices, "message");
    return choices === undefined ? body : withMembers(body, { choices });
  }

  push(events: Uint8Array): Uint8Array {
    if (!hasMarker(events, this.#markers)) return events;
    const pieces = singleEvents(events).map((event) => (hasMarker(event, this.#markers) ? this.#edit(event) : event));
    return Buffer.concat(pieces);
  }

  #edit(bytes: Uint8Array): Uint8Array {
    const [event] = readEvents(decoder.decode(bytes));
    const choices = event && this.#editChoices(parseObject(event.data)?.choices, "delta");
    if (event === undefined || choices === undefined) return bytes;
    const name = event.name === undefined ? "" : `event: ${event.name}\n`;
    return Buffer.concat([
      encoder.encode(`${name}data: `),
      withMembers(encoder.encode(event.data), { choices }),
      encoder.encode("\n\n"),
    ]);
  }

  /** Undefined when none has to be changed. */
  #editChoices(choices: unknown, member: "delta" | "message"): unknown[] | undefined {
    if (!Array.isArray(choices)) return undefined;
    let isChanged = false;
    const edited = choices.map((choice: unknown) => {
      const changes = isObject(choice) && isObject(choice[member]) ? this.#changesOf(choice[member]) : undefined;
      if (changes === undefined) return choice;
      isChanged = true;
      return { ...(choice as JsonObject), [member]: { ...((choice as JsonObject)[member] as JsonObject), ...changes } };
    });
    return isChanged ? edited : undefined;
  }

  #changesOf({ reasoning, reasoning_content, tool_calls }: JsonObject): JsonObject | undefined {
    const isThought = typeof reasoning === "string" && reasoning !== "" && !reasoning_content;
    const calls = this.#markers === THOUGHTS || !Array.isArray(tool_calls) ? undefined : this.#wrapIds(tool_calls);
    if (!isThought && calls === undefined) return undefined;
    return { ...(isThought && { reasoning_content: reasoning }), ...(calls !== undefined && { tool_calls: calls }) };
  }

  /** Undefined when all ids can pass. An engine that repeats an id with the pieces of its call names its index, too. */
  #wrapIds(calls: readonly unknown[]): unknown[] | undefined {
    const isPlain = (call: unknown) =>
      !isObject(call) || typeof call.id !== "string" || call.id === "" || !needsWrapping(call.id);
    if (calls.every(isPlain)) return undefined;
    this.#nonce ??= crypto.randomUUID().replaceAll("-", "");
    const nonce = this.#nonce;
    return calls.map((call) => {
      if (isPlain(call)) return call;
      const { id, index } = call as JsonObject;
      const ordinal = typeof index === "number" && index >= 0 ? index : this.#calls++;
      return { ...(call as JsonObject), id: wrapCallId(id as string, nonce, ordinal) };
    });
  }
}
