// A small client of the chat completions format, as strict about answers as its documentation.

import {
  type Ask,
  type AskPart,
  canonical,
  count,
  emptyReading,
  type JsonObject,
  object,
  objects,
  type ReadError,
  type Reading,
  type ReadPart,
  type ReadUsage,
  text,
  type WireClient,
  type WireEvent,
} from "../ask.ts";

export const chatClient: WireClient = {
  name: "chat",
  path: "/v1/chat/completions",
  headers: {},
  finishes: {
    stop: "stop",
    "stop-sequence": "stop",
    length: "length",
    "tool-calls": "tool_calls",
    "content-filter": "content_filter",
  },
  write: writeChat,
  follow(body, reading, outcomes, question) {
    const calls = reading.parts.filter((part) => part.type === "call");
    const results = outcomes.map((outcome, index) => ({
      role: "tool",
      tool_call_id: calls[index]?.id ?? "",
      content: outcome.text,
    }));
    const next = question === undefined ? [] : [{ role: "user", content: question }];
    return { ...body, messages: [...objects(body.messages), ...reading.replay, ...results, ...next] };
  },
  readWhole(body) {
    const reading = emptyReading();
    const [choice, ...others] = objects(body.choices);
    const { message, finish_reason } = choice ?? {};
    if (body.object !== "chat.completion") reading.offences.push(`object is ${body.object}`);
    if (others.length > 0) reading.offences.push("more than one choice");
    reading.end = "whole";
    readMessage(object(message), reading);
    reading.finish = text(finish_reason);
    reading.model = text(body.model);
    const usage = readChatUsage(body.usage);
    if (usage !== undefined) reading.usage = usage;
    return reading;
  },
  readStream: readChatStream,
  readError: readOpenAiError,
};

export function readOpenAiError(body: JsonObject): ReadError {
  const { type, message, code, param } = object(body.error);
  return { type: text(type), message: text(message), ...(code != null && { code }), ...(param != null && { param }) };
}

export function writeChat(ask: Ask, model: string, stream: boolean): JsonObject {
  const cached = ask.cache ? { prompt_cache_key: "session-1" } : {};
  return {
    model,
    messages: [
      ...(ask.system === undefined ? [] : [{ role: "system", content: ask.system }]),
      ...ask.turns.flatMap(({ role, parts }) => writeTurn(role, parts)),
    ],
    ...(stream && { stream: true, ...(ask.usage !== false && { stream_options: { include_usage: true } }) }),
    ...(ask.tools && {
      tools: ask.tools.map(({ name, description, schema }) => ({
        type: "function",
        function: { name, description, parameters: schema },
      })),
    }),
    ...(ask.toolChoice !== undefined && {
      tool_choice:
        typeof ask.toolChoice === "string"
          ? ask.toolChoice
          : { type: "function", function: { name: ask.toolChoice.name } },
    }),
    ...(ask.parallelCalls === false && { parallel_tool_calls: false }),
    ...(ask.maxTokens !== undefined && { max_completion_tokens: ask.maxTokens }),
    ...(ask.temperature !== undefined && { temperature: ask.temperature }),
    ...(ask.topP !== undefined && { top_p: ask.topP }),
    ...(ask.stop && { stop: ask.stop }),
    ...(ask.schema && {
      response_format: { type: "json_schema", json_schema: { name: "answer", schema: ask.schema } },
    }),
    ...(ask.json && { response_format: { type: "json_object" } }),
    ...(ask.effort !== undefined && { reasoning_effort: ask.effort }),
    ...cached,
    ...ask.more,
  };
}

function writeTurn(role: string, parts: readonly AskPart[]): JsonObject[] {
  const results = parts.flatMap((part) =>
    part.type === "result" ? [{ role: "tool", tool_call_id: part.id, content: part.text }] : [],
  );
  const calls = parts.flatMap((part) =>
    part.type === "call"
      ? [{ id: part.id, type: "function", function: { name: part.name, arguments: JSON.stringify(part.arguments) } }]
      : [],
  );
  const content = parts.flatMap(writePart);
  const isPlain = content.length === 1 && content[0]?.type === "text";
  const message =
    content.length === 0 && calls.length === 0
      ? []
      : [
          {
            role,
            content: content.length === 0 ? null : isPlain ? content[0]?.text : content,
            ...(calls.length > 0 && { tool_calls: calls }),
          },
        ];
  return [...results, ...message];
}

function writePart(part: AskPart): JsonObject[] {
  switch (part.type) {
    case "text":
      return [{ type: "text", text: part.text }];
    case "image":
      return [{ type: "image_url", image_url: { url: part.url ?? `data:image/png;base64,${part.data}` } }];
    case "document":
      return [{ type: "file", file: { file_data: `data:application/pdf;base64,${part.data}`, filename: part.name } }];
    case "audio":
      return [{ type: "input_audio", input_audio: { data: part.data, format: "wav" } }];
    default:
      return [];
  }
}

function readMessage(message: JsonObject, reading: Reading): void {
  const { content, refusal, reasoning_content } = message;
  if (message.role !== "assistant") reading.offences.push(`role is ${message.role}`);
  const citations = objects(message.annotations).map(({ url_citation }) => text(object(url_citation).url));
  const calls = objects(message.tool_calls);
  reading.parts = [
    ...(text(reasoning_content) === "" ? [] : [{ type: "thinking" as const, text: text(reasoning_content) }]),
    ...(text(content) === "" ? [] : [{ type: "text" as const, text: text(content), citations }]),
    ...(text(refusal) === "" ? [] : [{ type: "refusal" as const, text: text(refusal) }]),
    ...calls.map(readCall),
  ];
  reading.replay = [message];
}

function readCall(call: JsonObject): ReadPart {
  const { name, arguments: args } = object(call.function);
  if (call.type === "custom") {
    const custom = object(call.custom);
    return { type: "call", id: text(call.id), name: text(custom.name), arguments: text(custom.input), custom: true };
  }
  return { type: "call", id: text(call.id), name: text(name), arguments: canonical(text(args)) };
}

export function readChatUsage(value: unknown): ReadUsage | undefined {
  if (value === undefined || value === null) return undefined;
  const usage = object(value);
  const prompt = object(usage.prompt_tokens_details);
  return {
    input: count(usage.prompt_tokens),
    cacheRead: count(prompt.cached_tokens),
    cacheWrite: count(prompt.cache_write_tokens),
    output: count(usage.completion_tokens),
    reasoning: count(object(usage.completion_tokens_details).reasoning_tokens),
  };
}

interface StreamedCall extends JsonObject {
  id: string;
  type: string;
  function: { name: string; arguments: string };
}

function readChatStream(events: readonly WireEvent[]): Reading {
  const reading = emptyReading();
  const message: JsonObject = { role: undefined, content: null };
  const calls: StreamedCall[] = [];
  let id: unknown;
  let isOver = false;
  for (const { data } of events) {
    if (isOver) reading.offences.push("an event after the end");
    if (data === "[DONE]") {
      isOver = true;
      if (reading.finish === "") reading.offences.push("[DONE] without a finish reason");
      reading.end = reading.error === undefined ? "whole" : "error";
      continue;
    }
    const chunk = JSON.parse(data) as JsonObject;
    if (chunk.error !== undefined) {
      reading.error = readOpenAiError(chunk);
      reading.end = "error";
      continue;
    }
    if (id !== undefined && chunk.id !== id) reading.offences.push("the id changes");
    id = chunk.id;
    if (typeof chunk.id !== "string" || chunk.id === "") reading.offences.push("a chunk without id");
    if (chunk.object !== "chat.completion.chunk") reading.offences.push(`object is ${chunk.object}`);
    reading.model = text(chunk.model);
    const usage = readChatUsage(chunk.usage);
    if (usage !== undefined) {
      reading.usage = usage;
      if (objects(chunk.choices).length > 0) reading.offences.push("usage beside a choice");
    }
    for (const choice of objects(chunk.choices)) readDelta(choice, message, calls, reading);
  }
  if (calls.length > 0) message.tool_calls = calls;
  const { offences, finish } = reading;
  readMessage(message, reading);
  return { ...reading, offences, finish };
}

function readDelta(choice: JsonObject, message: JsonObject, calls: StreamedCall[], reading: Reading): void {
  const delta = object(choice.delta);
  if (reading.finish !== "") reading.offences.push("a choice after the finish reason");
  if (delta.role !== undefined) {
    if (message.role !== undefined) reading.offences.push("a second role");
    message.role = delta.role;
  }
  for (const key of ["content", "refusal", "reasoning_content"]) {
    if (typeof delta[key] === "string") message[key] = text(message[key]) + delta[key];
  }
  if (delta.reasoning_details !== undefined) {
    message.reasoning_details = [...objects(message.reasoning_details), ...objects(delta.reasoning_details)];
  }
  if (delta.annotations !== undefined) {
    message.annotations = [...objects(message.annotations), ...objects(delta.annotations)];
  }
  for (const piece of objects(delta.tool_calls)) readCallDelta(piece, calls, reading);
  if (typeof choice.finish_reason === "string") reading.finish = choice.finish_reason;
}

function readCallDelta(piece: JsonObject, calls: StreamedCall[], reading: Reading): void {
  const { index, function: fields, ...rest } = piece;
  if (typeof index !== "number") return void reading.offences.push("a tool delta without index");
  const { name, arguments: args } = object(fields);
  const known = calls[index];
  if (known === undefined) {
    if (index !== calls.length) reading.offences.push("a gap in the tool indexes");
    if (text(piece.id) === "" || (text(name) === "" && piece.type !== "custom"))
      reading.offences.push("a call begins without id or name");
    calls.push({ ...rest, function: { name: text(name), arguments: text(args) } } as StreamedCall);
    return;
  }
  if (piece.id !== undefined || name !== undefined) reading.offences.push("id or name twice");
  known.function.arguments += text(args);
  const custom = object(piece.custom);
  if (custom.input !== undefined)
    known.custom = { ...object(known.custom), input: text(object(known.custom).input) + custom.input };
}
