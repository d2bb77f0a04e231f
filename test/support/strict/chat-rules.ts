// What api.openai.com and strict local engines accept at /v1/chat/completions (wire/openai-chat.md, local-engines.md).

import type { JsonObject } from "./script.ts";
import {
  anyObject,
  anything,
  base64,
  boolean,
  type Check,
  checkSignature,
  dataUrl,
  integer,
  isObject,
  list,
  number,
  oneOf,
  Refused,
  refuse,
  shape,
  string,
  stringOr,
  tagged,
} from "./shape.ts";

export type ChatDialect = "openai" | "local";

const NAME = string({ pattern: /^[a-zA-Z0-9_-]{1,64}$/ });
const TEXT_PART = shape({ type: anything, text: string(), "prompt_cache_breakpoint?": anything });
const REFUSAL_PART = shape({ type: anything, refusal: string() });

const imageUrl: Check = (value, field) => {
  shape({ url: dataUrl(/^image\/(png|jpeg|gif|webp)$/, true), "detail?": oneOf("auto", "low", "high", "original") })(
    value,
    field,
  );
  const { url } = value as { url: string };
  const [, mediaType = "", data = ""] = /^data:([^;]+);base64,(.*)$/s.exec(url) ?? [];
  if (data !== "") checkSignature(mediaType, data, `${field}.url`);
};

const file: Check = (value, field) => {
  shape({
    "file_id?": string({ min: 1 }),
    "file_data?": dataUrl(/^(application\/pdf|text\/plain)$/),
    "filename?": string({ min: 1 }),
  })(value, field);
  const { file_id, file_data, filename } = value as JsonObject;
  if ((file_id === undefined) === (file_data === undefined)) refuse(field, "exactly one of file_id and file_data");
  if (file_data !== undefined && filename === undefined) throw new Refused("missing", `${field}.filename`, "required");
};

const USER_PARTS = {
  text: TEXT_PART,
  image_url: shape({ type: anything, image_url: imageUrl }),
  input_audio: shape({ type: anything, input_audio: shape({ data: base64, format: oneOf("wav", "mp3") }) }),
  file: shape({ type: anything, file }),
};

const textContent = stringOr(string(), list(tagged("type", { text: TEXT_PART }), 1));

const TOOL_CALL = tagged("type", {
  function: shape({
    id: string({ min: 1 }),
    type: anything,
    function: shape({ name: NAME, arguments: string() }),
    "extra_content?": anyObject,
  }),
  custom: shape({ id: string({ min: 1 }), type: anything, custom: shape({ name: NAME, input: string() }) }),
});

function messageShapes(dialect: ChatDialect): Record<string, Check> {
  const system = shape({ role: anything, content: textContent, "name?": string() });
  // Vendors of local engines read reasoning back under either name; the hosted API knows neither.
  const extras = dialect === "local" ? { "reasoning_content??": string(), "reasoning??": string() } : {};
  const assistantContent = stringOr(string(), list(tagged("type", { text: TEXT_PART, refusal: REFUSAL_PART }), 1));
  const assistant = shape({
    role: anything,
    "content??": assistantContent,
    "refusal??": string(),
    "name?": string(),
    "audio??": shape({ id: string({ min: 1 }) }),
    "tool_calls?": list(TOOL_CALL, 1, 128),
    "annotations?": anything,
    ...extras,
  });
  return {
    system,
    ...(dialect === "openai" && { developer: system }),
    user: shape({
      role: anything,
      content: stringOr(string(), list(tagged("type", USER_PARTS), 1)),
      "name?": string(),
    }),
    assistant,
    tool: shape({ role: anything, tool_call_id: string({ min: 1 }), content: textContent }),
  };
}

const TOOLS = tagged("type", {
  function: shape({
    type: anything,
    function: shape({ name: NAME, "description?": string(), "parameters?": anyObject, "strict??": boolean }),
  }),
  custom: shape({ type: anything, custom: shape({ name: NAME, "description?": string(), "format?": anyObject }) }),
});

const TOOL_CHOICE = stringOr(
  oneOf("none", "auto", "required"),
  tagged("type", {
    function: shape({ type: anything, function: shape({ name: NAME }) }),
    custom: shape({ type: anything, custom: shape({ name: NAME }) }),
    allowed_tools: shape({
      type: anything,
      allowed_tools: shape({ mode: oneOf("auto", "required"), tools: list(anyObject, 1) }),
    }),
  }),
);

const RESPONSE_FORMAT = tagged("type", {
  text: shape({ type: anything }),
  json_object: shape({ type: anything }),
  json_schema: shape({
    type: anything,
    json_schema: shape({ name: NAME, "description?": string(), "schema?": anyObject, "strict??": boolean }),
  }),
});

const COMMON: Record<string, Check> = {
  model: string({ min: 1 }),
  "temperature??": number(0, 2),
  "top_p??": number(0, 1),
  "frequency_penalty??": number(-2, 2),
  "presence_penalty??": number(-2, 2),
  "n??": integer(1, 128),
  "stop??": stringOr(string({ min: 1 }), list(string({ min: 1 }), 1, 4)),
  "stream??": boolean,
  "stream_options??": shape({ "include_usage?": boolean, "include_obfuscation?": boolean }),
  "logprobs??": boolean,
  "top_logprobs??": integer(0, 20),
  "logit_bias??": anyObject,
  "seed??": integer(-(2 ** 63), 2 ** 63),
  "max_tokens??": integer(1),
  "response_format?": RESPONSE_FORMAT,
  "tools?": list(TOOLS, 1, 128),
  "tool_choice?": TOOL_CHOICE,
  "parallel_tool_calls?": boolean,
};

const BODIES: Record<ChatDialect, Check> = {
  openai: shape({
    ...COMMON,
    messages: list(tagged("role", messageShapes("openai")), 1),
    "max_completion_tokens??": integer(1),
    "user?": string(),
    "metadata??": metadata,
    "reasoning_effort??": oneOf("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    "verbosity??": oneOf("low", "medium", "high"),
    "modalities??": list(oneOf("text", "audio"), 1),
    "audio??": anyObject,
    "prediction??": anyObject,
    "service_tier??": oneOf("auto", "default", "flex", "scale", "priority", "fast"),
    "store??": boolean,
    "prompt_cache_key?": string(),
    "safety_identifier?": string(),
    "web_search_options?": anyObject,
  }),
  // An engine that knows the old fields only and refuses the rest.
  local: shape({
    ...COMMON,
    messages: list(tagged("role", messageShapes("local")), 1),
    "reasoning_effort??": oneOf("none", "minimal", "low", "medium", "high", "max"),
    "chat_template_kwargs?": anyObject,
    "top_k?": integer(0),
    "min_p?": number(0, 1),
  }),
};

export function checkChatBody(body: JsonObject, dialect: ChatDialect): void {
  BODIES[dialect](body, "");
  checkPairing(body.messages as JsonObject[]);
  checkTools(body);
  if (body.stream_options && body.stream !== true) refuse("stream_options", "only allowed when stream is enabled");
  if (body.top_logprobs !== undefined && body.top_logprobs !== null && body.logprobs !== true) {
    refuse("top_logprobs", "logprobs must be true");
  }
  if (dialect === "openai") checkHosted(body);
}

function metadata(value: unknown, field: string): void {
  if (!isObject(value)) refuse(field, "expected an object");
  const entries = Object.entries(value);
  if (entries.length > 16) refuse(field, "at most 16 pairs");
  for (const [key, entry] of entries) {
    string({ max: 512 })(entry, `${field}.${key}`);
    if (key.length > 64) refuse(`${field}.${key}`, "key too long");
  }
}

/** Every call is answered by the tool messages right behind it, and nothing else is. */
function checkPairing(messages: readonly JsonObject[]): void {
  let open = new Set<string>();
  for (const [index, message] of messages.entries()) {
    const field = `messages[${index}]`;
    if (message.role === "tool") {
      if (!open.delete(String(message.tool_call_id))) {
        refuse(
          `${field}.tool_call_id`,
          "messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
        );
      }
      continue;
    }
    if (open.size > 0) refuse(field, `tool_call_ids did not have response messages: ${[...open].join(", ")}`);
    if (message.role !== "assistant") continue;
    const calls = (message.tool_calls ?? []) as { id: string }[];
    open = new Set(calls.map(({ id }) => id));
    if (open.size < calls.length) refuse(`${field}.tool_calls`, "duplicate tool call ids");
    const hasContent = message.content !== undefined && message.content !== null;
    if (!hasContent && calls.length === 0 && !message.refusal && !message.audio) {
      refuse(`${field}.content`, "expected a string or parts, got null");
    }
  }
  if (open.size > 0)
    refuse(`messages[${messages.length - 1}]`, "an assistant message with 'tool_calls' must be followed");
}

function checkTools({ tools, tool_choice, parallel_tool_calls }: JsonObject): void {
  if (tools === undefined) {
    if (tool_choice !== undefined && tool_choice !== "none")
      refuse("tool_choice", "only allowed when 'tools' are specified");
    if (parallel_tool_calls !== undefined) refuse("parallel_tool_calls", "only allowed when 'tools' are specified");
    return;
  }
  const definitions = tools as { type: string; function?: JsonObject; custom?: JsonObject }[];
  const names = definitions.map((tool) => (tool.function ?? tool.custom)?.name);
  if (new Set(names).size < names.length) refuse("tools", "tool names must be unique");
  for (const [index, tool] of definitions.entries()) {
    const { strict, parameters } = tool.function ?? {};
    if (strict === true) checkStrictSchema(parameters, `tools[${index}].function.parameters`);
  }
  if (!isObject(tool_choice)) return;
  const chosen = (tool_choice.function ?? tool_choice.custom) as JsonObject | undefined;
  if (chosen !== undefined && !names.includes(chosen.name))
    refuse("tool_choice", `tool ${chosen.name} not found in tools`);
}

/** Strict mode: closed objects whose properties are all required. */
export function checkStrictSchema(schema: unknown, field: string): void {
  if (!isObject(schema)) return;
  if (schema.type === "object") {
    const properties = isObject(schema.properties) ? schema.properties : {};
    if (schema.additionalProperties !== false) refuse(field, "'additionalProperties' is required to be false");
    const required = Array.isArray(schema.required) ? schema.required : [];
    for (const [name, property] of Object.entries(properties)) {
      if (!required.includes(name)) refuse(field, `'required' is missing ${name}`);
      checkStrictSchema(property, `${field}.properties.${name}`);
    }
  }
  checkStrictSchema(schema.items, `${field}.items`);
}

/** Rules that only the hosted service has. */
function checkHosted(body: JsonObject): void {
  const format = body.response_format as JsonObject | undefined;
  if (format?.type === "json_object" && !/json/i.test(JSON.stringify(body.messages))) {
    refuse("messages", "'messages' must contain the word 'json' in some form");
  }
  const { strict, schema } = (format?.json_schema ?? {}) as JsonObject;
  if (strict === true) checkStrictSchema(schema, "response_format.json_schema.schema");
  if (!isReasoningModel(String(body.model))) {
    if (body.reasoning_effort) unsupported("reasoning_effort");
    return;
  }
  if (body.max_tokens) unsupported("max_tokens", "Use 'max_completion_tokens' instead.");
  for (const [field, usual] of [
    ["temperature", 1],
    ["top_p", 1],
    ["presence_penalty", 0],
    ["frequency_penalty", 0],
  ] as const) {
    const value = body[field];
    if (value !== undefined && value !== null && value !== usual)
      unsupported(field, `Only the default (${usual}) is supported.`);
  }
}

export function isReasoningModel(model: string): boolean {
  return /^(o\d|gpt-5)/.test(model);
}

function unsupported(field: string, hint = ""): never {
  const message = `Unsupported parameter: '${field}' is not supported with this model. ${hint}`;
  throw new Refused("invalid", field, message, 400, "unsupported_parameter");
}
