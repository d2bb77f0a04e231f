// Data sets in the shapes of OpenAI's fine-tuning and evals files: recorded conversations are written as lines, lines are read as
// recordings.

import type { ContentPart, MediaSource, Message, ToolCallPart } from "../generation/content.ts";
import type { GenerationRequest } from "../generation/request.ts";
import { compact, isObject, type JsonObject, parseObject } from "../lib/json.ts";
import { excessIn, JsonShape } from "../lib/json-shape.ts";
import { randomLetters } from "../lib/random-letters.ts";
import { clientProtocol } from "../protocols/registry.ts";
import { answerText, type ReadAnswer } from "./conversation.ts";
import type { FinishedRecording } from "./recorder.ts";
import type { RecordedBody } from "./recording.ts";

export const DATA_SET_SHAPES = ["finetuning", "evals"] as const;

export type DataSetShape = (typeof DATA_SET_SHAPES)[number];

interface Exported {
  id: string;
  model: string;
  request: GenerationRequest;
  answer: ReadAnswer;
}

/** Without its line end. Undefined where nothing of a message has a place in it: without that the conversation is another one. */
export function toLine(shape: DataSetShape, { id, model, request, answer }: Exported): string | undefined {
  const messages = messagesOf(request);
  if (messages === undefined) return undefined;
  const tools = toolsOf(request);
  const message = answerMessage(answer);
  if (shape === "finetuning") return JSON.stringify(compact({ messages: [...messages, message], tools }));
  const text = typeof message.content === "string" ? message.content : "";
  const sample = { model, output_text: text, choices: [{ index: 0, finish_reason: finishOf(answer), message }] };
  return JSON.stringify({ item: compact({ id, model, messages, tools }), sample });
}

function messagesOf({ system, messages }: GenerationRequest): JsonObject[] | undefined {
  const first = system.map(({ text }) => text).join("\n\n");
  const all: JsonObject[] = first === "" ? [] : [{ role: "system", content: first }];
  for (const message of messages) {
    const written = message.role === "assistant" ? [answerMessage(message)] : askedMessages(message);
    if (written.length === 0) return undefined;
    all.push(...written);
  }
  return all;
}

/** Results of tools are messages of their own. */
function askedMessages({ role, parts, name }: Message): JsonObject[] {
  const results = parts.flatMap((part) =>
    part.type === "tool-result"
      ? [
          {
            role: "tool",
            tool_call_id: part.callId,
            content: part.parts.map((inner) => ("text" in inner ? inner.text : "")).join("\n"),
          },
        ]
      : [],
  );
  const content = parts.flatMap(contentOf);
  if (content.length === 0) return results;
  const isText = content.every(({ type }) => type === "text");
  const text = content.map((each) => each.text).join("");
  return [...results, compact({ role, name, content: isText ? text : content })];
}

function contentOf(part: ContentPart): JsonObject[] {
  if (part.type === "text") return [{ type: "text", text: part.text }];
  if (part.type !== "image") return [];
  const url = urlOf(part.source);
  return url === undefined ? [] : [{ type: "image_url", image_url: compact({ url, detail: part.detail }) }];
}

/** Undefined of a file that a vendor holds for somebody. */
function urlOf(source: MediaSource): string | undefined {
  if (source.kind === "base64") return `data:${source.mediaType};base64,${source.data}`;
  return source.kind === "url" ? source.url : undefined;
}

function answerMessage({ parts, name }: Pick<Message, "name"> & Pick<ReadAnswer, "parts">): JsonObject {
  const calls = parts.flatMap((part) => (part.type === "tool-call" && part.serverSide !== true ? [callOf(part)] : []));
  const text = answerText(parts);
  return compact({
    role: "assistant",
    name,
    content: text === "" && calls.length > 0 ? null : text,
    tool_calls: calls.length === 0 ? undefined : calls,
  });
}

function callOf({ id, name, arguments: given, custom }: ToolCallPart): JsonObject {
  return custom === true
    ? { id, type: "custom", custom: { name, input: given } }
    : { id, type: "function", function: { name, arguments: given || "{}" } };
}

function toolsOf({ tools }: GenerationRequest): JsonObject[] | undefined {
  const written = tools.flatMap((tool) => {
    if (tool.kind !== "function" && tool.kind !== "custom") return [];
    const { kind, name, description } = tool;
    const more = tool.kind === "function" ? { parameters: tool.parameters } : { format: tool.format };
    return [{ type: kind, [kind]: compact({ name, description, ...more }) }];
  });
  return written.length === 0 ? undefined : written;
}

function finishOf({ finish }: ReadAnswer): string {
  if (finish === "tool-calls") return "tool_calls";
  return finish === "length" ? "length" : finish === "content-filter" ? "content_filter" : "stop";
}

interface DataSetLine {
  model: string;
  /** A request and an answer as a chat client has them. */
  request: JsonObject;
  /** Undefined: the line has none. */
  answer: JsonObject | undefined;
}

const UNNAMED = "imported";

/** A line of either shape; a text says what is wrong with it. */
export function readLine(line: string): DataSetLine | string {
  const shape = new JsonShape(new TextEncoder().encode(line));
  shape.advance(Number.POSITIVE_INFINITY);
  const excess = excessIn(shape);
  if (excess !== undefined) return excess;
  const value = parseObject(line);
  if (value === undefined) return "is no JSON object";
  const item = isObject(value.item) ? value.item : undefined;
  const read = item === undefined ? readExample(value) : readEval(item, isObject(value.sample) ? value.sample : {});
  if (typeof read === "string") return read;
  try {
    clientProtocol(undefined).decodeRequest(read.request);
  } catch (error) {
    return error instanceof Error ? error.message : "has messages that cannot be read";
  }
  return read;
}

/** The last message of the assistant is the answer. */
function readExample({ messages, tools, model }: JsonObject): DataSetLine | string {
  if (!isMessages(messages)) return "has no messages";
  const last = messages.at(-1);
  const isAnswered = last?.role === "assistant";
  const asked = isAnswered ? messages.slice(0, -1) : messages;
  if (asked.length === 0) return "has no message before the answer";
  return lineOf(modelIn(model), asked, tools, isAnswered ? last : undefined);
}

function readEval(item: JsonObject, sample: JsonObject): DataSetLine | string {
  const { input, messages = input, tools, model = sample.model } = item;
  const asked = typeof messages === "string" ? [{ role: "user", content: messages }] : messages;
  if (!isMessages(asked) || asked.length === 0) return "item has neither messages nor input";
  const [choice] = Array.isArray(sample.choices) ? sample.choices : [];
  if (isObject(choice) && isObject(choice.message)) return lineOf(modelIn(model), asked, tools, choice.message);
  const told = [sample.output_text, item.expected, item.ideal, item.reference].find((text) => typeof text === "string");
  return lineOf(modelIn(model), asked, tools, told === undefined ? undefined : { role: "assistant", content: told });
}

function lineOf(
  model: string,
  messages: readonly JsonObject[],
  tools: unknown,
  message: JsonObject | undefined,
): DataSetLine {
  const request = compact({ model, messages, tools: Array.isArray(tools) ? tools : undefined }) as JsonObject;
  if (message === undefined) return { model, request, answer: undefined };
  const finish_reason = Array.isArray(message.tool_calls) ? "tool_calls" : "stop";
  const answer = { object: "chat.completion", model, choices: [{ index: 0, message, finish_reason }] };
  return { model, request, answer };
}

function isMessages(value: unknown): value is JsonObject[] {
  return Array.isArray(value) && value.every((message) => isObject(message) && typeof message.role === "string");
}

function modelIn(model: unknown): string {
  return typeof model === "string" && model !== "" ? model : UNNAMED;
}

const PATH = "/v1/chat/completions";
const JSON_TYPE = "application/json";

/** As a chat client had asked and got it. */
export function importedRecording(
  dataset: string,
  { model, request, answer }: DataSetLine,
  atMs: number,
): Omit<FinishedRecording, "redacts"> {
  const body = (value: JsonObject | undefined): RecordedBody => {
    const content = new TextEncoder().encode(value === undefined ? "" : JSON.stringify(value));
    const incomplete = value === undefined ? "not_recorded" : null;
    return { contentType: JSON_TYPE, bytes: content.length, incomplete, content };
  };
  return {
    facts: {
      ...{ id: `data_${randomLetters(24)}`, owner: `dataset:${dataset}`, atMs, model, dataset },
      ...{ keyId: null, userId: null, organizationId: null, answeredBy: null, route: null, arm: null, backend: null },
      ...{ operation: clientProtocol(undefined).name, stream: false, status: 200, outcome: "succeeded", cost: 0 },
      ...{ durationMs: 0, firstByteMs: null, inputTokens: null, outputTokens: null },
    },
    path: PATH,
    request: body(request),
    answer: body(answer),
  };
}
