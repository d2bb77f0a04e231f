// Puts the gateway's prompt into a request that is translated; what passes as it is, its format changes itself.

import type { TextPart } from "../generation/content.ts";
import type { GenerationRequest } from "../generation/request.ts";
import { mergeSystem, type PromptMerge } from "../protocols/inject-prompt.ts";

export function injectIntoRequest(request: GenerationRequest, prompt: string, merge: PromptMerge): GenerationRequest {
  const { strategy } = merge;
  const { system } = request;
  const place = strategy === "append" ? system.length - 1 : 0;
  const part = system[place];
  if (part === undefined) return { ...request, system: [{ type: "text", text: prompt }] };
  const merged: TextPart = { ...part, text: mergeSystem(part.text, prompt, merge) };
  if (strategy !== "replace") return { ...request, system: system.with(place, merged) };
  const cache = system.findLast((each) => each.cache !== undefined)?.cache;
  return { ...request, system: [{ type: "text", text: prompt, ...(cache && { cache }) }] };
}
