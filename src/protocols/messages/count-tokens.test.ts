// The estimate of input tokens.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { JsonObject } from "../../lib/json.ts";
import { estimateInputTokens } from "./count-tokens.ts";

describe("the estimate of tokens", () => {
  const of = (content: unknown, more: JsonObject = {}) =>
    estimateInputTokens({ messages: [{ role: "user", content }], ...more });

  test("grows with the text, by a quarter of its letters", () => {
    expect(of("x".repeat(4_000)) - of("")).toBe(1_000);
    expect(of([{ type: "text", text: "x".repeat(4_000) }])).toBe(of("x".repeat(4_000)) + 2);
    const chinese = of("漢".repeat(1_000)) - of("");
    expect(chinese).toBeGreaterThanOrEqual(1_000);
    expect(chinese).toBeLessThan(1_500);
  });

  test("counts instructions, tools, calls and results", () => {
    expect(of("hi", { system: "x".repeat(400) }) - of("hi")).toBe(100);
    expect(of("hi", { tools: [{ name: "f", input_schema: {} }] })).toBeGreaterThan(of("hi") + 300);
    const call = { type: "tool_use", id: "a", name: "f", input: { a: "x".repeat(400) } };
    const result = { type: "tool_result", tool_use_id: "a", content: [{ type: "text", text: "x".repeat(400) }] };
    expect(of([call])).toBeGreaterThan(of([]) + 100);
    expect(of([result])).toBeGreaterThan(of([]) + 100);
  });

  test("does not count base64 as text", () => {
    const data = "A".repeat(1_000_000);
    expect(of([{ type: "image", source: { type: "base64", data } }])).toBeLessThan(2_000);
    expect(of([{ type: "document", source: { type: "base64", data } }])).toBeLessThan(50_000);
    expect(of([{ type: "document", source: { type: "text", data } }])).toBeGreaterThan(200_000);
  });

  test("any body has a count", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom("messages", "system", "tools", "output_config"), fc.jsonValue()),
        (body) => {
          expect(estimateInputTokens(body)).toBeGreaterThan(0);
        },
      ),
    );
  });
});
