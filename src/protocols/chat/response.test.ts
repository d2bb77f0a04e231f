// Whole answers: what is read of a chat backend's, what a chat client is given, and that both fit together.

import { describe, expect, test } from "bun:test";
import type { ContentPart } from "../../generation/content.ts";
import type { GenerationResult } from "../../generation/result.ts";
import type { JsonObject } from "../../lib/json.ts";
import { type AnswerContext, AnswerFailed, DecodeError } from "../protocol.ts";
import { decodeRequest } from "./request-decoder.ts";
import { decodeResponse } from "./response-decoder.ts";
import { encodeResponse } from "./response-encoder.ts";

function answer(message: JsonObject, more: JsonObject = {}, finish_reason: unknown = "stop"): JsonObject {
  return {
    id: "chatcmpl-1",
    created: 12,
    model: "b",
    choices: [{ index: 0, message: { role: "assistant", content: null, ...message }, finish_reason }],
    ...more,
  };
}

function context(more: JsonObject = {}): AnswerContext {
  const body = { model: "asked", messages: [{ role: "user", content: "hi" }], ...more };
  return { model: "asked", createdAt: 99, nonce: "0".repeat(32), request: decodeRequest(body) };
}

function result(parts: ContentPart[], more: Partial<GenerationResult> = {}): GenerationResult {
  return { id: "", model: "b", createdAt: 0, parts, finish: { reason: "stop" }, ...more };
}

function messageOf(parts: ContentPart[], more: JsonObject = {}): unknown {
  const body = encodeResponse(result(parts), context(more)) as { choices: { message: unknown }[] };
  return body.choices[0]?.message;
}

describe("parts of an answer", () => {
  const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
  const part: ContentPart = { type: "tool-call", id: "c", name: "f", arguments: "{}" };
  const cases: [title: string, message: JsonObject, expected: ContentPart[]][] = [
    ["text", { content: "x" }, [{ type: "text", text: "x" }]],
    ["nothing", { content: "" }, []],
    [
      "reasoning_content",
      { reasoning_content: "hm", content: "x" },
      [
        { type: "reasoning", text: "hm" },
        { type: "text", text: "x" },
      ],
    ],
    ["reasoning", { reasoning: "hm" }, [{ type: "reasoning", text: "hm" }]],
    ["both names", { reasoning: "hm", reasoning_content: "hm" }, [{ type: "reasoning", text: "hm" }]],
    ["one of them empty", { reasoning: "hm", reasoning_content: "" }, [{ type: "reasoning", text: "hm" }]],
    [
      "thoughts as parts of the content",
      {
        content: [
          { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
          { type: "text", text: "x" },
        ],
      },
      [
        { type: "reasoning", text: "hm" },
        { type: "text", text: "x" },
      ],
    ],
    ["refusal", { refusal: "no" }, [{ type: "refusal", text: "no" }]],
    ["calls", { tool_calls: [call] }, [part]],
    [
      "calls without ids",
      {
        tool_calls: [
          { ...call, id: "" },
          { ...call, id: null },
        ],
      },
      [
        { ...part, id: "tool_0" },
        { ...part, id: "tool_1" },
      ],
    ],
    [
      "arguments as an object",
      { tool_calls: [{ ...call, function: { name: "f", arguments: { a: 1 } } }] },
      [{ ...part, arguments: '{"a":1}' }],
    ],
    ["no arguments", { tool_calls: [{ ...call, function: { name: "f" } }] }, [{ ...part, arguments: "" }]],
    ["the deprecated call", { function_call: { name: "f", arguments: "{}" } }, [{ ...part, id: "tool_0" }]],
    [
      "a custom call",
      { tool_calls: [{ id: "c", type: "custom", custom: { name: "f", input: "free" } }] },
      [{ ...part, arguments: "free", custom: true }],
    ],
    [
      "details in pieces, with their proofs (OpenRouter)",
      {
        reasoning: "hm",
        reasoning_details: [
          { type: "reasoning.text", text: "h", format: "anthropic-claude-v1", index: 0 },
          { type: "reasoning.text", text: "m", signature: "s", format: "anthropic-claude-v1", index: 0 },
          { type: "reasoning.encrypted", data: "d", format: "anthropic-claude-v1", index: 1 },
        ],
      },
      [
        { type: "reasoning", text: "hm", signature: "s", origin: "messages" },
        { type: "reasoning", text: "", sealed: "d", origin: "messages" },
      ],
    ],
    [
      "a signature without words is that of the thoughts beside it",
      {
        reasoning_content: "hm",
        reasoning_details: [{ type: "reasoning.text", signature: "s", format: "anthropic-claude-v1" }],
      },
      [{ type: "reasoning", text: "hm", signature: "s", origin: "messages" }],
    ],
    [
      "signatures of which nobody knows what they prove",
      {
        reasoning_content: "hm",
        reasoning_details: ["s", "t"].map((signature) => ({ signature, format: "anthropic-claude-v1" })),
      },
      [{ type: "reasoning", text: "hm" }],
    ],
    [
      "a function with an empty custom beside it (Snowflake)",
      { tool_calls: [{ ...call, function: { name: "f", arguments: "{}" }, custom: {} }] },
      [{ ...part, arguments: "{}" }],
    ],
    [
      "wrong types everywhere",
      { content: 5, refusal: {}, tool_calls: "x", annotations: 1, images: [null], reasoning: [] },
      [],
    ],
    [
      "an image",
      { images: [{ type: "image_url", image_url: { url: "data:image/png;base64,AA" } }] },
      [{ type: "image", source: { kind: "base64", mediaType: "image/png", data: "AA" } }],
    ],
    [
      "annotations",
      {
        content: "x",
        annotations: [{ url_citation: { url: "u", start_index: 0, end_index: 1 } }, { url_citation: {} }, null],
      },
      [{ type: "text", text: "x", citations: [{ url: "u", startIndex: 0, endIndex: 1 }] }],
    ],
  ];
  test.each(cases)("%s", (_title, message, expected) => {
    expect(decodeResponse(answer(message)).parts).toEqual(expected);
  });
});

describe("why it ended", () => {
  const calls = { tool_calls: [{ id: "c", function: { name: "f" } }] };
  const cases: [word: unknown, message: JsonObject, expected: string][] = [
    ["stop", { content: "x" }, "stop"],
    ["length", { content: "x" }, "length"],
    ["content_filter", {}, "content-filter"],
    ["tool_calls", calls, "tool-calls"],
    ["function_call", { function_call: { name: "f" } }, "tool-calls"],
    ["stop", calls, "tool-calls"],
    [null, calls, "tool-calls"],
    ["length", calls, "length"],
    ["tool_calls", { content: "no calls" }, "stop"],
    [null, { content: "x" }, "stop"],
    ["eos", { content: "x" }, "stop"],
    [3, { content: "x" }, "stop"],
  ];
  test.each(cases)("%j with %j: %s", (word, message, expected) => {
    expect(decodeResponse(answer(message, {}, word)).finish.reason as string).toBe(expected);
  });

  test("a stop string that the engine names", () => {
    const body = answer({ content: "x" });
    (body.choices as JsonObject[])[0] = { ...(body.choices as JsonObject[])[0], stop_reason: "END" };
    expect(decodeResponse(body).finish).toMatchObject({ reason: "stop-sequence", stopSequence: "END" });
  });
});

describe("usage", () => {
  test("is read with its details", () => {
    const usage = {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 15,
      prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 },
      completion_tokens_details: { reasoning_tokens: 2 },
    };
    const decoded = decodeResponse(answer({ content: "x" }, { usage })).usage;
    expect(decoded).toEqual({ input: { total: 10, cacheRead: 4, cacheWrite: 3 }, output: { total: 5, reasoning: 2 } });
    const parts: ContentPart[] = [{ type: "text", text: "x" }];
    expect(encodeResponse(result(parts, decoded === undefined ? {} : { usage: decoded }), context()).usage).toEqual(
      usage,
    );
  });

  const cases: [usage: unknown, expected: unknown][] = [
    [null, undefined],
    ["x", undefined],
    [{}, undefined],
    [
      { prompt_tokens: 3, total_tokens: 5 },
      { input: { total: 3 }, output: { total: 2 } },
    ],
    [
      { prompt_tokens: -1, completion_tokens: 2 },
      { input: { total: 0 }, output: { total: 2 } },
    ],
    [
      { prompt_tokens: 9, completion_tokens: 2, cached_tokens: 4 }, // Moonshot
      { input: { total: 9, cacheRead: 4 }, output: { total: 2 } },
    ],
    [
      // OpenRouter counts what was written among what was read.
      {
        prompt_tokens: 2168,
        completion_tokens: 2,
        prompt_tokens_details: { cached_tokens: 2154, cache_write_tokens: 2154 },
      },
      { input: { total: 2168, cacheRead: 0, cacheWrite: 2154 }, output: { total: 2 } },
    ],
    [
      { prompt_tokens: 5, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 90, cache_write_tokens: 9 } },
      { input: { total: 5, cacheRead: 0, cacheWrite: 5 }, output: { total: 2 } },
    ],
    [
      { prompt_tokens: 5, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 7 } },
      { input: { total: 5, cacheRead: 5 }, output: { total: 2 } },
    ],
    [
      { prompt_tokens: 3, completion_tokens: 2, prompt_tokens_details: null },
      { input: { total: 3 }, output: { total: 2 } },
    ],
  ];
  test.each(cases)("%j", (usage, expected) => {
    expect(decodeResponse(answer({ content: "x" }, { usage })).usage as unknown).toEqual(expected);
  });
});

describe("what is no answer", () => {
  test.each([
    [{}],
    [{ choices: null }],
    [{ choices: [] }],
    [{ choices: [null] }],
    [{ choices: [{ message: "x" }] }],
    [answer({ tool_calls: [{ id: "x", function: { arguments: "{}" } }] })],
  ])("%j", (body) => {
    expect(() => decodeResponse(body as JsonObject)).toThrow(DecodeError);
  });

  const failures: [body: JsonObject, status: number, message: string][] = [
    [{ error: { message: "full", code: 400, type: "exceed_context_size_error" } }, 400, "full"],
    [{ error: "cuda" }, 502, "cuda"],
    [{ object: "error", message: "old vLLM", code: 404 }, 404, "old vLLM"],
    [{ error: { message: "slow down", code: "rate_limit_exceeded" }, choices: [] }, 429, "slow down"],
    [answer({ content: "x" }, {}, "error"), 502, "The backend broke off its answer (error)."],
  ];
  test.each(failures)("an error inside a 200: %j", (body, status, message) => {
    try {
      decodeResponse(body);
    } catch (error) {
      if (!(error instanceof AnswerFailed)) throw error;
      expect(error.failure).toMatchObject({ status, message });
      return;
    }
    throw new Error("read as an answer");
  });
});

describe("what a client is given", () => {
  test("a whole answer", () => {
    const usage = { input: { total: 1 }, output: { total: 2 } };
    expect(encodeResponse(result([{ type: "text", text: "x" }], { usage }), context())).toEqual({
      id: `chatcmpl-${"0".repeat(32)}`,
      object: "chat.completion",
      created: 99,
      model: "asked",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "x", refusal: null },
          logprobs: null,
          finish_reason: "stop",
        },
      ],
      usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
    });
  });

  test("the backend's id and time where it gave them", () => {
    const body = encodeResponse(result([], { id: "msg_1", createdAt: 7 }), context());
    expect([body.id, body.created]).toEqual(["msg_1", 7]);
    expect("usage" in body).toBe(false);
  });

  const cases: [title: string, parts: ContentPart[], expected: JsonObject][] = [
    ["nothing", [], { content: "" }],
    ["refusal", [{ type: "refusal", text: "no" }], { content: null, refusal: "no" }],
    [
      "calls",
      [
        { type: "tool-call", id: "1", name: "f", arguments: "", signature: "s" },
        { type: "tool-call", id: "2", name: "g", arguments: "free", custom: true },
      ],
      {
        content: null,
        tool_calls: [
          {
            id: "1",
            type: "function",
            function: { name: "f", arguments: "{}" },
            extra_content: { google: { thought_signature: "s" } },
          },
          { id: "2", type: "custom", custom: { name: "g", input: "free" } },
        ],
      },
    ],
    [
      "thoughts with a proof",
      [
        { type: "reasoning", text: "hm", signature: "s", origin: "messages" },
        { type: "text", text: "x" },
      ],
      {
        content: "x",
        reasoning_content: "hm",
        reasoning_details: [{ type: "reasoning.text", format: "anthropic-claude-v1", text: "hm", signature: "s" }],
      },
    ],
    [
      "citations count in the whole content",
      [
        { type: "text", text: "ab" },
        {
          type: "text",
          text: "cde",
          citations: [{ url: "u", title: "t" }, { url: "v", startIndex: 1, endIndex: 2 }, {}],
        },
      ],
      {
        content: "abcde",
        annotations: [
          { type: "url_citation", url_citation: { start_index: 2, end_index: 5, title: "t", url: "u" } },
          { type: "url_citation", url_citation: { start_index: 3, end_index: 4, title: "v", url: "v" } },
        ],
      },
    ],
    [
      "what chat cannot hold is left out",
      [
        { type: "tool-call", id: "s", name: "web_search", arguments: "{}", serverSide: true },
        { type: "search-result", callId: "s", results: [] },
        { type: "opaque", protocol: "messages", value: {} },
        { type: "text", text: "x" },
      ],
      { content: "x" },
    ],
  ];
  test.each(cases)("%s", (_title, parts, expected) => {
    expect(messageOf(parts)).toEqual({ role: "assistant", refusal: null, ...expected });
  });

  test("the deprecated form for clients that ask in it", () => {
    const parts: ContentPart[] = [{ type: "tool-call", id: "1", name: "f", arguments: "{}" }];
    const body = encodeResponse(
      result(parts, { finish: { reason: "tool-calls" } }),
      context({ functions: [{ name: "f" }] }),
    );
    expect(body.choices).toMatchObject([
      { message: { content: null, function_call: { name: "f", arguments: "{}" } }, finish_reason: "function_call" },
    ]);
  });

  test("no thoughts for a client that wants none", () => {
    const parts: ContentPart[] = [
      { type: "reasoning", text: "hm" },
      { type: "text", text: "x" },
    ];
    expect(messageOf(parts, { reasoning: { exclude: true } })).toEqual({
      role: "assistant",
      content: "x",
      refusal: null,
    });
  });

  test("a replayed answer has all its proofs", () => {
    const parts: ContentPart[] = [
      { type: "reasoning", text: "hm", signature: "s", origin: "messages" },
      { type: "reasoning", text: "", sealed: "d", origin: "messages" },
      { type: "text", text: "x", signature: "t" },
      { type: "tool-call", id: "1", name: "f", arguments: '{"a":1}', signature: "g" },
    ];
    const messages = [{ role: "user", content: "hi" }, messageOf(parts)];
    expect(decodeRequest({ model: "m", messages }).messages[1]?.parts).toEqual(parts);
  });
});
