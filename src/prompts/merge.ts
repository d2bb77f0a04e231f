// How the gateway's prompt and the system prompt of a request become one.

import type { Settings } from "../config/sections/registry.ts";

export type MergeStrategy = Settings["global_prompts"]["merge_strategy"];

export interface PromptMerge {
  strategy: MergeStrategy;
  separator: string;
}

export function mergeSystem(
  existing: string | undefined,
  prompt: string,
  strategy: MergeStrategy,
  separator: string,
): string {
  if (existing === undefined || existing === "" || strategy === "replace") return prompt;
  return strategy === "prepend" ? prompt + separator + existing : existing + separator + prompt;
}
