// What a client of each format makes of a streamed answer, read from its events alone; throws where the events do not
// fit together.

import { toChatReading } from "./chat-reading.ts";
import { readSse, type SseReading } from "./sse-reader.ts";

/** One answer, as its client puts it together. */
export interface Reading {
  thought: string;
  text: string;
  /** Undefined when the stream did not come to its end. */
  finish: string | undefined;
  /** As the last count says. */
  usage: { asked: number; answered: number } | undefined;
  error: string | undefined;
}

type Json = Record<string, unknown>;

export const CLIENT_FORMATS = [
  ...(["chat", "completions", "messages", "responses", "generate-content", "ollama-api"] as const),
] as const;

export type ClientFormat = (typeof CLIENT_FORMATS)[number];

/** The request of each format that asks a question of one line. */
export function requestOf(format: ClientFormat, model: string, question: string, stream: boolean): [string, Json] {
  const messages = [{ role: "user", content: question }];
  const include = stream ? { stream_options: { include_usage: true } } : {};
  switch (format) {
    case "chat":
      return ["/v1/chat/completions", { model, messages, stream, ...include }];
    case "completions":
      return ["/v1/completions", { model, prompt: `${question}\n`, max_tokens: 1000, stream, ...include }];
    case "messages":
      return ["/v1/messages", { model, max_tokens: 1000, messages, stream }];
    case "responses":
      return ["/v1/responses", { model, input: question, stream, store: false }];
    case "ollama-api":
      return ["/api/chat", { model, messages, stream, options: { num_predict: 1000 } }];
    case "generate-content": {
      const method = stream ? "streamGenerateContent?alt=sse" : "generateContent";
      const generationConfig = { maxOutputTokens: 1000, thinkingConfig: { includeThoughts: true } };
      const contents = [{ role: "user", parts: [{ text: question }] }];
      return [`/v1beta/models/${model}:${method}`, { contents, generationConfig }];
    }
  }
}

/** The streamed answer of a gateway. */
export async function readResponse(format: ClientFormat, response: Response): Promise<Reading> {
  if (format !== "ollama-api") return readAnswer(format, await readSse(response));
  const lines = (await response.text()).split("\n");
  const rest = lines.pop() ?? "";
  return readAnswer(format, {
    data: lines,
    rest,
    events: [],
    chunks: [],
    bytes: Buffer.alloc(0),
    text: "",
    end: "clean",
  });
}

export function readAnswer(format: ClientFormat, sse: SseReading): Reading {
  if (sse.rest !== "") throw new Error(`half an event at the end: ${sse.rest}`);
  switch (format) {
    case "messages":
      return readMessages(sse);
    case "responses":
      return readResponses(sse);
    case "ollama-api":
      return readLines(sse);
    case "generate-content":
      return readContents(sse);
    default:
      return readChunks(sse);
  }
}

function readChunks(sse: SseReading): Reading {
  const { errors, ids, models, roles, done, finishReasons } = toChatReading(sse);
  const reading: Reading = {
    thought: "",
    text: "",
    finish: undefined,
    usage: undefined,
    error: errors[0]?.message,
  };
  const created = new Set<unknown>();
  for (const data of sse.data.filter((each) => each !== "[DONE]")) {
    const chunk = JSON.parse(data) as { created?: number; usage?: Json | null; choices?: Json[] };
    if (chunk.created !== undefined) created.add(chunk.created);
    const { prompt_tokens, completion_tokens } = chunk.usage ?? {};
    if (chunk.usage) reading.usage = { asked: Number(prompt_tokens), answered: Number(completion_tokens) };
    for (const { delta, text } of chunk.choices ?? []) {
      const { content, reasoning_content } = (delta ?? {}) as Record<string, string | undefined>;
      reading.text += content ?? text ?? "";
      reading.thought += reasoning_content ?? "";
    }
  }
  for (const [name, values] of Object.entries({ ids, models, roles, created: [...created] })) {
    if (values.length > 1) throw new Error(`several ${name}: ${values.join()}`);
  }
  if (done === 1 && finishReasons.length === 1) reading.finish = finishReasons[0];
  return reading;
}

function readMessages(sse: SseReading): Reading {
  const reading: Reading = { thought: "", text: "", finish: undefined, usage: undefined, error: undefined };
  let open: number | undefined;
  let next = 0;
  const usage: Json = {};
  for (const [place, data] of sse.data.entries()) {
    const event = JSON.parse(data) as Record<string, Json> & { type: string; index: number };
    if ((event.type === "message_start") !== (place === 0)) throw new Error(`${event.type} at place ${place}`);
    switch (event.type) {
      case "content_block_start":
        if (open !== undefined || event.index !== next) throw new Error(`block ${event.index} begins in ${open}`);
        open = next++;
        break;
      case "content_block_delta":
        if (open !== event.index) throw new Error(`a delta of block ${event.index} in ${open}`);
        reading.text += event.delta?.text ?? "";
        reading.thought += event.delta?.thinking ?? "";
        break;
      case "content_block_stop":
        if (open !== event.index) throw new Error(`block ${event.index} ends in ${open}`);
        open = undefined;
        break;
      case "message_delta":
        reading.finish = event.delta?.stop_reason as string;
        Object.assign(usage, event.usage);
        break;
      case "error":
        reading.error = String(event.error?.message);
    }
  }
  reading.usage = { asked: Number(usage.input_tokens), answered: Number(usage.output_tokens) };
  if (!sse.data.at(-1)?.includes("message_stop")) reading.finish = undefined;
  return reading;
}

function readContents(sse: SseReading): Reading {
  const reading: Reading = { thought: "", text: "", finish: undefined, usage: undefined, error: undefined };
  const identities = new Set<string>();
  for (const data of sse.data) {
    const chunk = JSON.parse(data) as Json;
    const { message } = (chunk.error ?? {}) as { message?: string };
    if (message !== undefined) {
      reading.error = message;
      continue;
    }
    if (reading.finish !== undefined) throw new Error(`an event behind the end: ${data}`);
    identities.add(`${chunk.responseId} ${chunk.modelVersion}`);
    for (const candidate of (chunk.candidates ?? []) as Json[]) {
      const { parts = [] } = candidate.content as { parts?: { text?: string; thought?: boolean }[] };
      for (const { text = "", thought } of parts) reading[thought === true ? "thought" : "text"] += text;
      reading.finish = candidate.finishReason as string | undefined;
    }
    const { promptTokenCount, candidatesTokenCount = 0, thoughtsTokenCount = 0 } = (chunk.usageMetadata ?? {}) as Json;
    if (promptTokenCount !== undefined) {
      const answered = Number(candidatesTokenCount) + Number(thoughtsTokenCount);
      reading.usage = { asked: Number(promptTokenCount), answered };
    }
  }
  if (identities.size > 1) throw new Error(`several answers: ${[...identities].join()}`);
  return reading;
}

interface Item {
  type: string;
  content?: { text: string }[];
}

function readResponses(sse: SseReading): Reading {
  const reading: Reading = { thought: "", text: "", finish: undefined, usage: undefined, error: undefined };
  const ids = new Set<unknown>();
  for (const [place, data] of sse.data.entries()) {
    const event = JSON.parse(data) as Json & { type: string };
    if (event.sequence_number !== place) throw new Error(`number ${event.sequence_number} at place ${place}`);
    const response = event.response as
      | (Json & { output: Item[]; usage?: Json; error?: { message: string } | null })
      | undefined;
    if (response !== undefined) ids.add(response.id);
    if (event.type === "response.output_text.delta") reading.text += event.delta;
    if (event.type.startsWith("response.reasoning") && event.type.endsWith("text.delta"))
      reading.thought += event.delta;
    if (event.type === "error") reading.error = String(event.message);
    if (event.type === "response.failed") reading.error = response?.error?.message ?? "failed";
    if (event.type !== "response.completed" && event.type !== "response.incomplete") continue;
    reading.finish = event.type === "response.completed" ? "stop" : "length";
    reading.usage = { asked: Number(response?.usage?.input_tokens), answered: Number(response?.usage?.output_tokens) };
    const messages = response?.output.filter(({ type }) => type === "message") ?? [];
    const whole = messages.map(({ content }) => content?.map(({ text }) => text).join("")).join("|");
    if (whole !== reading.text) throw new Error(`the output has ${JSON.stringify(whole)}, the deltas had another text`);
  }
  if (ids.size > 1) throw new Error("several ids");
  return reading;
}

function readLines({ data }: SseReading): Reading {
  const reading: Reading = { thought: "", text: "", finish: undefined, usage: undefined, error: undefined };
  const models = new Set<unknown>();
  for (const line of data) {
    const { model, message, error, done, ...end } = JSON.parse(line) as Json & { message?: Record<string, string> };
    if (reading.finish !== undefined) throw new Error(`${line} behind the end`);
    if (error === undefined) models.add(model);
    else reading.error = String(error);
    reading.text += message?.content ?? "";
    reading.thought += message?.thinking ?? "";
    if (done !== true) continue;
    reading.finish = String(end.done_reason);
    reading.usage = { asked: Number(end.prompt_eval_count), answered: Number(end.eval_count) };
  }
  if (models.size > 1) throw new Error("several models");
  return reading;
}
