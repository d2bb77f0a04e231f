// An answer of the Ollama format put together from the objects of its stream.

import { isPresent, type JsonObject, parseObject } from "../../lib/json.ts";
import { objectOf, objectsOf, textOf } from "../reading.ts";
import type { Form } from "./form.ts";

export interface JoinedAnswer {
  form: Form;
  text: string;
  thought: string;
  calls: JsonObject[];
  /** How many pieces of text and thought there were. */
  pieces: number;
  /** The last object, once it has come. */
  end: JsonObject | undefined;
}

/** Undefined where one of the objects is none of the format, or tells of an error. */
export function readEvents(events: readonly string[]): JoinedAnswer | undefined {
  const told: JoinedAnswer = { form: "chat", text: "", thought: "", calls: [], pieces: 0, end: undefined };
  for (const data of events) {
    const event = parseObject(data);
    if (event === undefined || isPresent(event.error) || told.end !== undefined) return undefined;
    if (typeof event.response === "string") told.form = "generate";
    const { content, thinking, tool_calls } = told.form === "chat" ? objectOf(event.message) : generated(event);
    const [text, thought] = [textOf(content), textOf(thinking)];
    told.text += text;
    told.thought += thought;
    told.calls.push(...objectsOf(tool_calls));
    if (text !== "" || thought !== "") told.pieces++;
    if (event.done === true) told.end = event;
  }
  return told;
}

function generated({ response, thinking }: JsonObject): JsonObject {
  return { content: response, thinking };
}
