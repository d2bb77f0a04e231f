// A request of an Ollama client -> the neutral request. What only an engine of Ollama's could do is listed as dropped, or
// refused where the answer would be another one.

import { ERRORS } from "../../errors/catalog.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import {
  EFFORTS,
  type GenerationRequest,
  type ReasoningWish,
  type ResponseFormat,
  type Sampling,
} from "../../generation/request.ts";
import type { FunctionTool } from "../../generation/tools.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { extensionsOf } from "../decode-request.ts";
import { missingField } from "../fields.ts";
import { filled, nonEmptyText, numberOf, objectOf, objectsOf, optionalObject, textOf, textsOf } from "../reading.ts";
import { type Form, formOf, OLLAMA } from "./form.ts";
import { type Conversation, decodeMessages, withImages } from "./message-decoder.ts";

/** Members that the neutral request has a field for, or that are refused; all others are extensions. */
const KNOWN: Readonly<Record<Form, ReadonlySet<string>>> = {
  chat: new Set(["model", "messages", "stream", "tools", "format", "options", "think"]),
  generate: new Set([
    ...["model", "prompt", "system", "images", "stream", "format", "options", "think"],
    ...["suffix", "raw"],
  ]),
};

const KNOWN_OPTIONS: ReadonlySet<string> = new Set([
  ...["temperature", "top_p", "top_k", "seed", "stop", "num_predict", "presence_penalty", "frequency_penalty"],
]);

export function decodeRequest(body: JsonObject): GenerationRequest {
  const form = formOf(body);
  const { system, messages } = form === "chat" ? decodeMessages(objectsOf(body.messages)) : decodePrompt(body);
  const options = objectOf(body.options);
  const limit = numberOf(options.num_predict);
  return compact({
    model: textOf(body.model),
    system,
    messages,
    tools: form === "chat" ? decodeTools(body.tools) : [],
    sampling: decodeSampling(options),
    reasoning: decodeThink(body.think),
    stream: body.stream !== false,
    origin: { protocol: OLLAMA, body },
    extensions: { ...extensionsOf(body, KNOWN[form]), ...decodeOtherOptions(options) },
    // 0 and less: no limit.
    maxOutputTokens: limit !== undefined && limit > 0 ? limit : undefined,
    responseFormat: decodeFormat(body.format),
  });
}

function decodePrompt(body: JsonObject): Conversation {
  if (textOf(body.suffix) !== "") throw onlyOllama("suffix");
  if (body.raw === true) throw onlyOllama("raw");
  const text = { type: "text", text: textOf(body.prompt) } as const;
  const instructions = textOf(body.system);
  return {
    system: instructions === "" ? [] : [{ type: "text", text: instructions }],
    messages: [{ role: "user", parts: withImages(body.images, text, "images") }],
  };
}

function onlyOllama(field: string): GatewayError {
  const message = `${field}: works only on backends of type ollama, and this model has none.`;
  return new GatewayError(ERRORS.unsupportedOperation, message, { param: field });
}

function decodeSampling(options: JsonObject): Sampling {
  const { stop } = options;
  return compact({
    temperature: numberOf(options.temperature),
    topP: numberOf(options.top_p),
    topK: numberOf(options.top_k),
    frequencyPenalty: numberOf(options.frequency_penalty),
    presencePenalty: numberOf(options.presence_penalty),
    seed: numberOf(options.seed),
    stop: typeof stop === "string" ? [stop] : filled(textsOf(stop)),
  });
}

/** Each by the name under which a reader of the request finds it. */
function decodeOtherOptions(options: JsonObject): JsonObject {
  const others = Object.entries(extensionsOf(options, KNOWN_OPTIONS));
  return Object.fromEntries(others.map(([name, value]) => [`options.${name}`, value]));
}

function decodeThink(think: unknown): ReasoningWish {
  if (think === false) return { effort: "none", visible: false };
  if (think === true) return { enabled: true, visible: true };
  const effort = EFFORTS.find((known) => known === think);
  return effort === undefined ? {} : { effort, visible: true };
}

function decodeFormat(format: unknown): ResponseFormat | undefined {
  if (isObject(format)) return { type: "json-schema", name: "response", schema: format };
  return format === "json" ? { type: "json" } : undefined;
}

function decodeTools(tools: unknown): FunctionTool[] {
  return objectsOf(tools).map((tool, index) => {
    const declared = objectOf(tool.function);
    const name = nonEmptyText(declared.name);
    if (name === undefined) throw missingField(`tools[${index}].function.name`, "the name of the tool.");
    return compact({
      kind: "function",
      name,
      description: nonEmptyText(declared.description),
      parameters: optionalObject(declared.parameters),
    });
  });
}
