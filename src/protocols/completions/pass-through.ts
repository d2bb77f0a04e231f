// Text completions that pass, to the backends that speak the format.

import { decodeUsage } from "../chunk-usage.ts";
import { ChunkWatch } from "../chunk-watch.ts";
import { mergeSystem } from "../inject-prompt.ts";
import type { PassThrough } from "../protocol.ts";
import { readPrompt } from "./read-prompt.ts";

export const completionsPassThrough: PassThrough = {
  injectPrompt({ prompt: text }, prompt, { separator }) {
    const injected = injectIntoText(text, prompt, separator);
    return injected === undefined ? undefined : { prompt: injected };
  },
  readPrompt,
  goesOnAlone: true,
  usageOf: ({ usage }) => decodeUsage(usage),
  preamble: new Set(["ping"]),
  watch: (options) => new ChunkWatch(options),
};

/** A text completion has no instructions: the prompt stands before the text, whatever the strategy. */
function injectIntoText(text: unknown, prompt: string, separator: string): unknown {
  const inject = (each: string) => mergeSystem(each, prompt, { strategy: "prepend", separator });
  if (typeof text === "string") return inject(text);
  const isTexts = Array.isArray(text) && text.length > 0 && text.every((each) => typeof each === "string");
  // Lists of token numbers are in the model's own alphabet.
  return isTexts ? text.map(inject) : undefined;
}
