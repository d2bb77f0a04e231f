// The streams of the Ollama format: a JSON object in each line.

import type { Framing } from "../framing.ts";

const WRITER = {
  // A line break in a JSON text can only stand between values, where a space means the same.
  event: (data: string) => `${data.replaceAll("\n", " ")}\n`,
  end: () => "",
};

export const JSON_LINES: Framing = { contentType: "application/x-ndjson", writer: () => WRITER };
