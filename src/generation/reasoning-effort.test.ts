// The table of efforts per backend kind and model, and the edits of bodies that go on in their own format.

import { describe, expect, test } from "bun:test";
import { BACKEND_KINDS } from "../backends/kinds.ts";
import type { BackendKindName } from "../names.ts";
import { chatEffort, effortLevels, lostReasoning, nestedEffort, normaliseEffort } from "./reasoning-effort.ts";
import type { Effort } from "./request.ts";

const EFFORTS: Effort[] = ["none", "minimal", "auto", "low", "medium", "high", "xhigh", "max"];

/** What becomes of every effort, in the order of EFFORTS; "-" stands for left out. */
const TABLE: [kind: BackendKindName, model: string, outcome: string][] = [
  ["openai", "o1", "none minimal medium low medium high high high"],
  ["openai", "o3", "none minimal medium low medium high high high"],
  ["openai", "o4-mini-2025-04-16", "none minimal medium low medium high high high"],
  ["openai", "gpt-5", "none minimal medium low medium high high high"],
  ["openai", "gpt-5-mini", "none minimal medium low medium high high high"],
  ["openai", "gpt-5.1", "none minimal medium low medium high high high"],
  ["openai", "gpt-5.1-codex-max", "none minimal medium low medium high xhigh xhigh"],
  ["openai", "gpt-5.2", "none minimal medium low medium high xhigh xhigh"],
  ["openai", "openai/gpt-5.2-pro-2025-12-11", "none minimal medium low medium high xhigh xhigh"],
  ["openai", "gpt-5.5-2026-04-23", "none minimal medium low medium high xhigh xhigh"],
  ["openai", "gpt-5.6-sol", "none minimal medium low medium high xhigh max"],
  ["openai", "gpt-6.1-terra", "none minimal medium low medium high xhigh max"],
  ["openai", "gpt-6-astra", "none minimal medium low medium high xhigh max"],
  ["openai", "gpt-4o", "- - - - - - - -"],
  ["openai", "gpt-4.1-mini", "- - - - - - - -"],
  ["openai", "gpt-3.5-turbo", "- - - - - - - -"],
  ["openai", "ft:gpt-4o-mini:team::id", "- - - - - - - -"],
  ["openai", "gpt-5-chat-latest", "- - - - - - - -"],
  ["azure", "gpt-35-turbo", "- - - - - - - -"],
  ["azure", "gpt-5.2", "none minimal medium low medium high xhigh xhigh"],
  ["azure", "our-deployment", "none minimal medium low medium high high high"],
  ["anthropic", "claude-opus-5", EFFORTS.join(" ")],
  ["gemini", "gemini-2.5-flash", "none minimal medium low medium high high high"],
  ["gemini", "gemini-3.1-flash-lite", "none minimal medium low medium high high high"],
  ["gemini", "gemini-2.5-pro", "minimal minimal medium low medium high high high"],
  ["gemini", "gemini-2.0-flash", "- - - - - - - -"],
  ["generic", "gpt-5.2", "none minimal medium low medium high high max"],
  ["vllm", "qwen3-8b", "none minimal medium low medium high high max"],
  ["ollama", "gpt-oss:20b", "none minimal medium low medium high high max"],
  ["federated", "x", "none minimal medium low medium high high max"],
];

describe("the levels to choose from", () => {
  const LEVELS: [kind: BackendKindName, model: string, levels: string][] = [
    ["openai", "o3-mini", "low medium high"],
    ["openai", "o4-mini-2025-04-16", "low medium high"],
    ["openai", "gpt-5-mini", "minimal low medium high"],
    ["openai", "gpt-5-pro-2025-10-06", "high"],
    ["openai", "gpt-5-codex", "low medium high"],
    ["openai", "gpt-5.1", "none low medium high"],
    ["openai", "gpt-5.1-codex-mini", "low medium high"],
    ["openai", "gpt-5.1-codex-max", "low medium high xhigh"],
    ["openai", "openai/gpt-5.2", "none low medium high xhigh"],
    ["openai", "gpt-5.2-pro", "medium high xhigh"],
    ["azure", "gpt-5.3-codex", "low medium high xhigh"],
    ["openai", "gpt-5.6-sol", "none low medium high xhigh max"],
    ["openai", "gpt-4o", ""],
    ["azure", "our-deployment", "low medium high"],
    ["gemini", "gemini-2.5-pro", "minimal low medium high"],
    ["vllm", "qwen3-8b", "none minimal low medium high max"],
  ];
  test.each(LEVELS)("%s %s: %s", (kind, model, levels) => {
    const target = { kind: BACKEND_KINDS[kind], model };
    expect(effortLevels(target).join(" ")).toBe(levels);
    for (const level of effortLevels(target)) expect(normaliseEffort(level, target).effort).toBe(level);
  });
});

describe("normaliseEffort", () => {
  test.each(TABLE)("%s %s", (kind, model, outcome) => {
    const outcomes = EFFORTS.map(
      (effort) => normaliseEffort(effort, { kind: BACKEND_KINDS[kind], model }).effort ?? "-",
    );
    expect(outcomes.join(" ")).toBe(outcome);
  });

  test("a reason is given exactly when the effort changes", () => {
    for (const [kind, model] of TABLE) {
      for (const asked of EFFORTS) {
        const { effort, reason } = normaliseEffort(asked, { kind: BACKEND_KINDS[kind], model });
        expect(reason !== undefined).toBe(effort !== asked);
      }
    }
  });
});

describe("chatEffort", () => {
  const cases: [name: string, kind: BackendKindName, model: string, body: object, changes: object | undefined][] = [
    ["nothing asked", "openai", "gpt-5", {}, undefined],
    ["a known effort", "openai", "gpt-5", { reasoning_effort: "low" }, undefined],
    ["auto", "openai", "gpt-5", { reasoning_effort: "auto" }, { reasoning_effort: "medium" }],
    ["xhigh", "generic", "m", { reasoning_effort: "xhigh" }, { reasoning_effort: "high" }],
    ["xhigh for the newest", "openai", "gpt-5.2", { reasoning_effort: "xhigh" }, undefined],
    ["nested", "openai", "o3", { reasoning: { effort: "low" } }, { reasoning: undefined, reasoning_effort: "low" }],
    [
      "nested auto",
      "vllm",
      "m",
      { reasoning: { effort: "auto" } },
      { reasoning: undefined, reasoning_effort: "medium" },
    ],
    ["nested where it is known", "ollama", "m", { reasoning: { effort: "low" } }, undefined],
    [
      "nested xhigh where it is known",
      "ollama",
      "m",
      { reasoning: { effort: "xhigh" } },
      { reasoning: { effort: "high" } },
    ],
    ["nested without effort", "openai", "o3", { reasoning: { summary: "auto" } }, { reasoning: undefined }],
    ["switched off, for a router", "generic", "m", { reasoning: { enabled: false } }, undefined],
    ["a budget, for a gateway", "federated", "m", { reasoning: { max_tokens: 900, exclude: true } }, undefined],
    [
      "effort and more, for a router",
      "generic",
      "m",
      { reasoning: { effort: "xhigh", exclude: true } },
      { reasoning: { exclude: true }, reasoning_effort: "high" },
    ],
    [
      "effort alone, for a router",
      "generic",
      "m",
      { reasoning: { effort: "low" } },
      { reasoning: undefined, reasoning_effort: "low" },
    ],
    [
      "the flat form wins",
      "openai",
      "o3",
      { reasoning_effort: "high", reasoning: { effort: "low" } },
      { reasoning: undefined },
    ],
    ["no reasoning", "openai", "gpt-4o", { reasoning_effort: "low" }, { reasoning_effort: undefined }],
    ["no reasoning, nested", "openai", "gpt-4o", { reasoning: { effort: "low" } }, { reasoning: undefined }],
    ["null", "openai", "gpt-5", { reasoning_effort: null }, undefined],
    ["an unknown word is the backend's business", "openai", "gpt-5", { reasoning_effort: "ultra" }, undefined],
    [
      "an unknown nested word",
      "openai",
      "o3",
      { reasoning: { effort: 7 } },
      { reasoning: undefined, reasoning_effort: 7 },
    ],
  ];
  test.each(cases)("%s (%s %s)", (_name, kind, model, body, changes) => {
    const adapted = chatEffort(body as Record<string, unknown>, { kind: BACKEND_KINDS[kind], model });
    // Members that are to be removed must be there, with the value undefined.
    if (changes === undefined) expect(adapted).toBeUndefined();
    else expect(adapted).toStrictEqual(changes as Record<string, unknown>);
  });
});

test.each([
  [{ enabled: false }, "openai", ["reasoning.enabled"]],
  [{ effort: "low", max_tokens: 900, exclude: true, other: 1 }, "vllm", ["reasoning.max_tokens", "reasoning.exclude"]],
  [{ enabled: false }, "generic", []],
  [{ enabled: false }, "federated", []],
  [{ effort: "low" }, "openai", []],
  [undefined, "openai", []],
] as [unknown, BackendKindName, string[]][])("what %j loses towards %s", (reasoning, kind, lost) => {
  expect(lostReasoning({ reasoning }, { kind: BACKEND_KINDS[kind], model: "m" })).toEqual(lost);
});

describe("nestedEffort", () => {
  const adapted = (model: string, reasoning: unknown) =>
    nestedEffort({ reasoning }, { kind: BACKEND_KINDS.openai, model });

  test("only the effort is another one", () => {
    expect(adapted("gpt-5", { effort: "auto", summary: "auto" })).toEqual({
      reasoning: { effort: "medium", summary: "auto" },
    });
    expect(adapted("gpt-5.2", { effort: "xhigh" })).toBeUndefined();
    expect(adapted("gpt-5", { effort: "xhigh" })).toEqual({ reasoning: { effort: "high" } });
    expect(adapted("gpt-5", { summary: "auto" })).toBeUndefined();
    expect(adapted("gpt-5", null)).toBeUndefined();
  });

  test("is removed where the model does not reason", () => {
    expect(adapted("gpt-4o", { effort: "low" })).toStrictEqual({ reasoning: undefined });
  });
});
