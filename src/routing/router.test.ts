// Which backends are asked in which order, and what is said when none can be.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { newCounters, toBackend } from "../backends/backend.ts";
import type { BackendBoard, BackendEntry } from "../backends/board.ts";
import { type ConfigDocument, documentSchema } from "../config/sections/registry.ts";
import { STRATEGY_NAMES, type StrategyName } from "../config/sections/routing.ts";
import { noBackendError, selectBackend } from "./router.ts";
import { createStrategy } from "./strategies/registry.ts";
import type { SelectionStrategy } from "./strategy.ts";

type BackendInput = NonNullable<ConfigDocument["backends"]>[number];

function entryOf(name: string, more: Partial<BackendInput> = {}, available = true): BackendEntry {
  const settings = documentSchema.parse({ backends: [{ name, url: "http://h", ...more }] });
  const backend = toBackend(settings.backends[0]!);
  return { backend, health: available ? "ready" : "unhealthy", available, counters: newCounters() };
}

const query = { sessionKey: () => "session", random: Math.random, nowMs: 0 };

const everyone = () => true;

function strategyOf(selection_strategy: StrategyName): SelectionStrategy {
  return createStrategy(documentSchema.parse({ routing: { selection_strategy } }).routing);
}

function boardOf(entries: readonly BackendEntry[]): BackendBoard {
  const serving = (model: string) => entries.filter((entry) => entry.backend.configuredModels?.includes(model));
  return { version: 1, entries, serving, candidates: (model) => serving(model).filter((entry) => entry.available) };
}

describe("choosing a backend", () => {
  for (const name of STRATEGY_NAMES) {
    describe(name, () => {
      const select = (entries: readonly BackendEntry[], tried: readonly string[] = []) =>
        selectBackend(entries, "chat", new Set(tried), strategyOf(name), query, everyone)?.backend.name;

      test("weight 0 stands by: chosen only when no other is left", () => {
        const entries = [entryOf("standby", { weight: 0 }), entryOf("a"), entryOf("b")];
        for (let count = 0; count < 30; count++) expect(select(entries)).not.toBe("standby");
        expect(select([entryOf("standby", { weight: 0 })])).toBe("standby");
      });

      test("an untried standby comes before a second try", () => {
        const entries = [entryOf("standby", { weight: 0 }), entryOf("a"), entryOf("b")];
        expect(select(entries, ["a"])).toBe("b");
        expect(select(entries, ["a", "b"])).toBe("standby");
      });

      test("when all were tried, the second round leaves standbys out again", () => {
        const entries = [entryOf("standby", { weight: 0 }), entryOf("a")];
        for (let count = 0; count < 10; count++) expect(select(entries, ["a", "standby"])).toBe("a");
        expect(select([entryOf("standby", { weight: 0 })], ["standby"])).toBe("standby");
      });

      test("a backend without the operation is never chosen", () => {
        const entries = [entryOf("claude", { type: "anthropic", weight: 100 }), entryOf("b", { weight: 0 })];
        const chosen = selectBackend(entries, "embeddings", new Set(), strategyOf(name), query, everyone);
        expect(chosen?.backend.name).toBe("b");
        const second = selectBackend(entries, "embeddings", new Set(["b"]), strategyOf(name), query, everyone);
        expect(second?.backend.name).toBe("b");
        expect(
          selectBackend(entries.slice(0, 1), "embeddings", new Set(), strategyOf(name), query, everyone),
        ).toBeUndefined();
      });

      test("a backend whose circuit or limit refuses is never chosen, not even as the last one or a second time", () => {
        const entries = [entryOf("a"), entryOf("b", { weight: 0 }), entryOf("c", { weight: 5 })];
        const choose = (tried: readonly string[], allowed: readonly string[]) =>
          selectBackend(entries, "chat", new Set(tried), strategyOf(name), query, (each) => allowed.includes(each))
            ?.backend.name;
        expect(choose([], ["b"])).toBe("b");
        expect(choose(["a"], ["a"])).toBe("a");
        expect(choose(["b", "c"], ["b", "c"])).toBe("c");
        expect(choose(["b"], ["a", "b"])).toBe("a");
        for (const tried of [[], ["a"], ["a", "b", "c"]]) expect(choose(tried, [])).toBeUndefined();
      });

      test("without candidates there is none", () => {
        expect(select([])).toBeUndefined();
        expect(select([], ["a"])).toBeUndefined();
      });

      test("property: everyone is tried once before anyone is tried again", () => {
        fc.assert(
          fc.property(fc.array(fc.constantFrom(0, 1, 5), { minLength: 1, maxLength: 6 }), (weights) => {
            const entries = weights.map((weight, index) => entryOf(`b${index}`, { weight }));
            const strategy = strategyOf(name);
            const tried = new Set<string>();
            for (let count = 0; count < entries.length; count++) {
              const chosen = selectBackend(entries, "chat", tried, strategy, query, everyone)?.backend.name as string;
              expect(tried.has(chosen)).toBe(false);
              tried.add(chosen);
            }
            expect(selectBackend(entries, "chat", tried, strategy, query, everyone)).toBeDefined();
          }),
          { numRuns: 30 },
        );
      });
    });
  }
});

describe("why no backend can take a request", () => {
  const waitsMs: Record<string, number> = {};
  const circuits = { retryAfterMs: (name: string) => waitsMs[name] ?? 0 };
  const refusal = (entries: readonly BackendEntry[], model = "m", operation: "chat" | "embeddings" = "chat") => {
    const { status, type, code, message, param } = noBackendError(boardOf(entries), model, operation, circuits);
    return { status, type, code, message, param };
  };

  test("none is configured", () => {
    expect(refusal([])).toMatchObject({ status: 503, message: "No backends available" });
  });

  test("none is healthy", () => {
    const error = refusal([entryOf("a", { models: ["m"] }, false), entryOf("b", {}, false)]);
    expect(error).toMatchObject({ status: 503, code: "all_backends_unhealthy" });
    expect(error.message).toContain("a, b");
  });

  test("nobody knows the model", () => {
    const error = refusal([entryOf("a", { models: ["other"] })]);
    expect(error).toMatchObject({ status: 404, type: "model_not_found", param: "model" });
    expect(error.message).toBe("The model 'm' is not served by any backend; GET /v1/models lists the models.");
  });

  test("those that serve the model are away", () => {
    const error = refusal([entryOf("a", { models: ["m"] }, false), entryOf("b", { models: ["other"] })]);
    expect(error).toMatchObject({ status: 404, type: "model_not_found", param: "model" });
    expect(error.message).toContain("not available at the moment (a)");
  });

  test("those that serve the model lack the operation", () => {
    const error = refusal([entryOf("claude", { type: "anthropic", models: ["m"] })], "m", "embeddings");
    expect(error).toMatchObject({ status: 400, code: "unsupported_operation", param: "model" });
    expect(error.message).toContain("(claude) have no embeddings endpoint");
  });

  test("those that serve the model are left alone after failures: the shortest wait counts, in whole seconds", () => {
    Object.assign(waitsMs, { a: 20_001, b: 7_001 });
    const entries = [entryOf("a", { models: ["m"] }), entryOf("b", { models: ["m"] }), entryOf("c", { models: ["x"] })];
    const error = noBackendError(boardOf(entries), "m", "chat", circuits);
    expect(error).toMatchObject({ status: 503, code: "circuit_breaker_open", headers: { "Retry-After": "8" } });
    expect(error.message).toContain("(a, b)");
    waitsMs.b = 0;
    expect(noBackendError(boardOf(entries), "m", "chat", circuits).headers).toEqual({ "Retry-After": "1" });
  });

  test("of many backends five are named", () => {
    const entries = Array.from({ length: 7 }, (_, index) => entryOf(`b${index}`, {}, false));
    expect(refusal(entries).message).toContain("b0, b1, b2, b3, b4 and 2 more");
  });
});
