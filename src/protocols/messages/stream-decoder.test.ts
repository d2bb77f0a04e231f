// Streams and whole answers of Messages backends: every block and event, what real backends get wrong, and that both
// ways of answering mean the same.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { ContentPart, ReasoningPart, TextPart, ToolCallPart } from "../../generation/content.ts";
import type { GenerationEvent } from "../../generation/events.ts";
import type { JsonObject } from "../../lib/json.ts";
import { DecodeError } from "../protocol.ts";
import { eventData } from "../sse.ts";
import { decodeRequest } from "./request-decoder.ts";
import { decodeResponse } from "./response-decoder.ts";
import { encodeResponse } from "./response-encoder.ts";
import { createStreamDecoder } from "./stream-decoder.ts";
import { createStreamEncoder } from "./stream-encoder.ts";

function decode(events: readonly JsonObject[]): GenerationEvent[] {
  const decoder = createStreamDecoder();
  return [...events.flatMap((event) => decoder.push(JSON.stringify(event), `${event.type}`)), ...decoder.end()];
}

/** The parts of a stream, with a check of the order that encoders rely on. */
function collect(events: readonly GenerationEvent[]): ContentPart[] {
  const parts: ContentPart[] = [];
  const open = new Set<number>();
  for (const event of events) {
    if (event.type === "part-start") {
      expect(event.index).toBe(parts.length);
      if (event.part.type === "text" || event.part.type === "reasoning") expect([...open]).toEqual([]);
      open.add(event.index);
      const part = event.part;
      if (part.type === "text" || part.type === "reasoning" || part.type === "refusal")
        parts.push({ ...part, text: "" });
      else parts.push(part.type === "tool-call" ? { ...part, arguments: "" } : part);
    } else if (event.type === "delta") {
      expect(open.has(event.index)).toBe(true);
      expect(event.text).not.toBe("");
      const part = parts[event.index] as TextPart | ToolCallPart;
      if (part.type === "tool-call") part.arguments += event.text;
      else part.text += event.text;
    } else if (event.type === "seal") {
      expect(open.has(event.index)).toBe(true);
      const { type: _type, index, ...seal } = event;
      Object.assign(parts[index] as ReasoningPart, seal);
    } else if (event.type === "citation") {
      const part = parts[event.index] as TextPart;
      part.citations = [...(part.citations ?? []), event.citation];
    } else if (event.type === "part-end") expect(open.delete(event.index)).toBe(true);
  }
  // A failure leaves everything as it is.
  if (events.at(-1)?.type !== "failure") expect([...open]).toEqual([]);
  return parts;
}

const opening = {
  type: "message_start",
  message: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude",
    content: [],
    stop_reason: null,
    usage: { input_tokens: 10, cache_creation_input_tokens: 5, cache_read_input_tokens: 100, output_tokens: 1 },
  },
};
const begin = (index: number, content_block: JsonObject) => ({ type: "content_block_start", index, content_block });
const delta = (index: number, value: JsonObject) => ({ type: "content_block_delta", index, delta: value });
const text = (index: number, value: string) => delta(index, { type: "text_delta", text: value });
const json = (index: number, value: string) => delta(index, { type: "input_json_delta", partial_json: value });
const stop = (index: number) => ({ type: "content_block_stop", index });
const ending = (stop_reason: string, usage: JsonObject | undefined = { output_tokens: 20 }) => [
  { type: "message_delta", delta: { stop_reason, stop_sequence: null }, ...(usage && { usage }) },
  { type: "message_stop" },
];

const citation = { type: "web_search_result_location", url: "u", title: "t", encrypted_index: "E", cited_text: "c" };
const hits = [{ type: "web_search_result", url: "u", title: "t", encrypted_content: "E", page_age: null }];

/** A whole answer as its stream, the way the vendor sends it. */
function streamOf(body: JsonObject): JsonObject[] {
  const events: JsonObject[] = [{ type: "message_start", message: { ...body, content: [], stop_reason: null } }];
  for (const [index, block] of (body.content as JsonObject[]).entries()) {
    if (block.type === "text") {
      events.push(begin(index, { type: "text", text: "" }), { type: "ping" }, text(index, block.text as string));
      for (const value of (block.citations ?? []) as JsonObject[]) {
        events.push(delta(index, { type: "citations_delta", citation: value }));
      }
    } else if (block.type === "thinking") {
      events.push(begin(index, { type: "thinking", thinking: "", signature: "" }));
      events.push(delta(index, { type: "thinking_delta", thinking: block.thinking }));
      events.push(delta(index, { type: "signature_delta", signature: block.signature }));
    } else if (block.type === "tool_use" || block.type === "server_tool_use") {
      events.push(begin(index, { ...block, input: {} }), json(index, ""), json(index, JSON.stringify(block.input)));
    } else events.push(begin(index, block));
    events.push(stop(index));
  }
  const { stop_reason, stop_sequence, stop_details, usage } = body;
  return [
    ...events,
    { type: "message_delta", delta: { stop_reason, stop_sequence, stop_details }, usage },
    { type: "message_stop" },
  ];
}

const whole: JsonObject = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude",
  content: [
    { type: "thinking", thinking: "hm", signature: "sig" },
    { type: "redacted_thinking", data: "red" },
    { type: "text", text: "Hello", citations: [citation] },
    { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "q" } },
    { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: hits },
    {
      type: "web_search_tool_result",
      tool_use_id: "x",
      content: { type: "web_search_tool_result_error", error_code: "unavailable" },
    },
    { type: "container_upload", file_id: "f" },
    { type: "image", source: { type: "url", url: "http://x" } },
    { type: "document", source: { type: "url", url: "http://x" } },
    { type: "tool_use", id: "toolu_1", name: "look", input: { a: [1] } },
    { type: "tool_use", id: "toolu_2", name: "none", input: {} },
  ],
  stop_reason: "tool_use",
  stop_sequence: null,
  stop_details: null,
  usage: { input_tokens: 3, cache_read_input_tokens: 4, cache_creation_input_tokens: 5, output_tokens: 6 },
};

describe("a whole answer", () => {
  test("every block has its part", () => {
    const result = decodeResponse(whole);
    expect(result).toMatchObject({ id: "msg_1", model: "claude", createdAt: 0 });
    expect(result.finish).toEqual({ reason: "tool-calls", raw: { protocol: "messages", value: "tool_use" } });
    expect(result.usage).toEqual({ input: { total: 12, cacheRead: 4, cacheWrite: 5 }, output: { total: 6 } });
    expect(result.parts).toEqual([
      { type: "reasoning", text: "hm", signature: "sig", origin: "messages" },
      { type: "reasoning", text: "", sealed: "red", origin: "messages" },
      {
        type: "text",
        text: "Hello",
        citations: [{ url: "u", title: "t", citedText: "c", origin: { protocol: "messages", value: citation } }],
      },
      { type: "tool-call", id: "srvtoolu_1", name: "web_search", arguments: '{"query":"q"}', serverSide: true },
      {
        type: "search-result",
        callId: "srvtoolu_1",
        results: [{ url: "u", title: "t", encryptedContent: "E", pageAge: null }],
      },
      { type: "search-result", callId: "x", results: [], errorCode: "unavailable" },
      { type: "opaque", protocol: "messages", value: { type: "container_upload", file_id: "f" } },
      { type: "opaque", protocol: "messages", value: { type: "image", source: { type: "url", url: "http://x" } } },
      { type: "opaque", protocol: "messages", value: { type: "document", source: { type: "url", url: "http://x" } } },
      { type: "tool-call", id: "toolu_1", name: "look", arguments: '{"a":[1]}' },
      { type: "tool-call", id: "toolu_2", name: "none", arguments: "{}" },
    ]);
  });

  test("its stream means the same", () => {
    const result = decodeResponse(whole);
    const events = decode(streamOf(whole));
    expect(collect(events)).toEqual(result.parts);
    expect(events.findLast(({ type }) => type === "usage")).toEqual({ type: "usage", usage: result.usage as never });
    expect(events.at(-1)).toEqual({ type: "finish", finish: result.finish });
  });

  test("comes back as it was written", () => {
    const context = {
      model: "claude",
      createdAt: 0,
      nonce: "n",
      request: decodeRequest({ model: "m", max_tokens: 1, messages: [{ role: "user", content: "x" }] }),
    };
    expect(encodeResponse(decodeResponse(whole), context)).toEqual(whole);
    const encoder = createStreamEncoder(context);
    const again =
      decode(streamOf(whole))
        .map((event) => encoder.push(event))
        .join("") + encoder.end();
    const events = decode(eventData(again).map((data) => JSON.parse(data) as JsonObject));
    expect(collect(events)).toEqual(decodeResponse(whole).parts);
    expect(events.at(-1)).toEqual({ type: "finish", finish: decodeResponse(whole).finish });
  });

  test.each([
    ["no content", {}],
    ["content that is no list", { content: "x" }],
    ["an error", { type: "error", error: {} }],
  ])("%s is no answer", (_title, body) => {
    expect(() => decodeResponse(body)).toThrow(DecodeError);
  });

  test("what is missing or of a wrong type is tolerated", () => {
    const content = [
      null,
      1,
      {},
      { type: 7 },
      { type: "text" },
      { type: "tool_use", input: null },
      { type: "thinking", signature: null },
    ];
    const result = decodeResponse({ content, usage: { input_tokens: "x", output_tokens: -3, cache_creation: 4 } });
    expect(result).toEqual({
      id: "",
      model: "",
      createdAt: 0,
      parts: [
        { type: "tool-call", id: "", name: "", arguments: "{}" },
        { type: "reasoning", text: "" },
      ],
      finish: { reason: "tool-calls" },
      usage: { input: { total: 0 }, output: { total: 0 } },
    });
  });
});

describe("stop reasons", () => {
  const cases: [reason: string, unified: string][] = [
    ["end_turn", "stop"],
    ["stop_sequence", "stop-sequence"],
    ["pause_turn", "pause"],
    ["max_tokens", "length"],
    ["model_context_window_exceeded", "length"],
    ["tool_use", "tool-calls"],
    ["refusal", "content-filter"],
    ["compaction", "stop"],
    ["something_new", "stop"],
  ];
  test.each(cases)("%s", (stop_reason, reason) => {
    const finish = { reason, raw: { protocol: "messages", value: stop_reason } } as never;
    expect(decodeResponse({ content: [], stop_reason }).finish).toEqual(finish);
    expect(decode([opening, ...ending(stop_reason)]).at(-1)).toEqual({ type: "finish", finish });
  });

  test("the sequence and the explanation of a refusal are kept", () => {
    const body = { content: [], stop_reason: "stop_sequence", stop_sequence: "END" };
    expect(decodeResponse(body).finish.stopSequence).toBe("END");
    const refused = {
      ...whole,
      content: [],
      stop_reason: "refusal",
      stop_details: { type: "refusal", explanation: "no" },
    };
    expect(decodeResponse(refused).parts).toEqual([{ type: "refusal", text: "no" }]);
    expect(collect(decode(streamOf(refused)))).toEqual([{ type: "refusal", text: "no" }]);
  });
});

describe("usage", () => {
  test("cumulative counts replace, cache tokens count once", () => {
    const later = { output_tokens: 20, input_tokens: 10, cache_creation_input_tokens: 5, cache_read_input_tokens: 100 };
    const counts = decode([opening, ...ending("end_turn", later)]).filter(({ type }) => type === "usage");
    expect(counts.at(-1)).toEqual({
      type: "usage",
      usage: { input: { total: 115, cacheRead: 100, cacheWrite: 5 }, output: { total: 20 } },
    });
  });

  test("what the end leaves out is kept from the start, nulls too", () => {
    const usage = { output_tokens: 20, input_tokens: null };
    const counts = decode([opening, ...ending("end_turn", usage)]).filter(({ type }) => type === "usage");
    expect(counts.at(-1)).toMatchObject({ usage: { input: { total: 115 }, output: { total: 20 } } });
  });

  test("all details are read", () => {
    const usage = {
      input_tokens: 1,
      cache_creation_input_tokens: 9,
      cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 7 },
      output_tokens: 8,
      output_tokens_details: { thinking_tokens: 5 },
      server_tool_use: { web_search_requests: 2 },
    };
    expect(decodeResponse({ content: [], usage }).usage).toEqual({
      input: { total: 10, cacheWrite: 9, cacheWrite1h: 7 },
      output: { total: 8, reasoning: 5 },
      webSearches: 2,
    });
  });

  test("none is no usage", () => {
    const bare = { type: "message_start", message: { id: "m" } };
    expect(decode([bare, ...ending("end_turn", undefined)].map((event) => ({ ...event, usage: undefined })))).toEqual([
      { type: "start", id: "m", model: "", createdAt: 0 },
      { type: "finish", finish: { reason: "stop", raw: { protocol: "messages", value: "end_turn" } } },
    ]);
  });
});

describe("a second message inside the first", () => {
  const again = { ...opening, message: { ...opening.message, id: "msg_2" } };
  const call = begin(0, { type: "tool_use", id: "a", name: "f", input: {} });

  test("is a broken stream once something was said", () => {
    expect(() => decode([opening, call, again, call, stop(0), ...ending("tool_use")])).toThrow(DecodeError);
    expect(() => decode([opening, again, call, stop(0), ...ending("tool_use")])).not.toThrow();
    expect(() => decode([opening, call, opening, stop(0), ...ending("tool_use")])).not.toThrow();
  });
});

describe("streams that deviate", () => {
  const parts = (...events: JsonObject[]) => collect(decode([opening, ...events, ...ending("end_turn")]));
  const tool = (id: string, input: unknown = {}) => ({ type: "tool_use", id, name: "f", input });

  const cases: [title: string, events: JsonObject[], expected: JsonObject[]][] = [
    ["full input in the start", [begin(0, tool("a", { x: 1 })), stop(0)], [{ id: "a", arguments: '{"x":1}' }]],
    [
      "full input in the start and fragments",
      [begin(0, tool("a", { x: 1 })), json(0, '{"x":1}'), stop(0)],
      [{ id: "a", arguments: '{"x":1}' }],
    ],
    ["a call without fragments", [begin(0, tool("a")), stop(0)], [{ id: "a", arguments: "{}" }]],
    ["text in the start", [begin(0, { type: "text", text: "a" }), text(0, "b"), stop(0)], [{ text: "ab" }]],
    ["text without a start", [text(0, "a"), text(0, "b")], [{ text: "ab" }]],
    [
      "thoughts inside a text block",
      [
        begin(0, { type: "text", text: "" }),
        text(0, "a"),
        delta(0, { type: "thinking_delta", thinking: "hm" }),
        text(0, "b"),
      ],
      [{ text: "a" }, { type: "reasoning", text: "hm" }, { text: "b" }],
    ],
    ["a block that is never closed", [begin(0, { type: "text", text: "" }), text(0, "a")], [{ text: "a" }]],
    ["a gap in the indexes", [begin(4, { type: "text", text: "" }), text(4, "a"), stop(4)], [{ text: "a" }]],
    [
      "two texts at once",
      [
        begin(0, { type: "text", text: "" }),
        begin(1, { type: "text", text: "" }),
        text(0, "a"),
        text(1, "b"),
        text(0, "c"),
      ],
      [{ text: "a" }, { text: "b" }, { text: "c" }],
    ],
    [
      "two calls at once",
      [begin(0, tool("a")), begin(1, tool("b")), json(0, "[0"), json(1, "[1"), json(0, "]"), json(1, "]")],
      [
        { id: "a", arguments: "[0]" },
        { id: "b", arguments: "[1]" },
      ],
    ],
    ["an index used twice", [text(0, "a"), begin(0, tool("x")), stop(0)], [{ text: "a" }, { id: "x" }]],
    ["unknown events and deltas", [{ type: "future" }, delta(0, { type: "future" }), text(0, "a")], [{ text: "a" }]],
    ["events without their content", [{ type: "content_block_delta" }, { type: "content_block_start" }, stop(9)], []],
    [
      "a block of another kind, with fragments",
      [begin(0, { type: "mcp_tool_use", id: "i", input: {} }), json(0, '{"a":'), json(0, "1}"), stop(0)],
      [{ type: "opaque", value: { type: "mcp_tool_use", id: "i", input: { a: 1 } } }],
    ],
    [
      "a compaction",
      [
        begin(0, { type: "compaction", content: null }),
        delta(0, { type: "compaction_delta", content: "sum" }),
        stop(0),
      ],
      [{ type: "opaque", value: { type: "compaction", content: "sum" } }],
    ],
    [
      "a signature without thoughts",
      [
        begin(0, { type: "thinking", thinking: "", signature: "" }),
        delta(0, { type: "signature_delta", signature: "s" }),
        stop(0),
      ],
      [{ type: "reasoning", text: "", signature: "s", origin: "messages" }],
    ],
    [
      "an empty signature proves nothing",
      [begin(0, { type: "thinking", thinking: "a", signature: "" }), stop(0)],
      [{ type: "reasoning", text: "a" }],
    ],
  ];
  test.each(cases)("%s", (_title, events, expected) => {
    const got = parts(...events);
    expect(got).toHaveLength(expected.length);
    expect(got as unknown[]).toMatchObject(expected);
  });

  test("an empty signature leaves no origin", () => {
    expect(parts(begin(0, { type: "thinking", thinking: "a", signature: "" }))).toEqual([
      { type: "reasoning", text: "a" },
    ]);
  });

  test("a second start of the message changes only the counts", () => {
    expect(
      decode([opening, opening, text(0, "a"), ...ending("end_turn")]).filter(({ type }) => type === "start"),
    ).toHaveLength(1);
  });

  test("calls in the start of the message", () => {
    const message = { ...opening.message, content: [tool("a", { x: 1 }), { type: "text", text: "t" }] };
    expect(collect(decode([{ type: "message_start", message }, ...ending("tool_use")])) as unknown[]).toMatchObject([
      { type: "tool-call", id: "a", arguments: '{"x":1}' },
      { type: "text", text: "t" },
    ]);
  });

  test("arguments outside of a call, and text that is no event, are errors", () => {
    const decoder = createStreamDecoder();
    expect(() => decoder.push(JSON.stringify(json(0, "{}")))).toThrow(DecodeError);
    for (const data of ["<html>", "1", "null", "[]"]) expect(() => decoder.push(data)).toThrow(DecodeError);
    expect(decoder.push("[DONE]")).toEqual([]);
  });

  test("the name of the event stands in for a missing type", () => {
    const decoder = createStreamDecoder();
    expect(decoder.push("{}", "message_stop").map(({ type }) => type)).toEqual(["start", "finish"]);
  });
});

describe("the end of the stream", () => {
  test("without message_stop the answer is not complete", () => {
    const [stopReason] = ending("end_turn");
    for (const events of [
      [opening],
      [opening, text(0, "a")],
      [opening, text(0, "a"), stop(0), stopReason as JsonObject],
    ]) {
      expect(decode(events).some(({ type }) => type === "finish")).toBe(false);
    }
  });

  test("what was cut off is closed and not made up", () => {
    const cutOff = [begin(0, { type: "tool_use", id: "a", name: "f", input: {} }), begin(1, { type: "compaction" })];
    const events = decode([opening, ...cutOff]);
    expect(events.slice(-2)).toEqual([
      { type: "part-start", index: 0, part: { type: "tool-call", id: "a", name: "f" } },
      { type: "part-end", index: 0 },
    ]);
  });

  test("without message_delta the parts tell why it ended", () => {
    const finish = (events: JsonObject[]) => decode([opening, ...events, { type: "message_stop" }]).at(-1);
    expect(finish([text(0, "a")])).toEqual({ type: "finish", finish: { reason: "stop" } });
    expect(finish([begin(0, { type: "tool_use", id: "a", name: "f" })])).toEqual({
      type: "finish",
      finish: { reason: "tool-calls" },
    });
  });

  const errors: [type: string, status: number][] = [
    ["invalid_request_error", 400],
    ["authentication_error", 401],
    ["billing_error", 402],
    ["permission_error", 403],
    ["not_found_error", 404],
    ["conflict_error", 409],
    ["request_too_large", 413],
    ["rate_limit_error", 429],
    ["api_error", 500],
    ["overloaded_error", 529],
    ["timeout_error", 504],
    ["new_error", 502],
  ];
  test.each(errors)("an error event of type %s", (type, status) => {
    const decoder = createStreamDecoder();
    decoder.push(JSON.stringify(opening));
    const events = decoder.push(JSON.stringify({ type: "error", error: { type, message: "m" } }), "error");
    expect(events).toEqual([{ type: "failure", failure: { message: "m", status, type } }]);
    expect(decoder.push(JSON.stringify(text(0, "a")))).toEqual([]);
    expect(decoder.end()).toEqual([]);
  });
});

test("fragments split anywhere give the same parts", () => {
  const cut = (value: string, at: number[]) => {
    const points = [...new Set(at.map((point) => point % (value.length + 1)))].sort((a, b) => a - b);
    return [0, ...points].map((from, index) => value.slice(from, points[index]));
  };
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.json(), fc.array(fc.nat()), (answer, input, at) => {
      const events = decode([
        opening,
        ...cut(answer, at).map((piece) => delta(0, { type: "thinking_delta", thinking: piece })),
        ...cut(answer, at).map((piece) => text(1, piece)),
        begin(2, { type: "tool_use", id: "a", name: "f", input: {} }),
        ...cut(input, at).map((piece) => json(2, piece)),
        ...ending("tool_use"),
      ]);
      const texts = answer === "" ? [] : [answer, answer];
      const found = collect(events).flatMap((part) =>
        part.type === "text" || part.type === "reasoning" ? [part.text] : [],
      );
      expect(found.filter((value) => value !== "")).toEqual(texts);
      expect(collect(events).at(-1)).toMatchObject({ type: "tool-call", arguments: input });
    }),
  );
});

test("no data of any kind throws anything but DecodeError", () => {
  const type = fc.constantFrom(
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
  );
  const blockType = fc.constantFrom(
    "text",
    "thinking",
    "tool_use",
    "server_tool_use",
    "web_search_tool_result",
    "redacted_thinking",
    "document",
    "image",
    "tool_result",
    "input_json_delta",
    "text_delta",
    "thinking_delta",
    "signature_delta",
    "citations_delta",
  );
  const inner = fc.record(
    {
      type: blockType,
      text: fc.jsonValue(),
      thinking: fc.jsonValue(),
      signature: fc.jsonValue(),
      input: fc.jsonValue(),
      content: fc.jsonValue(),
      source: fc.jsonValue(),
      citations: fc.jsonValue(),
      usage: fc.jsonValue(),
      partial_json: fc.jsonValue(),
    },
    { requiredKeys: ["type"] },
  );
  const any = fc.oneof(inner, fc.jsonValue());
  const event = fc.record(
    {
      type,
      index: fc.oneof(fc.nat(2), fc.jsonValue()),
      message: any,
      content_block: any,
      delta: any,
      usage: fc.jsonValue(),
      error: fc.jsonValue(),
    },
    { requiredKeys: ["type"] },
  );
  fc.assert(
    fc.property(fc.array(event, { maxLength: 8 }), (events) => {
      const decoder = createStreamDecoder();
      const decoded: GenerationEvent[] = [];
      for (const value of events) {
        try {
          decoded.push(...decoder.push(JSON.stringify(value)));
        } catch (error) {
          expect(error).toBeInstanceOf(DecodeError);
        }
      }
      collect([...decoded, ...decoder.end()]);
    }),
    { numRuns: 500 },
  );
});
