// What generativelanguage.googleapis.com accepts at :generateContent (wire/gemini-generatecontent.md).

import type { Ledger } from "./ledger.ts";
import type { JsonObject } from "./script.ts";
import {
  anyObject,
  anything,
  base64,
  boolean,
  type Check,
  camelCase,
  checkSignature,
  integer,
  isObject,
  list,
  number,
  oneOf,
  Refused,
  refuse,
  shape,
  string,
} from "./shape.ts";

/** Requests may be written in either case. */
const message = (members: Record<string, Check>) => shape(members, { camelCase: true });

const FUNCTION_NAME = string({ pattern: /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/ });
export const SKIP_SIGNATURE = "skip_thought_signature_validator";

const MEDIA =
  /^(image\/(png|jpeg|webp|gif|heic|heif)|application\/pdf|text\/[a-z]+|audio\/[a-z0-9.-]+|video\/[a-z0-9.-]+)$/;

const inlineData: Check = (value, field) => {
  message({ mimeType: string({ pattern: MEDIA }), data: base64, "displayName?": string() })(value, field);
  const { mimeType, mime_type, data } = value as Record<string, string>;
  checkSignature(mimeType ?? mime_type ?? "", data ?? "", `${field}.data`);
};

const PART_KINDS: Record<string, Check> = {
  text: string(),
  inlineData,
  fileData: message({ fileUri: string({ pattern: /^(https:\/\/|gs:\/\/)/ }), "mimeType?": string() }),
  functionCall: message({ "id?": string({ min: 1 }), name: FUNCTION_NAME, "args?": anyObject }),
  functionResponse: message({
    "id?": string({ min: 1 }),
    name: FUNCTION_NAME,
    response: anyObject,
    "parts?": list(message({ "inlineData?": inlineData, "fileData?": anyObject }), 1),
    "willContinue?": boolean,
    "scheduling?": string(),
  }),
};
const OPTIONAL_KINDS = Object.fromEntries(Object.entries(PART_KINDS).map(([kind, check]) => [`${kind}?`, check]));

const PART: Check = (value, field) => {
  // Bytes of protobuf JSON: the documented way around is the one value that is no base64.
  const signature: Check = (given, at) => (given === SKIP_SIGNATURE ? undefined : base64(given, at));
  message({ ...OPTIONAL_KINDS, "thought?": boolean, "thoughtSignature?": signature, "mediaResolution?": anyObject })(
    value,
    field,
  );
  const part = camelCased(value as JsonObject);
  const kinds = Object.keys(PART_KINDS).filter((kind) => part[kind] !== undefined);
  if (kinds.length !== 1) refuse(field, "required oneof field 'data' must have one initialized field");
  if (part.text === "" && part.thoughtSignature === undefined)
    refuse(`${field}.text`, "Unable to submit request because it must have a text parameter");
};

const CONTENT = message({ "role?": oneOf("user", "model"), parts: list(PART, 1) });
const SYSTEM = message({ "role?": string(), parts: list(message({ text: string({ min: 1 }) }), 1) });

const TYPES = ["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"];

/** The subset of OpenAPI; arrays need items, enums are for strings. */
const schema: Check = (value, field) => {
  const nested = (inner: unknown, at: string): void => schema(inner, at);
  message({
    type: oneOf(...TYPES),
    "format?": string(),
    "title?": string(),
    "description?": string(),
    "nullable?": boolean,
    "enum?": list(string({ min: 1 }), 1),
    "items?": nested,
    "maxItems?": anything,
    "minItems?": anything,
    "properties?": (properties: unknown, at: string) => {
      if (!isObject(properties)) refuse(at, "expected an object");
      for (const [name, property] of Object.entries(properties)) nested(property, `${at}.${name}`);
    },
    "required?": list(string()),
    "propertyOrdering?": list(string()),
    "minimum?": number(Number.NEGATIVE_INFINITY),
    "maximum?": number(Number.NEGATIVE_INFINITY),
    "minLength?": anything,
    "maxLength?": anything,
    "pattern?": string(),
    "anyOf?": list(nested, 1),
    "example?": anything,
    "default?": anything,
  })(value, field);
  const { type, items, enum: values, properties } = value as JsonObject;
  if (type === "ARRAY" && items === undefined) throw new Refused("missing", `${field}.items`, "missing field");
  if (values !== undefined && type !== "STRING") refuse(`${field}.enum`, "only allowed for STRING type");
  const isEmpty = isObject(properties) && Object.keys(properties).length === 0;
  if (type === "OBJECT" && isEmpty) refuse(`${field}.properties`, "should be non-empty for OBJECT type");
};

/** Keywords that responseJsonSchema has no support for. */
const jsonSchema: Check = (value, field) => {
  if (!isObject(value)) refuse(field, "expected an object");
  if (value.const !== undefined) refuse(`${field}.const`, "const is not supported");
  for (const [name, property] of Object.entries(isObject(value.properties) ? value.properties : {})) {
    jsonSchema(property, `${field}.properties.${name}`);
  }
  if (isObject(value.items)) jsonSchema(value.items, `${field}.items`);
};

const declaration: Check = (value, field) => {
  message({
    name: FUNCTION_NAME,
    "description?": string(),
    "parameters?": schema,
    "parametersJsonSchema?": anyObject,
    "response?": schema,
    "responseJsonSchema?": anyObject,
    "behavior?": string(),
  })(value, field);
  const { parameters, parametersJsonSchema } = camelCased(value as JsonObject);
  if (parameters !== undefined && parametersJsonSchema !== undefined)
    refuse(field, "only one of parameters and parametersJsonSchema");
};

const TOOL = message({
  "functionDeclarations?": list(declaration, 1),
  "googleSearch?": anyObject,
  "urlContext?": anyObject,
  "codeExecution?": anyObject,
});

const TOOL_CONFIG = message({
  "functionCallingConfig?": message({
    "mode?": oneOf("AUTO", "ANY", "NONE", "VALIDATED"),
    "allowedFunctionNames?": list(string({ min: 1 }), 1),
  }),
  "includeServerSideToolInvocations?": boolean,
  "retrievalConfig?": anyObject,
});

const THINKING_LEVELS = ["MINIMAL", "LOW", "MEDIUM", "HIGH", "minimal", "low", "medium", "high"];

const CONFIG = message({
  "temperature?": number(0, 2),
  "topP?": number(0, 1),
  "topK?": number(1),
  "seed?": integer(-(2 ** 31), 2 ** 31 - 1),
  "candidateCount?": integer(1, 8),
  "maxOutputTokens?": integer(1),
  "stopSequences?": list(string({ min: 1 }), 0, 5),
  "presencePenalty?": number(-2, 2),
  "frequencyPenalty?": number(-2, 2),
  "responseLogprobs?": boolean,
  "logprobs?": integer(0, 20),
  "responseMimeType?": oneOf("text/plain", "application/json", "text/x.enum"),
  "responseSchema?": schema,
  "responseJsonSchema?": jsonSchema,
  "responseModalities?": list(oneOf("TEXT", "IMAGE", "AUDIO")),
  "thinkingConfig?": message({
    "includeThoughts?": boolean,
    "thinkingBudget?": integer(-1, 32_768),
    "thinkingLevel?": oneOf(...THINKING_LEVELS),
  }),
  "imageConfig?": message({
    "aspectRatio?": oneOf("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9"),
    "imageSize?": oneOf("1K", "2K", "4K"),
  }),
  "speechConfig?": anyObject,
  "mediaResolution?": string(),
});

const BODY = message({
  contents: list(CONTENT, 1),
  "systemInstruction?": SYSTEM,
  "tools?": list(TOOL),
  "toolConfig?": TOOL_CONFIG,
  "safetySettings?": list(
    message({
      category: string({ pattern: /^HARM_CATEGORY_/ }),
      threshold: oneOf("OFF", "BLOCK_NONE", "BLOCK_ONLY_HIGH", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_LOW_AND_ABOVE"),
    }),
  ),
  "generationConfig?": CONFIG,
  "cachedContent?": string(),
  "serviceTier?": string(),
  "labels?": anyObject,
  "store?": boolean,
});

/** The body in camelCase, once it has passed. */
export function checkGenerateContentBody(body: JsonObject, model: string, ledger: Ledger): void {
  BODY(body, "");
  const { contents, tools, toolConfig, generationConfig } = camelCased(body) as Record<string, unknown>;
  checkConfig((generationConfig ?? {}) as JsonObject, model);
  checkTools((tools ?? []) as JsonObject[], (toolConfig ?? {}) as JsonObject);
  checkConversation(contents as Turn[], isAtLeast3(model), ledger);
}

export function isAtLeast3(model: string): boolean {
  return Number(/^gemini-(\d+)/.exec(model)?.[1] ?? 0) >= 3;
}

function checkConfig(config: JsonObject, model: string): void {
  const { responseSchema, responseJsonSchema, responseMimeType } = config;
  const hasSchema = responseSchema !== undefined || responseJsonSchema !== undefined;
  if (responseSchema !== undefined && responseJsonSchema !== undefined)
    refuse("generationConfig.responseSchema", "only one schema may be set");
  if (hasSchema && responseMimeType !== "application/json")
    refuse("generationConfig.responseMimeType", "must be application/json with a schema");
  if (config.logprobs !== undefined && config.responseLogprobs !== true)
    refuse("generationConfig.logprobs", "responseLogprobs must be true");
  if (model.startsWith("gemini-2.5")) {
    for (const field of ["presencePenalty", "frequencyPenalty"]) {
      if (config[field] !== undefined) refuse(`generationConfig.${field}`, "Penalty is not enabled for this model");
    }
  }
  checkImages(config, model);
  const { thinkingBudget, thinkingLevel } = (config.thinkingConfig ?? {}) as {
    thinkingBudget?: number;
    thinkingLevel?: string;
  };
  const field = "generationConfig.thinkingConfig";
  if (thinkingBudget !== undefined && thinkingLevel !== undefined)
    refuse(field, "only one of thinkingBudget and thinkingLevel");
  if (thinkingLevel !== undefined) {
    if (!isAtLeast3(model)) refuse(`${field}.thinkingLevel`, "Thinking level is not supported for this model.");
    if (/minimal/i.test(thinkingLevel) && !model.includes("flash"))
      refuse(`${field}.thinkingLevel`, "Thinking level MINIMAL is not supported for this model.");
  }
  const range = BUDGETS.find(([pattern]) => pattern.test(model))?.[1];
  if (thinkingBudget === undefined || thinkingBudget === -1 || range === undefined) return;
  const isOff = thinkingBudget === 0 && range.off;
  if (!isOff && (thinkingBudget < range.min || thinkingBudget > range.max)) {
    refuse(`${field}.thinkingBudget`, `The thinking budget ${thinkingBudget} is invalid: ${range.min} to ${range.max}`);
  }
}

/** Models with "-image" in their name draw; those before the third generation have one size. */
function checkImages({ responseModalities, imageConfig }: JsonObject, model: string): void {
  const draws = model.includes("-image");
  const wanted = (responseModalities ?? []) as string[];
  if (!draws && wanted.includes("IMAGE"))
    refuse("generationConfig.responseModalities", "Multi-modal output is not supported.");
  if (imageConfig === undefined) return;
  if (!draws) refuse("generationConfig.imageConfig", "Image generation is not supported for this model.");
  if ((imageConfig as JsonObject).imageSize !== undefined && !isAtLeast3(model))
    refuse("generationConfig.imageConfig.imageSize", "imageSize is not supported for this model.");
}

const BUDGETS: readonly [RegExp, { min: number; max: number; off: boolean }][] = [
  [/^gemini-2\.5-pro/, { min: 128, max: 32_768, off: false }],
  [/^gemini-2\.5-flash-lite/, { min: 512, max: 24_576, off: true }],
  [/^gemini-2\.5-flash/, { min: 0, max: 24_576, off: true }],
];

function checkTools(tools: readonly JsonObject[], { functionCallingConfig }: JsonObject): void {
  const names = tools.flatMap(({ functionDeclarations }) =>
    ((functionDeclarations ?? []) as JsonObject[]).map(({ name }) => name),
  );
  if (new Set(names).size < names.length) refuse("tools", "Duplicate function declaration found");
  const { mode, allowedFunctionNames } = (functionCallingConfig ?? {}) as {
    mode?: string;
    allowedFunctionNames?: string[];
  };
  const field = "toolConfig.functionCallingConfig";
  if (mode === "ANY" && names.length === 0)
    refuse(`${field}.mode`, "Function calling mode ANY needs function declarations");
  if (allowedFunctionNames === undefined) return;
  if (mode !== "ANY" && mode !== "VALIDATED")
    refuse(`${field}.allowedFunctionNames`, "should be set only for mode ANY or VALIDATED");
  for (const name of allowedFunctionNames) {
    if (!names.includes(name)) refuse(`${field}.allowedFunctionNames`, `${name} is not declared`);
  }
}

interface Part {
  text?: string;
  functionCall?: { id?: string; name: string };
  functionResponse?: { id?: string; name: string };
  thoughtSignature?: string;
}

interface Turn {
  role?: string;
  parts: Part[];
}

function checkConversation(turns: readonly Turn[], needsSignatures: boolean, ledger: Ledger): void {
  if (turns[0]?.role === "model") refuse("contents[0].role", "the first content should be with role user");
  // A turn begins with the last content of the user that is no answer of functions.
  const currentTurn = turns.findLastIndex(
    ({ role, parts }) => role !== "model" && !parts.some((part) => part.functionResponse),
  );
  for (const [index, turn] of turns.entries()) {
    checkSignatures(turn, index, needsSignatures && index > currentTurn, ledger);
    checkFunctions(turn, turns[index - 1], turns[index + 1], index);
  }
}

function checkSignatures({ role, parts }: Turn, index: number, isRequired: boolean, ledger: Ledger): void {
  for (const [position, { thoughtSignature }] of parts.entries()) {
    const field = `contents[${index}].parts[${position}].thought_signature`;
    if (thoughtSignature === undefined || thoughtSignature === SKIP_SIGNATURE) continue;
    if (role !== "model" || !ledger.knows(thoughtSignature)) refuse(field, "Corrupted thought signature.");
  }
  const position = parts.findIndex((part) => part.functionCall !== undefined);
  const first = parts[position];
  if (!isRequired || role !== "model" || first === undefined) return;
  const { thoughtSignature: signature, functionCall } = first;
  const field = `contents[${index}].parts[${position}]`;
  if (signature === undefined)
    refuse(field, `Function call is missing a thought_signature in functionCall parts: ${functionCall?.name}`);
  if (signature !== SKIP_SIGNATURE && !ledger.holds(signature, functionCall?.name ?? ""))
    refuse(`${field}.thought_signature`, "Thought signature is not valid.");
}

/** As many answers as calls, in the same order, in the content right behind. */
function checkFunctions(turn: Turn, before: Turn | undefined, after: Turn | undefined, index: number): void {
  const calls = callsOf(turn);
  const responses = responsesOf(turn);
  if (calls.length > 0 && turn.role !== "model")
    refuse(`contents[${index}]`, "function calls belong to the role model");
  if (responses.length > 0 && turn.role === "model")
    refuse(`contents[${index}]`, "function responses belong to the role user");
  if (calls.length > 0 && before?.role === "model") {
    refuse(
      `contents[${index}]`,
      "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
    );
  }
  if (calls.length > 0 && (after === undefined || responsesOf(after).length === 0)) {
    refuse(`contents[${index}]`, "a function call turn must be followed by its function responses");
  }
  if (responses.length === 0) return;
  const asked = before === undefined ? [] : callsOf(before);
  const field = `contents[${index}].parts`;
  if (asked.length === 0)
    refuse(field, "Please ensure that function response turn comes immediately after a function call turn.");
  if (asked.length !== responses.length) {
    refuse(
      field,
      "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
    );
  }
  for (const [position, { name, id }] of responses.entries()) {
    const call = asked[position];
    if (name !== call?.name)
      refuse(`${field}[${position}].function_response.name`, `expected ${call?.name}, got ${name}`);
    if (id !== undefined && call?.id !== undefined && id !== call.id)
      refuse(`${field}[${position}].function_response.id`, `expected ${call.id}, got ${id}`);
  }
}

function callsOf({ parts }: Turn) {
  return parts.flatMap(({ functionCall }) => (functionCall === undefined ? [] : [functionCall]));
}

function responsesOf({ parts }: Turn) {
  return parts.flatMap(({ functionResponse }) => (functionResponse === undefined ? [] : [functionResponse]));
}

/** Members whose values are the client's own words keep their keys. */
const FREE = new Set(["args", "response", "parametersJsonSchema", "responseJsonSchema", "labels"]);

function camelCased(value: JsonObject): JsonObject {
  const convert = (inner: unknown): unknown => {
    if (Array.isArray(inner)) return inner.map(convert);
    return isObject(inner) ? camelCased(inner) : inner;
  };
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const name = camelCase(key);
      return [name, FREE.has(name) ? inner : convert(inner)];
    }),
  );
}
