// LiteLLM's list as facts: which entries are taken, as what, and what is refused by name.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readPriceList } from "./price-list.ts";

const GPT = { litellm_provider: "openai", mode: "chat", input_cost_per_token: 2.5e-6, output_cost_per_token: 1e-5 };

function entriesOf(list: object) {
  const read = readPriceList(JSON.stringify(list));
  if ("problems" in read) throw new Error(read.problems.join("\n"));
  return read.entries;
}

test("an entry with everything", () => {
  const entry = {
    ...GPT,
    cache_read_input_token_cost: 1.25e-6,
    cache_creation_input_token_cost: 3.125e-6,
    output_cost_per_reasoning_token: 1.2e-5,
    max_input_tokens: 128000,
    max_output_tokens: 16384,
    supports_vision: true,
    supports_function_calling: true,
    supports_reasoning: false,
    deprecation_date: "2027-01-14",
    source: "https://example.com",
    supports_prompt_caching: true,
  };
  expect(entriesOf({ sample_spec: { max_tokens: "words" }, "gpt-4o": entry })).toEqual([
    {
      id: "gpt-4o",
      aliases: [],
      metadata: {
        capabilities: ["chat", "vision", "function_calling"],
        available_until: "2027-01-14",
        pricing: {
          input_tokens: 0.0025,
          output_tokens: 0.01,
          cache_read_tokens: 0.00125,
          cache_write_tokens: 0.003125,
          reasoning_tokens: 0.012,
        },
        limits: { context_window: 128000, max_output: 16384 },
      },
    },
  ]);
});

describe("the name of an entry", () => {
  test.each([
    ["groq/openai/gpt-oss-120b", "groq", "openai/gpt-oss-120b", "groq"],
    ["together_ai/meta/llama", "together_ai", "meta/llama", "together"],
    ["fireworks_ai/nomic", "fireworks_ai-embedding-models", "nomic", "fireworks"],
    ["command-a", "cohere_chat", "command-a", "cohere"],
    ["gemini/gemini-3", "gemini", "gemini-3", undefined],
    ["claude-opus-5", "anthropic", "claude-opus-5", undefined],
    ["azure/gpt-4o", "azure", "gpt-4o", "azure"],
  ])("%s of %s", (name, litellm_provider, id, vendor) => {
    const [entry] = entriesOf({ [name]: { ...GPT, litellm_provider } });
    expect([entry?.id, entry?.vendor]).toEqual([id, vendor]);
  });

  test("the first of two for one model counts", () => {
    const [entry, ...others] = entriesOf({
      "deepseek-chat": { ...GPT, litellm_provider: "deepseek" },
      "deepseek/deepseek-chat": { ...GPT, litellm_provider: "deepseek", input_cost_per_token: 1e-6 },
    });
    expect([entry?.metadata.pricing?.input_tokens, others]).toEqual([0.0025, []]);
  });
});

test("vendors without a type and uses without an endpoint are counted", () => {
  const read = readPriceList(
    JSON.stringify({
      "gpt-4o": GPT,
      "novita/x": { ...GPT, litellm_provider: "novita" },
      sora: { ...GPT, mode: "video_generation" },
      "low/1024-x-1024/gpt-image-1": { litellm_provider: "openai", mode: "image_generation" },
      bare: {},
    }),
  );
  expect(read).toMatchObject({ entries: [{ id: "gpt-4o" }], skipped: 4 });
});

test.each([
  ["text", ["is not JSON"]],
  ["[]", ["is not an object of entries by the names of models"]],
  ["{}", ["has no entry of a known vendor"]],
  ['{"gpt-4o": 7}', ['"gpt-4o": Invalid input: expected object, received number']],
  [
    JSON.stringify({ "gpt-4o": { ...GPT, input_cost_per_token: -1, max_input_tokens: 1.5, deprecation_date: "soon" } }),
    [
      '"gpt-4o".input_cost_per_token: must not be negative',
      '"gpt-4o".max_input_tokens: Invalid input: expected int, received number',
      '"gpt-4o".deprecation_date: expected a day, such as "2027-01-31"',
    ],
  ],
  [JSON.stringify({ a: { ...GPT, output_cost_per_token: 10 } }), ['"a".output_cost_per_token: must be at most 0.01']],
])("%s is refused", (text, problems) => {
  expect(readPriceList(text)).toEqual({ problems });
});

test("of many problems the first are told", () => {
  const list = Object.fromEntries(Array.from({ length: 99 }, (_, index) => [`m${index}`, { ...GPT, mode: 7 }]));
  const read = readPriceList(JSON.stringify(list));
  expect("problems" in read && [read.problems.length, read.problems.at(-1)]).toEqual([21, "and more"]);
});

test("never throws, whatever the list", () => {
  fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => void readPriceList(text)));
});
