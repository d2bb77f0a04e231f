// A conversation that goes on and wants a whole answer: an answer and another message behind it, for formats whose turns are messages.

import type { JsonObject } from "../lib/json.ts";

export function repliedMessages(body: JsonObject, said: string, message: string): JsonObject | undefined {
  const { messages } = body;
  if (!Array.isArray(messages)) return undefined;
  const reply = [
    { role: "assistant", content: said },
    { role: "user", content: message },
  ];
  return { ...body, stream: false, messages: [...(messages as unknown[]), ...reply] };
}
