// Streams for chat clients: the order and the shape of chunks, what official clients make of them, and that a stream
// says what the whole answer says.

import { describe, expect, test } from "bun:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";
import fc from "fast-check";
import OpenAI from "openai";
import { asEvents } from "../../generation/as-events.ts";
import { collect } from "../../generation/collect.ts";
import type { ContentPart } from "../../generation/content.ts";
import type { GenerationEvent } from "../../generation/events.ts";
import type { GenerationResult } from "../../generation/result.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { AnswerContext } from "../protocol.ts";
import { eventData } from "../sse.ts";
import { decodeRequest } from "./request-decoder.ts";
import { encodeResponse } from "./response-encoder.ts";
import { ChatStreamDecoder } from "./stream-decoder.ts";
import { ChatStreamEncoder } from "./stream-encoder.ts";

interface Chunk {
  id: string;
  created: number;
  model: string;
  object: string;
  choices: { index: number; delta: JsonObject; finish_reason: string | null }[];
  usage?: unknown;
}

const WITH_USAGE = { stream_options: { include_usage: true } };

function context(more: JsonObject = {}): AnswerContext {
  const body = { model: "asked", messages: [{ role: "user", content: "hi" }], stream: true, ...more };
  return { model: "asked", createdAt: 99, nonce: "0".repeat(32), request: decodeRequest(body) };
}

function encode(events: readonly GenerationEvent[], more: JsonObject = {}): string {
  const encoder = new ChatStreamEncoder(context(more));
  return events.map((event) => encoder.push(event)).join("") + encoder.end();
}

function result(parts: ContentPart[], more: Partial<GenerationResult> = {}): GenerationResult {
  const hasCalls = parts.some((part) => part.type === "tool-call");
  return { id: "", model: "b", createdAt: 0, parts, finish: { reason: hasCalls ? "tool-calls" : "stop" }, ...more };
}

function chunksOf(stream: string): Chunk[] {
  return eventData(stream)
    .filter((data) => data !== "[DONE]")
    .map((data) => JSON.parse(data) as Chunk);
}

/** The deltas between the role and the finish. */
function deltas(parts: ContentPart[], more: JsonObject = {}): unknown[] {
  const chunks = chunksOf(encode(asEvents(result(parts)), more));
  expect(chunks.at(-1)?.choices[0]?.delta).toEqual({});
  return chunks.slice(1, -1).map((chunk) => chunk.choices[0]?.delta);
}

describe("order and shape", () => {
  const usage = { input: { total: 1 }, output: { total: 2 } };
  const events: GenerationEvent[] = [
    { type: "start", id: "", model: "b", createdAt: 0 },
    { type: "part-start", index: 0, part: { type: "text" } },
    { type: "delta", index: 0, text: 'a "quoted"\nline' },
    { type: "part-end", index: 0 },
    { type: "finish", finish: { reason: "stop" } },
    { type: "usage", usage },
  ];
  const head = { id: `chatcmpl-${"0".repeat(32)}`, object: "chat.completion.chunk", created: 99, model: "asked" };
  const choice = (delta: unknown, finish_reason: unknown = null) => [{ index: 0, delta, finish_reason }];

  test("with usage: null in every chunk, then a chunk of its own without choices, then the marker", () => {
    const stream = encode(events, WITH_USAGE);
    expect(stream).toEndWith("data: [DONE]\n\n");
    expect(stream.split("\n\n").filter((event) => event.includes("[DONE]"))).toHaveLength(1);
    expect(chunksOf(stream) as unknown[]).toEqual([
      { ...head, choices: choice({ role: "assistant", content: "" }), usage: null },
      { ...head, choices: choice({ content: 'a "quoted"\nline' }), usage: null },
      { ...head, choices: choice({}, "stop"), usage: null },
      { ...head, choices: [], usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } },
    ]);
  });

  test("without usage: not a word of it", () => {
    const stream = encode(events);
    expect(stream).not.toContain("usage");
    expect(chunksOf(stream)).toHaveLength(3);
    expect(encode(events.slice(0, -1), WITH_USAGE)).not.toContain("prompt_tokens");
  });

  test("the backend's id and time where it gave them", () => {
    const [first] = chunksOf(encode([{ type: "start", id: "x", model: "b", createdAt: 7 }]));
    expect([first?.id, first?.created]).toEqual(["x", 7]);
  });

  test("a failure: an error, no finish", () => {
    const encoder = new ChatStreamEncoder(context());
    const stream =
      encoder.push(events[0] as GenerationEvent) +
      encoder.push({
        type: "failure",
        failure: { message: "m", status: 503, type: "t", code: "c" },
      });
    expect(stream).toEndWith('data: {"error":{"message":"m","type":"t","code":"c"}}\n\n');
    expect(stream).not.toContain("[DONE]");
    expect(stream).not.toContain('"stop"');
  });
});

describe("deltas", () => {
  const call = (more: JsonObject) => ({ tool_calls: [more] });
  const cases: [title: string, parts: ContentPart[], expected: unknown[]][] = [
    [
      "thoughts and text",
      [
        { type: "reasoning", text: "hm" },
        { type: "text", text: "x" },
      ],
      [{ reasoning_content: "hm" }, { content: "x" }],
    ],
    ["refusal", [{ type: "refusal", text: "no" }], [{ refusal: "no" }]],
    [
      "a proof comes whole, and its text is not told twice",
      [{ type: "reasoning", text: "hm", signature: "s", origin: "messages" }],
      [
        { reasoning_content: "hm" },
        {
          reasoning_details: [
            { type: "reasoning.text", format: "anthropic-claude-v1", signature: "s", proved_text: "hm" },
          ],
        },
      ],
    ],
    [
      "calls: id and name once, arguments behind",
      [
        { type: "tool-call", id: "1", name: "f", arguments: '{"a":1}', signature: "s" },
        { type: "tool-call", id: "2", name: "g", arguments: "free", custom: true },
      ],
      [
        call({
          index: 0,
          id: "1",
          type: "function",
          function: { name: "f", arguments: "" },
          extra_content: { google: { thought_signature: "s" } },
        }),
        call({ index: 0, function: { arguments: '{"a":1}' } }),
        call({ index: 1, id: "2", type: "custom", custom: { name: "g", input: "" } }),
        call({ index: 1, custom: { input: "free" } }),
      ],
    ],
    [
      "a call without arguments has an empty object",
      [{ type: "tool-call", id: "1", name: "f", arguments: "" }],
      [
        call({ index: 0, id: "1", type: "function", function: { name: "f", arguments: "" } }),
        call({ index: 0, function: { arguments: "{}" } }),
      ],
    ],
    [
      "a custom call without input stays without",
      [{ type: "tool-call", id: "1", name: "g", arguments: "", custom: true }],
      [call({ index: 0, id: "1", type: "custom", custom: { name: "g", input: "" } })],
    ],
    [
      "what chat cannot hold is left out, and not counted",
      [
        { type: "tool-call", id: "s", name: "web_search", arguments: "{}", serverSide: true },
        { type: "search-result", callId: "s", results: [] },
        { type: "opaque", protocol: "messages", value: {} },
        { type: "tool-call", id: "1", name: "f", arguments: "{}" },
      ],
      [
        call({ index: 0, id: "1", type: "function", function: { name: "f", arguments: "" } }),
        call({ index: 0, function: { arguments: "{}" } }),
      ],
    ],
  ];
  test.each(cases)("%s", (_title, parts, expected) => {
    expect(deltas(parts)).toEqual(expected);
  });

  test("the deprecated form for clients that ask in it", () => {
    const parts: ContentPart[] = [{ type: "tool-call", id: "1", name: "f", arguments: '{"a":1}' }];
    const functions = { functions: [{ name: "f" }] };
    expect(deltas(parts, functions)).toEqual([
      { function_call: { name: "f", arguments: "" } },
      { function_call: { arguments: '{"a":1}' } },
    ]);
    expect(encode(asEvents(result(parts)), functions)).toContain('"finish_reason":"function_call"');
  });

  test("no thoughts for a client that wants none", () => {
    const parts: ContentPart[] = [{ type: "reasoning", text: "hm", signature: "s", origin: "messages" }];
    expect(deltas(parts, { reasoning: { exclude: true } })).toEqual([]);
  });
});

// ---- What a stream says, joined as clients join it

function joined(stream: string): JsonObject {
  const message: JsonObject = { content: "", reasoning: "", refusal: "" };
  const calls: JsonObject[] = [];
  const lists: Record<string, unknown[]> = { annotations: [], images: [], reasoning_details: [] };
  for (const { choices } of chunksOf(stream)) {
    const delta = choices[0]?.delta ?? {};
    message.content += (delta.content as string | undefined) ?? "";
    message.reasoning += (delta.reasoning_content as string | undefined) ?? "";
    message.refusal += (delta.refusal as string | undefined) ?? "";
    for (const name of Object.keys(lists)) lists[name]?.push(...((delta[name] as unknown[] | undefined) ?? []));
    for (const entry of (delta.tool_calls as JsonObject[] | undefined) ?? []) joinCall(calls, entry);
  }
  return { ...message, ...lists, calls };
}

function joinCall(calls: JsonObject[], { index, ...entry }: JsonObject): void {
  const call = calls[index as number];
  if (call === undefined) {
    calls[index as number] = entry;
    return;
  }
  for (const [kind, field] of [
    ["function", "arguments"],
    ["custom", "input"],
  ] as const) {
    const piece = entry[kind] as JsonObject | undefined;
    const whole = call[kind] as JsonObject | undefined;
    if (piece !== undefined && whole !== undefined) whole[field] = `${whole[field]}${piece[field]}`;
  }
}

function fromWhole(body: JsonObject): JsonObject {
  const message = (body.choices as { message: JsonObject }[])[0]?.message ?? {};
  return {
    content: message.content ?? "",
    reasoning: message.reasoning_content ?? "",
    refusal: message.refusal ?? "",
    annotations: message.annotations ?? [],
    images: message.images ?? [],
    reasoning_details: ((message.reasoning_details ?? []) as JsonObject[]).map(({ text, ...detail }) =>
      text === undefined ? detail : { ...detail, proved_text: text },
    ),
    calls: message.tool_calls ?? [],
  };
}

const text = fc.string({ minLength: 1, maxLength: 10 });
const anyPart: fc.Arbitrary<ContentPart> = fc.oneof(
  fc.record({
    type: fc.constant("text" as const),
    text,
    citations: fc.array(fc.record({ url: text, title: text }), { maxLength: 2 }),
  }),
  fc.record({ type: fc.constant("reasoning" as const), text }),
  fc.record({
    type: fc.constant("reasoning" as const),
    text,
    signature: text,
    origin: fc.constant("messages" as const),
  }),
  fc.record({ type: fc.constant("refusal" as const), text }),
  fc.record({ type: fc.constant("tool-call" as const), id: fc.uuid(), name: text, arguments: fc.json() }),
  fc.record({
    type: fc.constant("tool-call" as const),
    id: fc.uuid(),
    name: text,
    arguments: text,
    custom: fc.constant(true),
  }),
  fc.constant({ type: "image" as const, source: { kind: "url" as const, url: "https://x/a.png" } }),
);

/** The same events with every delta cut into characters. */
function cut(events: readonly GenerationEvent[]): GenerationEvent[] {
  return events.flatMap((event): GenerationEvent[] =>
    event.type === "delta" ? event.text.split("").map((text) => ({ ...event, text })) : [event],
  );
}

describe("properties", () => {
  test("a stream says what the whole answer says, wherever it is cut", () => {
    fc.assert(
      fc.property(fc.array(anyPart, { maxLength: 5 }), fc.boolean(), (parts, isCut) => {
        const whole = result(parts);
        const events = asEvents(whole);
        expect(joined(encode(isCut ? cut(events) : events))).toEqual(fromWhole(encodeResponse(whole, context())));
      }),
    );
  });

  test("what was written is read back", () => {
    const order = ["reasoning", "text", "refusal", "tool-call"];
    const parts = fc
      .uniqueArray(anyPart, { selector: ({ type }) => type, maxLength: 4 })
      .map((list) => list.filter(({ type }) => order.includes(type)))
      .map((list) => list.sort((one, other) => order.indexOf(one.type) - order.indexOf(other.type)));
    fc.assert(
      fc.property(parts, (list) => {
        const plain = list.map((part): ContentPart => {
          if (part.type === "reasoning") return { type: "reasoning", text: part.text }; // proofs are for clients
          return part.type === "text" ? { type: "text", text: part.text } : part;
        });
        const decoder = new ChatStreamDecoder();
        const stream = eventData(encode(cut(asEvents(result(plain))), WITH_USAGE));
        const events = [...stream.flatMap((data) => decoder.push(data)), ...decoder.end()];
        expect(collect(events)?.parts).toEqual(plain);
      }),
    );
  });
});

// ---- Official clients

function answering(stream: string): typeof fetch {
  const answer = async (): Promise<Response> =>
    new Response(stream, { headers: { "content-type": "text/event-stream" } });
  return answer as unknown as typeof fetch;
}

describe("official clients", () => {
  const parts: ContentPart[] = [
    { type: "reasoning", text: "hm", signature: "s", origin: "messages" },
    { type: "text", text: "x" },
    { type: "tool-call", id: "call_1", name: "f", arguments: '{"a":1}' },
    { type: "tool-call", id: "call_2", name: "g", arguments: "" },
  ];
  const usage = { input: { total: 3, cacheRead: 1 }, output: { total: 2 } };
  const stream = encode(cut(asEvents(result(parts, { usage }))), WITH_USAGE);

  test("the OpenAI library", async () => {
    const client = new OpenAI({ apiKey: "sekret", baseURL: "http://x.invalid/v1", fetch: answering(stream) });
    const run = client.chat.completions.stream({ model: "asked", messages: [{ role: "user", content: "hi" }] });
    const completion = await run.finalChatCompletion();
    expect(completion.usage?.prompt_tokens_details?.cached_tokens).toBe(1);
    expect(completion.choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: {
        content: "x",
        reasoning_details: [{ proved_text: "hm", signature: "s" }],
        tool_calls: [
          { id: "call_1", function: { name: "f", arguments: '{"a":1}' } },
          { id: "call_2", function: { name: "g", arguments: "{}" } },
        ],
      },
    });
  });

  test("the OpenAI library, reported an error", async () => {
    const encoder = new ChatStreamEncoder(context());
    const broken =
      encoder.push({ type: "start", id: "", model: "b", createdAt: 0 }) +
      encoder.push({ type: "failure", failure: { message: "cuda", status: 502 } });
    const client = new OpenAI({ apiKey: "sekret", baseURL: "http://x.invalid/v1", fetch: answering(broken) });
    const run = client.chat.completions.stream({ model: "asked", messages: [{ role: "user", content: "hi" }] });
    await expect(run.finalChatCompletion()).rejects.toThrow("cuda");
  });

  test("the AI SDK", async () => {
    const provider = createOpenAICompatible({
      name: "signalbox",
      baseURL: "http://x.invalid/v1",
      fetch: answering(stream),
      includeUsage: true,
    });
    const run = streamText({ model: provider("asked"), prompt: "hi" });
    expect(await run.text).toBe("x");
    expect(await run.reasoningText).toBe("hm");
    expect(await run.finishReason).toBe("tool-calls");
    expect((await run.toolCalls).map(({ toolCallId, input }) => [toolCallId, input])).toEqual([
      ["call_1", { a: 1 }],
      ["call_2", {}],
    ]);
    expect((await run.usage).inputTokens).toBe(3);
  });
});
