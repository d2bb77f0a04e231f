// Every effort for every family of models.

import { describe, expect, test } from "bun:test";
import { DropList } from "../../generation/dropped.ts";
import type { Effort, ReasoningWish } from "../../generation/request.ts";
import { effortLevels, encodeThinking } from "./thinking.ts";

function encode(model: string, wish: ReasoningWish): { config: unknown; dropped: string[] } {
  const dropped = new DropList();
  const config = encodeThinking(wish, model, dropped);
  return { config, dropped: dropped.entries.map(({ feature }) => feature) };
}

const EFFORTS: readonly Effort[] = ["none", "minimal", "low", "medium", "auto", "high", "xhigh", "max"];

/** What is sent for EFFORTS in their order. */
const TABLE: [model: string, outcome: string][] = [
  ["gemini-2.5-pro", "128 128 1024 8192 8192 24576 32768 32768"],
  ["gemini-2.5-flash", "0 512 1024 8192 8192 24576 24576 24576"],
  ["models/gemini-2.5-flash-preview-09-2025", "0 512 1024 8192 8192 24576 24576 24576"],
  ["gemini-2.5-flash-lite", "0 512 1024 8192 8192 24576 24576 24576"],
  ["gemini-3-pro-image-preview", "128 128 1024 8192 8192 24576 32768 32768"],
  ["gemini-3-pro-preview", "LOW LOW LOW HIGH HIGH HIGH HIGH HIGH"],
  ["gemini-3.1-pro-preview", "LOW LOW LOW MEDIUM MEDIUM HIGH HIGH HIGH"],
  ["google/gemini-3-flash-preview", "MINIMAL MINIMAL LOW MEDIUM MEDIUM HIGH HIGH HIGH"],
  ["gemini-3.8-flash", "MINIMAL MINIMAL LOW MEDIUM MEDIUM HIGH HIGH HIGH"],
  ["gemini-3.1-flash-lite", "MINIMAL MINIMAL LOW MEDIUM MEDIUM HIGH HIGH HIGH"],
  ["gemini-3.1-flash-image-preview", "MINIMAL MINIMAL HIGH HIGH HIGH HIGH HIGH HIGH"],
  ["gemini-4-pro", "LOW LOW LOW MEDIUM MEDIUM HIGH HIGH HIGH"],
  ["gemini-flash-lite-latest", "MINIMAL MINIMAL LOW MEDIUM MEDIUM HIGH HIGH HIGH"],
  ["gemini-pro-latest", "LOW LOW LOW MEDIUM MEDIUM HIGH HIGH HIGH"],
  ["gemini-2.0-flash", "- - - - - - - -"],
  ["gemini-2.5-flash-image", "- - - - - - - -"],
  ["gemini-2.5-pro-preview-tts", "- - - - - - - -"],
  ["gemma-3-27b-it", "- - - - - - - -"],
  ["our-tuned-model", "- - - - - - - -"],
];

describe("encodeThinking", () => {
  test.each(TABLE)("%s", (model, outcome) => {
    const sent = EFFORTS.map((effort) => {
      const { config, dropped } = encode(model, { effort });
      if (config === undefined) {
        // Not to think is what such a model does anyway.
        expect(dropped).toEqual(effort === "none" ? [] : ["reasoning_effort"]);
        return "-";
      }
      const { thinkingBudget, thinkingLevel, includeThoughts } = config as Record<string, unknown>;
      expect([thinkingBudget, thinkingLevel].filter((value) => value !== undefined)).toHaveLength(1);
      expect(includeThoughts).toBe(effort === "none" ? undefined : true);
      expect(dropped).toEqual(effort === "none" && thinkingBudget !== 0 ? ["reasoning_effort"] : []);
      return thinkingBudget ?? thinkingLevel;
    });
    expect(sent.join(" ")).toBe(outcome);
  });

  const wishes: [model: string, wish: ReasoningWish, config: unknown][] = [
    ["gemini-2.5-pro", {}, { includeThoughts: true }],
    ["gemini-3.1-pro", {}, { includeThoughts: true }],
    ["gemini-3.1-pro", { visible: false }, { includeThoughts: false }],
    ["gemini-3.1-pro", { visible: false, effort: "low" }, { includeThoughts: false, thinkingLevel: "LOW" }],
    // It does not think by default, and thoughts that are off cannot be shown.
    ["gemini-2.5-flash-lite", {}, undefined],
    ["gemini-2.5-flash-lite", { enabled: true }, { includeThoughts: true, thinkingBudget: -1 }],
    ["gemini-3.1-pro", { enabled: true }, { includeThoughts: true }],
    ["gemini-2.5-flash", { enabled: false, budgetTokens: 5000 }, { thinkingBudget: 0 }],
    ["gemini-2.5-flash", { budgetTokens: 0 }, { thinkingBudget: 0 }],
    ["gemini-2.5-flash", { budgetTokens: 5000 }, { includeThoughts: true, thinkingBudget: 5000 }],
    ["gemini-2.5-flash", { budgetTokens: 99_999 }, { includeThoughts: true, thinkingBudget: 24_576 }],
    ["gemini-2.5-flash", { budgetTokens: -1 }, { includeThoughts: true, thinkingBudget: -1 }],
    ["gemini-2.5-pro", { budgetTokens: 1, effort: "high" }, { includeThoughts: true, thinkingBudget: 128 }],
    ["gemini-3.1-pro", { budgetTokens: 1024 }, { includeThoughts: true, thinkingLevel: "LOW" }],
    ["gemini-3.1-pro", { budgetTokens: 10_000 }, { includeThoughts: true, thinkingLevel: "MEDIUM" }],
    ["gemini-3.1-pro", { budgetTokens: 32_000 }, { includeThoughts: true, thinkingLevel: "HIGH" }],
    ["gemini-3.1-pro", { budgetTokens: 32_000, effort: "low" }, { includeThoughts: true, thinkingLevel: "LOW" }],
    ["gemini-2.0-flash", {}, undefined],
  ];
  test.each(wishes)("%s %j", (model, wish, config) => {
    expect(encode(model, wish).config).toEqual(config);
  });
});

test.each([
  ["gemini-2.5-pro", "low medium high"],
  ["gemini-2.5-flash", "none low medium high"],
  ["models/gemini-3-pro-preview", "low high"],
  ["gemini-3.1-pro-preview", "low medium high"],
  ["gemini-3-flash-preview", "minimal low medium high"],
  ["gemini-2.0-flash", ""],
])("the levels of %s are different ones: %s", (model, levels) => {
  expect(effortLevels(model).join(" ")).toBe(levels);
  const configs = effortLevels(model).map((effort) => JSON.stringify(encode(model, { effort })));
  expect(new Set(configs).size).toBe(configs.length);
});
