// A text completion request -> a neutral request with one message of the user, for backends that know only conversations
// (wire/openai-chat.md, section 7).

import { ERRORS } from "../../errors/catalog.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { GenerationRequest, Sampling } from "../../generation/request.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { invalidField } from "../fields.ts";
import { readCompletionRequest } from "./request.ts";

/** Members that the neutral request has a field for, or that are refused; all others are extensions. */
const KNOWN: ReadonlySet<string> = new Set([
  ...["model", "prompt", "suffix", "echo", "stream", "stream_options", "max_tokens", "temperature", "top_p", "top_k"],
  ...["frequency_penalty", "presence_penalty", "seed", "stop", "n", "logprobs", "logit_bias", "user"],
]);

export function decodeRequest(body: JsonObject): GenerationRequest {
  const { model, stream } = readCompletionRequest(body);
  const text = readPrompt(body.prompt);
  if (typeof body.suffix === "string" && body.suffix !== "") throw onlyNative("suffix");
  if (body.echo === true) throw onlyNative("echo");
  if (body.max_tokens === 0) throw invalidField("max_tokens", "expected an integer of at least 1, got 0.");
  const request: GenerationRequest = {
    model,
    system: [],
    messages: [{ role: "user", parts: [{ type: "text", text }] }],
    tools: [],
    sampling: decodeSampling(body),
    reasoning: {},
    stream,
    origin: { protocol: "completions", body },
    extensions: extensionsOf(body),
  };
  if (typeof body.max_tokens === "number") request.maxOutputTokens = body.max_tokens;
  if (typeof body.user === "string" && body.user !== "") request.user = body.user;
  return request;
}

function readPrompt(prompt: unknown): string {
  const text: unknown = Array.isArray(prompt) && prompt.length === 1 ? prompt[0] : prompt;
  if (typeof text !== "string") throw onlyNative("prompt", "token ids and several prompts work");
  return text;
}

function onlyNative(field: string, subject = "works"): GatewayError {
  return new GatewayError(
    ERRORS.unsupportedOperation,
    `${field}: ${subject} only for backends that speak completions, and this model has none.`,
    { param: field },
  );
}

const NUMBERS: readonly (readonly [
  field: string,
  name: "temperature" | "topP" | "topK" | "frequencyPenalty" | "presencePenalty" | "seed" | "choices" | "topLogprobs",
])[] = [
  ["temperature", "temperature"],
  ["top_p", "topP"],
  ["top_k", "topK"],
  ["frequency_penalty", "frequencyPenalty"],
  ["presence_penalty", "presencePenalty"],
  ["seed", "seed"],
  ["n", "choices"],
  ["logprobs", "topLogprobs"],
];

function decodeSampling(body: JsonObject): Sampling {
  const sampling: Sampling = {};
  for (const [field, name] of NUMBERS) {
    const value = body[field];
    if (typeof value === "number") sampling[name] = value;
  }
  const { stop } = body;
  if (typeof stop === "string") sampling.stop = [stop];
  else if (Array.isArray(stop) && stop.length > 0) sampling.stop = stop as string[]; // checked by readCompletionRequest
  if (sampling.topLogprobs !== undefined) sampling.logprobs = true;
  if (isObject(body.logit_bias)) sampling.logitBias = body.logit_bias;
  return sampling;
}

function extensionsOf(body: JsonObject): JsonObject {
  const extensions: JsonObject = {};
  for (const key in body) {
    if (!KNOWN.has(key) && body[key] !== undefined && body[key] !== null) extensions[key] = body[key];
  }
  return extensions;
}
