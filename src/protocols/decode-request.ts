// What the decoders of requests share: sampling as chat and text completions write it, and what no field was found for.

import type { Sampling } from "../generation/request.ts";
import { compact, isPresent, type JsonObject } from "../lib/json.ts";
import { numberOf, optionalObject } from "./reading.ts";

/** The body was checked when it was read. */
export function decodeSampling(body: JsonObject, topLogprobs: unknown): Sampling {
  const { stop } = body;
  const stops = Array.isArray(stop) && stop.length > 0 ? (stop as string[]) : undefined;
  return compact({
    temperature: numberOf(body.temperature),
    topP: numberOf(body.top_p),
    topK: numberOf(body.top_k),
    frequencyPenalty: numberOf(body.frequency_penalty),
    presencePenalty: numberOf(body.presence_penalty),
    seed: numberOf(body.seed),
    choices: numberOf(body.n),
    topLogprobs: numberOf(topLogprobs),
    stop: typeof stop === "string" ? [stop] : stops,
    logitBias: optionalObject(body.logit_bias),
  });
}

/** The members that say something and are not among those with a place in the neutral request. */
export function extensionsOf(body: JsonObject, known: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(Object.entries(body).filter(([name, value]) => !known.has(name) && isPresent(value)));
}
