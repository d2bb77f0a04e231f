// What is said when no backend can take a request.

import { describe, expect, test } from "bun:test";
import { newCounters, toBackend } from "../backends/backend.ts";
import type { BackendBoard, BackendEntry } from "../backends/board.ts";
import { type ConfigDocument, documentSchema } from "../config/sections/registry.ts";
import { type Absence, noBackendError } from "./no-backend.ts";

type BackendInput = NonNullable<ConfigDocument["backends"]>[number];

function entryOf(name: string, more: Partial<BackendInput> = {}, available = true): BackendEntry {
  const settings = documentSchema.parse({ backends: [{ name, url: "http://h", ...more }] });
  const backend = toBackend(settings.backends[0]!);
  return { backend, health: available ? "ready" : "unhealthy", available, counters: newCounters() };
}

function boardOf(entries: readonly BackendEntry[]): BackendBoard {
  const serving = (model: string) => entries.filter((entry) => entry.backend.configuredModels?.includes(model));
  return {
    version: 1,
    entries,
    serving,
    listedAs: (_name, model) => model,
    models: () => entries.flatMap(({ available, backend }) => (available ? (backend.configuredModels ?? []) : [])),
    candidates: (model) => serving(model).filter((entry) => entry.available),
  };
}

describe("why no backend can take a request", () => {
  const waitsMs: Record<string, number> = {};
  const circuits = { retryAfterMs: (name: string) => waitsMs[name] ?? 0 };
  const absences: Record<string, Absence> = {};
  const absenceOf = (name: string) => absences[name] ?? { why: "connection refused", nextLookMs: 900 };
  const refusal = (entries: readonly BackendEntry[], model = "m", operation: "chat" | "embeddings" = "chat") => {
    const board = boardOf(entries);
    const error = noBackendError({ board, model, operation, circuits, absenceOf });
    const { status, type, code, message, param, headers } = error;
    return { status, type, code, message, param, headers };
  };

  test("none is configured", () => {
    expect(refusal([])).toMatchObject({ status: 503, message: "No backends available" });
  });

  test("none is healthy", () => {
    const error = refusal([entryOf("a", { models: ["m"] }, false), entryOf("b", {}, false)]);
    expect(error).toMatchObject({ status: 503, code: "all_backends_unhealthy" });
    expect(error.message).toBe("No backend is healthy at the moment (a: connection refused; b: connection refused).");
    expect(error.headers).toEqual({ "x-should-retry": "true", "Retry-After": "1" });
  });

  test("nobody knows the model", () => {
    const error = refusal([entryOf("a", { models: ["other"] })]);
    expect(error).toMatchObject({ status: 404, type: "model_not_found", param: "model" });
    expect(error.message).toBe("The model 'm' is not served by any backend; GET /v1/models lists the models.");
    expect(error.headers).toEqual({ "x-should-retry": "false" });
  });

  test("somebody serves a model of nearly this name", () => {
    const entries = [
      entryOf("a", { models: ["qwen3-30b", "llama-3"] }),
      entryOf("b", { models: ["qwen3-32b"] }, false),
    ];
    expect(refusal(entries, "qwen3-33b").message).toBe(
      "The model 'qwen3-33b' is not served by any backend; did you mean 'qwen3-30b'?",
    );
  });

  test("those that serve the model are away", () => {
    const error = refusal([entryOf("a", { models: ["m"] }, false), entryOf("b", { models: ["other"] })]);
    expect(error).toMatchObject({ status: 404, type: "model_not_found", param: "model" });
    expect(error.message).toContain("not available at the moment (a: connection refused)");
    expect(error.headers).toEqual({ "x-should-retry": "true", "Retry-After": "1" });
  });

  test("the soonest look at one of them is when to try again; nobody looks at disabled ones", () => {
    absences.a = { why: "still loading", nextLookMs: 20_001 };
    absences.b = { why: "no answer within 10s", nextLookMs: 4_500 };
    absences.c = { why: "disabled", nextLookMs: undefined };
    const away = ["a", "b", "c"].map((name) => entryOf(name, { models: ["m"] }, false));
    const other = entryOf("other", { models: ["x"] });
    const error = refusal([...away, other]);
    expect(error.message).toContain("(a: still loading; b: no answer within 10s; c: disabled)");
    expect(error.headers).toEqual({ "x-should-retry": "true", "Retry-After": "5" });
    expect(refusal([away[2]!, other]).headers).toEqual({ "x-should-retry": "false" });
    for (const name of Object.keys(absences)) delete absences[name];
  });

  test("those that serve the model lack the operation", () => {
    const error = refusal([entryOf("claude", { type: "anthropic", models: ["m"] })], "m", "embeddings");
    expect(error).toMatchObject({ status: 400, code: "unsupported_operation", param: "model" });
    expect(error.message).toContain("(claude) have no embeddings endpoint");
  });

  test("those that serve the model are left alone after failures: the shortest wait counts, in whole seconds", () => {
    Object.assign(waitsMs, { a: 20_001, b: 7_001 });
    const entries = [entryOf("a", { models: ["m"] }), entryOf("b", { models: ["m"] }), entryOf("c", { models: ["x"] })];
    const error = refusal(entries);
    expect(error).toMatchObject({ status: 503, code: "circuit_breaker_open", headers: { "Retry-After": "8" } });
    expect(error.message).toContain("(a, b)");
    waitsMs.b = 0;
    expect(refusal(entries).headers).toEqual({ "x-should-retry": "true", "Retry-After": "1" });
  });

  test("of many backends five are named", () => {
    const entries = Array.from({ length: 7 }, (_, index) => entryOf(`b${index}`, {}, false));
    expect(refusal(entries).message).toMatch(/b0: .*; b4: connection refused and 2 more/);
  });
});
