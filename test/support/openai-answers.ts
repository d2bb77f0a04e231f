// Answers in the shapes of the chat completions family, for scripting backends.

import type { Answer } from "./fake-backend.ts";

const CREATED = 1_763_700_000;

export function chatBody(text: string, more: Record<string, unknown> = {}): string {
  return JSON.stringify({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: CREATED,
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    ...more,
  });
}

export function chat(text: string, more: Record<string, unknown> = {}): Answer {
  return { body: chatBody(text, more) };
}

export interface StreamShape {
  /** The last choice chunk; default "stop", null leaves it out. */
  finishReason?: string | null;
  done?: boolean;
  model?: string;
}

/** The events of a chat stream, each with its blank line: role, one per text, finish, [DONE]. */
export function chatEvents(texts: readonly string[], shape: StreamShape = {}): string[] {
  const { finishReason = "stop", done = true, model = "m" } = shape;
  const chunk = (delta: Record<string, unknown>, finish: string | null): string =>
    sseEvent({
      id: "chatcmpl-1",
      object: "chat.completion.chunk",
      created: CREATED,
      model,
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
  return [
    chunk({ role: "assistant", content: "" }, null),
    ...texts.map((content) => chunk({ content }, null)),
    ...(finishReason === null ? [] : [chunk({}, finishReason)]),
    ...(done ? ["data: [DONE]\n\n"] : []),
  ];
}

export function sseEvent(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/** A stream of whole events, one HTTP chunk per event. */
export function chatStream(texts: readonly string[], shape: StreamShape = {}, more: Answer = {}): Answer {
  return eventStream(chatEvents(texts, shape), more);
}

export function eventStream(chunks: string | Uint8Array | readonly (string | Uint8Array)[], more: Answer = {}): Answer {
  return { headers: { "Content-Type": "text/event-stream" }, body: chunks, framing: "chunked", ...more };
}

export function models(ids: readonly string[], ownedBy = "somebody"): Answer {
  const data = ids.map((id) => ({ id, object: "model", created: CREATED, owned_by: ownedBy }));
  return { body: JSON.stringify({ object: "list", data }) };
}

/** Vectors as plain floats, or as base64 of little-endian 32-bit floats when the request asked for that. */
export function embeddings(vectors: readonly (readonly number[])[], encoding: "float" | "base64" = "float"): Answer {
  const data = vectors.map((vector, index) => ({
    object: "embedding",
    index,
    embedding: encoding === "float" ? vector : Buffer.from(Float32Array.from(vector).buffer).toString("base64"),
  }));
  const usage = { prompt_tokens: 4, total_tokens: 4 };
  return { body: JSON.stringify({ object: "list", data, model: "m", usage }) };
}

export function completion(text: string): Answer {
  return {
    body: JSON.stringify({
      id: "cmpl-1",
      object: "text_completion",
      created: CREATED,
      model: "m",
      choices: [{ text, index: 0, finish_reason: "stop", logprobs: null }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    }),
  };
}

export function failure(status: number, message = `scripted ${status}`, more: Record<string, unknown> = {}): Answer {
  return {
    status,
    body: JSON.stringify({ error: { message, type: "scripted_error", param: null, code: null, ...more } }),
  };
}

export function html(status = 200): Answer {
  return {
    status,
    headers: { "Content-Type": "text/html" },
    body: `<!doctype html><html><head><title>${status}</title></head><body>a web page, not an API</body></html>`,
  };
}
