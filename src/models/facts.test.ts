// The built-in facts can be read, each has its source, and names of the wild lead to the right entry.

import { expect, test } from "bun:test";
import { join } from "node:path";
import { resolveBackendKind } from "../names.ts";
import { supportedMethods } from "./capabilities.ts";
import { builtinFacts } from "./facts.ts";
import { checkModelMetadata } from "./metadata-file.ts";
import { createMetadataLookup } from "./metadata-lookup.ts";

const { date, sources, models, entries } = builtinFacts();
const general = entries.filter(({ vendor }) => vendor === undefined);
const lookup = createMetadataLookup([general]);

test.each([
  ["gpt-image-1", ["images.generations", "images.edits"]],
  ["img-v1", ["images.generations", "images.edits"]],
  ["gpt-image-1-mini", ["images.generations", "images.edits"]],
  ["img-v1-mini", ["images.generations", "images.edits"]],
  ["gpt-image-1.5-2025-12-16", ["images.generations", "images.edits"]],
  ["img-v1.5", ["images.generations", "images.edits"]],
  ["dall-e-2", ["images.generations", "images.edits", "images.variations"]],
  ["img-legacy-2", ["images.generations", "images.edits", "images.variations"]],
  ["dall-e-3", ["images.generations"]],
  ["img-legacy-3", ["images.generations"]],
  ["nano-banana", ["images.generations"]],
  ["img-alt", ["images.generations"]],
  ["gemini-2.5-flash-image-preview", ["images.generations"]],
  ["models/gemini-3-pro-image", ["images.generations"]],
  ["nano-banana-pro", ["images.generations"]],
  ["img-alt-pro", ["images.generations"]],
  ["demo-image", ["images.generations"]],
])("%s is asked by %j", (model, methods) => {
  expect(supportedMethods(lookup(model)?.capabilities ?? [])).toEqual(methods);
});

test.each([
  ["gpt-4o", "GPT-4o"],
  ["gpt-4o-2024-08-06", "GPT-4o"],
  ["openai/gpt-4o-mini", "GPT-4o mini"],
  ["gpt-5.2-2025-12-11", "GPT-5.2"],
  ["claude-haiku-4-5-20251001", "Claude Haiku 4.5"],
  ["claude-sonnet-4-20250514", "Claude Sonnet 4"],
  ["claude-opus-4-5@20251101", "Claude Opus 4.5"],
  ["gemini-2.5-pro", "Gemini 2.5 Pro"],
  ["deepseek-r1:7b", "DeepSeek R1"],
  ["deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "DeepSeek R1"],
  ["qwen3:8b", "Qwen3"],
  ["Qwen/Qwen3-8B", "Qwen3"],
  ["Qwen/Qwen3-4B-Thinking-2507", "Qwen3 Thinking"],
  ["Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen3 Instruct"],
  ["qwen3-coder:30b", "Qwen3 Coder"],
  ["Qwen/Qwen3-Embedding-0.6B", "Qwen3 Embedding"],
  ["gpt-oss:20b", "gpt-oss"],
])("%s is %s", (model, name) => {
  expect(lookup(model)?.display_name).toBe(name);
});

test.each(["example-model", "m", "llama3.2", "demo", "gpt-4o-audio-preview"])("nothing is said of %s", (model) => {
  expect(lookup(model)).toBeUndefined();
});

test("are what the check of a metadata file makes of them", () => {
  for (const vendor of new Set(entries.map((entry) => entry.vendor))) {
    const own = entries.filter((entry) => entry.vendor === vendor).map(({ vendor: _, ...entry }) => entry);
    if (vendor !== undefined) expect(resolveBackendKind(vendor)).toBe(vendor);
    expect(checkModelMetadata({ models: own })).toEqual({ ok: true, entries: own });
  }
});

test("the file has a date, and each row a source that the file names", () => {
  expect(date).toMatch(/^\d{4}-\d\d-\d\d$/);
  expect(models.filter(({ from }) => sources[from] === undefined)).toEqual([]);
  expect(Object.keys(sources).filter((source) => !models.some(({ from }) => from === source))).toEqual([]);
});

test("each row is one line", async () => {
  const text = await Bun.file(join(import.meta.dir, "facts.yaml")).text();
  const rows = text.split("\n").filter((line) => line.startsWith("  - { id: ") && line.endsWith(" }"));
  expect(rows.length).toBe(models.length);
});

test("every entry has a capability that is known, and no entry a thinking pattern", () => {
  for (const { id, metadata } of entries) {
    expect([id, supportedMethods(metadata.capabilities ?? []).length > 0]).toEqual([id, true]);
  }
  // Answers pass untouched unless the operator says how a model thinks.
  expect(entries.filter(({ metadata }) => metadata.thinking !== undefined)).toEqual([]);
});

test.each([
  ["gpt-4o-2024-08-06", { input_tokens: 0.0025, output_tokens: 0.01, cache_read_tokens: 0.00125 }],
  [
    "claude-sonnet-4-5-20250929",
    { input_tokens: 0.003, output_tokens: 0.015, cache_read_tokens: 0.0003, cache_write_tokens: 0.00375 },
  ],
  ["gpt-5-pro", { input_tokens: 0.015, output_tokens: 0.12 }], // not those of gpt-5
  ["gpt-oss:20b", undefined],
])("the prices of %s", (model, pricing) => {
  expect(lookup(model)?.pricing).toEqual(pricing);
});

test("prices are in an order that a mistake of a thousand would break", () => {
  for (const { id, metadata } of entries) {
    const {
      input_tokens = 0.001,
      output_tokens = 0.001,
      cache_read_tokens = 0,
      cache_write_tokens = input_tokens,
    } = metadata.pricing ?? {};
    if (input_tokens === 0) continue; // what a vendor gives away
    expect([id, input_tokens >= 0.000001 && input_tokens <= 0.1]).toEqual([id, true]);
    expect([id, output_tokens === 0 || output_tokens >= input_tokens]).toEqual([id, true]);
    expect([id, cache_read_tokens <= input_tokens && cache_write_tokens >= input_tokens]).toEqual([id, true]);
  }
});
