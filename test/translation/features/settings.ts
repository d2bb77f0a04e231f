// Settings of a request: sampling, limits, formats, hints.

import { answer, text } from "../../support/strict/script.ts";
import { type Ask, type ClientName, type JsonObject, object } from "../ask.ts";
import type { Received } from "../received/received.ts";
import type { Feature, Finding, Side } from "./feature.ts";
import { asks, FINE, isFine, same, textOf, WEATHER } from "./words.ts";

const group = "Settings";
function isTopK(body: JsonObject): boolean {
  const { top_k, generationConfig, additionalModelRequestFields } = body;
  const ofNova = object(object(additionalModelRequestFields).inferenceConfig);
  return [top_k, object(generationConfig).topK, ofNova.topK].includes(40);
}

const OTHERS: readonly ClientName[] = [
  "chat",
  "responses",
  "messages",
  "completions",
  "ollama-api",
  "generate-content",
];
const without = (...names: ClientName[]): readonly ClientName[] => names;
const only = (...names: ClientName[]): readonly ClientName[] => OTHERS.filter((name) => !names.includes(name));

function setting(
  id: string,
  title: string,
  absentIn: readonly ClientName[],
  ask: Partial<Ask>,
  sees: (received: Received, side: Side) => Finding,
  drops: RegExp = new RegExp(id),
): Feature {
  return {
    id,
    group,
    title,
    without: absentIn,
    ask: () => asks(ask),
    script: FINE,
    sees,
    reads: isFine,
    drops,
    backendMayRefuse: true,
  };
}

/** A member that no other format has by the same name. */
function member(name: string, value: unknown, clients: readonly ClientName[], title = name): Feature {
  return setting(name, title, only(...clients), { more: { [name]: value } }, ({ body }) => {
    const config = object(body.generationConfig);
    return same(body[name] ?? config[name], value);
  });
}

/** A member of generationConfig. */
function config(name: string, value: unknown, sees: (received: Received) => Finding, drops?: RegExp): Feature {
  const ask = { more: { generationConfig: { [name]: value } } };
  const title = `generationConfig.${name}`;
  return setting(`config-${name}`, title, only("generate-content"), ask, sees, drops ?? new RegExp(name));
}

const SCHEMA: JsonObject = {
  type: "object",
  properties: { city: { type: "string", minLength: 1 } },
  required: ["city"],
  additionalProperties: false,
};
const JSON_ANSWER = '{"city":"Oslo"}';

export const SETTINGS: readonly Feature[] = [
  setting("max-tokens", "Limit of output tokens", without(), { maxTokens: 1000 }, ({ maxTokens }) =>
    maxTokens === 1000 ? true : maxTokens === undefined ? false : `as ${maxTokens}`,
  ),
  setting("temperature", "temperature", without(), { temperature: 0.5 }, ({ temperature }) => temperature === 0.5),
  setting(
    "temperature-high",
    "temperature above 1",
    without("messages"),
    { temperature: 1.5 },
    ({ temperature }) => (temperature === 1.5 ? true : temperature === undefined ? false : `as ${temperature}`),
    /temperature/,
  ),
  setting("top_p", "top_p", without(), { topP: 0.9 }, ({ topP }) => topP === 0.9),
  setting("top_k", "top_k", only("messages", "ollama-api"), { more: { top_k: 40 } }, ({ body }) => isTopK(body)),
  setting("stop", "Stop sequences", without("responses"), { stop: ["STOP", "END"] }, ({ stop }) =>
    same(stop, ["STOP", "END"]),
  ),
  member("seed", 7, ["chat", "completions", "ollama-api"]),
  member("frequency_penalty", 0.5, ["chat", "completions", "ollama-api"]),
  member("presence_penalty", 0.5, ["chat", "completions", "ollama-api"]),
  member("logit_bias", { "50256": -100 }, ["chat", "completions"]),
  setting(
    "logprobs",
    "logprobs",
    only("chat"),
    { more: { logprobs: true, top_logprobs: 2 } },
    ({ body }) => body.logprobs === true,
  ),
  config("topK", 40, ({ body }) => isTopK(body), /top_k/),
  config("seed", 7, ({ body }) => body.seed === 7 || object(body.generationConfig).seed === 7),
  config(
    "frequencyPenalty",
    0.5,
    ({ body }) => body.frequency_penalty === 0.5 || object(body.generationConfig).frequencyPenalty === 0.5,
    /frequency_penalty/,
  ),
  config("responseLogprobs", true, ({ body }) => object(body.generationConfig).responseLogprobs === true),
  config("candidateCount", 2, ({ body }) => object(body.generationConfig).candidateCount === 2),
  config("responseModalities", ["TEXT", "IMAGE"], ({ body }) =>
    same(object(body.generationConfig).responseModalities, ["TEXT", "IMAGE"]),
  ),
  member("safetySettings", [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_NONE" }], ["generate-content"]),
  member("labels", { team: "a" }, ["generate-content"]),
  member("cachedContent", "cachedContents/1", ["generate-content"]),
  setting("n", "Several choices (n)", only("chat", "completions"), { more: { n: 2 } }, ({ body }) => body.n === 2),
  setting("user", "user", only("chat", "completions", "responses"), { more: { user: "u-1" } }, ({ body }) => {
    if (body.user === "u-1") return true;
    return object(body.metadata).user_id === "u-1" && "as `metadata.user_id`";
  }),
  setting(
    "user_id",
    "metadata.user_id",
    only("messages"),
    { more: { metadata: { user_id: "u-1" } } },
    ({ body }) => {
      if (object(body.metadata).user_id === "u-1") return true;
      return body.user === "u-1" && "as `user`";
    },
    /user|metadata/,
  ),
  member("metadata", { team: "a" }, ["chat", "responses"]),
  setting(
    "service_tier",
    "service_tier",
    without("completions", "messages", "ollama-api", "generate-content"),
    { more: { service_tier: "flex" } },
    ({ body }) => body.service_tier === "flex",
  ),
  setting("verbosity", "verbosity", only("chat"), { more: { verbosity: "low" } }, ({ body }) => {
    return body.verbosity === "low" || (object(body.text).verbosity === "low" && true);
  }),
  member("keep_alive", "5m", ["ollama-api"]),
  member("num_ctx", 4096, ["ollama-api"]),
  setting(
    "unknown",
    "A member that the format does not know yet",
    without("completions"),
    { more: { future_member: { a: 1 } } },
    ({ body }) => body.future_member !== undefined,
    /future_member/,
  ),
  {
    id: "json",
    group,
    title: "Any JSON object",
    without: ["completions", "messages"],
    ask: () => asks({ json: true }),
    script: [answer(text(JSON_ANSWER))],
    sees({ format, system }) {
      if (format === "json") return true;
      return system.some((words) => /json/i.test(words)) && "as an instruction";
    },
    reads: (reading) => textOf(reading) === JSON_ANSWER,
    drops: /response_format|text/,
  },
  {
    id: "schema",
    group,
    title: "JSON of a schema",
    without: ["completions"],
    ask: ({ name }) =>
      asks({ schema: name === "messages" ? { ...SCHEMA, properties: { city: { type: "string" } } } : SCHEMA }),
    script: [answer(text(JSON_ANSWER))],
    sees({ format, tools }, { client }) {
      if (tools.length > 0) return "as a tool that must be called";
      if (typeof format !== "object") return false;
      const wanted = client.name === "messages" ? { ...SCHEMA, properties: { city: { type: "string" } } } : SCHEMA;
      return same(format, wanted) || "the schema is adapted";
    },
    reads: (reading) => textOf(reading) === JSON_ANSWER,
    drops: /response_format|text|output/,
  },
  {
    id: "cache-hints",
    group,
    title: "cache_control on system, tools and turns",
    without: ["completions", "chat", "responses", "ollama-api", "generate-content"],
    ask: () => asks({ system: "You are a weatherman.", tools: [WEATHER], cache: true }),
    script: FINE,
    sees: ({ cacheHints }) => cacheHints === 3,
    reads: isFine,
    drops: /cache/,
  },
  {
    id: "cache-key",
    group,
    title: "prompt_cache_key",
    without: ["completions", "messages", "ollama-api", "generate-content"],
    ask: () => asks({ cache: true }),
    script: FINE,
    sees: ({ body }) => body.prompt_cache_key === "session-1",
    reads: isFine,
    drops: /prompt_cache_key/,
    backendMayRefuse: true,
  },
  {
    id: "previous",
    group,
    title: "previous_response_id",
    without: ["completions", "messages", "chat", "ollama-api", "generate-content"],
    ask: () => asks(),
    script: [...FINE, ...FINE],
    follow: (reading, turn, { body }) =>
      turn === 0
        ? { ...body, previous_response_id: reading.id, input: [{ role: "user", content: "And tomorrow?" }] }
        : undefined,
    sees({ body, turns }) {
      if (typeof body.previous_response_id === "string") return true;
      return turns.length === 3 && "the conversation is sent whole, from the gateway's store";
    },
    reads: isFine,
  },
];
