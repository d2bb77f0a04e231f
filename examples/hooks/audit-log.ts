// Writes a line to a file of one's own for each request that is over: who asked what, and what became of it.

import { appendFile } from "node:fs/promises";
import { defineHook } from "signalbox/hooks";

interface Options {
  path: string;
}

export default defineHook<Options>({
  options({ path }) {
    if (typeof path !== "string") throw new Error("options.path: expected the path of a file");
    return { path };
  },

  async end({ info, status, outcome, durationMs, backend, inputTokens, outputTokens, options }) {
    const { id, key, operation, model } = info;
    const line = {
      time: new Date(),
      id,
      key,
      operation,
      model,
      status,
      outcome,
      durationMs,
      backend,
      inputTokens,
      outputTokens,
    };
    await appendFile(options.path, `${JSON.stringify(line)}\n`);
  },
});
