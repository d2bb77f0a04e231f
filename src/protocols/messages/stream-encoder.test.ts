// Streams for Messages clients: the sequence of events, proved by the vendor's own SDK.

import { describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { MessageStream } from "@anthropic-ai/sdk/lib/MessageStream";
import fc from "fast-check";
import type { GenerationEvent, PartStart } from "../../generation/events.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { AnswerContext } from "../protocol.ts";
import { eventData } from "../sse.ts";
import { decodeRequest } from "./request-decoder.ts";
import { createStreamEncoder } from "./stream-encoder.ts";

const context: AnswerContext = {
  model: "asked-for",
  createdAt: 1,
  nonce: "0123456789abcdef0123456789abcdef",
  request: decodeRequest({ model: "asked-for", max_tokens: 1, messages: [{ role: "user", content: "hi" }] }),
};

const start: GenerationEvent = { type: "start", id: "chatcmpl-1", model: "real", createdAt: 5 };
const finish = (reason: "stop" | "tool-calls" | "length" | "content-filter" | "stop-sequence"): GenerationEvent => ({
  type: "finish",
  finish: { reason },
});
const begin = (index: number, part: PartStart): GenerationEvent => ({ type: "part-start", index, part });
const delta = (index: number, text: string): GenerationEvent => ({ type: "delta", index, text });
const end = (index: number): GenerationEvent => ({ type: "part-end", index });
const call = (id: string, more: Partial<Extract<PartStart, { type: "tool-call" }>> = {}): PartStart => ({
  type: "tool-call",
  id,
  name: "look",
  ...more,
});

function encode(events: readonly GenerationEvent[]): string {
  const encoder = createStreamEncoder(context);
  return events.map((event) => encoder.push(event)).join("") + encoder.end();
}

function read(text: string): JsonObject[] {
  return eventData(text).map((data) => JSON.parse(data) as JsonObject);
}

async function accumulate(text: string): Promise<Anthropic.Message> {
  const fetch = async () => new Response(text, { headers: { "content-type": "text/event-stream" } });
  const client = new Anthropic({ apiKey: "sekret", baseURL: "http://localhost", fetch, maxRetries: 0 });
  const stream = client.messages.stream({
    model: "asked-for",
    max_tokens: 10,
    messages: [{ role: "user", content: "hi" }],
  });
  expect(stream).toBeInstanceOf(MessageStream);
  return await stream.finalMessage();
}

const usage: GenerationEvent = {
  type: "usage",
  usage: { input: { total: 100, cacheRead: 60, cacheWrite: 30, cacheWrite1h: 10 }, output: { total: 9, reasoning: 4 } },
};

describe("the sequence of events", () => {
  const events = [
    start,
    begin(0, { type: "reasoning" }),
    delta(0, "hm"),
    end(0),
    begin(1, { type: "text" }),
    delta(1, "Hel"),
    delta(1, "lo"),
    end(1),
    begin(2, call("toolu_1")),
    delta(2, '{"a"'),
    delta(2, ":1}"),
    end(2),
    usage,
    finish("tool-calls"),
  ];

  test("is the one of the wire format, every event under its name", () => {
    const text = encode(events);
    const names = [...text.matchAll(/^event: (.*)$/gm)].map(([, name]) => name);
    expect(read(text).map(({ type }) => type)).toEqual(names);
    expect(read(text).map((event) => `${event.type} ${event.index ?? ""}`.trim())).toEqual([
      "message_start",
      "content_block_start 0",
      "content_block_delta 0",
      "content_block_delta 0",
      "content_block_stop 0",
      "content_block_start 1",
      "content_block_delta 1",
      "content_block_delta 1",
      "content_block_stop 1",
      "content_block_start 2",
      "content_block_delta 2",
      "content_block_delta 2",
      "content_block_stop 2",
      "message_delta",
      "message_stop",
    ]);
  });

  test("begins with a message that has all members and usage", () => {
    expect(read(encode(events))[0]?.message).toEqual({
      id: `msg_${context.nonce}`,
      type: "message",
      role: "assistant",
      model: "asked-for",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      stop_details: null,
      usage: { input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 },
    });
  });

  test("keeps an id of its own kind", () => {
    const message = read(encode([{ ...start, id: "msg_7" }, finish("stop")]))[0]?.message as JsonObject;
    expect(message.id).toBe("msg_7");
  });

  test("has the signature as the last delta of a thinking block", () => {
    const deltas = read(encode(events)).flatMap(({ index, delta }) =>
      index === 0 && delta !== undefined ? [delta] : [],
    );
    expect(deltas).toEqual([
      { type: "thinking_delta", thinking: "hm" },
      { type: "signature_delta", signature: "sbx1_" },
    ]);
  });

  test("is accumulated by the SDK, with the counts of the end", async () => {
    const message = await accumulate(encode(events));
    expect(message.content as unknown[]).toEqual([
      { type: "thinking", thinking: "hm", signature: "sbx1_" },
      { type: "text", text: "Hello" },
      { type: "tool_use", id: "toolu_1", name: "look", input: { a: 1 } },
    ]);
    expect(message.stop_reason).toBe("tool_use");
    expect(message.usage).toMatchObject({
      input_tokens: 10,
      cache_creation_input_tokens: 30,
      cache_read_input_tokens: 60,
      output_tokens: 9,
      output_tokens_details: { thinking_tokens: 4 },
    });
  });

  test("has one message_start only, whatever comes first", () => {
    const types = (list: GenerationEvent[]) => read(encode(list)).map(({ type }) => type);
    expect(types([start, start, finish("stop")])).toEqual(["message_start", "message_delta", "message_stop"]);
    expect(
      types([begin(0, { type: "text" }), delta(0, "x"), start, end(0)]).filter((type) => type === "message_start"),
    ).toHaveLength(1);
    expect(types([])).toEqual(["message_start", "message_delta", "message_stop"]);
  });
});

describe("tool calls", () => {
  test("interleaved fragments wait for their block", async () => {
    const text = encode([
      start,
      begin(0, call("a")),
      delta(0, '{"x":'),
      begin(1, call("b")),
      delta(1, '{"y"'),
      delta(0, "1}"),
      delta(1, ":2}"),
      begin(2, call("c")),
      end(2),
      end(0),
      end(1),
      finish("tool-calls"),
    ]);
    const starts = read(text).flatMap(({ index, content_block }) => (content_block === undefined ? [] : [index]));
    expect(starts).toEqual([0, 1, 2]);
    const message = await accumulate(text);
    expect(message.content.map((block) => (block.type === "tool_use" ? [block.id, block.input] : block))).toEqual([
      ["a", { x: 1 }],
      ["b", { y: 2 }],
      ["c", {}],
    ]);
  });

  test("any interleaving gives the same blocks", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(2), { maxLength: 12 }),
        fc.shuffledSubarray([0, 1, 2], { minLength: 3 }),
        async (order, endings) => {
          const pieces = order.map((index, position) => delta(index, JSON.stringify([position]).slice(1, -1)));
          const events = [0, 1, 2].map((index) => begin(index, call(`id${index}`)));
          const text = encode([start, ...events, ...pieces, ...endings.map(end), finish("tool-calls")]);
          const got = ["", "", ""];
          let open: unknown;
          for (const event of read(text)) {
            if (event.type === "content_block_start") {
              expect(open).toBeUndefined();
              open = event.index;
            }
            if (event.type === "content_block_delta") {
              expect(event.index).toBe(open);
              got[event.index as number] += `${(event.delta as JsonObject).partial_json}`;
            }
            if (event.type === "content_block_stop") open = undefined;
          }
          const wanted = ["", "", ""];
          order.forEach((index, position) => {
            wanted[index] += `${position}`;
          });
          expect(got).toEqual(wanted);
        },
      ),
      { numRuns: 50 },
    );
  });

  test("whole arguments in one fragment, ids that are missing, free-form input", async () => {
    const message = await accumulate(
      encode([
        start,
        begin(0, call("")),
        delta(0, '{"deep":{"a":[1,"é"]}}'),
        end(0),
        begin(1, call("p", { custom: true })),
        delta(1, 'say "hi"\n\ud83d'),
        delta(1, "\ude00"),
        end(1),
        finish("stop"),
      ]),
    );
    expect(message.content as unknown[]).toEqual([
      { type: "tool_use", id: `toolu_${context.nonce}0`, name: "look", input: { deep: { a: [1, "é"] } } },
      { type: "tool_use", id: "p", name: "look", input: { input: 'say "hi"\n😀' } },
    ]);
    expect(message.stop_reason).toBe("tool_use");
  });
});

describe("blocks", () => {
  test("a web search of the gateway", async () => {
    const message = await accumulate(
      encode([
        start,
        begin(0, call("srvtoolu_1", { serverSide: true, name: "web_search" })),
        delta(0, '{"query":"q"}'),
        end(0),
        begin(1, { type: "search-result", callId: "srvtoolu_1", results: [{ url: "u", title: "t", snippet: "s" }] }),
        end(1),
        begin(2, { type: "text" }),
        { type: "citation", index: 2, citation: { url: "u", title: "t", citedText: "c" } },
        delta(2, "so"),
        end(2),
        { type: "usage", usage: { input: { total: 1 }, output: { total: 1 }, webSearches: 1 } },
        finish("stop"),
      ]),
    );
    expect(message.stop_reason).toBe("end_turn");
    expect(message.usage.server_tool_use?.web_search_requests).toBe(1);
    const [search, result, text] = message.content as unknown as JsonObject[];
    expect(search).toEqual({ type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "q" } });
    expect(result?.tool_use_id).toBe("srvtoolu_1");
    expect(result?.content).toMatchObject([{ type: "web_search_result", url: "u", title: "t", page_age: null }]);
    expect(text).toMatchObject({ type: "text", text: "so", citations: [{ url: "u", cited_text: "c" }] });
  });

  test("own signatures and redacted thinking pass, foreign seals are wrapped", () => {
    const blocks = read(
      encode([
        start,
        begin(0, { type: "reasoning" }),
        delta(0, "a"),
        { type: "seal", index: 0, origin: "messages", signature: "sig" },
        end(0),
        begin(1, { type: "reasoning" }),
        { type: "seal", index: 1, origin: "messages", sealed: "red" },
        end(1),
        begin(2, { type: "reasoning", itemId: "rs_1" }),
        { type: "seal", index: 2, origin: "responses", sealed: "enc" },
        end(2),
        begin(3, { type: "reasoning" }),
        end(3),
        finish("stop"),
      ]),
    ).flatMap(({ content_block, delta }) => {
      const value = (content_block ?? delta) as JsonObject | undefined;
      return value === undefined || value.stop_reason !== undefined ? [] : [value];
    });
    expect(blocks.slice(0, 4)).toEqual([
      { type: "thinking", thinking: "", signature: "" },
      { type: "thinking_delta", thinking: "a" },
      { type: "signature_delta", signature: "sig" },
      { type: "redacted_thinking", data: "red" },
    ]);
    const foreign = blocks.at(-1)?.signature;
    expect(blocks).toHaveLength(6);
    expect(foreign).toMatch(/^[A-Za-z0-9_-]+$/);
    const replayed = decodeRequest({
      model: "m",
      max_tokens: 1,
      messages: [{ role: "assistant", content: [{ type: "thinking", thinking: "", signature: foreign }] }],
    });
    expect(replayed.messages[0]?.parts).toEqual([
      { type: "reasoning", text: "", origin: "responses", sealed: "enc", itemId: "rs_1" },
    ]);
  });

  test("empty texts leave no block, and what is open at the end is closed", () => {
    const types = read(encode([start, begin(0, { type: "text" }), end(0), begin(1, { type: "text" }), delta(1, "x")]));
    expect(types.map(({ type, index }) => [type, index])).toEqual([
      ["message_start", undefined],
      ["content_block_start", 0],
      ["content_block_delta", 0],
      ["content_block_stop", 0],
      ["message_delta", undefined],
      ["message_stop", undefined],
    ]);
  });

  test("opaque blocks of this format pass, others have no place", () => {
    const value = { type: "container_upload", file_id: "f" };
    const text = encode([
      start,
      begin(0, { type: "opaque", protocol: "responses", value: { type: "computer_call" } }),
      end(0),
      begin(1, { type: "opaque", protocol: "messages", value }),
      end(1),
    ]);
    expect(read(text).flatMap(({ content_block }) => content_block ?? [])).toEqual([value]);
  });
});

describe("the end", () => {
  const cases: [title: string, events: GenerationEvent[], expected: JsonObject][] = [
    ["length", [finish("length")], { stop_reason: "max_tokens" }],
    ["a filter", [finish("content-filter")], { stop_reason: "refusal", stop_details: { type: "refusal" } }],
    ["calls without a call", [finish("tool-calls")], { stop_reason: "end_turn" }],
    ["an unknown stop sequence", [finish("stop-sequence")], { stop_reason: "end_turn", stop_sequence: null }],
    [
      "a known stop sequence",
      [{ type: "finish", finish: { reason: "stop-sequence", stopSequence: "X" } }],
      { stop_reason: "stop_sequence", stop_sequence: "X" },
    ],
    ["a refusal", [begin(0, { type: "refusal" }), delta(0, "no"), end(0), finish("stop")], { stop_reason: "refusal" }],
    [
      "a reason of this format",
      [{ type: "finish", finish: { reason: "stop", raw: { protocol: "messages", value: "compaction" } } }],
      { stop_reason: "compaction" },
    ],
    [
      "a reason of another format",
      [{ type: "finish", finish: { reason: "pause", raw: { protocol: "chat", value: "x" } } }],
      { stop_reason: "pause_turn" },
    ],
  ];
  test.each(cases)("%s", (_title, events, expected) => {
    expect(read(encode([start, ...events])).at(-2)?.delta).toMatchObject(expected);
  });

  test("usage that comes behind finish counts, and the last one", () => {
    const later: GenerationEvent = { type: "usage", usage: { input: { total: 7 }, output: { total: 3 } } };
    expect(read(encode([start, usage, finish("stop"), later])).at(-2)?.usage).toEqual({
      input_tokens: 7,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      output_tokens: 3,
    });
  });

  test("a failure is the error event, which the SDK throws", async () => {
    const encoder = createStreamEncoder(context);
    const text = encoder.push(start) + encoder.push({ type: "failure", failure: { message: "busy", status: 529 } });
    expect(text).toEndWith(
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n',
    );
    await expect(accumulate(text)).rejects.toThrow("busy");
  });
});
