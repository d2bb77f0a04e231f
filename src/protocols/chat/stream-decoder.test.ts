// Streams of chat backends as events: every deviation that is known of an engine, and that a stream says what the whole
// answer says.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { MAX_CITATIONS } from "../../generation/answer-losses.ts";
import { collect } from "../../generation/collect.ts";
import type { ContentPart } from "../../generation/content.ts";
import type { GenerationEvent } from "../../generation/events.ts";
import type { JsonObject } from "../../lib/json.ts";
import { DecodeError } from "../protocol.ts";
import { decodeResponse } from "./response-decoder.ts";
import { ChatStreamDecoder } from "./stream-decoder.ts";

const DONE = "[DONE]";

function chunk(delta: unknown, finish_reason: string | null = null, more: JsonObject = {}): JsonObject {
  return { id: "c1", created: 5, model: "b", choices: [{ index: 0, delta, finish_reason }], ...more };
}

const data = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function decode(chunks: readonly unknown[]): GenerationEvent[] {
  const decoder = new ChatStreamDecoder();
  const events = [...chunks.flatMap((value) => decoder.push(data(value))), ...decoder.end()];
  checkOrder(events);
  return events;
}

/** A stream of deltas, with the end that every good stream has. */
function parts(deltas: readonly unknown[], reason = "stop"): ContentPart[] | undefined {
  return collect(decode([...deltas.map((delta) => chunk(delta)), chunk({}, reason), DONE]))?.parts;
}

/** What events.ts promises. */
function checkOrder(events: readonly GenerationEvent[]): void {
  const open = new Map<number, string>();
  let next = 0;
  let isFinished = false;
  for (const [position, event] of events.entries()) {
    if (event.type !== "failure") expect(event.type === "start").toBe(position === 0);
    if (isFinished) expect(event.type).toBe("usage");
    switch (event.type) {
      case "part-start": {
        expect(event.index).toBe(next++);
        const isCall = event.part.type === "tool-call";
        for (const type of open.values()) expect([isCall, type]).toEqual([true, "tool-call"]);
        open.set(event.index, event.part.type);
        break;
      }
      case "delta":
        expect(event.text).not.toBe("");
        expect(open.has(event.index)).toBe(true);
        break;
      case "citation":
      case "seal":
        expect(open.has(event.index)).toBe(true);
        break;
      case "part-end":
        expect(open.delete(event.index)).toBe(true);
        break;
      case "finish":
        expect(open.size).toBe(0);
        isFinished = true;
        break;
      case "failure":
        expect(position).toBe(events.length - 1);
        break;
    }
  }
}

const ANTHROPIC = "anthropic-claude-v1";
const XAI = "xai-responses-v1";

test("citations without a text are held up to a bound, and one more, which shows that some are lost", () => {
  const annotations = Array.from({ length: 300 }, () => ({ url_citation: { url: "u" } }));
  const flood = Array.from({ length: 5 }, () => chunk({ annotations }));
  const events = decode([...flood, chunk({ content: "x" }), chunk({}, "stop"), DONE]);
  expect(events.filter(({ type }) => type === "citation")).toHaveLength(MAX_CITATIONS + 1);
});

describe("an ordinary stream", () => {
  test("event by event", () => {
    const usage = { prompt_tokens: 1, completion_tokens: 2 };
    expect(
      decode([
        chunk({ role: "assistant", content: "" }),
        chunk({ reasoning_content: "hm" }),
        chunk({ content: "a" }),
        chunk({ content: "b" }),
        chunk({}, "stop"),
        { id: "c1", choices: [], usage },
        DONE,
      ]),
    ).toEqual([
      { type: "start", id: "c1", model: "b", createdAt: 5 },
      { type: "part-start", index: 0, part: { type: "reasoning" } },
      { type: "delta", index: 0, text: "hm" },
      { type: "part-end", index: 0 },
      { type: "part-start", index: 1, part: { type: "text" } },
      { type: "delta", index: 1, text: "a" },
      { type: "delta", index: 1, text: "b" },
      { type: "usage", usage: { input: { total: 1 }, output: { total: 2 } } },
      { type: "part-end", index: 1 },
      { type: "finish", finish: { reason: "stop", raw: { protocol: "chat", value: "stop" } } },
    ]);
  });
});

describe("texts", () => {
  const cases: [title: string, deltas: unknown[], expected: ContentPart[]][] = [
    ["reasoning", [{ reasoning: "h" }, { reasoning: "m" }], [{ type: "reasoning", text: "hm" }]],
    ["both names at once", [{ reasoning: "h", reasoning_content: "h" }], [{ type: "reasoning", text: "h" }]],
    ["thinking", [{ thinking: "h" }], [{ type: "reasoning", text: "h" }]],
    [
      "lists of parts",
      [
        { content: [{ type: "thinking", thinking: [{ type: "text", text: "h" }] }] },
        { content: [{ type: "text", text: "x" }] },
      ],
      [
        { type: "reasoning", text: "h" },
        { type: "text", text: "x" },
      ],
    ],
    [
      "thought and text in one chunk",
      [{ reasoning: "h", content: "x" }],
      [
        { type: "reasoning", text: "h" },
        { type: "text", text: "x" },
      ],
    ],
    ["refusal", [{ refusal: "n" }, { refusal: "o" }], [{ type: "refusal", text: "no" }]],
    [
      "wrong types",
      [{ content: 5, refusal: {}, reasoning: [], tool_calls: "x", annotations: 3, images: {} }, null, 5],
      [],
    ],
    [
      "an annotation",
      [{ content: "x" }, { annotations: [{ url_citation: { url: "u", start_index: 0, end_index: 1 } }] }],
      [{ type: "text", text: "x", citations: [{ url: "u", startIndex: 0, endIndex: 1 }] }],
    ],
    [
      "an image",
      [{ content: "x" }, { images: [{ image_url: { url: "data:image/png;base64,AA" } }] }],
      [
        { type: "text", text: "x" },
        { type: "image", source: { kind: "base64", mediaType: "image/png", data: "AA" } },
      ],
    ],
    [
      "details repeat plain thoughts and prove them (OpenRouter)",
      [
        { reasoning: "h", reasoning_details: [{ type: "reasoning.text", text: "h", format: ANTHROPIC, index: 0 }] },
        { reasoning: "m", reasoning_details: [{ type: "reasoning.text", text: "m", format: ANTHROPIC, index: 0 }] },
        { reasoning_details: [{ type: "reasoning.text", signature: "s", format: ANTHROPIC, index: 0 }] },
        { reasoning_details: [{ type: "reasoning.encrypted", data: "d", format: ANTHROPIC, index: 1 }] },
        { reasoning: "again" },
        { content: "x" },
      ],
      [
        { type: "reasoning", text: "hm", signature: "s", origin: "messages" },
        { type: "reasoning", text: "", sealed: "d", origin: "messages" },
        { type: "reasoning", text: "again" },
        { type: "text", text: "x" },
      ],
    ],
    [
      "thoughts that only the details tell",
      [
        { reasoning_details: [{ type: "reasoning.summary", summary: "h", format: "openai-responses-v1", index: 0 }] },
        { reasoning_details: [{ type: "reasoning.summary", summary: "m", format: "openai-responses-v1", index: 0 }] },
        {
          reasoning_details: [{ type: "reasoning.encrypted", data: "d", id: "rs_1", format: "openai-responses-v1" }],
        },
        { content: "x" },
      ],
      [
        { type: "reasoning", text: "hm" },
        { type: "reasoning", text: "", sealed: "d", itemId: "rs_1", origin: "responses" },
        { type: "text", text: "x" },
      ],
    ],
    [
      "proofs of a format that only chat engines know",
      [
        { reasoning: "h", reasoning_details: [{ type: "reasoning.text", text: "h", format: XAI, index: 0 }, null] },
        { reasoning_details: [{ type: "reasoning.text", signature: "s", format: XAI, index: 0 }] },
        { reasoning_details: [{ type: "reasoning.encrypted", data: "d", id: "rs_1", format: XAI }] },
        { content: "x" },
      ],
      [
        {
          type: "reasoning",
          text: "h",
          origin: "chat",
          signature: '{"type":"reasoning.text","signature":"s","format":"xai-responses-v1","index":0}',
        },
        {
          type: "reasoning",
          text: "",
          origin: "chat",
          sealed: '{"type":"reasoning.encrypted","data":"d","id":"rs_1","format":"xai-responses-v1"}',
        },
        { type: "text", text: "x" },
      ],
    ],
    [
      "a proof behind the text",
      [{ content: "x" }, { reasoning_details: [{ type: "reasoning.text", signature: "s", format: ANTHROPIC }] }],
      [{ type: "text", text: "x" }],
    ],
    [
      "an annotation before its text waits for it (OpenRouter)",
      [
        { annotations: [{ url_citation: { url: "u", start_index: 0, end_index: 1 } }] },
        { reasoning: "h" },
        { content: "x" },
      ],
      [
        { type: "reasoning", text: "h" },
        { type: "text", text: "x", citations: [{ url: "u", startIndex: 0, endIndex: 1 }] },
      ],
    ],
    [
      "an annotation of a later text counts in the whole content",
      [
        { content: "abc" },
        { reasoning: "h" },
        { content: "x" },
        { annotations: [{ url_citation: { url: "u", start_index: 3, end_index: 4 } }] },
      ],
      [
        { type: "text", text: "abc" },
        { type: "reasoning", text: "h" },
        { type: "text", text: "x", citations: [{ url: "u", startIndex: 0, endIndex: 1 }] },
      ],
    ],
  ];
  test.each(cases)("%s", (_title, deltas, expected) => {
    expect(parts(deltas)).toEqual(expected);
  });
});

describe("tool calls", () => {
  const fn = (index: unknown, more: JsonObject) => ({ tool_calls: [{ index, ...more }] });
  const start = (index: unknown, id: unknown, name: unknown, text: unknown = "") =>
    fn(index, { id, type: "function", function: { name, arguments: text } });
  const more = (index: unknown, text: string, extra: JsonObject = {}) =>
    fn(index, { function: { arguments: text }, ...extra });
  const call = (id: string, name: string, text: string): ContentPart => ({
    type: "tool-call",
    id,
    name,
    arguments: text,
  });

  const cases: [title: string, deltas: unknown[], expected: ContentPart[]][] = [
    ["fragments", [start(0, "a", "f"), more(0, '{"x'), more(0, '":1}')], [call("a", "f", '{"x":1}')]],
    [
      "everything in one chunk",
      [start(0, "a", "f", "{}"), start(1, "b", "g", "{}")],
      [call("a", "f", "{}"), call("b", "g", "{}")],
    ],
    ["no arguments at all", [start(0, "a", "f")], [call("a", "f", "")]],
    [
      "interleaved",
      [start(0, "a", "f"), start(1, "b", "g"), more(0, '{"x":'), more(1, '{"y":'), more(0, "1}"), more(1, "2}")],
      [call("a", "f", '{"x":1}'), call("b", "g", '{"y":2}')],
    ],
    [
      "no index, told apart by id",
      [start(undefined, "a", "f", "{}"), start(undefined, "b", "g", "{}"), more(undefined, "", { id: "a" })],
      [call("a", "f", "{}"), call("b", "g", "{}")],
    ],
    [
      "no index, continued in order",
      [start(undefined, "a", "f"), more(undefined, "{"), more(undefined, "}"), start(undefined, "b", "g", "{}")],
      [call("a", "f", "{}"), call("b", "g", "{}")],
    ],
    [
      "no index, continued by id",
      [
        start(undefined, "a", "f", "{"),
        start(undefined, "b", "g", "{"),
        more(undefined, "}", { id: "a" }),
        more(undefined, "}"),
      ],
      [call("a", "f", "{}"), call("b", "g", "{}")],
    ],
    [
      "every call is number 0, in fragments",
      [start(0, "a", "f", "{"), more(0, "}"), start(0, "b", "g", "{"), more(0, "}")],
      [call("a", "f", "{}"), call("b", "g", "{}")],
    ],
    [
      "no index and no id",
      [start(undefined, undefined, "f", "{}"), start(undefined, undefined, "g", "{}")],
      [call("tool_0", "f", "{}"), call("tool_1", "g", "{}")],
    ],
    [
      "every call is number 0",
      [start(0, "a", "f", "{}"), start(0, "b", "g", "{}")],
      [call("a", "f", "{}"), call("b", "g", "{}")],
    ],
    [
      "empty and null ids and names later",
      [
        start(0, "a", "f"),
        fn(0, { id: "", function: { name: "", arguments: "{" } }),
        fn(0, { id: null, type: null, function: { name: null, arguments: "}" } }),
      ],
      [call("a", "f", "{}")],
    ],
    ["id and name repeated", [start(0, "a", "f", "{"), start(0, "a", "f", "}")], [call("a", "f", "{}")]],
    [
      "a new id in every fragment",
      [start(0, "a", "f", "{"), fn(0, { id: "z", function: { arguments: "}" } })],
      [call("a", "f", "{}")],
    ],
    [
      "the name comes later",
      [fn(0, { id: "a", function: { arguments: "{" } }), fn(0, { function: { name: "f" } }), more(0, "}")],
      [call("a", "f", "{}")],
    ],
    ["arguments as an object", [start(0, "a", "f", { x: 1 })], [call("a", "f", '{"x":1}')]],
    [
      "the deprecated call",
      [{ function_call: { name: "f", arguments: "" } }, { function_call: { arguments: "{}" } }],
      [call("tool_0", "f", "{}")],
    ],
    [
      "a custom call",
      [fn(0, { id: "a", type: "custom", custom: { name: "f", input: "" } }), fn(0, { custom: { input: "free" } })],
      [{ type: "tool-call", id: "a", name: "f", arguments: "free", custom: true }],
    ],
    [
      "a function with an empty custom beside it (Snowflake)",
      [
        fn(0, { id: "a", type: "function", function: { name: "f", arguments: "" }, custom: {} }),
        fn(0, { function: { arguments: "{}" }, custom: {} }),
      ],
      [call("a", "f", "{}")],
    ],
    [
      "a signed call",
      [
        fn(0, {
          id: "a",
          function: { name: "f", arguments: "{}" },
          extra_content: { google: { thought_signature: "s" } },
        }),
      ],
      [{ type: "tool-call", id: "a", name: "f", arguments: "{}", signature: "s" }],
    ],
    [
      "text behind a call is a part of its own",
      [{ content: "a" }, start(0, "a", "f", "{}"), { content: "b" }],
      [{ type: "text", text: "a" }, call("a", "f", "{}"), { type: "text", text: "b" }],
    ],
    [
      "white space does not end a call",
      [start(0, "a", "f", "{"), { content: "\n" }, more(0, "}")],
      [call("a", "f", "{}")],
    ],
    [
      "entries that say nothing",
      [fn(0, {}), { tool_calls: [null, 5] }, { content: "x" }],
      [{ type: "text", text: "x" }],
    ],
  ];
  test.each(cases)("%s", (_title, deltas, expected) => {
    expect(parts(deltas)).toEqual(expected);
  });

  test("a call that is whole ends when the next begins", () => {
    const events = decode([chunk(start(0, "a", "f", "{}")), chunk(start(1, "b", "g")), chunk({}, "tool_calls"), DONE]);
    expect(events.map((event) => ("index" in event ? `${event.type} ${event.index}` : event.type))).toEqual([
      ...["start", "part-start 0", "delta 0", "part-end 0", "part-start 1", "part-end 1", "finish"],
    ]);
  });

  test("what cannot be put together is no answer", () => {
    expect(() => decode([chunk(more(0, "{}")), chunk({}, "stop"), DONE])).toThrow(DecodeError);
    const broken = [chunk(start(0, "a", "f", "{")), chunk({ content: "but" }), chunk(more(0, "}")), DONE];
    expect(() => decode(broken)).toThrow(DecodeError);
  });

  test("fragments cut and mixed anywhere give the same calls", () => {
    const calls = fc.array(fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(calls, fc.infiniteStream(fc.nat(1000)), (values, choices) => {
        const pick = (limit: number): number => (choices.next().value as number) % limit;
        const texts = values.map((value) => JSON.stringify(value));
        const sent = texts.map(() => 0);
        const deltas: unknown[] = texts.map((_, index) => start(index, `id${index}`, `f${index}`));
        while (sent.some((length, index) => length < (texts[index] as string).length)) {
          const index = pick(texts.length);
          const text = texts[index] as string;
          const begin = sent[index] as number;
          const end = Math.min(text.length, begin + 1 + pick(5));
          if (end > begin) deltas.push(more(index, text.slice(begin, end)));
          sent[index] = end;
        }
        expect(parts(deltas, "tool_calls")).toEqual(texts.map((text, index) => call(`id${index}`, `f${index}`, text)));
      }),
    );
  });
});

describe("the end", () => {
  const finishOf = (chunks: unknown[]) => {
    const last = decode(chunks).findLast((event) => event.type !== "usage");
    return last?.type === "finish" ? last.finish.reason : undefined;
  };
  const text = chunk({ content: "x" });
  const call = chunk({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "{}" } }] });
  const cases: [title: string, chunks: unknown[], expected: string | undefined][] = [
    ["finish and marker", [text, chunk({}, "stop"), DONE], "stop"],
    ["finish without the marker", [text, chunk({}, "length")], "length"],
    ["the marker without a finish", [text, DONE], "stop"],
    ["calls and the marker without a finish", [call, DONE], "tool-calls"],
    ["neither", [text], undefined],
    ["nothing at all", [], undefined],
    ["only the marker", [DONE], undefined],
    ["an empty finish reason is none", [chunk({ content: "x" }, "")], undefined],
    ["stop although calls were made", [call, chunk({}, "stop"), DONE], "tool-calls"],
    ["cut off inside a call", [call, chunk({}, "length"), DONE], "length"],
    [
      "the finish reason in every chunk",
      [chunk({ content: "x" }, "stop"), chunk({ content: "y" }, "stop"), DONE],
      "stop",
    ],
    ["what follows the marker is not read", [text, chunk({}, "stop"), DONE, chunk({}, "length")], "stop"],
  ];
  test.each(cases)("%s", (_title, chunks, expected) => {
    expect(finishOf(chunks)).toEqual(expected as "stop");
  });

  test("text behind a first finish reason is part of the answer", () => {
    const result = collect(decode([chunk({ content: "x" }, "stop"), chunk({ content: "y" }), DONE]));
    expect(result?.parts).toEqual([{ type: "text", text: "xy" }]);
  });

  test("the last usage counts, wherever it stands", () => {
    const usage = (prompt_tokens: number) => ({ usage: { prompt_tokens, completion_tokens: 1 } });
    const result = collect(
      decode([
        chunk({ content: "x" }, null, usage(1)),
        chunk({}, "stop", usage(2)),
        chunk({}, null, { usage: null }),
        DONE,
      ]),
    );
    expect(result?.usage?.input.total).toBe(2);
  });
});

describe("chunks that are not part of the answer", () => {
  test("before it, and of other choices", () => {
    const other = { ...chunk({ content: "other" }), choices: [{ index: 1, delta: { content: "other" } }] };
    const filter = { id: "", model: "", choices: [], prompt_filter_results: [] };
    const result = collect(decode([filter, chunk({ content: "x" }), other, "", chunk({}, "stop"), DONE]));
    expect(result).toMatchObject({ id: "c1", model: "b", parts: [{ type: "text", text: "x" }] });
  });

  test("a choice without an index is the first", () => {
    expect(collect(decode([{ id: "c", choices: [{ delta: { content: "x" } }] }, DONE]))?.parts).toHaveLength(1);
  });

  test("a whole message instead of deltas", () => {
    const result = collect(decode([{ id: "c", choices: [{ message: { content: "x" }, finish_reason: "stop" }] }]));
    expect(result?.parts).toEqual([{ type: "text", text: "x" }]);
  });

  test.each([["{"], ["5"], ["[]"], ['"text"'], ["null"]])("what is no event: %s", (text) => {
    expect(() => new ChatStreamDecoder().push(text)).toThrow(DecodeError);
  });
});

describe("errors", () => {
  const cases: [title: string, event: unknown, status: number, message: string][] = [
    ["an object", { error: { message: "m", code: 500 } }, 500, "m"],
    ["a string", { error: "m" }, 502, "m"],
    ["the bare form", { object: "error", message: "m", code: 400 }, 400, "m"],
    ["beside choices", { ...chunk({ content: "x" }), error: { message: "m" } }, 502, "m"],
    ["as the finish reason", chunk({}, "error"), 502, "The backend broke off its answer (error)."],
  ];
  test.each(cases)("%s", (_title, event, status, message) => {
    const events = decode([chunk({ content: "x" }), event, chunk({}, "stop"), DONE]);
    expect(events.at(-1)).toMatchObject({ type: "failure", failure: { status, message } });
  });

  test("by the name of the event", () => {
    const [event] = new ChatStreamDecoder().push('{"message":"m","code":429}', "error");
    expect(event).toEqual({ type: "failure", failure: { message: "m", status: 429 } });
  });

  test("an error that is null is none", () => {
    expect(collect(decode([chunk({ content: "x" }, "stop", { error: null }), DONE]))?.parts).toHaveLength(1);
  });
});

test("a stream says what the whole answer says, wherever it is cut", () => {
  const text = fc.string({ maxLength: 12 });
  const message = fc.record({
    reasoning_content: text,
    content: text,
    refusal: text,
    tool_calls: fc.array(
      fc.record({
        id: fc.uuid(),
        type: fc.constant("function"),
        function: fc.record({ name: fc.constant("f"), arguments: fc.json() }),
      }),
      { maxLength: 3 },
    ),
  });
  const size = fc.integer({ min: 1, max: 5 });
  fc.assert(
    fc.property(message, size, fc.constantFrom("stop", "length", "tool_calls"), (whole, length, finish_reason) => {
      const cut = (value: string) => value.match(new RegExp(`[^]{1,${length}}`, "g")) ?? [];
      const deltas: unknown[] = [
        ...cut(whole.reasoning_content).map((reasoning_content) => ({ reasoning_content })),
        ...cut(whole.content).map((content) => ({ content })),
        ...cut(whole.refusal).map((refusal) => ({ refusal })),
        ...whole.tool_calls.flatMap(({ id, function: { name, arguments: value } }, index) => [
          { tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] },
          ...cut(value).map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
        ]),
      ];
      const body = { id: "c1", created: 5, model: "b", choices: [{ index: 0, message: whole, finish_reason }] };
      const streamed = collect(decode([...deltas.map((delta) => chunk(delta)), chunk({}, finish_reason), DONE]));
      expect(streamed).toEqual(decodeResponse(body));
    }),
  );
});
