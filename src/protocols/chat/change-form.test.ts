// Chat answers in their other form.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { asStream, asWhole } from "./change-form.ts";

function streamed(completion: object, includeUsage = false): string | undefined {
  return asStream(JSON.stringify(completion), includeUsage);
}

function joined(events: string): unknown {
  const whole = asWhole(events);
  return whole && JSON.parse(whole);
}

function chunksOf(text: string | undefined): Record<string, unknown>[] {
  const events = (text ?? "").split("\n\n").filter((event) => event !== "");
  expect(events.pop()).toBe("data: [DONE]");
  return events.map((event) => JSON.parse(event.slice("data: ".length)));
}

const ENVELOPE = { id: "c1", object: "chat.completion", created: 5, model: "m", system_fingerprint: "f" };
const USAGE = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };

function completion(message: object, finish = "stop"): object {
  const choice = {
    index: 0,
    message: { role: "assistant", content: null, ...message },
    finish_reason: finish,
    logprobs: null,
  };
  return { ...ENVELOPE, choices: [choice], usage: USAGE };
}

const CALL = { id: "t1", type: "function", function: { name: "f", arguments: '{"a":1}' } };

describe("plain as a stream", () => {
  test("text with usage", () => {
    const chunks = chunksOf(streamed(completion({ content: "hello", reasoning_content: "hm", refusal: null }), true));
    expect(chunks.map(({ choices, usage }) => [choices, usage])).toEqual([
      [
        [{ index: 0, delta: { role: "assistant", content: "", refusal: null }, logprobs: null, finish_reason: null }],
        null,
      ],
      [[{ index: 0, delta: { reasoning_content: "hm" }, logprobs: null, finish_reason: null }], null],
      [[{ index: 0, delta: { content: "hello" }, logprobs: null, finish_reason: null }], null],
      [[{ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }], null],
      [[], USAGE],
    ]);
    expect(chunks[0]).toMatchObject({ id: "c1", object: "chat.completion.chunk", created: 5, system_fingerprint: "f" });
  });

  test("usage only when asked for", () => {
    expect(streamed(completion({ content: "hello" }))).not.toContain("usage");
  });

  test("tool calls", () => {
    const chunks = chunksOf(streamed(completion({ tool_calls: [CALL, { ...CALL, id: "t2" }] }, "tool_calls")));
    expect(chunks[1]?.choices).toMatchObject([{ delta: { tool_calls: [{ index: 0, ...CALL }] } }]);
    expect(chunks[2]?.choices).toMatchObject([{ delta: { tool_calls: [{ index: 1, id: "t2" }] } }]);
  });

  test.each([
    ["no JSON", "x"],
    ["no choices", "{}"],
    ["sound", JSON.stringify(completion({ audio: { id: "a" } }))],
  ])("%s cannot be converted", (_name, body) => {
    expect(asStream(body, false)).toBeUndefined();
  });
});

describe("a stream as plain", () => {
  function events(...chunks: object[]): string {
    return `${chunks.map((chunk) => `data: ${JSON.stringify({ ...ENVELOPE, ...chunk })}\n\n`).join("")}data: [DONE]\n\n`;
  }
  const delta = (value: object, finish: string | null = null, index = 0) => ({
    choices: [{ index, delta: value, finish_reason: finish }],
  });

  test("text, choices and tool calls in pieces", () => {
    const fragment = (value: object) => delta({ tool_calls: [{ index: 0, ...value }] }, null, 1);
    const answer = joined(
      events(
        delta({ role: "assistant", content: "" }),
        delta({ role: "assistant", content: null }, null, 1),
        delta({ content: "hel" }),
        fragment({ id: "t1", type: "function", function: { name: "f", arguments: "" } }),
        fragment({ function: { arguments: '{"a"' } }),
        delta({ content: "lo" }),
        fragment({ function: { arguments: ":1}" } }),
        delta({}, "tool_calls", 1),
        delta({}, "stop"),
        { choices: [], usage: USAGE },
      ),
    );
    expect(answer).toEqual({
      ...ENVELOPE,
      choices: [
        { index: 0, message: { role: "assistant", content: "hello" }, logprobs: null, finish_reason: "stop" },
        {
          index: 1,
          message: { role: "assistant", content: null, tool_calls: [CALL] },
          logprobs: null,
          finish_reason: "tool_calls",
        },
      ],
      usage: USAGE,
    });
  });

  test.each([
    ["an unknown part", events(delta({ images: [1] }), delta({}, "stop"))],
    ["an unfinished choice", events(delta({ content: "a" }))],
    ["something else", 'data: {"type":"x"}\n\ndata: [DONE]\n\n'],
  ])("%s cannot be converted", (_name, text) => {
    expect(joined(text)).toBeUndefined();
  });
});

test("plain, as a stream, as plain is the same answer", () => {
  const message = fc.record(
    {
      content: fc.option(fc.string({ minLength: 1 })),
      reasoning_content: fc.string({ minLength: 1 }),
      refusal: fc.constant(null),
      tool_calls: fc.array(
        fc.record({
          id: fc.string({ minLength: 1 }),
          type: fc.constant("function"),
          function: fc.record({ name: fc.string({ minLength: 1 }), arguments: fc.string() }),
        }),
        { minLength: 1, maxLength: 3 },
      ),
    },
    { requiredKeys: ["content"] },
  );
  const logprobs = fc.option(fc.constant({ content: [{ token: "a", logprob: -1 }], refusal: null }));
  fc.assert(
    fc.property(fc.array(fc.tuple(message, logprobs), { minLength: 1, maxLength: 3 }), (parts) => {
      const choices = parts.map(([part, tokens], index) => ({
        index,
        message: { role: "assistant", ...part },
        logprobs: part.content === null ? null : tokens,
        finish_reason: "stop",
      }));
      const answer = JSON.parse(JSON.stringify({ ...ENVELOPE, choices, usage: USAGE }));
      expect(joined(streamed(answer, true) as string)).toEqual(answer);
    }),
  );
});
