// What Bedrock accepts at /converse: the shapes of the service model in @aws-sdk/client-bedrock-runtime 3.1164, and what the
// user guide says of families of models.

import type { Ledger } from "./ledger.ts";
import type { JsonObject } from "./script.ts";
import {
  anyObject,
  base64,
  boolean,
  type Check,
  checkSignature,
  integer,
  isObject,
  list,
  number,
  oneOf,
  refuse,
  shape,
  string,
} from "./shape.ts";

/** An object with exactly one of the members. */
function union(members: Record<string, Check>): Check {
  const optional = Object.fromEntries(Object.entries(members).map(([name, check]) => [`${name}?`, check]));
  return (value, field) => {
    shape(optional)(value, field);
    if (Object.keys(value as object).length !== 1) refuse(field, "expected one member of the union");
  };
}

const ID = string({ pattern: /^[a-zA-Z0-9_-]{1,64}$/ });
const NOT_BLANK: Check = (value, field) => {
  string()(value, field);
  if ((value as string).trim() === "") refuse(field, "The text field in the ContentBlock object is blank.");
};

const SOURCE = union({
  bytes: base64,
  s3Location: shape({ uri: string({ pattern: /^s3:\/\// }), "bucketOwner?": string() }),
});

const IMAGE: Check = (value, field) => {
  shape({ format: oneOf("png", "jpeg", "gif", "webp"), source: SOURCE })(value, field);
  const { format, source } = value as { format: string; source: { bytes?: string } };
  if (source.bytes !== undefined) checkSignature(`image/${format}`, source.bytes, `${field}.source.bytes`);
};

const DOCUMENT = shape({
  "format?": oneOf("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"),
  // No more than one blank in a row.
  name: string({ max: 200, pattern: /^[A-Za-z0-9()[\]-]+( [A-Za-z0-9()[\]-]+)*$/ }),
  source: union({ bytes: base64, s3Location: anyObject, text: string(), content: list(anyObject, 1) }),
  "context?": string({ min: 1 }),
  "citations?": shape({ enabled: boolean }),
});

const MEDIA = {
  image: IMAGE,
  document: DOCUMENT,
  video: shape({
    format: oneOf("mkv", "mov", "mp4", "webm", "flv", "mpeg", "mpg", "wmv", "three_gp"),
    source: SOURCE,
  }),
};

const CACHE_POINT = shape({ type: oneOf("default"), "ttl?": oneOf("5m", "1h") });

const BLOCK = union({
  ...MEDIA,
  text: NOT_BLANK,
  audio: shape({
    format: oneOf("mp3", "opus", "wav", "aac", "flac", "mp4", "ogg", "mkv", "m4a", "webm"),
    source: SOURCE,
  }),
  toolUse: shape({ toolUseId: ID, name: ID, input: anyObject }),
  toolResult: shape({
    toolUseId: ID,
    content: list(union({ ...MEDIA, text: string(), json: anyObject }), 0),
    "status?": oneOf("success", "error"),
  }),
  reasoningContent: union({
    reasoningText: shape({ text: string(), "signature?": string() }),
    redactedContent: base64,
  }),
  cachePoint: CACHE_POINT,
});

const TOOL = union({
  toolSpec: shape({
    name: ID,
    "description?": string({ min: 1 }),
    inputSchema: shape({ json: anyObject }),
    "strict?": boolean,
  }),
  cachePoint: CACHE_POINT,
});

const BODY = shape({
  messages: list(shape({ role: oneOf("user", "assistant"), content: list(BLOCK, 1) }), 1),
  "system?": list(union({ text: NOT_BLANK, cachePoint: CACHE_POINT }), 1),
  "inferenceConfig?": shape({
    "maxTokens?": integer(1),
    "temperature?": number(0, 1),
    "topP?": number(0, 1),
    "stopSequences?": list(string({ min: 1 }), 0, 2500),
  }),
  "toolConfig?": shape({
    tools: list(TOOL, 1),
    "toolChoice?": union({ auto: shape({}), any: shape({}), tool: shape({ name: ID }) }),
  }),
  "additionalModelRequestFields?": anyObject,
  "outputConfig?": shape({
    "textFormat?": shape({
      type: oneOf("json_schema"),
      structure: shape({
        jsonSchema: shape({ schema: string({ min: 2 }), "name?": string(), "description?": string() }),
      }),
    }),
  }),
});

interface Turn {
  role: string;
  content: JsonObject[];
}

export function checkConverseBody(body: JsonObject, model: string, ledger: Ledger): void {
  BODY(body, "");
  const turns = body.messages as Turn[];
  const tools = (body.toolConfig as { tools: JsonObject[] } | undefined)?.tools ?? [];
  checkTurns(turns, tools.length > 0, model, ledger);
  checkModel(body, turns, tools, model);
}

function checkTurns(turns: readonly Turn[], hasTools: boolean, model: string, ledger: Ledger): void {
  if (turns[0]?.role !== "user") refuse("messages", "A conversation must start with a user message.");
  const names = new Set<unknown>();
  for (const [index, { role, content }] of turns.entries()) {
    const field = `messages.${index}`;
    if (role === turns[index - 1]?.role)
      refuse(field, "A conversation must alternate between user and assistant roles.");
    const documents = content.flatMap(({ document }) => (isObject(document) ? [document.name] : []));
    for (const name of documents) {
      if (names.has(name)) refuse(field, "Documents must have names of their own.");
      names.add(name);
    }
    if (documents.length > 0 && !content.some(({ text }) => text !== undefined)) {
      refuse(field, "A text block is required with documents.");
    }
    if (content.some(({ toolUse, toolResult }) => toolUse ?? toolResult) && !hasTools) {
      refuse("toolConfig", "The toolConfig field must be defined when using toolUse and toolResult content blocks.");
    }
    checkPairs(idsOf(turns[index - 1]?.content, "toolUse"), idsOf(content, "toolResult"), field);
    for (const { reasoningContent } of content) checkProof(reasoningContent, ledger, field);
    for (const { toolResult } of content) checkResult(toolResult, model, field);
  }
  const last = turns.at(-1);
  if (idsOf(last?.content, "toolUse").length > 0) refuse("messages", "Expected toolResult blocks for the last turn.");
  if (last?.role === "assistant" && !isNova(model)) {
    refuse("messages", "This model doesn't support the assistant message prefill.");
  }
}

function checkPairs(asked: readonly unknown[], answered: readonly unknown[], field: string): void {
  const isPaired = asked.length === answered.length && asked.every((id) => answered.includes(id));
  if (!isPaired) {
    refuse(field, "The number of toolResult blocks exceeds or falls short of the toolUse blocks of the previous turn.");
  }
}

function checkProof(reasoning: unknown, ledger: Ledger, field: string): void {
  if (!isObject(reasoning)) return;
  const { reasoningText, redactedContent } = reasoning as {
    reasoningText?: { text: string; signature?: string };
    redactedContent?: string;
  };
  const isKnown =
    redactedContent === undefined
      ? ledger.holds(reasoningText?.signature ?? "", reasoningText?.text ?? "")
      : ledger.knows(redactedContent);
  if (!isKnown) refuse(field, "The signature of the reasoning content is invalid.");
}

function checkResult(result: unknown, model: string, field: string): void {
  if (!isObject(result)) return;
  const content = result.content as JsonObject[];
  const isRich = result.status !== undefined || content.some(({ image, document }) => image ?? document);
  if (isRich && !isNova(model)) refuse(field, "This model doesn't support the status field or media in toolResult.");
  if (result.status === "error" && content.length === 0) {
    refuse(field, "The content field cannot be empty when status value is error.");
  }
}

function idsOf(content: readonly JsonObject[] | undefined, kind: "toolUse" | "toolResult"): unknown[] {
  return (content ?? []).flatMap((block) => (isObject(block[kind]) ? [(block[kind] as JsonObject).toolUseId] : []));
}

function isNova(model: string): boolean {
  return model.includes("nova");
}

function checkModel(body: JsonObject, turns: readonly Turn[], tools: readonly JsonObject[], model: string): void {
  const {
    toolConfig,
    outputConfig,
    additionalModelRequestFields: fields,
    inferenceConfig = {},
  } = body as Record<string, JsonObject | undefined>;
  const blocks = [...turns.flatMap(({ content }) => content), ...((body.system ?? []) as JsonObject[])];
  const cachePoints = blocks.filter(({ cachePoint }) => cachePoint !== undefined).length;
  if (cachePoints > 0 && !isNova(model)) refuse("cachePoint", "extraneous key [cachePoint] is not permitted");
  if (cachePoints > 4) refuse("cachePoint", "at most 4 cache checkpoints");
  if (tools.some(({ cachePoint }) => cachePoint !== undefined)) refuse("toolConfig.tools", "no tool caching");
  const choice = Object.keys((toolConfig?.toolChoice ?? {}) as JsonObject)[0];
  if (choice !== undefined && choice !== "auto" && !isNova(model)) {
    refuse("toolConfig.toolChoice", "This model doesn't support the toolConfig.toolChoice field.");
  }
  const isConstrained = outputConfig !== undefined || tools.some(({ toolSpec }) => (toolSpec as JsonObject)?.strict);
  if (isConstrained && !/qwen3|gpt-oss/.test(model)) refuse("outputConfig", "not supported by this model");
  const known = isNova(model)
    ? ["inferenceConfig", "reasoningConfig"]
    : model.includes("gpt-oss")
      ? ["reasoning_effort"]
      : [];
  for (const key of Object.keys(fields ?? {})) if (!known.includes(key)) refuse(key, `extraneous key [${key}]`);
  const { reasoningConfig } = (fields ?? {}) as { reasoningConfig?: JsonObject };
  if (reasoningConfig === undefined) return;
  shape({ type: oneOf("enabled", "disabled"), maxReasoningEffort: oneOf("low", "medium", "high") })(
    reasoningConfig,
    "reasoningConfig",
  );
  if (!model.includes("nova-2")) refuse("reasoningConfig", "extraneous key [reasoningConfig]");
  const limited = ["temperature", "topP", "maxTokens"].filter(
    (name) => (inferenceConfig as JsonObject)[name] !== undefined,
  );
  if (reasoningConfig.maxReasoningEffort === "high" && limited.length > 0) {
    refuse("inferenceConfig", `${limited.join(", ")} cannot be set with high reasoning effort`);
  }
}
