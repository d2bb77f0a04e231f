// Data sets in the shapes of OpenAI's fine-tuning and evals files: recorded conversations are written as lines, lines are read as
// recordings.

import type { ContentPart, MediaSource } from "../generation/content.ts";
import type { GenerationRequest } from "../generation/request.ts";
import { compact, isObject, type JsonObject, parseObject } from "../lib/json.ts";
import { randomLetters } from "../lib/random-letters.ts";
import { clientProtocol } from "../protocols/registry.ts";
import { answerText, type ReadAnswer } from "./conversation.ts";
import type { FinishedRecording } from "./recorder.ts";

export const DATA_SET_SHAPES = ["finetuning", "evals"] as const;

export type DataSetShape = (typeof DATA_SET_SHAPES)[number];

interface Exported {
  id: string;
  model: string;
  request: GenerationRequest;
  answer: ReadAnswer;
}

/** Without its line end. */
export function toLine(shape: DataSetShape, { id, model, request, answer }: Exported): string {
  const messages = messagesOf(request);
  const tools = toolsOf(request);
  const message = answerMessage(answer);
  if (shape === "finetuning") return JSON.stringify(compact({ messages: [...messages, message], tools }));
  const text = typeof message.content === "string" ? message.content : "";
  const sample = { model, output_text: text, choices: [{ index: 0, finish_reason: finishOf(answer), message }] };
  return JSON.stringify({ item: compact({ id, model, messages, tools }), sample });
}

function messagesOf({ system, messages }: GenerationRequest): JsonObject[] {
  const first = system.map(({ text }) => text).join("\n\n");
  return [
    ...(first === "" ? [] : [{ role: "system", content: first }]),
    ...messages.flatMap(({ role, parts }) =>
      role === "assistant" ? [answerMessage({ parts })] : askedMessages(role, parts),
    ),
  ];
}

/** Results of tools are messages of their own. */
function askedMessages(role: "user" | "system", parts: readonly ContentPart[]): JsonObject[] {
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
  return [...results, { role, content: isText ? text : content }];
}

function contentOf(part: ContentPart): JsonObject[] {
  if (part.type === "text") return [{ type: "text", text: part.text }];
  if (part.type === "image") return [{ type: "image_url", image_url: { url: urlOf(part.source) } }];
  return [];
}

function urlOf(source: MediaSource): string {
  if (source.kind === "base64") return `data:${source.mediaType};base64,${source.data}`;
  return source.kind === "url" ? source.url : source.fileId;
}

function answerMessage({ parts }: Pick<ReadAnswer, "parts">): JsonObject {
  const calls = parts.flatMap((part) =>
    part.type === "tool-call" && part.serverSide !== true
      ? [{ id: part.id, type: "function", function: { name: part.name, arguments: part.arguments || "{}" } }]
      : [],
  );
  const text = answerText(parts);
  return compact({
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    tool_calls: calls.length === 0 ? undefined : calls,
  });
}

function toolsOf({ tools }: GenerationRequest): JsonObject[] | undefined {
  const functions = tools.flatMap((tool) => {
    if (tool.kind !== "function") return [];
    const { name, description, parameters } = tool;
    return [{ type: "function", function: compact({ name, description, parameters }) }];
  });
  return functions.length === 0 ? undefined : functions;
}

function finishOf({ finish }: ReadAnswer): string {
  if (finish === "tool-calls") return "tool_calls";
  return finish === "length" ? "length" : finish === "content-filter" ? "content_filter" : "stop";
}

interface DataSetLine {
  model: string;
  /** A request and an answer as a chat client has them. */
  request: JsonObject;
  answer: JsonObject;
}

const UNNAMED = "imported";

/** A line of either shape; a text says what is wrong with it. */
export function readLine(line: string): DataSetLine | string {
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
  return lineOf(modelIn(model), asked, tools, isAnswered ? (last as JsonObject) : { role: "assistant", content: "" });
}

function readEval(item: JsonObject, sample: JsonObject): DataSetLine | string {
  const { input, messages = input, tools, model = sample.model } = item;
  const asked = typeof messages === "string" ? [{ role: "user", content: messages }] : messages;
  if (!isMessages(asked) || asked.length === 0) return "item has neither messages nor input";
  const [choice] = Array.isArray(sample.choices) ? sample.choices : [];
  if (isObject(choice) && isObject(choice.message)) return lineOf(modelIn(model), asked, tools, choice.message);
  const told = [sample.output_text, item.expected, item.ideal, item.reference].find((text) => typeof text === "string");
  return lineOf(modelIn(model), asked, tools, { role: "assistant", content: told ?? "" });
}

function lineOf(model: string, messages: readonly JsonObject[], tools: unknown, message: JsonObject): DataSetLine {
  const finish_reason = Array.isArray(message.tool_calls) ? "tool_calls" : "stop";
  return {
    model,
    request: compact({ model, messages, tools: Array.isArray(tools) ? tools : undefined }) as JsonObject,
    answer: { object: "chat.completion", model, choices: [{ index: 0, message, finish_reason }] },
  };
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
  const body = (value: JsonObject) => {
    const content = new TextEncoder().encode(JSON.stringify(value));
    return { contentType: JSON_TYPE, bytes: content.length, incomplete: null, content };
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
