// The models' rules and how wishes to think follow them.

import { describe, expect, test } from "bun:test";
import { DropList } from "../../generation/dropped.ts";
import type { ReasoningWish } from "../../generation/request.ts";
import { type ModelRules, rulesOf } from "./model-rules.ts";
import { effortLevels, planThinking, type ThinkingContext, type ThinkingPlan } from "./thinking-config.ts";

function plan(model: string, wish: ReasoningWish, more: Partial<ThinkingContext> = {}) {
  const rules = rulesOf(model);
  const dropped = new DropList();
  const context = {
    model,
    rules,
    isOwn: false,
    maxTokens: undefined,
    limit: rules.maxOutputTokens,
    lacksThinking: false,
  };
  const made = planThinking(wish, { ...context, dropped, ...more });
  return { ...made, dropped: dropped.entries.map(({ feature }) => feature) };
}

describe("the table", () => {
  const rows: [
    model: string,
    budget: boolean,
    adaptive: boolean,
    sampling: boolean,
    disabled: ModelRules["disabled"],
    forced: boolean,
    limit: number,
  ][] = [
    ["claude-3-haiku-20240307", false, false, true, "always", true, 4_096],
    ["claude-3-5-sonnet-20241022", false, false, true, "always", true, 8_192],
    ["claude-3-7-sonnet-latest", true, false, true, "always", true, 64_000],
    ["claude-opus-4-20250514", true, false, true, "always", true, 32_000],
    ["claude-opus-4@20250514", true, false, true, "always", true, 32_000],
    ["claude-sonnet-4-0", true, false, true, "always", true, 64_000],
    ["us.anthropic.claude-opus-4-1-20250805-v1:0", true, false, true, "always", true, 32_000],
    ["claude-haiku-4-5-20251001", true, false, true, "always", true, 64_000],
    ["anthropic/claude-opus-4.5", true, false, true, "always", true, 64_000],
    ["claude-sonnet-4-6", true, true, true, "always", true, 128_000],
    ["claude-opus-4-7", false, true, false, "always", true, 128_000],
    ["claude-sonnet-5", false, true, false, "always", true, 128_000],
    ["claude-sonnet-5-20260701", false, true, false, "always", true, 128_000],
    ["claude-opus-5", false, true, false, "up-to-high", true, 128_000],
    ["claude-haiku-5-5", false, true, false, "up-to-high", true, 128_000],
    ["claude-sonnet-5-5", false, true, false, "never", false, 128_000],
    ["claude-opus-5-5-20260901", false, true, false, "never", false, 128_000],
    ["claude-fable-5", false, true, false, "never", true, 128_000],
    ["claude-mythos-5-2", false, true, false, "never", false, 128_000],
    ["claude-opus-6", false, true, false, "up-to-high", true, 128_000],
    ["claude-opus-4-9", false, true, false, "up-to-high", true, 128_000],
    ["MiniMax-M2", true, false, true, "always", true, 4_096],
  ];
  test.each(rows)("%s", (model, budget, adaptive, sampling, disabled, forced, limit) => {
    const rules = rulesOf(model);
    expect([
      rules.budget,
      rules.adaptive,
      rules.sampling,
      rules.disabled,
      rules.forcedToolChoice,
      rules.maxOutputTokens,
    ]).toEqual([budget, adaptive, sampling, disabled, forced, limit]);
  });
});

const adaptive = { type: "adaptive", display: "summarized" };

describe("efforts", () => {
  const cases: [model: string, wish: ReasoningWish, expected: Partial<ThinkingPlan>][] = [
    ["claude-opus-4-8", {}, {}],
    ["claude-opus-4-8", { effort: "none" }, { thinking: { type: "disabled" } }],
    ["claude-opus-4-8", { effort: "minimal" }, { thinking: adaptive, effort: "low" }],
    ["claude-opus-4-8", { effort: "low" }, { thinking: adaptive, effort: "low" }],
    ["claude-opus-4-8", { effort: "auto" }, { thinking: adaptive }],
    ["claude-opus-4-8", { effort: "xhigh" }, { thinking: adaptive, effort: "max" }],
    ["claude-sonnet-5", { effort: "xhigh" }, { thinking: adaptive, effort: "high" }],
    ["claude-opus-4-6", { effort: "xhigh" }, { thinking: adaptive, effort: "max" }],
    ["claude-sonnet-4-6", { effort: "max" }, { thinking: adaptive, effort: "max" }],
    [
      "claude-opus-5",
      { effort: "high", visible: false },
      { thinking: { type: "adaptive", display: "omitted" }, effort: "high" },
    ],
    ["claude-opus-5", { budgetTokens: 2_000 }, { thinking: adaptive, effort: "low" }],
    ["claude-opus-5", { budgetTokens: 10_000, enabled: true }, { thinking: adaptive, effort: "medium" }],
    ["claude-opus-5", { budgetTokens: 30_000 }, { thinking: adaptive, effort: "high" }],
    ["claude-sonnet-5-5", { effort: "none" }, { thinking: { type: "between_tools" } }],
    ["claude-opus-4-5", { effort: "minimal" }, { thinking: { type: "enabled", budget_tokens: 1_024 } }],
    ["claude-opus-4-5", { effort: "auto" }, { thinking: { type: "enabled", budget_tokens: 10_240 } }],
    ["claude-opus-4-5", { effort: "xhigh" }, { thinking: { type: "enabled", budget_tokens: 20_480 } }],
    ["claude-sonnet-4-5", { effort: "high" }, { thinking: { type: "enabled", budget_tokens: 20_480 } }],
    ["claude-sonnet-4-5", { effort: "max" }, { thinking: { type: "enabled", budget_tokens: 32_000 } }],
    ["claude-sonnet-4-5", { enabled: false }, { thinking: { type: "disabled" } }],
    ["claude-3-5-haiku-latest", { effort: "none" }, {}],
  ];
  test.each(cases)("%s: %j", (model, wish, expected) => {
    expect(plan(model, wish)).toEqual({ ...expected, maxTokens: rulesOf(model).maxOutputTokens, dropped: [] });
  });

  test("what a model cannot do is listed", () => {
    expect(plan("claude-3-haiku-20240307", { effort: "high" })).toEqual({
      maxTokens: 4_096,
      dropped: ["reasoning_effort"],
    });
    expect(plan("claude-opus-5-5", { effort: "none" })).toEqual({
      maxTokens: 128_000,
      effort: "low",
      dropped: ["reasoning_effort"],
    });
  });
});

describe("budgets", () => {
  const budget = (maxTokens: number | undefined, wish: ReasoningWish, more: Partial<ThinkingContext> = {}) => {
    const made = plan("claude-opus-4-1", wish, { maxTokens, ...more });
    return [made.maxTokens, made.thinking?.budget_tokens] as unknown[];
  };

  test("come on top of what the answer may have, within the model's limit", () => {
    expect(budget(1_000, { effort: "low" })).toEqual([5_096, 4_096]);
    expect(budget(1_000, { effort: "max" })).toEqual([32_000, 31_000]);
    expect(budget(32_000, { effort: "max" })).toEqual([32_000, 16_000]);
    expect(budget(undefined, { effort: "max" })).toEqual([32_000, 16_000]);
    expect(budget(5_000, { budgetTokens: 10 })).toEqual([6_024, 1_024]);
  });

  test("are always below max_tokens", () => {
    for (const maxTokens of [1, 500, 1_024, 2_048, 31_999, 32_000]) {
      for (const effort of ["minimal", "low", "medium", "high", "max"] as const) {
        const [total, tokens] = budget(maxTokens, { effort }) as [number, number];
        expect(tokens).toBeGreaterThanOrEqual(1_024);
        expect(tokens).toBeLessThan(total);
      }
    }
  });

  test("of this format's own clients are part of max_tokens", () => {
    expect(budget(8_000, { enabled: true, budgetTokens: 4_000 }, { isOwn: true })).toEqual([8_000, 4_000]);
    expect(budget(2_000, { enabled: true, budgetTokens: 4_000 }, { isOwn: true })).toEqual([2_000, 1_999]);
    expect(budget(800, { enabled: true, effort: "auto" }, { isOwn: true })).toEqual([800, undefined]);
  });

  test("are left out when the thinking before the last calls is lost", () => {
    expect(plan("claude-opus-4-1", { effort: "low" }, { lacksThinking: true })).toEqual({
      maxTokens: 32_000,
      dropped: ["reasoning_effort"],
    });
  });
});

describe("this format's own clients", () => {
  const own = (model: string, wish: ReasoningWish) => {
    const { maxTokens: _max, dropped: _dropped, ...rest } = plan(model, wish, { isOwn: true, maxTokens: 32_000 });
    return rest;
  };

  test("mean their efforts as the model knows them", () => {
    expect(own("claude-sonnet-5", { enabled: true, effort: "xhigh" })).toEqual({
      thinking: { type: "adaptive" },
      effort: "xhigh",
    });
    expect(own("claude-sonnet-4-6", { enabled: true, effort: "xhigh" })).toEqual({
      thinking: { type: "adaptive" },
      effort: "high",
    });
    expect(own("claude-sonnet-4-6", { enabled: true, budgetTokens: 2_048 })).toEqual({
      thinking: { type: "enabled", budget_tokens: 2_048 },
    });
    expect(own("claude-opus-4-5", { effort: "low" })).toEqual({ effort: "low" });
    expect(own("claude-opus-5", { effort: "low" })).toEqual({ effort: "low" });
  });

  test("get no more than effort high without thinking", () => {
    expect(own("claude-opus-5", { enabled: false, effort: "max" })).toEqual({
      thinking: { type: "disabled" },
      effort: "high",
    });
    expect(own("claude-opus-4-8", { enabled: false, effort: "max" })).toEqual({
      thinking: { type: "disabled" },
      effort: "max",
    });
  });
});

test.each([
  ["claude-3-5-haiku-latest", ""],
  ["claude-sonnet-4-5", "none low medium high max"],
  ["claude-sonnet-4-6", "none low medium high max"],
  ["claude-opus-5", "none low medium high max"],
  ["claude-fable-5", "low medium high max"],
])("the levels of %s are different ones: %s", (model, levels) => {
  expect(effortLevels(model).join(" ")).toBe(levels);
  const plans = effortLevels(model).map((effort) => JSON.stringify(plan(model, { effort })));
  expect(new Set(plans).size).toBe(plans.length);
});
