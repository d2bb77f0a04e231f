// Answers in Ollama's format: whole, as a stream, kept and given again, and gone on with by another backend.

import { describe, expect, test } from "bun:test";
import { asEvents } from "../../generation/as-events.ts";
import type { ContentPart } from "../../generation/content.ts";
import type { GenerationEvent } from "../../generation/events.ts";
import type { FinishReason, GenerationResult } from "../../generation/result.ts";
import type { JsonObject } from "../../lib/json.ts";
import { temperatureIn } from "../kept-answers.ts";
import type { AnswerContext } from "../protocol.ts";
import { eventData, readEvents } from "../sse.ts";
import { embedsNothing, encodeEmbedding, encodeEmbeddings, encodeEmbedRequest } from "./embeddings.ts";
import { ollama } from "./index.ts";
import { loadAnswer, loadsModel } from "./loading.ts";

const { client, kept, join } = ollama;

/** Milliseconds pass with each look at the clock. */
function context(body: JsonObject = {}, more: Partial<AnswerContext> = {}): AnswerContext {
  let elapsed = 0;
  return {
    model: "asked:latest",
    createdAt: 99,
    now: () => 100,
    elapsedMs: () => (elapsed += 5),
    nonce: "0".repeat(32),
    request: client.decodeRequest({ model: "asked:latest", messages: [], ...body }),
    ...more,
  };
}

const PROMPT = { messages: undefined, prompt: "x" };

function result(parts: ContentPart[], reason: FinishReason = "stop"): GenerationResult {
  const usage = { input: { total: 3 }, output: { total: 2 } };
  return { id: "id", model: "far", createdAt: 5, parts, finish: { reason }, usage };
}

const PARTS: ContentPart[] = [
  { type: "reasoning", text: "Hm." },
  { type: "text", text: "I look." },
  { type: "tool-call", id: "call_1", name: "look", arguments: '{\n"n": 12345678901234567890,\r\n"at": []}' },
  { type: "tool-call", id: "call_2", name: "look", arguments: "{cut" },
];

function stream(parts: ContentPart[], asked: AnswerContext, reason?: FinishReason): JsonObject[] {
  const encoder = client.streamEncoder(asked);
  const text = asEvents(result(parts, reason)).map((event) => encoder.push(event));
  return eventData(text.join("") + encoder.end()).map((data) => JSON.parse(data) as JsonObject);
}

const HEAD = { model: "asked:latest", created_at: "1970-01-01T00:01:40.000Z" };

describe("whole answers", () => {
  test("of a conversation", () => {
    expect(client.encodeResponse(result(PARTS.slice(0, 2)), context())).toEqual({
      ...HEAD,
      message: { role: "assistant", content: "I look.", thinking: "Hm." },
      ...{ done: true, done_reason: "stop", total_duration: 5_000_000, prompt_eval_count: 3, eval_count: 2 },
    });
    const { message } = client.encodeResponse(
      result([{ ...PARTS[2], arguments: '{"a":1}' } as ContentPart]),
      context(),
    );
    expect(message).toEqual({
      role: "assistant",
      content: "",
      tool_calls: [{ id: "call_1", function: { index: 0, name: "look", arguments: { a: 1 } } }],
    });
  });

  test("of a prompt", () => {
    expect(client.encodeResponse(result(PARTS.slice(0, 2), "length"), context(PROMPT))).toMatchObject({
      ...{ response: "I look.", thinking: "Hm.", done: true, done_reason: "length" },
    });
  });

  test("nothing is made up: counts and times that are not known are left out", () => {
    const { usage: _, ...uncounted } = result([]);
    const { elapsedMs: _clock, ...timeless } = context();
    expect(Object.keys(client.encodeResponse(uncounted, timeless))).toEqual([
      ...["model", "created_at", "message", "done", "done_reason"],
    ]);
  });

  test("thoughts that the client does not want are left out", () => {
    const told = client.encodeResponse(result(PARTS.slice(0, 2)), context({ think: false }));
    expect(told.message).toEqual({ role: "assistant", content: "I look." });
  });
});

describe("streams", () => {
  test("of a conversation: pieces, each call whole with all digits, then the end", () => {
    const asked = context();
    const encoder = client.streamEncoder(asked);
    const events = asEvents(result(PARTS));
    const text = events.map((event) => encoder.push(event)).join("") + encoder.end();
    expect(text).toContain('"arguments":{ "n": 12345678901234567890, "at": []}');
    const objects = eventData(text).map((data) => JSON.parse(data) as JsonObject);
    const said = (content: string, more = {}) => ({
      ...HEAD,
      message: { role: "assistant", content, ...more },
      done: false,
    });
    expect(objects).toEqual([
      said("", { thinking: "Hm." }),
      said("I look."),
      said("", { tool_calls: [{ id: "call_1", function: { index: 0, name: "look", arguments: expect.anything() } }] }),
      said("", {
        tool_calls: [{ id: "call_2", function: { index: 1, name: "look", arguments: { INVALID_JSON: "{cut" } } }],
      }),
      {
        ...HEAD,
        message: { role: "assistant", content: "" },
        ...{ done: true, done_reason: "stop", prompt_eval_count: 3, eval_count: 2 },
        ...{ total_duration: 10_000_000, prompt_eval_duration: 5_000_000, eval_duration: 5_000_000 },
      },
    ]);
  });

  test("calls come in their order, though a later one ends first", () => {
    const encoder = client.streamEncoder(context());
    const start = (index: number, name: string): GenerationEvent => ({
      type: "part-start",
      index,
      part: { type: "tool-call", id: `call_${name}`, name },
    });
    for (const event of [start(0, "a"), start(1, "b")]) expect(encoder.push(event)).toBe("");
    expect(encoder.push({ type: "delta", index: 1, text: "{}" })).toBe("");
    expect(encoder.push({ type: "part-end", index: 1 })).toBe("");
    const [first, second] = eventData(encoder.push({ type: "part-end", index: 0 }));
    expect(first).toContain('"function":{"index":0,"name":"a","arguments":{}}');
    expect(second).toContain('"function":{"index":1,"name":"b","arguments":{}}');
  });

  test("of a prompt", () => {
    expect(stream(PARTS.slice(0, 2), context(PROMPT), "content-filter")).toMatchObject([
      { response: "", thinking: "Hm.", done: false },
      { response: "I look.", done: false },
      { response: "", done: true, done_reason: "content_filter" },
    ]);
    expect(stream(PARTS.slice(0, 1), context({ ...PROMPT, think: false }))).toHaveLength(1);
  });

  test("an error is an object with a text", () => {
    const failed: GenerationEvent = { type: "failure", failure: { message: "no luck", status: 502 } };
    expect(client.streamEncoder(context()).push(failed)).toBe('data: {"error":"no luck"}\n\n');
    const error = { status: 404, message: "none", type: "t", code: 404, requestId: "r" };
    expect(client.errorBody(error)).toEqual({ error: "none" });
    expect(client.errorEvent(error)).toBe('data: {"error":"none"}\n\n');
  });
});

describe("answers that are kept", () => {
  const events = (parts: ContentPart[], body?: JsonObject) => {
    const encoder = client.streamEncoder(context(body));
    return (
      asEvents(result(parts))
        .map((event) => encoder.push(event))
        .join("") + encoder.end()
    );
  };

  test.each([[{}], [PROMPT]] as [JsonObject][])("one form becomes the other: %j", (body) => {
    const parts: ContentPart[] = [
      ...PARTS.slice(0, 2),
      ...(body === PROMPT ? [] : [{ ...PARTS[2], arguments: '{"a":1}' } as ContentPart]),
    ];
    const whole = client.encodeResponse(result(parts), context(body));
    const told = kept.asStream(JSON.stringify(whole), false) as string;
    expect(kept.isWholeStream(told)).toBe(true);
    expect(JSON.parse(kept.asWhole(told) as string)).toEqual(whole);
    const streamed = JSON.parse(kept.asWhole(events(parts, body)) as string) as JsonObject;
    const { total_duration: _total, ...timeless } = whole;
    expect(streamed).toMatchObject(timeless);
    expect(kept.isWhole(streamed)).toBe(true);
  });

  test("what is not whole, or would lose digits, is not", () => {
    const whole = events(PARTS.slice(0, 2));
    expect(kept.isWholeStream(whole.slice(0, whole.indexOf('"done":true')))).toBe(false);
    expect(kept.isWholeStream(`${whole}data: {"error":"x"}\n\n`)).toBe(false);
    expect(kept.asWhole(whole.split("\n\n").slice(0, 2).join("\n\n"))).toBeUndefined();
    expect(kept.asWhole(events(PARTS))).toBeUndefined();
    const long =
      '{"message":{"content":"","tool_calls":[{"function":{"arguments":{"n":12345678901234567890}}}]},"done":true}';
    expect(kept.asStream(long, false)).toBeUndefined();
    expect(kept.asStream("{}", false)).toBeUndefined();
    expect([kept.isWhole({ done: false }), kept.isWhole({ done: true, error: "x" })]).toEqual([false, false]);
  });

  test("the temperature stands among the options", () => {
    expect(temperatureIn(kept, { temperature: 1, options: { temperature: 0 } })).toBe(0);
    expect(temperatureIn(kept, { temperature: 1 })).toBeUndefined();
    expect(temperatureIn(undefined, { temperature: 1 })).toBe(1);
  });
});

describe("an answer that another backend goes on with", () => {
  const sent = (...objects: JsonObject[]) =>
    join.readSent(readEvents(objects.map((object) => `data: ${JSON.stringify(object)}\n\n`).join("")));
  const said = (content: string, more = {}) => ({ message: { role: "assistant", content, ...more }, done: false });

  test("what was sent is read, and its form kept", () => {
    const seen = sent(said("", { thinking: "Hm." }), said("One "), said("two"));
    expect(seen).toMatchObject({ text: "One two", pieces: 3, openText: 7, hidesThoughts: true });
    const encoder = seen?.encoder?.(context(PROMPT));
    encoder?.push({ type: "part-start", index: 0, part: { type: "text" } });
    expect(encoder?.push({ type: "delta", index: 0, text: " three" })).toContain('"message":{"role":"assistant"');
    const end = JSON.parse(eventData(encoder?.end() ?? "")[0] as string) as JsonObject;
    expect(end).toMatchObject({ done: true });
    // When the first piece came is not known to the second backend's writer.
    expect(Object.keys(end).filter((name) => name.endsWith("_duration"))).toEqual(["total_duration"]);
    expect(sent()?.encoder).toBeUndefined();
    expect(sent({ response: "One", done: false })?.encoder?.(context()).end()).toContain('"response":""');
  });

  test("behind calls, errors and ends nothing can stand", () => {
    expect(sent(said("", { tool_calls: [{ function: { name: "f" } }] }))).toBeUndefined();
    expect(sent(said("One"), { error: "x" })).toBeUndefined();
    expect(sent(said("One"), { ...said(""), done: true })).toBeUndefined();
    expect(join.readSent([{ name: undefined, data: "no JSON" }])).toBeUndefined();
  });

  test("what is asked of the next backend", () => {
    const turns = [{ role: "user", content: "hi" }];
    const seen = sent(said("One "), said("two "));
    expect(seen?.askToGoOn({ messages: turns, options: { num_predict: 10, seed: 1 } })).toMatchObject({
      messages: [...turns, { role: "assistant", content: "One two" }],
      options: { num_predict: 8, seed: 1 },
    });
    expect(seen?.askToGoOn({ messages: turns, options: { num_predict: -1 } })).toMatchObject({
      options: { num_predict: -1 },
    });
    expect(seen?.askToGoOn({ prompt: "hi", system: "Be brief.", images: ["QUJD"] })).toMatchObject({
      prompt: undefined,
      system: undefined,
      images: undefined,
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "hi", images: ["QUJD"] },
        { role: "assistant", content: "One two" },
      ],
    });
    expect(join.askForRest({ prompt: "hi" }, "One", "Go on.")).toMatchObject({
      prompt: undefined,
      messages: [
        { role: "user", content: "hi" },
        { role: "assistant", content: "One" },
        { role: "user", content: "Go on." },
      ],
    });
  });
});

test("requests without a question load a model", () => {
  for (const body of [{}, { messages: [] }, { messages: null, prompt: "x" }])
    expect(loadsModel(body, "chat")).toBe(true);
  for (const body of [{}, { prompt: "", images: [] }]) expect(loadsModel(body, "generate")).toBe(true);
  expect(loadsModel({ messages: [{}] }, "chat")).toBe(false);
  for (const body of [{ prompt: "x" }, { images: ["x"] }]) expect(loadsModel(body, "generate")).toBe(false);
  const reason = (keep_alive: unknown) => loadAnswer("generate", { keep_alive }, "m", "t").done_reason;
  expect([reason(0), reason("0"), reason("0s"), reason("5m"), reason(undefined)]).toEqual([
    ...["unload", "unload", "unload", "load", "load"],
  ]);
  expect(loadAnswer("chat", {}, "m", "t")).toMatchObject({ message: { role: "assistant", content: "" }, done: true });
});

test("embeddings", () => {
  expect(encodeEmbedRequest({ model: "m", input: ["a"], truncate: true, options: {}, other: 1 })).toEqual({
    members: {
      model: "m",
      input: ["a"],
      truncate: undefined,
      options: undefined,
      other: undefined,
      dimensions: undefined,
    },
    lost: ["options", "truncate"],
  });
  expect(encodeEmbedRequest({ model: "m", prompt: "a" })).toEqual({
    members: { model: "m", input: "a", prompt: undefined, dimensions: undefined },
    lost: [],
  });
  const data = [
    { index: 1, embedding: [2] },
    { index: 0, embedding: [1] },
  ];
  expect(encodeEmbeddings({ data, usage: { prompt_tokens: 3 } }, "m", 1.5)).toEqual({
    ...{ model: "m", embeddings: [[1], [2]], total_duration: 1_500_000, prompt_eval_count: 3 },
  });
  expect(encodeEmbedding({ data })).toEqual({ embedding: [1] });
  expect([embedsNothing({ input: [] }), embedsNothing({ prompt: "" }), embedsNothing({ input: "a" })]).toEqual([
    ...[true, true, false],
  ]);
});
