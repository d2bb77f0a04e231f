// Which prompt the gateway adds to a request: that of the model, else of the backend, else the default.

import type { Settings } from "../config/sections/registry.ts";
import type { PromptMerge } from "../protocols/inject-prompt.ts";
import type { PromptFiles } from "./prompt-files.ts";

export type PromptSettings = Settings["global_prompts"];

export type PromptSource = ReturnType<typeof createPrompts>;

/** `files` holds every file that the settings name (prompt-files.ts). */
export function createPrompts(settings: PromptSettings, files: PromptFiles) {
  const models = resolved(settings.models, files);
  const backends = resolved(settings.backends, files);
  const fallback = textOf(settings.default, settings.default_file, files);
  const merge = { strategy: settings.merge_strategy, separator: settings.separator } satisfies PromptMerge;
  return {
    /** Of all of it: whatever is asked, an answer of today is one of yesterday only while this is the same. "": no prompt. */
    digest:
      models.size + backends.size === 0 && fallback === undefined
        ? ""
        : digestOf([[...models], [...backends], fallback ?? null, merge]),
    /** Undefined: nothing is added. An empty prompt of a model or backend keeps the default from it. */
    promptFor(model: string, backendName: string): string | undefined {
      const prompt = models.get(model) ?? backends.get(backendName) ?? fallback;
      return prompt === "" ? undefined : prompt;
    },
    merge,
  };
}

function resolved(entries: PromptSettings["models"], files: PromptFiles): Map<string, string> {
  const prompts = new Map<string, string>();
  for (const [name, { prompt, prompt_file }] of Object.entries(entries)) {
    const text = textOf(prompt, prompt_file, files);
    if (text !== undefined) prompts.set(name, text);
  }
  return prompts;
}

function textOf(inline: string | undefined, file: string | undefined, files: PromptFiles): string | undefined {
  return (file === undefined ? undefined : files.get(file)) ?? inline;
}

function digestOf(value: unknown): string {
  return new Bun.CryptoHasher("sha256").update(JSON.stringify(value)).digest("base64");
}
