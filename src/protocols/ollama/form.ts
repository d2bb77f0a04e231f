// The two forms of the Ollama format: conversations of /api/chat, and single prompts of /api/generate. One request is of one
// form, and its answer likewise (https://github.com/ollama/ollama/blob/main/docs/api.md, and the types of the npm package
// `ollama`).

import type { JsonObject } from "../../lib/json.ts";

export const OLLAMA = "ollama-api";

export type Form = "chat" | "generate";

/** The reader of /api/generate refuses `messages`. */
export function formOf(body: JsonObject): Form {
  return Array.isArray(body.messages) ? "chat" : "generate";
}
