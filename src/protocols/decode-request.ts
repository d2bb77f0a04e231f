// What the decoders of requests share: sampling as chat and text completions write it, and what no field was found for.

import type { Sampling } from "../generation/request.ts";
import { isObject, type JsonObject } from "../lib/json.ts";

const NUMBERS = [
  ["temperature", "temperature"],
  ["top_p", "topP"],
  ["top_k", "topK"],
  ["frequency_penalty", "frequencyPenalty"],
  ["presence_penalty", "presencePenalty"],
  ["seed", "seed"],
  ["n", "choices"],
] as const;

/** The body was checked when it was read. */
export function decodeSampling(body: JsonObject, topLogprobs: unknown): Sampling {
  const sampling: Sampling = {};
  for (const [field, name] of NUMBERS) {
    const value = body[field];
    if (isFiniteNumber(value)) sampling[name] = value;
  }
  if (isFiniteNumber(topLogprobs)) sampling.topLogprobs = topLogprobs;
  const { stop } = body;
  if (typeof stop === "string") sampling.stop = [stop];
  else if (Array.isArray(stop) && stop.length > 0) sampling.stop = stop as string[];
  if (isObject(body.logit_bias)) sampling.logitBias = body.logit_bias;
  return sampling;
}

/** A text such as 1e999 is read as a number that no text can say again. */
function isFiniteNumber(value: unknown): value is number {
  return Number.isFinite(value);
}

/** The members that say something and are not among those with a place in the neutral request. */
export function extensionsOf(body: JsonObject, known: ReadonlySet<string>): JsonObject {
  const extensions: JsonObject = {};
  for (const [name, value] of Object.entries(body)) {
    if (!known.has(name) && value !== undefined && value !== null) extensions[name] = value;
  }
  return extensions;
}
