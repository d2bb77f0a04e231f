// Requests that ask no question: in Ollama's format they bring a model into memory, or out of it.

import type { JsonObject } from "../../lib/json.ts";

export function loadsModel({ messages, prompt, images }: JsonObject): boolean {
  return isEmpty(messages) && isEmpty(prompt) && isEmpty(images);
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0);
}

/** @param said - the empty answer in the form of the endpoint */
export function loadAnswer(said: JsonObject, { keep_alive }: JsonObject, model: string, createdAt: string): JsonObject {
  const isUnloaded = typeof keep_alive === "string" ? /^0+[a-z]*$/.test(keep_alive) : keep_alive === 0;
  return { model, created_at: createdAt, ...said, done: true, done_reason: isUnloaded ? "unload" : "load" };
}
