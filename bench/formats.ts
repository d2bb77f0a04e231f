// The wire formats of the benchmark: how a client asks in each, what it knows an answer by, and how a backend answers.

import { type Answer, modelFor } from "./wire.ts";

/** One event of a streamed answer has this text, so that a chunk of a chat backend is about 0.2 KB, as of a real engine. */
const TOKEN = "hello world ";

interface ClientFormat {
  path: string;
  body(prompt: string): object;
  /** Stands once in every event with a piece of the text. */
  delta: string;
  /** Stands once in a whole stream, behind all its text. */
  end: string;
}

const askedInMessages = (prompt: string) => ({ messages: [{ role: "user", content: prompt }] });

export const CLIENT_FORMATS = {
  chat: {
    path: "/v1/chat/completions",
    body: askedInMessages,
    delta: '"delta":{"content":',
    end: "data: [DONE]",
  },
  messages: {
    path: "/v1/messages",
    body: (prompt) => ({ max_tokens: 1000, ...askedInMessages(prompt) }),
    delta: "event: content_block_delta",
    end: "event: message_stop",
  },
  responses: {
    path: "/v1/responses",
    body: (prompt) => ({ input: prompt, store: false }),
    delta: "event: response.output_text.delta",
    end: "event: response.completed",
  },
} satisfies Record<string, ClientFormat>;

export type ClientFormatName = keyof typeof CLIENT_FORMATS;

/** What a good answer holds, and how often; a whole stream also holds its end, once. */
export function expectedMarks(
  answer: Answer,
  client: ClientFormatName,
): { text: string; times: number; end: string | undefined } {
  const { delta, end } = CLIENT_FORMATS[client];
  if (answer.kind === "stream") return { text: delta, times: answer.chunks, end };
  return { text: JSON.stringify(plainText(answer.bytes)), times: 1, end: undefined };
}

interface BackendFormat {
  /** The JSON of a whole answer. */
  plain(model: string, text: string): object;
  /** The events of a stream: before the first chunk, each chunk, and behind the last one. */
  opening: string;
  chunk: string;
  end: string;
}

const CHAT_HEAD = { id: "chatcmpl-bench", created: 1_700_000_000 };
const CHUNK_HEAD = { id: CHAT_HEAD.id, object: "chat.completion.chunk", created: CHAT_HEAD.created, model: "bench" };
const MESSAGE = { id: "msg_bench", type: "message", role: "assistant" };
const GEMINI_TAIL = {
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 10, totalTokenCount: 20 },
  modelVersion: "bench",
  responseId: "bench",
};

const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
const named = (type: string, fields: object = {}) => `event: ${type}\n${data({ type, ...fields })}`;
const candidates = (text: string, more: object = {}) => [{ content: { parts: [{ text }], role: "model" }, ...more }];

export const BACKEND_FORMATS = {
  chat: {
    plain: (model, text) => ({
      ...CHAT_HEAD,
      object: "chat.completion",
      model,
      choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
      usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
    }),
    opening: "",
    chunk: data({ ...CHUNK_HEAD, choices: [{ index: 0, delta: { content: TOKEN }, finish_reason: null }] }),
    end: `${data({ ...CHUNK_HEAD, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}data: [DONE]\n\n`,
  },
  messages: {
    plain: (model, text) => ({
      ...MESSAGE,
      model,
      content: [{ type: "text", text }],
      stop_reason: "end_turn",
      stop_sequence: null,
      usage: { input_tokens: 10, output_tokens: 10 },
    }),
    opening:
      named("message_start", {
        message: { ...MESSAGE, model: "bench", content: [], usage: { input_tokens: 10, output_tokens: 1 } },
      }) + named("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    chunk: named("content_block_delta", { index: 0, delta: { type: "text_delta", text: TOKEN } }),
    end:
      named("content_block_stop", { index: 0 }) +
      named("message_delta", {
        delta: { stop_reason: "end_turn", stop_sequence: null },
        usage: { output_tokens: 10 },
      }) +
      named("message_stop"),
  },
  "generate-content": {
    plain: (_model, text) => ({ candidates: candidates(text, { finishReason: "STOP", index: 0 }), ...GEMINI_TAIL }),
    opening: "",
    chunk: data({ candidates: candidates(TOKEN, { index: 0 }), ...GEMINI_TAIL }),
    end: data({ candidates: candidates("", { finishReason: "STOP", index: 0 }), ...GEMINI_TAIL }),
  },
} satisfies Record<string, BackendFormat>;

export type BackendFormatName = keyof typeof BACKEND_FORMATS;

/** A whole answer; of a chat backend it has exactly so many bytes, elsewhere the same text. */
export function plainBody(format: BackendFormatName, bytes: number): string {
  return JSON.stringify(BACKEND_FORMATS[format].plain(modelFor({ kind: "plain", bytes }), plainText(bytes)));
}

function plainText(bytes: number): string {
  const empty = JSON.stringify(BACKEND_FORMATS.chat.plain(modelFor({ kind: "plain", bytes }), ""));
  return "x".repeat(Math.max(0, bytes - empty.length));
}
