// A text completion request -> a neutral request with one message of the user, for backends that know only conversations.

import { ERRORS } from "../../errors/catalog.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { GenerationRequest } from "../../generation/request.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import { decodeSampling, extensionsOf } from "../decode-request.ts";
import { invalidField } from "../fields.ts";
import { nonEmptyText, numberOf } from "../reading.ts";
import { readCompletionRequest } from "./read-request.ts";

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
  const sampling = decodeSampling(body, body.logprobs);
  return {
    model,
    system: [],
    messages: [{ role: "user", parts: [{ type: "text", text }] }],
    tools: [],
    // The number of logprobs asks for them, too.
    sampling: sampling.topLogprobs === undefined ? sampling : { ...sampling, logprobs: true },
    reasoning: {},
    stream,
    origin: { protocol: "completions", body },
    extensions: extensionsOf(body, KNOWN),
    ...compact({ maxOutputTokens: numberOf(body.max_tokens), user: nonEmptyText(body.user) }),
  };
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
