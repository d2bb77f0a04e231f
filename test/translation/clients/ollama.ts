// A small client of Ollama's /api/chat. Its streams are lines of JSON.

import {
  type Ask,
  type AskPart,
  type AskTurn,
  count,
  emptyReading,
  type JsonObject,
  object,
  objects,
  type ReadError,
  type Reading,
  type ReadPart,
  type ToolOutcome,
  text,
  type WireClient,
  type WireEvent,
} from "../ask.ts";

/** Members of other formats that stand among the options here. */
const OPTIONS: ReadonlySet<string> = new Set(["seed", "frequency_penalty", "presence_penalty", "top_k", "num_ctx"]);

export const ollamaClient: WireClient = {
  name: "ollama-api",
  path: "/api/chat",
  headers: {},
  streamType: "application/x-ndjson",
  finishes: {
    stop: "stop",
    "stop-sequence": "stop",
    length: "length",
    "tool-calls": "stop",
    "content-filter": "content_filter",
  },
  write: writeChat,
  follow(body, reading, outcomes, question) {
    const calls = reading.parts.filter((part) => part.type === "call");
    const results = outcomes.map((outcome, index) => writeResult(outcome, { name: calls[index]?.name ?? "" }));
    const more = question === undefined ? [] : [{ role: "user", content: question }];
    return { ...body, messages: [...objects(body.messages), ...reading.replay, ...results, ...more] };
  },
  readWhole: (body) => readObjects([body], true),
  readStream: (events) =>
    readObjects(
      events.map(({ data }: WireEvent) => JSON.parse(data) as JsonObject),
      false,
    ),
  readError,
};

/** An error has a text and nothing else. */
function readError({ error }: JsonObject): ReadError {
  return { type: typeof error === "string" ? "error" : "no error body", message: text(error) };
}

function writeChat(ask: Ask, model: string, stream: boolean): JsonObject {
  const more = Object.entries(ask.more ?? {});
  const options = {
    ...(ask.maxTokens !== undefined && { num_predict: ask.maxTokens }),
    ...(ask.temperature !== undefined && { temperature: ask.temperature }),
    ...(ask.topP !== undefined && { top_p: ask.topP }),
    ...(ask.stop && { stop: ask.stop }),
    ...Object.fromEntries(more.filter(([name]) => OPTIONS.has(name))),
  };
  const system = ask.system === undefined ? [] : [{ role: "system", content: ask.system }];
  return {
    model,
    messages: [...system, ...ask.turns.flatMap(writeTurn)],
    ...(!stream && { stream: false }),
    ...(ask.tools && {
      tools: ask.tools.map(({ name, description, schema }) => ({
        type: "function",
        function: { name, description, parameters: schema },
      })),
    }),
    ...(Object.keys(options).length > 0 && { options }),
    ...(ask.schema && { format: ask.schema }),
    ...(ask.json && { format: "json" }),
    ...((ask.effort !== undefined || ask.thoughts) && { think: ask.effort ?? true }),
    ...Object.fromEntries(more.filter(([name]) => !OPTIONS.has(name))),
  };
}

type PartOf<Type extends AskPart["type"]> = Extract<AskPart, { type: Type }>;

function writeTurn({ role, parts }: AskTurn): JsonObject[] {
  const of = <Type extends AskPart["type"]>(type: Type) =>
    parts.filter((part): part is PartOf<Type> => part.type === type);
  const results = of("result").map((result) => writeResult(result, { tool_call_id: result.id }));
  const content = of("text").map(({ text: words }) => words);
  const images = of("image").flatMap(({ data }) => data ?? []);
  const calls = of("call").map((call) => ({ id: call.id, function: { name: call.name, arguments: call.arguments } }));
  if (content.length + images.length + calls.length === 0) return results;
  const message = {
    role,
    content: content.join(""),
    ...(images.length > 0 && { images }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return [...results, message];
}

/** @param tool - its name, or the id of the call */
function writeResult(
  { text: content, image }: ToolOutcome,
  tool: { name: string } | { tool_call_id: string },
): JsonObject {
  const named = "name" in tool ? { tool_name: tool.name } : tool;
  return { role: "tool", content, ...named, ...(image !== undefined && { images: [image] }) };
}

function readObjects(told: readonly JsonObject[], isWhole: boolean): Reading {
  const reading = emptyReading();
  const message: JsonObject = { role: "assistant", content: "" };
  for (const [place, line] of told.entries()) {
    if (reading.end !== "cut") reading.offences.push("a line behind the end");
    if (line.error !== undefined) {
      reading.end = "error";
      reading.error = readError(line);
      continue;
    }
    const said = object(line.message);
    if (said.role !== "assistant" || typeof said.content !== "string")
      reading.offences.push(`line ${place} says nothing`);
    if (Number.isNaN(Date.parse(text(line.created_at)))) reading.offences.push(`created_at is ${line.created_at}`);
    if (reading.model !== "" && reading.model !== line.model) reading.offences.push("several models");
    reading.model = text(line.model);
    for (const part of readMessage(said, reading)) addPart(reading, part);
    message.content += text(said.content);
    if (said.thinking !== undefined) message.thinking = text(message.thinking) + text(said.thinking);
    if (said.tool_calls !== undefined)
      message.tool_calls = [...objects(message.tool_calls), ...objects(said.tool_calls)];
    if (line.done === true) readEnd(reading, line, isWhole);
  }
  reading.replay = [message];
  return reading;
}

function readMessage(said: JsonObject, reading: Reading): ReadPart[] {
  const parts: ReadPart[] = [];
  if (text(said.thinking) !== "") parts.push({ type: "thinking", text: text(said.thinking) });
  if (text(said.content) !== "") parts.push({ type: "text", text: text(said.content), citations: [] });
  for (const call of objects(said.tool_calls)) {
    const { name, arguments: given } = object(call.function);
    if (typeof given !== "object" || given === null) reading.offences.push("arguments that are no object");
    parts.push({ type: "call", id: text(call.id), name: text(name), arguments: JSON.stringify(given) });
  }
  return parts;
}

/** Pieces of one kind are one part. */
function addPart(reading: Reading, part: ReadPart): void {
  const last = reading.parts.at(-1);
  if (last?.type === "text" && part.type === "text") last.text += part.text;
  else if (last?.type === "thinking" && part.type === "thinking") last.text += part.text;
  else reading.parts.push(part);
}

function readEnd(reading: Reading, line: JsonObject, isWhole: boolean): void {
  reading.end = "whole";
  reading.finish = text(line.done_reason);
  if (!(count(line.total_duration) > 0)) reading.offences.push("an end without its duration");
  if (!isWhole && count(line.prompt_eval_duration) + count(line.eval_duration) > count(line.total_duration)) {
    reading.offences.push("parts that take longer than the whole");
  }
  if (line.prompt_eval_count === undefined) return;
  const [input, output] = [count(line.prompt_eval_count), count(line.eval_count)];
  reading.usage = { input, cacheRead: 0, cacheWrite: 0, output, reasoning: 0 };
}
