// Text completions in front of backends that know only conversations: what is read, refused and answered.

import { describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { GatewayError } from "../../errors/gateway-error.ts";
import { asEvents } from "../../generation/as-events.ts";
import type { ContentPart } from "../../generation/content.ts";
import type { FinishReason, GenerationResult } from "../../generation/result.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { AnswerContext } from "../protocol.ts";
import { eventData } from "../sse.ts";
import { completionsClient } from "./index.ts";

function decode(more: JsonObject = {}) {
  return completionsClient.decodeRequest({ model: "asked", prompt: "hi", ...more });
}

function context(more: JsonObject = {}): AnswerContext {
  return { model: "asked", createdAt: 99, nonce: "0".repeat(32), request: decode(more) };
}

function result(parts: ContentPart[], reason: FinishReason = "stop"): GenerationResult {
  const usage = { input: { total: 3, cacheRead: 1, cacheWrite: 2 }, output: { total: 2 } };
  return { id: "", model: "b", createdAt: 0, parts, finish: { reason }, usage };
}

const PARTS: ContentPart[] = [
  { type: "reasoning", text: "hm" },
  { type: "text", text: "a" },
  { type: "text", text: '"b"\n' },
];

function stream(more: JsonObject = {}): string {
  const encoder = completionsClient.streamEncoder(context(more));
  const events = asEvents(result(PARTS, "length"));
  return events.map((event) => encoder.push(event)).join("") + encoder.end();
}

describe("requests", () => {
  test.each([["hi"], [["hi"]]])("the prompt %j is what the user says", (prompt) => {
    expect(decode({ prompt }).messages).toEqual([{ role: "user", parts: [{ type: "text", text: "hi" }] }]);
  });

  test("settings", () => {
    const request = decode({
      ...{ max_tokens: 5, temperature: 0, top_p: 0.5, n: 1, stop: ["x"], seed: 3, logprobs: 2, stream: true },
      ...{ user: "u", best_of: 3, suffix: "", echo: false, future: 1 },
    });
    expect(request).toMatchObject({ maxOutputTokens: 5, stream: true, user: "u" });
    expect(request.sampling).toEqual({
      ...{ temperature: 0, topP: 0.5, choices: 1, stop: ["x"], seed: 3, logprobs: true, topLogprobs: 2 },
    });
    expect(request.extensions).toEqual({ best_of: 3, future: 1 });
  });

  const refused: [field: string, more: JsonObject][] = [
    ["prompt", { prompt: ["a", "b"] }],
    ["prompt", { prompt: [] }],
    ["prompt", { prompt: [1, 2] }],
    ["prompt", { prompt: [7] }],
    ["prompt", { prompt: [[1, 2]] }],
    ["prompt", { prompt: null }],
    ["suffix", { suffix: "x" }],
    ["echo", { echo: true }],
    ["max_tokens", { max_tokens: 0 }],
    ["temperature", { temperature: 3 }],
  ];
  test.each(refused)("%s is refused in %j", (field, more) => {
    try {
      decode(more);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      expect([error.status, error.param]).toEqual([400, field]);
      return;
    }
    throw new Error("nothing was refused");
  });
});

describe("answers", () => {
  const head = { id: `cmpl-${"0".repeat(32)}`, object: "text_completion", created: 99, model: "asked" };
  const usage = {
    prompt_tokens: 3,
    completion_tokens: 2,
    total_tokens: 5,
    prompt_tokens_details: { cached_tokens: 1, cache_write_tokens: 2 },
  };
  const choice = (text: string, finish_reason: string | null) => [{ text, index: 0, logprobs: null, finish_reason }];

  test("whole", () => {
    expect(completionsClient.encodeResponse(result(PARTS), context())).toEqual({
      ...head,
      choices: choice('a"b"\n', "stop"),
      usage,
    });
  });

  const reasons: [FinishReason, string][] = [
    ["stop", "stop"],
    ["stop-sequence", "stop"],
    ["length", "length"],
    ["content-filter", "content_filter"],
    ["pause", "stop"],
  ];
  test.each(reasons)("%s: %s", (reason, word) => {
    expect(completionsClient.encodeResponse(result([], reason), context()).choices).toEqual(choice("", word));
  });

  test("streamed", () => {
    const chunks = eventData(stream());
    expect(chunks.pop()).toBe("[DONE]");
    expect(chunks.map((data) => JSON.parse(data) as unknown)).toEqual([
      { ...head, choices: choice("a", null) },
      { ...head, choices: choice('"b"\n', null) },
      { ...head, choices: choice("", "length") },
    ]);
  });

  test("streamed with usage", () => {
    const chunks = eventData(stream({ stream_options: { include_usage: true } }));
    const values = chunks.slice(0, -1).map((data) => JSON.parse(data) as { usage: unknown });
    expect(values.map((value) => value.usage)).toEqual([null, null, null, usage]);
    expect(values.at(-1)).toEqual({ ...head, choices: [], usage } as { usage: unknown });
  });

  test("a failure ends a stream without a finish", () => {
    const encoder = completionsClient.streamEncoder(context());
    expect(encoder.push({ type: "failure", failure: { message: "m", status: 500 } })).toBe(
      'data: {"error":{"message":"m","type":"backend_error","code":500}}\n\n',
    );
  });

  test("errors have the standard shape", () => {
    const error = { status: 404, message: "m", type: "t", code: "c", requestId: "r", param: "p" };
    const body = { error: { message: "m", type: "t", code: "c", param: "p", request_id: "r" } };
    expect(completionsClient.errorBody(error)).toEqual(body);
    expect(completionsClient.errorEvent(error)).toBe(`data: ${JSON.stringify(body)}\n\n`);
  });

  test("the OpenAI library reads the stream", async () => {
    const answer = async (): Promise<Response> =>
      new Response(stream(), { headers: { "content-type": "text/event-stream" } });
    const client = new OpenAI({
      apiKey: "sekret",
      baseURL: "http://x.invalid/v1",
      fetch: answer as unknown as typeof fetch,
    });
    let text = "";
    for await (const { choices } of await client.completions.create({ model: "asked", prompt: "hi", stream: true })) {
      text += choices[0]?.text ?? "";
    }
    expect(text).toBe('a"b"\n');
  });
});
