// A small client of the Messages format, as strict about answers as its documentation.

import {
  type Ask,
  type AskPart,
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

const CACHE = { cache_control: { type: "ephemeral" } };

export const messagesClient: WireClient = {
  name: "messages",
  path: "/v1/messages",
  headers: { "x-api-key": "sk-sekret-client", "anthropic-version": "2023-06-01" },
  finishes: {
    stop: "end_turn",
    "stop-sequence": "stop_sequence",
    length: "max_tokens",
    "tool-calls": "tool_use",
    "content-filter": "refusal",
  },
  write: writeMessages,
  follow(body, reading, outcomes, question) {
    const calls = reading.parts.filter((part) => part.type === "call");
    const content = [
      ...outcomes.map((outcome, index) => writePart({ type: "result", id: calls[index]?.id ?? "", ...outcome })),
      ...(question === undefined ? [] : [{ type: "text", text: question }]),
    ];
    return { ...body, messages: [...objects(body.messages), ...reading.replay, { role: "user", content }] };
  },
  readWhole(body) {
    const reading = emptyReading();
    if (body.type !== "message" || body.role !== "assistant") reading.offences.push("no message of the assistant");
    reading.end = "whole";
    reading.parts = objects(body.content).flatMap((block) => readBlock(block, reading));
    reading.replay = [{ role: "assistant", content: body.content }];
    reading.finish = text(body.stop_reason) + sequence(body.stop_sequence);
    reading.model = text(body.model);
    reading.usage = readUsage(object(body.usage));
    return reading;
  },
  readStream: readMessagesStream,
  readError: readMessagesError,
};

function readMessagesError(body: JsonObject): ReadError {
  const { type, message } = object(body.error);
  return { type: body.type === "error" ? text(type) : `no error body: ${body.type}`, message: text(message) };
}

function writeMessages(ask: Ask, model: string, stream: boolean): JsonObject {
  const hint = ask.cache ? CACHE : {};
  const last = ask.turns.length - 1;
  const choice = writeChoice(ask);
  return {
    model,
    max_tokens: ask.maxTokens ?? 4096,
    ...(ask.system !== undefined && { system: [{ type: "text", text: ask.system, ...hint }] }),
    messages: ask.turns.map(({ role, parts }, index) => ({
      role,
      content: parts.map((part, at) => ({
        ...writePart(part),
        ...(index === last && at === parts.length - 1 && hint),
      })),
    })),
    ...(stream && { stream: true }),
    ...(ask.tools && {
      tools: ask.tools.map(({ name, description, schema }, index) => ({
        name,
        description,
        input_schema: schema,
        ...(index === 0 && hint),
      })),
    }),
    ...(choice && { tool_choice: choice }),
    ...(ask.temperature !== undefined && { temperature: ask.temperature }),
    ...(ask.topP !== undefined && { top_p: ask.topP }),
    ...(ask.stop && { stop_sequences: ask.stop }),
    ...(ask.schema && { output_config: { format: { type: "json_schema", schema: ask.schema } } }),
    ...(ask.effort !== undefined && { output_config: { effort: ask.effort } }),
    ...(ask.thoughts && { thinking: { type: "enabled", budget_tokens: 2048 } }),
    ...ask.more,
  };
}

function writeChoice({ toolChoice, parallelCalls }: Ask): JsonObject | undefined {
  const one = parallelCalls === false ? { disable_parallel_tool_use: true } : {};
  if (toolChoice === undefined) return parallelCalls === false ? { type: "auto", ...one } : undefined;
  if (typeof toolChoice === "object") return { type: "tool", name: toolChoice.name, ...one };
  if (toolChoice === "none") return { type: "none" };
  return { type: toolChoice === "required" ? "any" : "auto", ...one };
}

function writePart(part: AskPart): JsonObject {
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text };
    case "image":
      return {
        type: "image",
        source:
          part.url === undefined
            ? { type: "base64", media_type: "image/png", data: part.data }
            : { type: "url", url: part.url },
      };
    case "document":
      return {
        type: "document",
        title: part.name,
        source: { type: "base64", media_type: "application/pdf", data: part.data },
      };
    case "audio":
      return { type: "audio", data: part.data };
    case "call":
      return { type: "tool_use", id: part.id, name: part.name, input: part.arguments };
    case "result": {
      const image = part.image === undefined ? [] : [writePart({ type: "image", data: part.image })];
      return {
        type: "tool_result",
        tool_use_id: part.id,
        content: [{ type: "text", text: part.text }, ...image],
        ...(part.isError && { is_error: true }),
      };
    }
  }
}

function sequence(value: unknown): string {
  return typeof value === "string" ? `:${value}` : "";
}

function readUsage(usage: JsonObject): ReadUsage {
  const cacheRead = count(usage.cache_read_input_tokens);
  const cacheWrite = count(usage.cache_creation_input_tokens);
  return {
    input: count(usage.input_tokens) + cacheRead + cacheWrite,
    cacheRead,
    cacheWrite,
    output: count(usage.output_tokens),
    reasoning: count(object(usage.output_tokens_details).thinking_tokens),
  };
}

function readBlock(block: JsonObject, reading: Reading): ReadPart[] {
  switch (block.type) {
    case "text":
      return [
        {
          type: "text",
          text: text(block.text),
          citations: objects(block.citations).map((citation) => text(citation.url)),
        },
      ];
    case "thinking":
      if (typeof block.signature !== "string") reading.offences.push("thinking without signature");
      return [{ type: "thinking", text: text(block.thinking) }];
    case "redacted_thinking":
      return [{ type: "thinking", text: "(sealed)" }];
    case "tool_use":
      if (!/^[a-zA-Z0-9_-]+$/.test(text(block.id))) reading.offences.push(`tool id ${block.id}`);
      return [
        { type: "call", id: text(block.id), name: text(block.name), arguments: JSON.stringify(object(block.input)) },
      ];
    case "server_tool_use":
      return [{ type: "search", query: text(object(block.input).query) }];
    case "web_search_tool_result":
      return [];
    default:
      reading.offences.push(`a block of type ${block.type}`);
      return [];
  }
}

function readMessagesStream(events: readonly WireEvent[]): Reading {
  const reading = emptyReading();
  const blocks: JsonObject[] = [];
  let open: number | undefined;
  let usage: JsonObject = {};
  let isOver = false;
  for (const { name, data } of events) {
    const event = JSON.parse(data) as JsonObject;
    if (name !== event.type) reading.offences.push(`event: ${name} with type ${event.type}`);
    if (isOver) reading.offences.push("an event after the end");
    switch (event.type) {
      case "ping":
        break;
      case "message_start": {
        const message = object(event.message);
        if (blocks.length > 0 || reading.model !== "") reading.offences.push("a second message_start");
        if (message.usage === undefined) reading.offences.push("message_start without usage");
        usage = object(message.usage);
        reading.model = text(message.model);
        break;
      }
      case "content_block_start":
        if (open !== undefined) reading.offences.push("two blocks are open");
        if (event.index !== blocks.length) reading.offences.push("a gap in the block indexes");
        open = blocks.length;
        blocks.push({ ...object(event.content_block), json: "" });
        break;
      case "content_block_delta":
        if (event.index !== open) reading.offences.push("a delta for a block that is not open");
        else applyDelta(blocks[open as number] as JsonObject, object(event.delta), reading);
        break;
      case "content_block_stop":
        if (event.index !== open) reading.offences.push("a stop for a block that is not open");
        open = undefined;
        break;
      case "message_delta":
        if (open !== undefined) reading.offences.push("message_delta while a block is open");
        if (reading.finish !== "") reading.offences.push("a second message_delta");
        usage = { ...usage, ...object(event.usage) };
        reading.finish = text(object(event.delta).stop_reason) + sequence(object(event.delta).stop_sequence);
        break;
      case "message_stop":
        isOver = true;
        if (reading.finish === "") reading.offences.push("message_stop without stop reason");
        reading.end = "whole";
        break;
      case "error":
        isOver = true;
        reading.end = "error";
        reading.error = readMessagesError(event);
        break;
      default:
        reading.offences.push(`an event of type ${event.type}`);
    }
  }
  const content = blocks.map(({ json, ...block }) =>
    json === "" ? block : { ...block, input: JSON.parse(json as string) },
  );
  reading.parts = content.flatMap((block) => readBlock(block, reading));
  reading.replay = [{ role: "assistant", content }];
  reading.usage = readUsage(usage);
  return reading;
}

function applyDelta(block: JsonObject, delta: JsonObject, reading: Reading): void {
  const wanted: Record<string, string> = {
    text_delta: "text",
    citations_delta: "text",
    thinking_delta: "thinking",
    signature_delta: "thinking",
  };
  const type = wanted[text(delta.type)];
  if (type !== undefined && block.type !== type) reading.offences.push(`${delta.type} inside ${block.type}`);
  if (delta.type === "text_delta") block.text = text(block.text) + text(delta.text);
  else if (delta.type === "thinking_delta") block.thinking = text(block.thinking) + text(delta.thinking);
  else if (delta.type === "signature_delta") block.signature = delta.signature;
  else if (delta.type === "input_json_delta") block.json = text(block.json) + text(delta.partial_json);
  else if (delta.type === "citations_delta") block.citations = [...objects(block.citations), object(delta.citation)];
  else reading.offences.push(`a delta of type ${delta.type}`);
}
