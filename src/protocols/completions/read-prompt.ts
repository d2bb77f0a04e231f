// What a model reads of a text completion: it has no roles, and counts as what a user says.

import type { JsonObject } from "../../lib/json.ts";
import type { PromptReader } from "../prompt-reader.ts";

export function readPrompt({ prompt }: JsonObject, reader: PromptReader): void {
  reader.message("user");
  if (typeof prompt === "string") reader.text(prompt);
  else if (!Array.isArray(prompt)) return;
  // Tokens in the model's own alphabet.
  else if (typeof prompt[0] === "number") reader.text(prompt.join(","));
  else for (const each of prompt) readOne(each, reader);
}

function readOne(prompt: unknown, reader: PromptReader): void {
  if (typeof prompt === "string") reader.text(prompt);
  else if (Array.isArray(prompt)) reader.text(prompt.join(","));
}
