// Events and whole answers say the same: one made into the other and back is unchanged.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { asEvents } from "./as-events.ts";
import { Collector, collect } from "./collect.ts";
import type { ContentPart } from "./content.ts";
import type { GenerationEvent } from "./events.ts";
import type { GenerationResult } from "./result.ts";

const text = fc.string({ maxLength: 20 });
const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });

/** Leaves members out that are undefined. */
function compact<Value extends object>(value: Value): Value {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as Value;
}

const citation = fc.record({ url: text, startIndex: fc.nat(50), endIndex: fc.nat(50) });
const sealedReasoning = fc
  .record({
    type: fc.constant("reasoning" as const),
    text,
    signature: optional(text),
    sealed: optional(text),
    itemId: optional(text),
    origin: fc.constant("messages" as const),
  })
  .map(compact)
  .filter((part) => "signature" in part || "sealed" in part);

const part: fc.Arbitrary<ContentPart> = fc.oneof(
  fc
    .record({
      type: fc.constant("text" as const),
      text,
      citations: optional(fc.array(citation, { minLength: 1, maxLength: 3 })),
      signature: optional(text),
    })
    .map((value) => compact(value) as ContentPart),
  fc.record({ type: fc.constant("refusal" as const), text }),
  fc.record({ type: fc.constant("reasoning" as const), text }),
  sealedReasoning.map((value) => value as ContentPart),
  fc
    .record({
      type: fc.constant("tool-call" as const),
      id: text,
      name: text,
      arguments: text,
      custom: optional(fc.boolean()),
      serverSide: optional(fc.boolean()),
      signature: optional(text),
      itemId: optional(text),
    })
    .map((value) => compact(value) as ContentPart),
  fc.record({
    type: fc.constant("search-result" as const),
    callId: text,
    results: fc.array(fc.record({ url: text, title: text })),
  }),
  fc.constant({ type: "opaque", protocol: "responses", value: { type: "mcp_call" } } as const),
  fc.constant({ type: "image", source: { kind: "base64", mediaType: "image/png", data: "AA==" } } as const),
  fc.constant({ type: "audio", source: { kind: "base64", mediaType: "audio/wav", data: "AA==" } } as const),
);

export const anyResult: fc.Arbitrary<GenerationResult> = fc
  .record({
    id: text,
    model: text,
    createdAt: fc.nat(),
    parts: fc.array(part, { maxLength: 6 }),
    finish: fc.record({ reason: fc.constantFrom("stop", "tool-calls", "length") }),
    usage: optional(fc.record({ input: fc.record({ total: fc.nat() }), output: fc.record({ total: fc.nat() }) })),
  })
  .map((value) => compact(value) as GenerationResult);

describe("collect and explode", () => {
  test("an answer that was made into events is the same when collected", () => {
    fc.assert(
      fc.property(anyResult, (result) => {
        expect(collect(asEvents(result))).toEqual(result);
      }),
    );
  });

  test("events have indexes without gaps, and no delta is empty", () => {
    fc.assert(
      fc.property(anyResult, (result) => {
        const events = asEvents(result);
        const starts = events.filter((event) => event.type === "part-start").map((event) => event.index);
        expect(starts).toEqual(result.parts.map((_, index) => index));
        expect(events.filter((event) => event.type === "part-end")).toHaveLength(starts.length);
        expect(events.some((event) => event.type === "delta" && event.text === "")).toBe(false);
        expect(events.at(-1)?.type).toBe("finish");
      }),
    );
  });

  test("what no model answers is refused rather than lost", () => {
    const result = { id: "", model: "", createdAt: 0, finish: { reason: "stop" as const } };
    const wrong: ContentPart = { type: "tool-result", callId: "1", parts: [] };
    expect(() => asEvents({ ...result, parts: [wrong] })).toThrow("tool-result");
  });
});

describe("Collector", () => {
  const START: GenerationEvent = { type: "start", id: "a", model: "m", createdAt: 7 };
  const FINISH: GenerationEvent = { type: "finish", finish: { reason: "stop" } };

  test("joins the fragments of interleaved tool calls", () => {
    const call = (index: number, name: string): GenerationEvent => ({
      type: "part-start",
      index,
      part: { type: "tool-call", id: `id${index}`, name },
    });
    const result = collect([
      START,
      call(0, "first"),
      call(1, "second"),
      { type: "delta", index: 1, text: '{"b"' },
      { type: "delta", index: 0, text: '{"a"' },
      { type: "delta", index: 1, text: ":2}" },
      { type: "delta", index: 0, text: ":1}" },
      { type: "part-end", index: 0 },
      { type: "part-end", index: 1 },
      FINISH,
    ]);
    expect(result?.parts.map((each) => each.type === "tool-call" && each.arguments)).toEqual(['{"a":1}', '{"b":2}']);
  });

  test("the last usage counts, also behind the finish", () => {
    const usage = (total: number): GenerationEvent => ({
      type: "usage",
      usage: { input: { total }, output: { total } },
    });
    expect(collect([START, usage(1), FINISH, usage(3)])?.usage?.input.total).toBe(3);
  });

  test("without a finish, or with a failure, there is no answer, but the parts so far are there", () => {
    const collector = new Collector();
    collector.push(START);
    collector.push({ type: "part-start", index: 0, part: { type: "text" } });
    collector.push({ type: "delta", index: 0, text: "half" });
    expect(collector.result()).toBeUndefined();
    expect(collector.parts).toEqual([{ type: "text", text: "half" }]);
    expect(collector.size).toBe(4);
    collector.push({ type: "failure", failure: { message: "gone", status: 502 } });
    collector.push(FINISH);
    expect(collector.result()).toBeUndefined();
    expect(collector.failure?.status).toBe(502);
  });

  test("events that belong to no part are ignored", () => {
    const collector = new Collector();
    collector.push({ type: "delta", index: 3, text: "lost" });
    collector.push({ type: "seal", index: 3, origin: "messages", signature: "s" });
    collector.push({ type: "citation", index: 3, citation: {} });
    expect(collector.parts).toEqual([]);
    expect(collector.size).toBe(0);
  });
});
