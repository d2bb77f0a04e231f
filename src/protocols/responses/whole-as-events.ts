// A whole Responses answer as the events of a stream: each text comes in one piece, and the last event holds the answer as
// it is.

import type { JsonObject } from "../../lib/json.ts";
import { objectsOf, textOf } from "../reading.ts";
import { EventSequence } from "./sequence.ts";

/** Writes the events of one item, which name its place. */
type WriteEvent = (type: string, fields: JsonObject) => void;

export function wholeAsEvents(response: JsonObject): string {
  const sequence = new EventSequence();
  const { output_text: _addedAtTheEnd, ...members } = response;
  const begun: JsonObject = { ...members, status: "in_progress", output: [], usage: null };
  if ("completed_at" in begun) begun.completed_at = null;
  let events = "";
  for (const type of ["response.created", "response.in_progress"]) events += sequence.event(type, { response: begun });
  for (const [output_index, item] of objectsOf(response.output).entries()) {
    const place = { item_id: item.id, output_index };
    events += sequence.event("response.output_item.added", { output_index, item: { ...item, ...begunItem(item) } });
    writeContents(item, (type, fields) => {
      events += sequence.event(`response.${type}`, { ...place, ...fields });
    });
    events += sequence.event("response.output_item.done", { output_index, item });
  }
  return events + sequence.event("response.completed", { response });
}

/** What is different of an item before anything of it was said; members that are undefined are not written. */
function begunItem(item: JsonObject): JsonObject {
  const begun: JsonObject = "status" in item ? { status: "in_progress" } : {};
  switch (item.type) {
    case "message":
      return { ...begun, content: [] };
    case "reasoning":
      return { ...begun, summary: [], content: undefined, encrypted_content: undefined };
    case "function_call":
      return { ...begun, arguments: "" };
    case "custom_tool_call":
      return { ...begun, input: "" };
    default:
      return begun;
  }
}

function writeContents(item: JsonObject, write: WriteEvent): void {
  switch (item.type) {
    case "message":
      for (const [index, part] of objectsOf(item.content).entries()) writeContent(part, index, write);
      return;
    case "reasoning":
      for (const [summary_index, part] of objectsOf(item.summary).entries()) {
        writeText(part, { summary_index }, "reasoning_summary_part", "reasoning_summary_text", write);
      }
      for (const [content_index, part] of objectsOf(item.content).entries()) {
        writeText(part, { content_index }, "content_part", "reasoning_text", write);
      }
      return;
    case "function_call":
      writeCall("function_call_arguments", "arguments", item, write);
      return;
    case "custom_tool_call":
      writeCall("custom_tool_call_input", "input", item, write);
  }
}

function writeText(part: JsonObject, place: JsonObject, partName: string, textName: string, write: WriteEvent): void {
  const text = textOf(part.text);
  write(`${partName}.added`, { ...place, part: { ...part, text: "" } });
  if (text !== "") write(`${textName}.delta`, { ...place, delta: text });
  write(`${textName}.done`, { ...place, text });
  write(`${partName}.done`, { ...place, part });
}

function writeCall(name: string, member: "arguments" | "input", item: JsonObject, write: WriteEvent): void {
  const written = textOf(item[member]);
  if (written !== "") write(`${name}.delta`, { delta: written });
  write(`${name}.done`, { ...(member === "arguments" && { name: item.name }), [member]: written });
}

function writeContent(part: JsonObject, content_index: number, write: WriteEvent): void {
  const place = { content_index };
  const isRefusal = part.type === "refusal";
  const member = isRefusal ? "refusal" : "text";
  const text = textOf(part[member]);
  const begun: JsonObject = { ...part, [member]: "" };
  for (const name of ["annotations", "logprobs"]) if (Array.isArray(part[name])) begun[name] = [];
  write("content_part.added", { ...place, part: begun });
  const logprobs = isRefusal ? {} : { logprobs: objectsOf(part.logprobs) };
  const name = isRefusal ? "refusal" : "output_text";
  if (text !== "") write(`${name}.delta`, { ...place, delta: text, ...logprobs });
  for (const [annotation_index, annotation] of objectsOf(part.annotations).entries()) {
    write("output_text.annotation.added", { ...place, annotation_index, annotation });
  }
  write(`${name}.done`, { ...place, [member]: text, ...logprobs });
  write("content_part.done", { ...place, part });
}
