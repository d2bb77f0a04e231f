// Token counts as an Ollama server tells them, at the end of an answer.

import type { Usage } from "../../generation/usage.ts";
import type { JsonObject } from "../../lib/json.ts";
import { countOf } from "../reading.ts";

/** A prompt that was in the cache as a whole is not counted. */
export function decodeUsage({ prompt_eval_count, eval_count }: JsonObject): Usage | undefined {
  const output = countOf(eval_count);
  return output === undefined
    ? undefined
    : { input: { total: countOf(prompt_eval_count) ?? 0 }, output: { total: output } };
}
