// A small client of the Responses format, as strict about answers as its documentation.

import {
  type Ask,
  type AskPart,
  canonical,
  count,
  emptyReading,
  type JsonObject,
  object,
  objects,
  type Reading,
  type ReadPart,
  type ToolOutcome,
  text,
  type WireClient,
  type WireEvent,
} from "../ask.ts";
import { readOpenAiError } from "./chat.ts";

export const responsesClient: WireClient = {
  name: "responses",
  path: "/v1/responses",
  headers: {},
  finishes: {
    stop: "completed",
    "stop-sequence": "completed",
    length: "incomplete:max_output_tokens",
    "tool-calls": "completed",
    "content-filter": "incomplete:content_filter",
  },
  write: writeResponses,
  follow(body, reading, outcomes, question) {
    const calls = reading.parts.filter((part) => part.type === "call");
    const results = outcomes.map((outcome, index) => writeResult(calls[index], outcome));
    const next = question === undefined ? [] : [{ role: "user", content: question }];
    return { ...body, input: [...objects(body.input), ...reading.replay, ...results, ...next] };
  },
  readWhole: readResponse,
  readStream: readResponsesStream,
  readError: readOpenAiError,
};

function writeResponses(ask: Ask, model: string, stream: boolean): JsonObject {
  return {
    model,
    ...(ask.system !== undefined && { instructions: ask.system }),
    input: ask.turns.flatMap(({ role, parts }) => writeTurn(role, parts)),
    ...(stream && { stream: true }),
    ...(ask.tools && {
      tools: ask.tools.map(({ name, description, schema }) => ({
        type: "function",
        name,
        description,
        parameters: schema,
        strict: false,
      })),
    }),
    ...(ask.toolChoice !== undefined && {
      tool_choice:
        typeof ask.toolChoice === "string" ? ask.toolChoice : { type: "function", name: ask.toolChoice.name },
    }),
    ...(ask.parallelCalls === false && { parallel_tool_calls: false }),
    ...(ask.maxTokens !== undefined && { max_output_tokens: ask.maxTokens }),
    ...(ask.temperature !== undefined && { temperature: ask.temperature }),
    ...(ask.topP !== undefined && { top_p: ask.topP }),
    ...(ask.schema && { text: { format: { type: "json_schema", name: "answer", schema: ask.schema, strict: false } } }),
    ...(ask.json && { text: { format: { type: "json_object" } } }),
    ...((ask.effort !== undefined || ask.thoughts) && {
      reasoning: { ...(ask.effort !== undefined && { effort: ask.effort }), ...(ask.thoughts && { summary: "auto" }) },
    }),
    ...(ask.thoughts && { include: ["reasoning.encrypted_content"], store: false }),
    ...(ask.cache && { prompt_cache_key: "session-1" }),
    ...ask.more,
  };
}

function writeTurn(role: string, parts: readonly AskPart[]): JsonObject[] {
  const items: JsonObject[] = [];
  const content: JsonObject[] = [];
  for (const part of parts) {
    if (part.type === "call") {
      items.push({
        type: "function_call",
        call_id: part.id,
        name: part.name,
        arguments: JSON.stringify(part.arguments),
      });
    } else if (part.type === "result") items.push(writeResult({ id: part.id }, part));
    else content.push(writePart(part, role));
  }
  return [...(content.length > 0 ? [{ type: "message", role, content }] : []), ...items];
}

function writePart(part: AskPart, role: string): JsonObject {
  switch (part.type) {
    case "image":
      return { type: "input_image", image_url: part.url ?? `data:image/png;base64,${part.data}` };
    case "document":
      return {
        type: "input_file",
        file_data: `data:application/pdf;base64,${part.data}`,
        filename: part.name,
      };
    case "text":
      return { type: role === "assistant" ? "output_text" : "input_text", text: part.text };
    default:
      return { type: part.type };
  }
}

function writeResult(call: { id: string; custom?: boolean } | undefined, outcome: ToolOutcome): JsonObject {
  const output =
    outcome.image === undefined
      ? outcome.text
      : [
          { type: "input_text", text: outcome.text },
          { type: "input_image", image_url: `data:image/png;base64,${outcome.image}` },
        ];
  const type = call?.custom ? "custom_tool_call_output" : "function_call_output";
  return { type, call_id: call?.id ?? "", output };
}

const ALWAYS = [
  "error",
  "incomplete_details",
  "instructions",
  "metadata",
  "parallel_tool_calls",
  "temperature",
  "tool_choice",
  "tools",
  "top_p",
];

function readResponse(body: JsonObject): Reading {
  const reading = emptyReading();
  if (body.object !== "response") reading.offences.push(`object is ${body.object}`);
  for (const key of ALWAYS) if (body[key] === undefined) reading.offences.push(`${key} is missing`);
  const details = object(body.incomplete_details);
  reading.end = "whole";
  reading.finish = text(body.status) + (details.reason === undefined ? "" : `:${details.reason}`);
  reading.id = text(body.id);
  reading.model = text(body.model);
  reading.parts = objects(body.output).flatMap((item) => readItem(item, reading));
  reading.replay = objects(body.output);
  if (body.status === "failed") {
    const { code, message } = object(body.error);
    reading.error = { type: text(code), message: text(message), code };
    reading.end = "error";
  }
  if (body.usage !== undefined && body.usage !== null) {
    const usage = object(body.usage);
    const input = object(usage.input_tokens_details);
    const output = object(usage.output_tokens_details);
    if (typeof input.cached_tokens !== "number" || typeof output.reasoning_tokens !== "number")
      reading.offences.push("usage without details");
    reading.usage = {
      input: count(usage.input_tokens),
      cacheRead: count(input.cached_tokens),
      cacheWrite: count(input.cache_write_tokens),
      output: count(usage.output_tokens),
      reasoning: count(output.reasoning_tokens),
    };
  }
  return reading;
}

function readItem(item: JsonObject, reading: Reading): ReadPart[] {
  switch (item.type) {
    case "message":
      if (!text(item.id).startsWith("msg_")) reading.offences.push(`message id ${item.id}`);
      return objects(item.content).map((part) =>
        part.type === "refusal"
          ? { type: "refusal", text: text(part.refusal) }
          : {
              type: "text",
              text: text(part.text),
              citations: objects(part.annotations).map((annotation) => text(annotation.url)),
            },
      );
    case "reasoning": {
      if (!text(item.id).startsWith("rs_")) reading.offences.push(`reasoning id ${item.id}`);
      const parts = objects(item.summary).length > 0 ? objects(item.summary) : objects(item.content);
      const whole = parts.map((part) => text(part.text)).join("");
      return whole === "" && item.encrypted_content === undefined
        ? []
        : [{ type: "thinking", text: whole || "(sealed)" }];
    }
    case "function_call":
      if (!text(item.id).startsWith("fc_")) reading.offences.push(`call id ${item.id}`);
      if (item.id === item.call_id) reading.offences.push("the item's id is the call's");
      return [
        { type: "call", id: text(item.call_id), name: text(item.name), arguments: canonical(text(item.arguments)) },
      ];
    case "custom_tool_call":
      return [
        { type: "call", id: text(item.call_id), name: text(item.name), arguments: text(item.input), custom: true },
      ];
    case "web_search_call":
      return [{ type: "search", query: text(object(item.action).query) }];
    default:
      reading.offences.push(`an item of type ${item.type}`);
      return [];
  }
}

interface Growing {
  item: JsonObject;
  streamed: string;
  isDone: boolean;
}

function readResponsesStream(events: readonly WireEvent[]): Reading {
  const offences: string[] = [];
  const items: Growing[] = [];
  let final: JsonObject | undefined;
  let failure: JsonObject | undefined;
  let id: unknown;
  let expected = 0;
  for (const { name, data } of events) {
    if (data === "[DONE]") continue;
    const event = JSON.parse(data) as JsonObject;
    const type = text(event.type);
    if (name !== type) offences.push(`event: ${name} with type ${type}`);
    // A stream that passed untouched ends with an event of the gateway's, which may not know the number.
    if (type !== "error" && event.sequence_number !== expected) offences.push(`number ${event.sequence_number}`);
    expected++;
    if (final !== undefined && type !== "error") offences.push("an event after the end");
    const response = object(event.response);
    if (event.response !== undefined) {
      if (id !== undefined && response.id !== id) offences.push("the id changes");
      id = response.id;
    }
    const growing = items[count(event.output_index)];
    if (type === "response.output_item.added") {
      if (event.output_index !== items.length) offences.push("a gap in the output indexes");
      items.push({ item: object(event.item), streamed: "", isDone: false });
    } else if (type === "response.output_item.done") {
      if (growing === undefined || growing.isDone) offences.push("done for an item that is not open");
      else close(growing, object(event.item), offences);
    } else if (event.output_index !== undefined) {
      if (growing === undefined || growing.isDone) offences.push(`${type} for an item that is not open`);
      else if (event.item_id !== growing.item.id) offences.push(`${type} with another item's id`);
      else if (type.endsWith(".delta")) growing.streamed += text(event.delta);
    }
    if (type === "response.completed" || type === "response.incomplete" || type === "response.failed") final = response;
    if (type === "error") failure = event;
  }
  const reading = final === undefined ? emptyReading() : readResponse(final);
  if (final !== undefined && final.status !== "failed") compare(items, objects(final.output), offences);
  reading.offences.push(...offences);
  if (failure !== undefined) {
    const { type, code, message } = { ...failure, ...object(failure.error) } as JsonObject;
    reading.error = { type: text(type), code, message: text(message) };
    reading.end = "error";
  }
  if (final === undefined || final.status === "failed") {
    reading.parts = items.flatMap(({ item, streamed }) =>
      item.type === "message" ? [{ type: "text" as const, text: streamed, citations: [] }] : [],
    );
  }
  return reading;
}

function close(growing: Growing, item: JsonObject, offences: string[]): void {
  growing.isDone = true;
  growing.item = item;
  const whole = wholeText(item);
  if (whole !== undefined && whole !== growing.streamed) offences.push(`the deltas of ${item.type} are not its text`);
}

function wholeText(item: JsonObject): string | undefined {
  if (item.type === "function_call") return text(item.arguments);
  if (item.type === "custom_tool_call") return text(item.input);
  if (item.type === "message") {
    return objects(item.content)
      .map((part) => text(part.text) + text(part.refusal))
      .join("");
  }
  return undefined;
}

function compare(items: readonly Growing[], output: readonly JsonObject[], offences: string[]): void {
  if (items.some(({ isDone }) => !isDone)) offences.push("an item was never done");
  if (JSON.stringify(items.map(({ item }) => item)) !== JSON.stringify(output))
    offences.push("the final output is not what was streamed");
}
