// Validation of the requests of Ollama's clients. What only an engine knows, among the options too, passes this door.

import { EFFORTS } from "../../generation/request.ts";
import { isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import {
  checkArray,
  checkBoolean,
  checkNumbers,
  checkObject,
  checkString,
  invalidField,
  missingField,
  NO_MAXIMUM,
  type NumberRule,
  requireModel,
  wrongType,
  wrongWord,
} from "../fields.ts";
import { objectOf } from "../reading.ts";
import { conversationStart, type RequestSummary } from "../request-summary.ts";

const OPTIONS: readonly NumberRule[] = [
  { field: "options.temperature", minimum: 0, maximum: NO_MAXIMUM },
  { field: "options.top_p", minimum: 0, maximum: 1 },
  { field: "options.top_k", minimum: 0, maximum: NO_MAXIMUM, integer: true },
  { field: "options.frequency_penalty", minimum: -2, maximum: 2 },
  { field: "options.presence_penalty", minimum: -2, maximum: 2 },
  { field: "options.seed", minimum: Number.MIN_SAFE_INTEGER, maximum: NO_MAXIMUM, integer: true },
  // -1: no limit; -2: up to the end of the context.
  { field: "options.num_predict", minimum: -2, maximum: NO_MAXIMUM, integer: true },
];

const ROLES = ["system", "user", "assistant", "tool"];

/** A chat without messages loads a model. */
export function readChatRequest(body: JsonObject): RequestSummary {
  const summary = readShared(body, ({ messages }) => conversationStart(messages as unknown[]));
  checkArray(body, "tools");
  checkArray(body, "messages");
  const { messages } = body;
  if (Array.isArray(messages)) for (const [index, message] of messages.entries()) checkMessage(message, index);
  return summary;
}

/** A request without prompt and images loads a model. */
export function readGenerateRequest(body: JsonObject): RequestSummary {
  const summary = readShared(body, () => undefined);
  if (isPresent(body.messages)) throw invalidField("messages", "conversations belong to /api/chat.");
  for (const field of ["prompt", "system", "suffix", "template"]) checkString(body, field);
  checkBoolean(body, "raw");
  checkImages(body.images, "images");
  return summary;
}

/** Of /api/embed, and of /api/embeddings, which takes one `prompt` and knows no dimensions. */
export function readEmbedRequest(body: JsonObject, field: "input" | "prompt"): RequestSummary {
  const model = requireModel(body);
  const value = body[field];
  const isText = typeof value === "string";
  if (!isPresent(value)) throw missingField(field, "the text to embed.");
  if (field === "prompt" && !isText) throw wrongType(field, "a string", value);
  if (!isText && !(Array.isArray(value) && value.every((text) => typeof text === "string"))) {
    throw wrongType(field, "a string or an array of strings", value);
  }
  checkNumbers(body, [{ field: "dimensions", minimum: 1, maximum: NO_MAXIMUM, integer: true }]);
  checkBoolean(body, "truncate");
  return { model, stream: false, choices: 1, affinity: () => undefined };
}

function readShared(body: JsonObject, affinity: RequestSummary["affinity"]): RequestSummary {
  const model = requireModel(body);
  checkBoolean(body, "stream");
  checkFormat(body.format);
  checkThink(body.think);
  checkOptions(body);
  // A stream is what clients get who do not say.
  return { model, stream: body.stream !== false, choices: 1, affinity };
}

function checkFormat(format: unknown): void {
  if (!isPresent(format) || isObject(format) || format === "" || format === "json") return;
  throw invalidField("format", 'expected "json" or a JSON Schema object.');
}

function checkThink(think: unknown): void {
  if (!isPresent(think) || typeof think === "boolean" || EFFORTS.some((effort) => effort === think)) return;
  throw wrongWord("think", ["true", "false", ...EFFORTS], think);
}

function checkOptions(body: JsonObject): void {
  checkObject(body, "options");
  const options = objectOf(body.options);
  checkNumbers(Object.fromEntries(Object.entries(options).map(([name, value]) => [`options.${name}`, value])), OPTIONS);
  const { stop } = options;
  if (!isPresent(stop) || typeof stop === "string") return;
  if (!Array.isArray(stop) || !stop.every((entry) => typeof entry === "string")) {
    throw wrongType("options.stop", "a string or an array of strings", stop);
  }
}

function checkMessage(message: unknown, index: number): void {
  const path = `messages[${index}]`;
  if (!isObject(message)) throw wrongType(path, "an object", message);
  const { role } = message;
  if (!isPresent(role)) throw missingField(`${path}.role`, `one of ${ROLES.join(", ")}.`);
  if (!ROLES.some((known) => known === role)) throw wrongWord(`${path}.role`, ROLES, role);
  checkString(message, "content", path);
  checkString(message, "thinking", path);
  checkArray(message, "tool_calls", path);
  checkImages(message.images, `${path}.images`);
}

function checkImages(images: unknown, path: string): void {
  if (!isPresent(images)) return;
  if (!Array.isArray(images)) throw wrongType(path, "an array of pictures in base64", images);
  for (const [index, image] of images.entries()) {
    if (typeof image !== "string") throw wrongType(`${path}[${index}]`, "a picture in base64", image);
  }
}
