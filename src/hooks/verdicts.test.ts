// What a hook may return, and which requests a hook is for.

import { describe, expect, test } from "bun:test";
import type { HookEvent } from "../config/sections/hooks.ts";
import { hooksSection } from "../config/sections/hooks.ts";
import type { JsonObject } from "../lib/json.ts";
import { answer, change, pass, refuse, repair } from "./define.ts";
import { HookFault } from "./hook-fault.ts";
import { matcherOf } from "./hooks-part.ts";
import { checkVerdict } from "./verdicts.ts";

const info = { id: "1", requestId: "1", operation: "chat", format: "chat", model: "m", stream: false };

const check = (event: HookEvent, returned: unknown, format = "chat") =>
  checkVerdict({ event, info: { ...info, format }, data: {} }, returned, (request) => request as unknown as JsonObject);

describe("a verdict", () => {
  test("of nothing is a pass", () => {
    expect([check("request", undefined), check("chunk", null), check("end", { verdict: "refuse" })]).toEqual([
      { kind: "pass" },
      { kind: "pass" },
      { kind: "pass" },
    ]);
  });

  test("that the functions of the interface make is taken", () => {
    expect(check("request", pass({ state: { a: 1 }, note: { score: 0.5 } }))).toEqual({
      kind: "pass",
      state: '{"a":1}',
      note: { score: 0.5 },
    });
    expect(check("request", change({ body: { a: 1 } }))).toMatchObject({ kind: "change", body: '{"a":1}' });
    expect(check("chunk", change({ text: "a", rest: "b" }))).toEqual({ kind: "change", text: "a", rest: "b" });
    expect(check("request", refuse(429, "slow_down", "Later."))).toMatchObject({ kind: "refuse", status: 429 });
    expect(check("answer", repair("Again."))).toEqual({ kind: "repair", message: "Again." });
    expect(check("answer", answer({ text: "hi" }))).toMatchObject({
      result: { parts: [{ type: "text", text: "hi" }], finish: { reason: "stop" } },
    });
  });

  const circle: JsonObject = {};
  circle.self = circle;
  test.each<[HookEvent, unknown]>([
    ["request", "pass"],
    ["request", { verdict: "repair", message: "x" }],
    ["attempt", answer({ text: "x" })],
    ["chunk", answer({ text: "x" })],
    ["request", { verdict: "change" }],
    ["chunk", { verdict: "change", body: {} }],
    ["chunk", { verdict: "change", text: "x", rest: 1 }],
    ["answer", { verdict: "change", result: { parts: [{ type: "tool-result" }] } }],
    ["answer", { verdict: "answer", result: { parts: [{ type: "text" }] } }],
    ["request", { verdict: "refuse", status: 200, code: "x", message: "x" }],
    ["request", { verdict: "refuse", status: 400, code: "a b", message: "x" }],
    ["request", { verdict: "refuse", status: 400, code: "x", message: "" }],
    ["request", { verdict: "pass", note: { text: "a secret" } }],
    ["request", { verdict: "pass", note: { "not a name": 1 } }],
    [
      "request",
      { verdict: "pass", note: Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`n${index}`, 1])) },
    ],
    ["request", { verdict: "pass", state: "x".repeat(300_000) }],
    ["request", { verdict: "pass", state: () => 1 }],
  ])("of %s that is none is a fault: %j", (event, returned) => {
    expect(() => check(event, returned)).toThrow(HookFault);
  });

  test("that cannot be written as JSON is an error", () => {
    expect(() => check("request", { verdict: "pass", state: circle })).toThrow();
  });
});

test("a hook is for the requests that every field of match holds for", () => {
  const request = { ...info, operation: "chat", model: "gpt-5", key: "k", organization: "o" };
  const matches = (match: JsonObject, asked = request) => {
    const [hook] = hooksSection.schema.parse([{ name: "h", module: "./h.ts", match }]);
    return matcherOf((hook as { match: Parameters<typeof matcherOf>[0] }).match)(asked);
  };
  expect(matches({})).toBe(true);
  expect(matches({ key: "k", organization: ["x", "o"], model: "gpt-*", operation: "chat" })).toBe(true);
  expect(matches({ key: "other" })).toBe(false);
  expect(matches({ key: "k", model: "claude-*" })).toBe(false);
  expect(matches({ route: "smart" })).toBe(false);
  expect(matches({ route: "smart" }, { ...request, model: "smart" })).toBe(true);
  expect(matches({ key: "k" }, { ...request, key: undefined as never })).toBe(false);
});
