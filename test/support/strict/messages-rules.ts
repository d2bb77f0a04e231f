// What api.anthropic.com accepts at /v1/messages (wire/anthropic-messages.md), model by model.

import type { Ledger } from "./ledger.ts";
import type { JsonObject } from "./script.ts";
import {
  anyObject,
  anything,
  base64,
  boolean,
  type Check,
  checkSignature,
  httpUrl,
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

export type MessagesVersion = "2023-06-01" | "2026-10-21";

interface ModelRules {
  budget: boolean;
  adaptive: boolean;
  efforts: readonly string[];
  sampling: boolean;
  disabled: "yes" | "not-at-the-top" | "no";
  betweenTools: boolean;
  forcedTools: boolean;
  prefill: boolean;
  maxTokens: number;
}

const LOW_TO_HIGH = ["low", "medium", "high"];
const TO_MAX = [...LOW_TO_HIGH, "max"];
const ALL_EFFORTS = [...LOW_TO_HIGH, "xhigh", "max"];
const OLD: ModelRules = {
  budget: true,
  adaptive: false,
  efforts: [],
  sampling: true,
  disabled: "yes",
  betweenTools: false,
  forcedTools: true,
  prefill: true,
  maxTokens: 64_000,
};
const ADAPTIVE: ModelRules = { ...OLD, adaptive: true, efforts: TO_MAX, maxTokens: 128_000 };
const NEW: ModelRules = { ...ADAPTIVE, budget: false, efforts: ALL_EFFORTS, sampling: false, prefill: false };
const NEWEST: ModelRules = { ...NEW, disabled: "no", forcedTools: false };

/** Section 8; the first pattern that matches. */
const MODELS: readonly [RegExp, ModelRules][] = [
  [/^claude-3-haiku/, { ...OLD, budget: false, maxTokens: 4096 }],
  [/^claude-3-5/, { ...OLD, budget: false, maxTokens: 8192 }],
  [/^claude-sonnet-5-5/, { ...NEWEST, betweenTools: true }],
  [/^claude-(opus-5-5|fable-5-[12])/, NEWEST],
  [/^claude-fable-5/, { ...NEW, disabled: "no" }],
  [/^claude-(haiku-5-5|opus-5)/, { ...NEW, disabled: "not-at-the-top" }],
  [/^claude-(opus-4-[78]|sonnet-5)/, NEW],
  [/^claude-(opus|sonnet)-4-6/, ADAPTIVE],
  [/^claude-opus-4-5/, { ...OLD, efforts: LOW_TO_HIGH }],
  [/^claude-opus-4/, { ...OLD, maxTokens: 32_000 }],
  [/^claude-/, OLD],
];

export function rulesOf(model: string): ModelRules {
  return MODELS.find(([pattern]) => pattern.test(model))?.[1] ?? OLD;
}

const CACHE = shape({ type: oneOf("ephemeral"), "ttl?": oneOf("5m", "1h") });
const CACHED = { "cache_control??": CACHE };
const TOOL_ID = string({ pattern: /^[a-zA-Z0-9_-]+$/ });
const TOOL_NAME = string({ pattern: /^[a-zA-Z0-9_-]{1,128}$/ });
const WRITTEN = string({ pattern: /\S/ });

const imageSource = tagged("type", {
  base64: (value, field) => {
    shape({ type: anything, media_type: oneOf("image/jpeg", "image/png", "image/gif", "image/webp"), data: base64 })(
      value,
      field,
    );
    const { media_type, data } = value as { media_type: string; data: string };
    checkSignature(media_type, data, `${field}.data`);
  },
  url: shape({ type: anything, url: httpUrl }),
  file: shape({ type: anything, file_id: string({ min: 1 }) }),
});

const documentSource = tagged("type", {
  base64: (value, field) => {
    shape({ type: anything, media_type: oneOf("application/pdf"), data: base64 })(value, field);
    checkSignature("application/pdf", (value as { data: string }).data, `${field}.data`);
  },
  text: shape({ type: anything, media_type: oneOf("text/plain"), data: string({ min: 1 }) }),
  content: shape({ type: anything, content: anything }),
  url: shape({ type: anything, url: httpUrl }),
  file: shape({ type: anything, file_id: string({ min: 1 }) }),
});

const TEXT = shape({ type: anything, text: WRITTEN, ...CACHED, "citations??": list(anyObject) });
const IMAGE = shape({ type: anything, source: imageSource, ...CACHED });
const DOCUMENT = shape({
  type: anything,
  source: documentSource,
  "title??": string({ min: 1 }),
  "context??": string({ min: 1 }),
  "citations??": shape({ enabled: boolean }),
  ...CACHED,
});
const SEARCH_RESULT = shape({
  type: anything,
  source: string(),
  title: string(),
  content: list(TEXT, 1),
  "citations?": anyObject,
  ...CACHED,
});
const RESULT_BLOCKS = { text: TEXT, image: IMAGE, document: DOCUMENT, search_result: SEARCH_RESULT };

const USER_BLOCKS = {
  ...RESULT_BLOCKS,
  tool_result: shape({
    type: anything,
    tool_use_id: TOOL_ID,
    "content?": stringOr(string(), list(tagged("type", RESULT_BLOCKS))),
    "is_error?": boolean,
    ...CACHED,
  }),
};

const searchHit = shape({
  type: oneOf("web_search_result"),
  url: string({ min: 1 }),
  title: string(),
  encrypted_content: string({ min: 1 }),
  "page_age??": string(),
});

const ASSISTANT_BLOCKS = {
  text: TEXT,
  tool_use: shape({ type: anything, id: TOOL_ID, name: TOOL_NAME, input: anyObject, ...CACHED, "caller?": anything }),
  thinking: shape({ type: anything, thinking: string(), signature: string({ min: 1 }) }),
  redacted_thinking: shape({ type: anything, data: string({ min: 1 }) }),
  server_tool_use: shape({
    type: anything,
    id: string({ pattern: /^srvtoolu_[a-zA-Z0-9_]+$/ }),
    name: oneOf("web_search", "web_fetch"),
    input: anyObject,
    ...CACHED,
    "caller?": anything,
  }),
  web_search_tool_result: shape({
    type: anything,
    tool_use_id: string({ pattern: /^srvtoolu_[a-zA-Z0-9_]+$/ }),
    content: (value: unknown, field: string) =>
      Array.isArray(value)
        ? list(searchHit)(value, field)
        : shape({ type: oneOf("web_search_tool_result_error"), error_code: string({ min: 1 }) })(value, field),
    ...CACHED,
    "caller?": anything,
  }),
};

const content = (blocks: Record<string, Check>) => stringOr(WRITTEN, list(tagged("type", blocks), 1));

const MESSAGE = tagged("role", {
  user: shape({ role: anything, content: content(USER_BLOCKS) }),
  assistant: shape({ role: anything, content: content(ASSISTANT_BLOCKS) }),
  system: shape({ role: anything, content: content({ text: TEXT }) }),
});

const TOOL_SCHEMA: Check = (value, field) => {
  if (!isObject(value)) refuse(field, "Input should be a valid dictionary");
  if (value.type !== "object") throw new Refused("missing", `${field}.type`, "must be object");
};

const CUSTOM_TOOL = shape({
  "type?": oneOf("custom"),
  name: TOOL_NAME,
  "description?": string(),
  input_schema: TOOL_SCHEMA,
  "strict?": boolean,
  "defer_loading?": boolean,
  "eager_input_streaming??": boolean,
  "input_examples?": list(anyObject),
  ...CACHED,
});
const WEB_SEARCH = shape({
  type: oneOf("web_search_20250305", "web_search_20260209", "web_search_20260318"),
  name: oneOf("web_search"),
  "max_uses??": integer(1),
  "allowed_domains??": list(string({ min: 1 })),
  "blocked_domains??": list(string({ min: 1 })),
  "user_location??": shape({
    type: oneOf("approximate"),
    "city??": string(),
    "region??": string(),
    "country??": string(),
    "timezone??": string(),
  }),
  ...CACHED,
});

const tool: Check = (value, field) => {
  const isSearch = isObject(value) && typeof value.type === "string" && value.type.startsWith("web_search");
  (isSearch ? WEB_SEARCH : CUSTOM_TOOL)(value, field);
  const { allowed_domains, blocked_domains } = value as JsonObject;
  if (allowed_domains && blocked_domains) refuse(field, "only one of allowed_domains and blocked_domains");
};

/** "updates" goes with a beta header of Claude Code. */
const DISPLAY = oneOf("summarized", "omitted", "updates");
const PARALLEL = { "disable_parallel_tool_use?": boolean };
const SAMPLING = { "temperature?": number(0, 1), "top_p?": number(0, 1), "top_k?": integer(0) };

const BODY = {
  model: string({ min: 1 }),
  messages: list(MESSAGE, 1),
  max_tokens: integer(1),
  "system?": stringOr(string(), list(tagged("type", { text: TEXT }))),
  "stop_sequences?": list(WRITTEN),
  "stream?": boolean,
  "metadata?": shape({ "user_id??": string({ max: 256 }) }),
  "tools?": list(tool),
  "tool_choice?": tagged("type", {
    auto: shape({ type: anything, ...PARALLEL }),
    any: shape({ type: anything, ...PARALLEL }),
    tool: shape({ type: anything, name: TOOL_NAME, ...PARALLEL }),
    none: shape({ type: anything }),
  }),
  "thinking?": tagged("type", {
    enabled: shape({ type: anything, budget_tokens: integer(1024), "display?": DISPLAY }),
    adaptive: shape({ type: anything, "display?": DISPLAY }),
    disabled: shape({ type: anything }),
    between_tools: shape({ type: anything }),
  }),
  "output_config?": shape({
    "effort?": oneOf(...ALL_EFFORTS),
    "format??": shape({ type: oneOf("json_schema"), schema: outputSchema }),
  }),
  "cache_control??": CACHE,
  "service_tier?": oneOf("auto", "standard_only"),
  // With its beta header.
  "context_management?": anyObject,
};

const BODIES: Record<MessagesVersion, Check> = {
  "2023-06-01": shape({ ...BODY, ...SAMPLING }),
  "2026-10-21": shape(BODY),
};

const { max_tokens: _notCounted, ...COUNTED } = BODY;
export const COUNT_BODY: Check = shape(COUNTED);

export interface MessagesRules {
  version: MessagesVersion;
  ledger: Ledger;
  /** Neighbours with one role are joined, as the service does today; otherwise they are refused, as it used to. */
  mergesTurns: boolean;
}

export function checkMessagesBody(body: JsonObject, rulesOfService: MessagesRules): void {
  const { version } = rulesOfService;
  BODIES[version](body, "");
  const rules = rulesOf(String(body.model));
  checkModel(body, rules, version);
  checkTools(body, rules);
  checkConversation(body, rules, rulesOfService);
  checkCacheBreakpoints(body);
}

function checkModel(body: JsonObject, rules: ModelRules, version: MessagesVersion): void {
  const max = body.max_tokens as number;
  if (max > rules.maxTokens) refuse("max_tokens", `${max} > ${rules.maxTokens}, the maximum for ${body.model}`);
  if (!rules.sampling && version === "2023-06-01") {
    if ((body.temperature ?? 1) !== 1) refuse("temperature", "only 1 is supported by this model");
    if (((body.top_p as number | undefined) ?? 1) < 0.99) refuse("top_p", "not supported by this model");
    if (body.top_k !== undefined) refuse("top_k", "not supported by this model");
  }
  const effort = (body.output_config as JsonObject | undefined)?.effort as string | undefined;
  if (effort !== undefined && !rules.efforts.includes(effort))
    refuse("output_config.effort", `${effort} is not supported by this model`);
  const thinking = body.thinking as { type: string; budget_tokens?: number } | undefined;
  if (thinking === undefined) return;
  const isTop = effort === "xhigh" || effort === "max";
  const { type } = thinking;
  const isKnown = {
    enabled: rules.budget,
    adaptive: rules.adaptive,
    disabled: rules.disabled === "yes" || (rules.disabled === "not-at-the-top" && !isTop),
    between_tools: rules.betweenTools && !isTop,
  }[type];
  if (!isKnown) refuse("thinking.type", `${type} is not supported by this model`);
  if (type !== "enabled") return;
  if ((thinking.budget_tokens ?? 0) >= max) refuse("max_tokens", "must be greater than thinking.budget_tokens");
  if ((body.temperature ?? 1) !== 1) refuse("temperature", "may only be set to 1 when thinking is enabled");
  if (body.top_k !== undefined) refuse("top_k", "must be unset when thinking is enabled");
}

function checkTools({ tools, tool_choice, thinking }: JsonObject, rules: ModelRules): void {
  const names = ((tools ?? []) as JsonObject[]).map(({ name }) => name);
  if (new Set(names).size < names.length) refuse("tools", "Tool names must be unique.");
  const choice = tool_choice as { type: string; name?: string } | undefined;
  if (choice === undefined) return;
  if (names.length === 0) refuse("tool_choice", "may only be specified while providing tools");
  if (choice.name !== undefined && !names.includes(choice.name))
    refuse("tool_choice.name", `Tool '${choice.name}' not found`);
  const isForced = choice.type === "any" || choice.type === "tool";
  if (isForced && !rules.forcedTools) refuse("tool_choice.type", "forced tool use is not supported by this model");
  const isThinking = isObject(thinking) && thinking.type === "enabled";
  if (isForced && isThinking)
    refuse("tool_choice.type", "Thinking may not be enabled when tool_choice forces tool use.");
}

interface Turn {
  role: string;
  blocks: JsonObject[];
  field: string;
}

function readTurns(body: JsonObject, mergesTurns: boolean): Turn[] {
  const turns: Turn[] = [];
  for (const [index, { role, content }] of (body.messages as JsonObject[]).entries()) {
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : (content as JsonObject[]);
    const last = turns.at(-1);
    if (last === undefined || last.role !== role) {
      turns.push({ role: String(role), blocks, field: `messages.${index}.content` });
      continue;
    }
    if (!mergesTurns) refuse(`messages.${index}.role`, "roles must alternate");
    last.blocks = [...last.blocks, ...blocks];
  }
  return turns;
}

function checkConversation(body: JsonObject, rules: ModelRules, { version, ledger, mergesTurns }: MessagesRules): void {
  const turns = readTurns(body, mergesTurns);
  if (turns[0]?.role !== "user") refuse("messages.0.role", "first message must use the user role");
  let expected: string[] = [];
  const seen = new Set<string>();
  for (const turn of turns) {
    checkResults(turn, expected);
    expected = turn.role === "assistant" ? checkAssistant(turn, body, ledger, seen) : [];
    if (version === "2026-10-21" && turn.role === "user") checkNoCitations(turn);
  }
  if (expected.length > 0) {
    refuse(
      `messages.${turns.length - 1}`,
      `tool_use ids were found without tool_result blocks immediately after: ${expected}`,
    );
  }
  const last = turns.at(-1);
  if (last?.role !== "assistant") return;
  if (!rules.prefill) refuse("messages", "This model does not support assistant message prefill.");
  const text = last.blocks.at(-1)?.text;
  if (typeof text === "string" && text !== text.trimEnd()) {
    refuse("messages", "final assistant content cannot end with trailing whitespace");
  }
}

/** Results of the calls before, all of them, once each, and in front of everything else. */
function checkResults({ role, blocks, field }: Turn, expected: readonly string[]): void {
  const results = blocks.filter(({ type }) => type === "tool_result");
  if (results.length > 0 && role !== "user") refuse(field, "tool_result blocks belong to user turns");
  const ids = results.map(({ tool_use_id }) => String(tool_use_id));
  for (const [index, id] of ids.entries()) {
    if (!expected.includes(id))
      refuse(
        `${field}.${index}.tool_use_id`,
        `unexpected tool_use_id ${id}: no corresponding tool_use block in the previous message`,
      );
    if (ids.indexOf(id) !== index) refuse(`${field}.${index}`, `each tool_use must have a single result: ${id}`);
    if (blocks[index]?.type !== "tool_result") refuse(field, "tool_result blocks must come first");
  }
  const missing = expected.filter((id) => !ids.includes(id));
  if (missing.length > 0)
    refuse(field, `tool_use ids were found without tool_result blocks immediately after: ${missing}`);
}

/** The ids of the calls that the next turn must answer. */
function checkAssistant({ blocks, field }: Turn, body: JsonObject, ledger: Ledger, seen: Set<string>): string[] {
  const ids: string[] = [];
  const searches: string[] = [];
  for (const [index, block] of blocks.entries()) {
    const at = `${field}.${index}`;
    if (block.type === "thinking" && !ledger.holds(String(block.signature), String(block.thinking))) {
      refuse(`${at}.signature`, "Invalid `signature` in `thinking` block");
    }
    if (block.type === "redacted_thinking" && !ledger.holds(String(block.data), "")) {
      refuse(`${at}.data`, "Invalid `data` in `redacted_thinking` block");
    }
    if (block.type === "server_tool_use") searches.push(String(block.id));
    if (block.type === "web_search_tool_result") checkSearchResult(block, at, searches, ledger);
    if (block.type !== "tool_use") continue;
    const id = String(block.id);
    if (seen.has(id)) refuse(`${at}.id`, "`tool_use` ids must be unique");
    seen.add(id);
    ids.push(id);
  }
  if (isObject(body.thinking) && body.thinking.type === "enabled") {
    const lost = ids.find((id) => ledger.wasThoughtOf(id));
    const startsRight = blocks[0]?.type === "thinking" || blocks[0]?.type === "redacted_thinking";
    if (lost !== undefined && !startsRight) {
      refuse(
        `${field}.0.type`,
        "Expected `thinking` or `redacted_thinking`, but found another block: the turn was thought of",
      );
    }
  }
  return ids;
}

function checkSearchResult(block: JsonObject, field: string, searches: string[], ledger: Ledger): void {
  if (!searches.includes(String(block.tool_use_id)))
    refuse(`${field}.tool_use_id`, "no corresponding server_tool_use block");
  if (!Array.isArray(block.content)) return;
  for (const [index, hit] of (block.content as JsonObject[]).entries()) {
    if (ledger.holds(String(hit.encrypted_content), String(hit.url))) continue;
    refuse(`${field}.content.${index}.encrypted_content`, "Invalid encrypted_content");
  }
}

function checkNoCitations({ blocks, field }: Turn): void {
  for (const [index, { type, citations }] of blocks.entries()) {
    if (type === "text" && Array.isArray(citations) && citations.length > 0)
      refuse(`${field}.${index}.citations`, "not allowed in user turns");
  }
}

function checkCacheBreakpoints(body: JsonObject): void {
  const count = JSON.stringify(body).split('"cache_control":{').length - 1;
  if (count > 4) refuse("cache_control", `A maximum of 4 blocks with cache_control may be provided. Found ${count}.`);
}

const NO_KEYWORDS = ["oneOf", "minimum", "maximum", "minLength", "maxLength", "pattern", "uniqueItems", "not"];

function outputSchema(schema: unknown, field: string): void {
  if (!isObject(schema)) refuse(field, "expected an object");
  for (const keyword of NO_KEYWORDS) {
    if (schema[keyword] !== undefined) refuse(`${field}.${keyword}`, "this keyword is not supported");
  }
  if (schema.type === "object" && schema.additionalProperties !== false) {
    refuse(field, "For 'object' type, 'additionalProperties' must be explicitly set to false");
  }
  for (const [name, property] of Object.entries(isObject(schema.properties) ? schema.properties : {})) {
    outputSchema(property, `${field}.properties.${name}`);
  }
  if (schema.items !== undefined) outputSchema(schema.items, `${field}.items`);
  for (const [index, branch] of (Array.isArray(schema.anyOf) ? schema.anyOf : []).entries())
    outputSchema(branch, `${field}.anyOf.${index}`);
}
