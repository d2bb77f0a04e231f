// The stream that Responses clients get: its exact events, what the official SDKs make of it, and that its final response
// is the one of a whole answer.

import { describe, expect, test } from "bun:test";
import { createOpenAI } from "@ai-sdk/openai";
import { streamText } from "ai";
import fc from "fast-check";
import OpenAI from "openai";
import { asEvents } from "../../generation/as-events.ts";
import { collect } from "../../generation/collect.ts";
import type { ContentPart } from "../../generation/content.ts";
import type { GenerationEvent } from "../../generation/events.ts";
import type { FinishReason, GenerationResult } from "../../generation/result.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { AnswerContext } from "../protocol.ts";
import { readEvents } from "../sse.ts";
import { decodeRequest } from "./request-decoder.ts";
import { decodeResponse } from "./response-decoder.ts";
import { encodeResponse } from "./response-encoder.ts";
import { ResponsesStreamDecoder } from "./stream-decoder.ts";
import { ResponsesStreamEncoder } from "./stream-encoder.ts";

const NONCE = "0123456789abcdef0123456789abcdef";
const USAGE = { input: { total: 10, cacheRead: 4 }, output: { total: 7, reasoning: 2 } };

function contextFor(fields: JsonObject = {}): AnswerContext {
  const request = decodeRequest({ model: "alias", input: "x", ...fields });
  return { model: "alias", createdAt: 1_700_000_000, nonce: NONCE, request };
}

function answer(parts: ContentPart[], reason: FinishReason = "stop"): GenerationResult {
  return {
    id: "chatcmpl-1",
    model: "backend-model",
    createdAt: 1_700_000_001,
    parts,
    finish: { reason },
    usage: USAGE,
  };
}

function encode(events: readonly GenerationEvent[], context: AnswerContext): string {
  const encoder = new ResponsesStreamEncoder(context);
  return events.map((event) => encoder.push(event)).join("") + encoder.end();
}

type WireEvent = JsonObject & { type: string; sequence_number: number };

/** The response object of the last event. */
function finalResponse(events: readonly WireEvent[]): JsonObject {
  return events.at(-1)?.response as JsonObject;
}

function outputOf(events: readonly WireEvent[]): JsonObject[] {
  return finalResponse(events).output as JsonObject[];
}

function wireEvents(text: string): WireEvent[] {
  return readEvents(text).map(({ name, data }) => {
    const event = JSON.parse(data) as WireEvent;
    expect(name).toBe(event.type);
    return event;
  });
}

function encodeResult(result: GenerationResult, fields: JsonObject = {}): WireEvent[] {
  return wireEvents(encode(asEvents(result), contextFor(fields)));
}

/** The stream as the openai SDK's helper accumulates it. */
async function accumulate(text: string): Promise<{ response: JsonObject; events: string[] }> {
  const fetch = async () => new Response(text, { headers: { "content-type": "text/event-stream" } });
  const client = new OpenAI({ apiKey: "sekret", baseURL: "http://unused.invalid/v1", fetch });
  const stream = client.responses.stream({ model: "alias", input: "x" });
  const events: string[] = [];
  for await (const event of stream) events.push(event.type);
  return { response: JSON.parse(JSON.stringify(await stream.finalResponse())) as JsonObject, events };
}

/** The stream as the AI SDK reads it. */
async function readWithAiSdk(text: string) {
  const fetch = Object.assign(async () => new Response(text, { headers: { "content-type": "text/event-stream" } }), {
    preconnect: () => {},
  });
  const openai = createOpenAI({ apiKey: "sekret", baseURL: "http://unused.invalid/v1", fetch });
  const errors: unknown[] = [];
  const result = streamText({
    model: openai.responses("alias"),
    prompt: "x",
    onError: ({ error }) => void errors.push(error),
  });
  const parts: { type: string; [name: string]: unknown }[] = [];
  for await (const part of result.fullStream) parts.push(part);
  return { parts, errors };
}

const EVERYTHING: ContentPart[] = [
  { type: "reasoning", text: "Let me think", origin: "messages", signature: "sig" },
  { type: "text", text: "Sure. " },
  { type: "text", text: "See it.", citations: [{ url: "https://e.org", title: "E" }] },
  { type: "tool-call", id: "srv_1", name: "web_search", serverSide: true, arguments: '{"query":"cats"}' },
  { type: "search-result", callId: "srv_1", results: [{ url: "https://e.org", title: "E" }] },
  { type: "tool-call", id: "call_1", name: "f", arguments: '{"a":1}' },
  { type: "tool-call", id: "call_2", name: "g", arguments: "" },
];

describe("events", () => {
  test("of text, in the tested order", () => {
    const events = encodeResult(answer([{ type: "text", text: "Hi" }]));
    expect(events.map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_event, index) => index));
    const id = `msg_${NONCE}00`;
    expect(events[3]).toMatchObject({
      item_id: id,
      output_index: 0,
      content_index: 0,
      part: { type: "output_text", text: "", annotations: [] },
    });
    expect(events[4]).toMatchObject({ item_id: id, output_index: 0, content_index: 0, delta: "Hi", logprobs: [] });
    expect(events[5]).toMatchObject({ item_id: id, text: "Hi", logprobs: [] });
    expect(events[7]).toMatchObject({ output_index: 0, item: { id, status: "completed", role: "assistant" } });
  });

  test("of everything", () => {
    const events = encodeResult(answer(EVERYTHING, "tool-calls"));
    expect(events.map(({ type }) => type.replace("response.", ""))).toEqual([
      "created",
      "in_progress",
      "output_item.added",
      "reasoning_summary_part.added",
      "reasoning_summary_text.delta",
      "reasoning_summary_text.done",
      "reasoning_summary_part.done",
      "output_item.done",
      "output_item.added",
      "content_part.added",
      "output_text.delta",
      "output_text.done",
      "content_part.done",
      "content_part.added",
      "output_text.delta",
      "output_text.annotation.added",
      "output_text.done",
      "content_part.done",
      "output_item.done",
      "output_item.added",
      "web_search_call.in_progress",
      "web_search_call.searching",
      "web_search_call.completed",
      "output_item.done",
      "output_item.added",
      "function_call_arguments.delta",
      "function_call_arguments.done",
      "output_item.done",
      "output_item.added",
      "function_call_arguments.delta",
      "function_call_arguments.done",
      "output_item.done",
      "completed",
    ]);
    expect(outputOf(events).map(({ type }) => type)).toEqual([
      "reasoning",
      "message",
      "web_search_call",
      "function_call",
      "function_call",
    ]);
  });

  test("a reasoning item does not swallow the message that follows (trap)", () => {
    const events = encodeResult(
      answer([
        { type: "reasoning", text: "a" },
        { type: "text", text: "b" },
      ]),
    );
    const added = events.filter(({ type }) => type === "response.output_item.added");
    expect(added.map(({ item, output_index: index }) => [(item as JsonObject).type, index])).toEqual([
      ["reasoning", 0],
      ["message", 1],
    ]);
  });

  test("text after tool calls is a new message", () => {
    const { output } = encodeResponse(
      answer([
        { type: "text", text: "a" },
        { type: "tool-call", id: "c", name: "f", arguments: "{}" },
        { type: "text", text: "b" },
      ]),
      contextFor(),
    );
    const ids = (output as JsonObject[]).map(({ id }) => id);
    expect(ids).toEqual([`msg_${NONCE}00`, `fc_${NONCE}01`, `msg_${NONCE}02`]);
  });

  test("the item id is never the call id (trap)", () => {
    const events = encodeResult(answer([{ type: "tool-call", id: "call_7", name: "f", arguments: "{}" }]));
    const added = events.find(({ type }) => type === "response.output_item.added")?.item as JsonObject;
    expect([added.id, added.call_id, added.name]).toEqual([`fc_${NONCE}00`, "call_7", "f"]);
    const delta = events.find(({ type }) => type === "response.function_call_arguments.delta");
    expect(delta?.item_id).toBe(added.id);
  });

  test("refusals", () => {
    const types = encodeResult(answer([{ type: "refusal", text: "No" }])).map(({ type }) => type);
    expect(types).toContain("response.refusal.delta");
    expect(types).toContain("response.refusal.done");
    expect(types).not.toContain("response.output_text.delta");
  });

  test("free-form calls", () => {
    const call: ContentPart = { type: "tool-call", id: "c", name: "patch", arguments: "*** Begin", custom: true };
    const events = encodeResult(answer([call]));
    const done = events.find(({ type }) => type === "response.custom_tool_call_input.done");
    expect(done?.input).toBe("*** Begin");
    expect(outputOf(events)).toEqual([
      { id: `ctc_${NONCE}00`, type: "custom_tool_call", call_id: "c", name: "patch", input: "*** Begin" },
    ]);
  });

  test("a free-form tool that the backend called as a function", () => {
    const call: ContentPart = { type: "tool-call", id: "c", name: "patch", arguments: '{"input":"a\\nb"}' };
    const events = encodeResult(answer([call]), { tools: [{ type: "custom", name: "patch" }] });
    const deltas = events.filter(({ type }) => type === "response.custom_tool_call_input.delta");
    expect(deltas.map(({ delta }) => delta)).toEqual(["a\nb"]);
    expect(events.some(({ type }) => type.includes("function_call"))).toBe(false);
  });

  test("an answer without a start still begins with created", () => {
    const events = wireEvents(encode([{ type: "finish", finish: { reason: "stop" } }], contextFor()));
    expect(events.map(({ type }) => type)).toEqual(["response.created", "response.in_progress", "response.completed"]);
  });

  test("an image is an image generation call", () => {
    const image: ContentPart = { type: "image", source: { kind: "base64", mediaType: "image/png", data: "AA==" } };
    const events = encodeResult(answer([image]));
    expect(events.slice(2, 4)).toMatchObject([{ item: { result: null } }, { item: { result: "AA==" } }]);
  });
});

describe("reasoning", () => {
  const thought: ContentPart = { type: "reasoning", text: "hm", origin: "messages", signature: "sig" };
  const sealedOnly: ContentPart = { type: "reasoning", text: "", origin: "messages", sealed: "blob" };
  const include = ["reasoning.encrypted_content"];
  const items = (parts: ContentPart[], fields: JsonObject) => outputOf(encodeResult(answer(parts), fields));

  test("is sealed only when asked for", () => {
    expect(items([thought], {})[0]).not.toHaveProperty("encrypted_content");
    expect(items([thought], { include })[0]?.encrypted_content).toStartWith("signalbox.1.");
  });

  test("survives the next turn (trap)", () => {
    for (const fields of [{ include }, { include, include_reasoning: false }]) {
      const { messages } = decodeRequest({ model: "m", input: items([thought, sealedOnly], fields) });
      const parts = messages[0]?.parts.map((part) => ({ ...part, itemId: undefined }));
      expect(parts).toEqual([
        { type: "reasoning", text: "hm", origin: "messages", signature: "sig", itemId: undefined },
        { type: "reasoning", text: "", origin: "messages", sealed: "blob", itemId: undefined },
      ]);
    }
  });

  test("of a Responses backend keeps its seal and its id", () => {
    const own: ContentPart = {
      type: "reasoning",
      text: "hm",
      origin: "responses",
      sealed: "gAAA",
      itemId: "rs_theirs",
    };
    expect(items([own], { include })[0]).toMatchObject({ id: "rs_theirs", encrypted_content: "gAAA" });
  });

  test("that only consists of a seal is no empty item for others", () => {
    expect(items([sealedOnly], {})).toEqual([]);
    expect(items([sealedOnly], { include })[0]).toMatchObject({ type: "reasoning", summary: [] });
  });

  test("is hidden when not wanted", () => {
    expect(items([thought], { include_reasoning: false })).toEqual([]);
    expect(items([thought], { include_reasoning: false, include })[0]?.summary).toEqual([]);
  });
});

describe("the end", () => {
  test.each([
    ["stop", "completed", null],
    ["tool-calls", "completed", null],
    ["stop-sequence", "completed", null],
    ["length", "incomplete", { reason: "max_output_tokens" }],
    ["pause", "completed", null],
    ["content-filter", "incomplete", { reason: "content_filter" }],
  ] as [FinishReason, string, unknown][])("%s is %s (trap: truncation)", (reason, status, details) => {
    const events = encodeResult(answer([{ type: "text", text: "Hi" }], reason));
    const last = events.at(-1);
    expect(last?.type).toBe(`response.${status}`);
    const response = last?.response as JsonObject;
    expect([response.status, response.incomplete_details]).toEqual([status, details]);
    expect((response.output as JsonObject[])[0]?.status).toBe(status);
    expect(events.at(-2)).toMatchObject({ type: "response.output_item.done", item: { status } });
  });

  test("usage that comes after the finish is in the final response", () => {
    const events = asEvents(answer([{ type: "text", text: "Hi" }])).filter(({ type }) => type !== "usage");
    const text = encode([...events, { type: "usage", usage: USAGE }], contextFor());
    expect(finalResponse(wireEvents(text)).usage).toEqual({
      input_tokens: 10,
      input_tokens_details: { cached_tokens: 4, cache_write_tokens: 0 },
      output_tokens: 7,
      output_tokens_details: { reasoning_tokens: 2 },
      total_tokens: 17,
    });
  });

  test("every field that typed clients need is there (trap)", () => {
    const { usage: _usage, ...uncounted } = answer([]);
    const response = encodeResponse(uncounted, {
      ...contextFor({ instructions: "Be brief" }),
      now: () => 1_700_000_009,
    });
    expect(response).toEqual({
      id: `resp_${NONCE}`,
      object: "response",
      created_at: 1_700_000_001,
      completed_at: 1_700_000_009,
      status: "completed",
      error: null,
      incomplete_details: null,
      model: "alias",
      background: false,
      frequency_penalty: 0,
      instructions: "Be brief",
      max_output_tokens: null,
      max_tool_calls: null,
      metadata: {},
      parallel_tool_calls: true,
      presence_penalty: 0,
      previous_response_id: null,
      prompt_cache_key: null,
      safety_identifier: null,
      service_tier: "default",
      store: true,
      temperature: 1,
      tool_choice: "auto",
      tools: [],
      top_logprobs: 0,
      top_p: 1,
      truncation: "disabled",
      reasoning: { effort: null, summary: null },
      text: { format: { type: "text" } },
      output: [],
      usage: {
        input_tokens: 0,
        input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
        output_tokens: 0,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 0,
      },
    });
  });

  test("an answer that is not complete has no time of completion, and no answer is complete before it began", () => {
    const cut = encodeResponse(answer([], "length"), contextFor());
    expect(cut.completed_at).toBeNull();
    const early = { ...contextFor(), now: () => 5 };
    expect(encodeResponse(answer([]), early).completed_at).toBe(1_700_000_001);
    const events = wireEvents(encode(asEvents(answer([])), { ...contextFor(), now: () => 1_800_000_000 }));
    const times = events.map(({ response }) => (response as JsonObject | undefined)?.completed_at);
    expect(times).toEqual([null, null, 1_800_000_000]);
  });

  test("functions are shown with every member of their type, and what the client said", () => {
    const tools = [
      { type: "function", name: "f" },
      { type: "function", name: "g", strict: true },
      { type: "web_search" },
    ];
    const response = encodeResponse(answer([]), contextFor({ tools, temperature: 0.2, presence_penalty: 1 }));
    expect(response).toMatchObject({ temperature: 0.2, presence_penalty: 1 });
    expect(response.tools).toEqual([
      { type: "function", name: "f", description: null, parameters: null, strict: false },
      { type: "function", name: "g", description: null, parameters: null, strict: true },
      { type: "web_search" },
    ]);
  });

  test("a cut-off stream has no end", () => {
    const encoder = new ResponsesStreamEncoder(contextFor());
    encoder.push({ type: "start", id: "", model: "", createdAt: 0 });
    expect(encoder.end()).toBe("");
  });
});

describe("a failure", () => {
  const failed = (): string => {
    const [start, part, delta] = asEvents(answer([{ type: "text", text: "Hi" }]));
    const failure = { message: "Overloaded", status: 529, type: "overloaded_error" };
    return encode([start, part, delta, { type: "failure", failure }] as GenerationEvent[], contextFor());
  };

  test("is told twice, with consecutive numbers (trap)", () => {
    const events = wireEvents(failed());
    const [error, last] = events.slice(-2);
    expect(error).toEqual({
      type: "error",
      sequence_number: events.length - 2,
      code: "server_error",
      message: "Overloaded",
      param: null,
    });
    expect(last).toMatchObject({
      type: "response.failed",
      response: { status: "failed", error: { code: "server_error", message: "Overloaded" } },
    });
  });

  test("throws in the openai SDK", async () => {
    await expect(accumulate(failed())).rejects.toThrow("Overloaded");
  });

  test("is one error in the AI SDK", async () => {
    const { parts, errors } = await readWithAiSdk(failed());
    expect(errors).toHaveLength(1);
    expect(JSON.stringify(parts)).toContain("Hi");
    expect(parts.at(-1)).toMatchObject({ type: "finish", finishReason: "error" });
  });
});

describe("official clients", () => {
  test("the openai SDK accumulates the final response", async () => {
    const context = contextFor({ include: ["web_search_call.action.sources"] });
    const result = answer(EVERYTHING, "tool-calls");
    const { response } = await accumulate(encode(asEvents(result), context));
    const { output, ...rest } = encodeResponse(result, context);
    expect(response).toMatchObject(rest);
    expect(response.output_text).toBe("Sure. See it.");
    // The helper adds parsed forms to what came.
    expect(response.output as never).toMatchObject(output as never);
  });

  test("the AI SDK reads text, reasoning, calls and sources", async () => {
    const { parts, errors } = await readWithAiSdk(encode(asEvents(answer(EVERYTHING, "tool-calls")), contextFor()));
    expect(errors).toEqual([]);
    const text = parts.filter(({ type }) => type === "text-delta").map((part) => part.text);
    expect(text).toEqual(["Sure. ", "See it."]);
    expect(parts.filter(({ type }) => type === "reasoning-delta").map((part) => part.text)).toEqual(["Let me think"]);
    expect(parts.filter(({ type }) => type === "source")).toMatchObject([{ url: "https://e.org" }]);
    const calls = parts.filter(({ type }) => type === "tool-call").map(({ toolCallId }) => toolCallId);
    expect(calls).toEqual(expect.arrayContaining(["call_1", "call_2"]));
    expect(parts.at(-1)).toMatchObject({ type: "finish", totalUsage: { inputTokens: 10, outputTokens: 7 } });
  });

  test("interleaved calls", async () => {
    const start = (index: number): GenerationEvent => ({
      type: "part-start",
      index,
      part: { type: "tool-call", id: `call_${index}`, name: "f" },
    });
    const delta = (index: number, text: string): GenerationEvent => ({ type: "delta", index, text });
    const events: GenerationEvent[] = [
      { type: "start", id: "", model: "", createdAt: 0 },
      start(0),
      delta(0, '{"a"'),
      start(1),
      delta(1, '{"b"'),
      delta(0, ":1}"),
      { type: "part-end", index: 0 },
      delta(1, ":2}"),
      { type: "part-end", index: 1 },
      { type: "finish", finish: { reason: "tool-calls" } },
    ];
    const { response } = await accumulate(encode(events, contextFor()));
    expect((response.output as JsonObject[]).map((item) => item.arguments)).toEqual(['{"a":1}', '{"b":2}']);
  });
});

/** Any answer, as decoders may give it. */
const anyText = fc.string({ maxLength: 12, unit: "grapheme" });
const anyPart: fc.Arbitrary<ContentPart> = fc.oneof(
  fc.record({ type: fc.constant("text" as const), text: anyText }),
  fc.record({
    type: fc.constant("text" as const),
    text: anyText,
    citations: fc.array(fc.record({ url: fc.webUrl(), title: fc.constant("T") }), { minLength: 1, maxLength: 2 }),
  }),
  fc.record({ type: fc.constant("refusal" as const), text: anyText }),
  fc.record({ type: fc.constant("reasoning" as const), text: anyText }),
  fc.record({
    type: fc.constant("reasoning" as const),
    text: anyText,
    origin: fc.constant("messages" as const),
    signature: fc.string({ minLength: 1 }),
  }),
  fc.record({
    type: fc.constant("reasoning" as const),
    text: anyText,
    origin: fc.constant("responses" as const),
    sealed: fc.string({ minLength: 1 }),
    itemId: fc.constantFrom("rs_a", "rs_b"),
  }),
  fc.record({
    type: fc.constant("tool-call" as const),
    id: fc.constant("call"),
    name: fc.constantFrom("f", "patch"),
    arguments: fc.constantFrom("", "{}", '{"input":"x"}', "not json"),
  }),
  fc.record({
    type: fc.constant("tool-call" as const),
    id: fc.constant("call"),
    name: fc.constant("free"),
    arguments: anyText,
    custom: fc.constant(true),
  }),
  fc.record({
    type: fc.constant("opaque" as const),
    protocol: fc.constantFrom("responses" as const, "messages" as const),
    value: fc.constant({ type: "mcp_list_tools", id: "mcpl_1", server_label: "s", tools: [] }),
  }),
);

const anySearch: fc.Arbitrary<ContentPart[]> = fc
  .record({ query: anyText, between: fc.array(anyPart, { maxLength: 1 }), failed: fc.boolean() })
  .map(({ query, between, failed }) => [
    { type: "tool-call", id: "search", name: "web_search", serverSide: true, arguments: JSON.stringify({ query }) },
    ...between,
    {
      type: "search-result",
      callId: "search",
      results: [{ url: "https://e.org", title: "E" }],
      ...(failed && { errorCode: "unavailable" }),
    },
  ]);

/** Ids are unique per answer: some clients refuse an answer with two equal ones. */
function withOwnIds(parts: ContentPart[]): ContentPart[] {
  let search = 0;
  return parts.map((part, index) => {
    if (part.type === "search-result") return { ...part, callId: `search_${search}` };
    if (part.type !== "tool-call") return part;
    return { ...part, id: part.serverSide === true ? `search_${++search}` : `call_${index}` };
  });
}

function isBetween(part: ContentPart, index: number, parts: readonly ContentPart[]): boolean {
  const before = parts[index - 1];
  return part.type !== "search-result" && before?.type === "tool-call" && before.serverSide === true;
}

const anyAnswer = fc
  .record({
    parts: fc.array(fc.oneof({ weight: 4, arbitrary: anyPart.map((part) => [part]) }, anySearch), { maxLength: 6 }),
    reason: fc.constantFrom<FinishReason>("stop", "tool-calls", "length", "content-filter"),
  })
  .map(({ parts, reason }) => answer(withOwnIds(parts.flat()), reason));

const anyRequest = fc.record({
  include: fc.subarray(["reasoning.encrypted_content", "web_search_call.action.sources"]),
  include_reasoning: fc.constantFrom(true, false, null),
  tools: fc.constant([{ type: "custom", name: "patch" }]),
});

/** The same events with their deltas cut into pieces. */
function cut(events: readonly GenerationEvent[], size: number): GenerationEvent[] {
  return events.flatMap((event): GenerationEvent[] => {
    if (event.type !== "delta") return [event];
    const pieces = event.text.match(new RegExp(`[\\s\\S]{1,${size}}`, "g")) ?? [];
    return pieces.map((text) => ({ ...event, text }));
  });
}

describe("properties", () => {
  test("the final response of a stream is the whole answer, however its text was cut", () => {
    fc.assert(
      fc.property(anyAnswer, anyRequest, fc.integer({ min: 1, max: 5 }), (result, fields, size) => {
        const context = contextFor(fields);
        const events = cut(asEvents(result), size);
        const wire = wireEvents(encode(events, context));
        const collected = collect(events) as GenerationResult;
        expect(wire.at(-1)?.response).toEqual(encodeResponse(collected, context));
        expect(wire.map((event) => event.sequence_number)).toEqual(wire.map((_event, index) => index));
      }),
      { numRuns: 500 },
    );
  });

  test("the openai SDK accepts any of them", async () => {
    await fc.assert(
      fc.asyncProperty(anyAnswer, anyRequest, async (result, fields) => {
        const context = contextFor(fields);
        const { response } = await accumulate(encode(cut(asEvents(result), 3), context));
        expect(response.output as never).toMatchObject(encodeResponse(result, context).output as never);
      }),
      { numRuns: 60 },
    );
  });

  test("the stream decoder reads from the stream what the response decoder reads from the answer", () => {
    fc.assert(
      fc.property(anyAnswer, anyRequest, (result, fields) => {
        // A decoder takes a search as a whole when it is done, so text must not come before its results.
        fc.pre(!result.parts.some(isBetween));
        const context = contextFor(fields);
        const decoder = new ResponsesStreamDecoder();
        const events = readEvents(encode(cut(asEvents(result), 2), context)).flatMap(({ data }) => [
          ...decoder.push(data),
        ]);
        events.push(...decoder.end());
        expect(collect(events)).toEqual(decodeResponse(encodeResponse(result, context)));
      }),
      { numRuns: 500 },
    );
  });
});
