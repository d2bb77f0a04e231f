// What backends of this format really send: complete streams, and those that leave events out.

import { describe, expect, test } from "bun:test";
import { MAX_CITATIONS } from "../../generation/answer-losses.ts";
import { collect } from "../../generation/collect.ts";
import type { GenerationEvent } from "../../generation/events.ts";
import type { JsonObject } from "../../lib/json.ts";
import { AnswerFailed, DecodeError } from "../protocol.ts";
import { decodeResponse } from "./response-decoder.ts";
import { ResponsesStreamDecoder } from "./stream-decoder.ts";

const HEAD = { id: "resp_1", object: "response", created_at: 1_700_000_000, model: "gpt" };
const USAGE = {
  input_tokens: 9,
  input_tokens_details: { cached_tokens: 3 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 1 },
  total_tokens: 14,
};

function decode(...events: JsonObject[]): GenerationEvent[] {
  const decoder = new ResponsesStreamDecoder();
  const decoded = events.flatMap((event) => [...decoder.push(JSON.stringify(event))]);
  return [...decoded, ...decoder.end()];
}

const created = { type: "response.created", response: { ...HEAD, status: "in_progress", output: [] } };
const completed = (...output: JsonObject[]) => ({
  type: "response.completed",
  response: { ...HEAD, status: "completed", output, usage: USAGE },
});
const added = (output_index: number, item: JsonObject) => ({ type: "response.output_item.added", output_index, item });
const done = (output_index: number, item: JsonObject) => ({ type: "response.output_item.done", output_index, item });
const text = (delta: string, place: JsonObject = { item_id: "msg_1", output_index: 0, content_index: 0 }) => ({
  type: "response.output_text.delta",
  ...place,
  delta,
});
const message = (words: string, fields: JsonObject = {}) => ({
  type: "message",
  id: "msg_1",
  role: "assistant",
  content: [{ type: "output_text", text: words, annotations: [] }],
  ...fields,
});
const parts = (...events: JsonObject[]) => collect(decode(...events))?.parts;

describe("a complete stream", () => {
  const stream = [
    created,
    { type: "response.in_progress", response: created.response },
    { type: "keepalive", sequence_number: 3 },
    added(0, { type: "reasoning", id: "rs_1", summary: [] }),
    { type: "response.reasoning_summary_part.added", item_id: "rs_1", output_index: 0, summary_index: 0, part: {} },
    { type: "response.reasoning_summary_text.delta", item_id: "rs_1", output_index: 0, summary_index: 0, delta: "On" },
    { type: "response.reasoning_summary_text.delta", item_id: "rs_1", output_index: 0, summary_index: 0, delta: "e" },
    { type: "response.reasoning_summary_text.done", item_id: "rs_1", output_index: 0, summary_index: 0, text: "One" },
    { type: "response.reasoning_summary_text.delta", item_id: "rs_1", output_index: 0, summary_index: 1, delta: "Two" },
    done(0, { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAA" }),
    added(1, { type: "message", id: "msg_1", role: "assistant", content: [] }),
    { type: "response.content_part.added", item_id: "msg_1", output_index: 1, content_index: 0, part: {} },
    text("See ", { item_id: "msg_1", output_index: 1, content_index: 0 }),
    text("it", { item_id: "msg_1", output_index: 1, content_index: 0 }),
    {
      type: "response.output_text.annotation.added",
      item_id: "msg_1",
      output_index: 1,
      content_index: 0,
      annotation_index: 0,
      annotation: { type: "url_citation", url: "https://e.org", title: "E", start_index: 0, end_index: 6 },
    },
    { type: "response.output_text.done", item_id: "msg_1", output_index: 1, content_index: 0, text: "See it" },
    done(1, message("See it")),
    added(2, { type: "function_call", id: "fc_1", call_id: "call_1", name: "f", arguments: "" }),
    { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 2, delta: '{"a"' },
    { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 2, delta: ":1}" },
    { type: "response.function_call_arguments.done", item_id: "fc_1", output_index: 2, arguments: '{"a":1}' },
    done(2, { type: "function_call", id: "fc_1", call_id: "call_1", name: "f", arguments: '{"a":1}' }),
    done(3, {
      type: "web_search_call",
      id: "ws_1",
      status: "completed",
      action: { type: "search", query: "cats", sources: [{ type: "url", url: "https://e.org" }] },
    }),
    completed(),
  ];

  test("is read as a whole", () => {
    expect(collect(decode(...stream))).toEqual({
      id: "resp_1",
      model: "gpt",
      createdAt: 1_700_000_000,
      parts: [
        { type: "reasoning", itemId: "rs_1", text: "One\n\nTwo", origin: "responses", sealed: "gAAA" },
        {
          type: "text",
          text: "See it",
          citations: [
            {
              url: "https://e.org",
              title: "E",
              startIndex: 0,
              endIndex: 6,
              origin: {
                protocol: "responses",
                value: { type: "url_citation", url: "https://e.org", title: "E", start_index: 0, end_index: 6 },
              },
            },
          ],
        },
        { type: "tool-call", id: "call_1", name: "f", itemId: "fc_1", arguments: '{"a":1}' },
        { type: "tool-call", id: "ws_1", name: "web_search", serverSide: true, arguments: '{"query":"cats"}' },
        { type: "search-result", callId: "ws_1", results: [{ url: "https://e.org", title: "" }] },
      ],
      finish: { reason: "tool-calls", raw: { protocol: "responses", value: "completed" } },
      usage: { input: { total: 9, cacheRead: 3 }, output: { total: 5, reasoning: 1 }, webSearches: 1 },
    });
  });

  test("every delta is one event as soon as it comes", () => {
    const decoder = new ResponsesStreamDecoder();
    for (const event of stream.slice(0, 12)) decoder.push(JSON.stringify(event));
    expect(decoder.push(JSON.stringify(stream[12])).map(({ type }) => type)).toEqual(["part-start", "delta"]);
    expect(decoder.push(JSON.stringify(stream[13])).map(({ type }) => type)).toEqual(["delta"]);
  });

  test("whose end is missing is incomplete", () => {
    const events = decode(...stream.slice(0, -1));
    expect(events.some(({ type }) => type === "finish")).toBe(false);
    expect(events.filter(({ type }) => type === "part-start")).toHaveLength(5);
    expect(events.filter(({ type }) => type === "part-end")).toHaveLength(5);
  });

  test("cut anywhere before its end never has a finish, and all parts are closed", () => {
    for (let length = 0; length < stream.length; length++) {
      const events = decode(...stream.slice(0, length));
      expect(events.at(-1)?.type).not.toBe("finish");
      const count = (type: string) => events.filter((event) => event.type === type).length;
      expect(count("part-end")).toBe(count("part-start"));
    }
  });
});

describe("backends that leave events out", () => {
  const call = { type: "function_call", id: "fc_1", call_id: "call_1", name: "f", arguments: '{"a":1}' };
  const cases: [string, JsonObject[], JsonObject[]][] = [
    [
      "text only as .done (LM Studio, trap)",
      [
        { type: "response.output_text.done", item_id: "msg_1", output_index: 0, content_index: 0, text: "Hi" },
        {
          type: "response.content_part.done",
          item_id: "msg_1",
          output_index: 0,
          content_index: 0,
          part: { type: "output_text", text: "Hi" },
        },
        done(0, message("Hi")),
        completed(message("Hi")),
      ],
      [{ type: "text", text: "Hi" }],
    ],
    [
      "the item only as done",
      [created, done(0, message("Hi")), completed(message("Hi"))],
      [{ type: "text", text: "Hi" }],
    ],
    [
      "nothing but the final response",
      [completed(message("Hi"), call)],
      [
        { type: "text", text: "Hi" },
        { type: "tool-call", id: "call_1", name: "f", itemId: "fc_1", arguments: '{"a":1}' },
      ],
    ],
    ["no announcement of the item", [created, text("H"), text("i"), completed()], [{ type: "text", text: "Hi" }]],
    ["no ids at all", [text("H", {}), text("i", {}), completed(message("Hi"))], [{ type: "text", text: "Hi" }]],
    [
      "other ids in the final response",
      [created, text("Hi"), completed(message("Hi", { id: "other" }))],
      [{ type: "text", text: "Hi" }],
    ],
    [
      "an index that shifts",
      [text("Hi", { item_id: "a", output_index: 3 }), done(0, message("Hi", { id: "a" })), completed()],
      [{ type: "text", text: "Hi" }],
    ],
    [
      "a call only as done",
      [created, done(0, call), completed(call)],
      [{ type: "tool-call", id: "call_1", name: "f", itemId: "fc_1", arguments: '{"a":1}' }],
    ],
    [
      "arguments only as .done",
      [
        added(0, { ...call, arguments: "" }),
        { type: "response.function_call_arguments.done", item_id: "fc_1", output_index: 0, arguments: '{"a":1}' },
        done(0, call),
        completed(call),
      ],
      [{ type: "tool-call", id: "call_1", name: "f", itemId: "fc_1", arguments: '{"a":1}' }],
    ],
    [
      "the name of a call until it is done",
      [
        added(0, { type: "function_call", id: "fc_1" }),
        { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 0, delta: '{"a":' },
        { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 0, delta: "1}" },
        done(0, call),
        completed(call),
      ],
      [{ type: "tool-call", id: "call_1", name: "f", itemId: "fc_1", arguments: '{"a":1}' }],
    ],
    [
      "the call id",
      [done(0, { type: "function_call", id: "fc_1", name: "f", arguments: { a: 1 } }), completed()],
      [{ type: "tool-call", id: "fc_1", name: "f", itemId: "fc_1", arguments: '{"a":1}' }],
    ],
    [
      "deltas of a summary",
      [
        { type: "response.reasoning_summary_text.done", item_id: "rs_1", summary_index: 0, text: "One" },
        { type: "response.reasoning_summary_text.done", item_id: "rs_1", summary_index: 1, text: "Two" },
        completed(),
      ],
      [{ type: "reasoning", itemId: "rs_1", text: "One\n\nTwo" }],
    ],
  ];
  test.each(cases)("%s", (_name, stream, expected) => {
    expect(parts(...stream)).toEqual(expected as never);
  });
});

describe("reasoning", () => {
  test("that comes as summary and as raw thoughts is shown once", () => {
    const place = { item_id: "rs_1", output_index: 0 };
    expect(
      parts(
        { type: "response.reasoning_text.delta", ...place, content_index: 0, delta: "raw" },
        { type: "response.reasoning_summary_text.delta", ...place, summary_index: 0, delta: "summary" },
        done(0, { type: "reasoning", id: "rs_1", summary: [{ text: "summary" }], content: [{ text: "raw" }] }),
        completed(),
      ),
    ).toEqual([{ type: "reasoning", itemId: "rs_1", text: "raw" }]);
  });

  test("that is only sealed", () => {
    expect(parts(done(0, { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "g" }), completed())).toEqual(
      [{ type: "reasoning", itemId: "rs_1", text: "", origin: "responses", sealed: "g" }],
    );
  });

  test("without anything is no part", () => {
    expect(parts(done(0, { type: "reasoning", id: "rs_1", summary: [] }), completed())).toEqual([]);
  });
});

describe("order", () => {
  test("calls may be open together, text may not", () => {
    const place = (output_index: number) => ({ item_id: `fc_${output_index}`, output_index });
    const events = decode(
      added(0, { type: "function_call", id: "fc_0", call_id: "c0", name: "f" }),
      added(1, { type: "function_call", id: "fc_1", call_id: "c1", name: "g" }),
      { type: "response.function_call_arguments.delta", ...place(0), delta: "{" },
      { type: "response.function_call_arguments.delta", ...place(1), delta: "[" },
      { type: "response.function_call_arguments.delta", ...place(0), delta: "}" },
      text("Hi", { item_id: "msg_1", output_index: 2 }),
      completed(),
    );
    expect(events.map((event) => ("index" in event ? `${event.type} ${event.index}` : event.type))).toEqual([
      "start",
      "part-start 0",
      "part-start 1",
      "delta 0",
      "delta 1",
      "delta 0",
      "part-end 0",
      "part-end 1",
      "part-start 2",
      "delta 2",
      "part-end 2",
      "usage",
      "finish",
    ]);
  });

  test("interleaved messages become parts of their own", () => {
    const at = (item_id: string, output_index: number) => ({ item_id, output_index });
    expect(parts(text("a", at("m1", 0)), text("b", at("m2", 1)), text("c", at("m1", 0)), completed())).toEqual([
      { type: "text", text: "a" },
      { type: "text", text: "b" },
      { type: "text", text: "c" },
    ]);
  });
});

describe("the end", () => {
  const end = (type: string, response: JsonObject) =>
    decode(created, text("Hi"), { type, response: { ...HEAD, ...response } }).at(-1);

  test.each([
    ["max_output_tokens", "length", "max_output_tokens"],
    ["content_filter", "content-filter", "content_filter"],
    [undefined, "length", "incomplete"],
  ])("incomplete for %s (trap)", (reason, expected, raw) => {
    expect(end("response.incomplete", { incomplete_details: reason === undefined ? null : { reason } })).toEqual({
      type: "finish",
      finish: { reason: expected, raw: { protocol: "responses", value: raw } } as never,
    });
  });

  const failures: [string, JsonObject, JsonObject][] = [
    [
      "failed",
      { type: "response.failed", response: { ...HEAD, error: { code: "rate_limit_exceeded", message: "Slow" } } },
      { message: "Slow", status: 429, type: "rate_limit_exceeded", code: "rate_limit_exceeded" },
    ],
    [
      "flat",
      { type: "error", code: "server_error", message: "Oops", param: null },
      { message: "Oops", status: 500, type: "server_error", code: "server_error" },
    ],
    [
      "nested",
      { type: "error", error: { type: "server_error", code: null, message: "Oops" } },
      { message: "Oops", status: 500, type: "server_error" },
    ],
    [
      "as chat engines tell it",
      { error: { message: "Oops", code: 503 } },
      { message: "Oops", status: 503, code: "503" },
    ],
    ["silent", { type: "response.failed" }, { message: "The backend reported an error.", status: 502 }],
  ];
  test.each(failures)("error: %s (trap)", (_name, event, failure) => {
    expect(decode(created, text("Hi"), event, completed()).at(-1)).toEqual({ type: "failure", failure } as never);
  });

  test("nothing follows it", () => {
    const decoder = new ResponsesStreamDecoder();
    decoder.push(JSON.stringify(completed()));
    expect([decoder.push("[DONE]"), decoder.push(JSON.stringify(text("more"))), decoder.end()]).toEqual([[], [], []]);
  });
});

test("an annotation before its text waits for it", () => {
  const annotation = { type: "url_citation", url: "https://e.org", title: "E", start_index: 0, end_index: 2 };
  const place = { item_id: "msg_1", output_index: 0, content_index: 0 };
  const early = { type: "response.output_text.annotation.added", ...place, annotation_index: 0, annotation };
  expect(parts(created, early, text("Hi"), completed())).toMatchObject([
    { type: "text", text: "Hi", citations: [{ url: "https://e.org" }] },
  ]);
  const flood = Array.from({ length: MAX_CITATIONS + 500 }, () => early);
  const events = decode(created, ...flood, text("Hi"), completed());
  // One more than are kept shows that some are lost.
  expect(events.filter(({ type }) => type === "citation")).toHaveLength(MAX_CITATIONS + 1);
});

describe("nonsense", () => {
  test.each(["{", "7", "null", "[]", '"x"'])("%s is no event", (data) => {
    expect(() => new ResponsesStreamDecoder().push(data)).toThrow(DecodeError);
  });

  const TYPES = [
    "response.created",
    "response.output_item.added",
    "response.output_item.done",
    "response.content_part.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.output_text.annotation.added",
    "response.refusal.delta",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.custom_tool_call_input.done",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.done",
    "response.failed",
    "error",
    "response.completed",
    "response.unheard_of",
  ];
  const VALUES = [null, 7, "x", [], [null, 1], {}, { type: 3, content: [null], action: 1, summary: 5 }];
  test.each(TYPES)("%s with members of wrong types", (type) => {
    for (const value of VALUES) {
      const names = ["item", "response", "part", "delta", "text", "item_id", "output_index", "annotation", "arguments"];
      const event = { type, ...Object.fromEntries(names.map((name) => [name, value])) };
      const events = decode(event, event);
      expect(events.every((decoded) => decoded.type !== "delta" || decoded.text !== "")).toBe(true);
    }
  });

  test("the name of an event stands in for its type", () => {
    const decoder = new ResponsesStreamDecoder();
    expect(decoder.push('{"delta":"Hi"}', "response.output_text.delta").at(-1)).toMatchObject({ text: "Hi" });
  });
});

describe("whole answers", () => {
  const body = (fields: JsonObject) => ({
    ...HEAD,
    status: "completed",
    output: [message("Hi")],
    usage: USAGE,
    ...fields,
  });

  test("say the same as the stream", () => {
    const output = [
      { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "One" }], encrypted_content: "g" },
      message("Hi"),
      { type: "custom_tool_call", id: "ctc_1", call_id: "c", name: "patch", input: "x" },
      { type: "image_generation_call", id: "ig_1", result: "AA==" },
      { type: "mcp_call", id: "mcp_1", name: "m" },
      { type: "web_search_call", id: "ws_1", status: "failed", action: { type: "open_page", url: "https://e.org" } },
    ];
    const whole = decodeResponse(body({ output }));
    expect(whole).toEqual(
      collect(decode(created, ...output.map((item, index) => done(index, item)), completed())) as never,
    );
    expect(whole.parts.map(({ type }) => type)).toEqual([
      "reasoning",
      "text",
      "tool-call",
      "image",
      "opaque",
      "tool-call",
      "search-result",
    ]);
  });

  test("without status and usage", () => {
    const { usage, finish } = decodeResponse({ output: [message("Hi")] });
    expect([usage, finish.reason]).toEqual([undefined, "stop"]);
  });

  test("content as a string", () => {
    expect(decodeResponse(body({ output: [message("", { content: "Hi" })] })).parts).toEqual([
      { type: "text", text: "Hi" },
    ]);
  });

  test.each([
    [{ error: { message: "Oops" } }, "Oops"],
    [{ status: "failed" }, "reported an error"],
  ] as [JsonObject, string][])("%j is a failure", (fields, message) => {
    expect(() => decodeResponse(body(fields))).toThrow(message);
    expect(() => decodeResponse(body(fields))).toThrow(AnswerFailed);
  });

  test.each([
    [{ status: "in_progress" }, "in_progress"],
    [{ output: undefined }, "has no output"],
    [{ output: {} }, "has no output"],
  ] as [JsonObject, string][])("%j is no answer", (fields, message) => {
    expect(() => decodeResponse(body(fields))).toThrow(message);
    expect(() => decodeResponse(body(fields))).toThrow(DecodeError);
  });
});
