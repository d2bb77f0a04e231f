// Requests that ask no question: in Ollama's format they bring a model into memory, or out of it.

import type { JsonObject } from "../../lib/json.ts";
import type { Form } from "./form.ts";

export function loadsModel({ messages, prompt, images }: JsonObject, form: Form): boolean {
  return form === "chat" ? isEmpty(messages) : isEmpty(prompt) && isEmpty(images);
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0);
}

/** @param form - of the endpoint, as a body without a question has none */
export function loadAnswer(form: Form, { keep_alive }: JsonObject, model: string, createdAt: string): JsonObject {
  const said = form === "chat" ? { message: { role: "assistant", content: "" } } : { response: "" };
  const isUnloaded = typeof keep_alive === "string" ? /^0+[a-z]*$/.test(keep_alive) : keep_alive === 0;
  return { model, created_at: createdAt, ...said, done: true, done_reason: isUnloaded ? "unload" : "load" };
}
