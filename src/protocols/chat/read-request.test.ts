// Chat completion requests: which bodies are refused, at which field, and what is read from the others.

import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../errors/gateway-error.ts";
import type { JsonObject } from "../../lib/json.ts";
import { readChatRequest } from "./read-request.ts";

const messages = [{ role: "user", content: "hi" }];

function refusal(body: JsonObject): { param: string | undefined; code: unknown; message: string } {
  try {
    readChatRequest(body);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    expect(error.status).toBe(400);
    return { param: error.param, code: error.code, message: error.message };
  }
  throw new Error(`nothing was refused in ${JSON.stringify(body)}`);
}

describe("what is read", () => {
  test("model, and no stream unless it is asked for", () => {
    const body = { model: "m", messages };
    const summary = readChatRequest(body);
    expect({ ...summary, affinity: summary.affinity(body) }).toEqual({
      model: "m",
      stream: false,
      choices: 1,
      affinity: messages.map((message) => JSON.stringify(message)).join("\n"),
    });
    expect(readChatRequest({ model: "m", messages, stream: true }).stream).toBe(true);
  });

  test("a complete answer has n choices, one by default", () => {
    expect(
      [{ n: 3 }, { n: null }, {}].map((more) => readChatRequest({ model: "m", messages, ...more }).choices),
    ).toEqual([3, 1, 1]);
  });

  test("the affinity is prompt_cache_key before user", () => {
    const { affinity } = readChatRequest({ model: "m", messages });
    expect(affinity({ messages, user: "u" })).toBe("u");
    expect(affinity({ messages, user: "u", prompt_cache_key: "k" })).toBe("k");
    expect(affinity({ messages, user: "u", prompt_cache_key: 5 })).toBe("u");
  });
});

describe("the affinity of a conversation without such fields", () => {
  const affinity = (conversation: JsonObject[]) =>
    readChatRequest({ model: "m", messages }).affinity({ messages: conversation }) as string;
  const system = { role: "system", content: "be brief" };
  const [first, other] = ["hi", "ho"].map((content) => ({ role: "user", content }));

  test("stays the same in every turn, and differs where the start differs", () => {
    const start = [system, first as JsonObject];
    const later = [...start, { role: "assistant", content: "hello" }, { role: "user", content: "more" }];
    expect(affinity(later)).toBe(affinity(start));
    const others = [
      [system, other as JsonObject],
      [first as JsonObject],
      [{ ...system, content: "x" }, ...start.slice(1)],
    ];
    expect(new Set([start, ...others].map(affinity)).size).toBe(4);
  });

  test("is bounded, however long the start is", () => {
    const long = affinity([{ role: "user", content: "x".repeat(100_000) }]);
    expect(long.length).toBe(4_096);
  });
});

describe("what passes", () => {
  const bodies: [title: string, more: JsonObject][] = [
    ["fields that nobody knows", { some_future_field: { deep: [1] }, client_metadata: { a: 1 } }],
    [
      "null for every optional field",
      {
        temperature: null,
        top_p: null,
        n: null,
        stop: null,
        stream: null,
        stream_options: null,
        logit_bias: null,
        user: null,
        tools: null,
        max_tokens: null,
        max_completion_tokens: null,
        top_logprobs: null,
        reasoning: null,
        reasoning_effort: null,
        frequency_penalty: null,
        presence_penalty: null,
      },
    ],
    ["the bounds themselves", { temperature: 2, top_p: 0, n: 128, frequency_penalty: -2, presence_penalty: 2 }],
    ["the smallest numbers of tokens", { max_tokens: 1, max_completion_tokens: 1, top_logprobs: 0 }],
    ["any effort", { reasoning_effort: "ultra", reasoning: { effort: "whatever", other: 1 } }],
    ["an assistant turn of tool calls", { messages: [{ role: "assistant", content: null, tool_calls: [{}] }] }],
    ["an assistant turn without content", { messages: [{ role: "assistant", refusal: "no" }] }],
    ["roles that nobody knows", { messages: [{ role: "narrator", content: "x" }] }],
    ["empty text", { messages: [{ role: "user", content: "" }] }],
    ["parts that nobody knows", { messages: [{ role: "user", content: [{ type: "hologram", data: 1 }] }] }],
    ["tool results", { messages: [{ role: "tool", tool_call_id: "t", content: [{ type: "text", text: "x" }] }] }],
    ["tools", { tools: [{ type: "function", function: { name: "f" } }], tool_choice: "auto" }],
  ];
  test.each(bodies)("%s", (_title, more) => {
    expect(readChatRequest({ model: "m", messages, ...more }).model).toBe("m");
  });
});

describe("what is refused", () => {
  const cases: [more: JsonObject, param: string, message: string][] = [
    [{ model: 5 }, "model", "model: expected a string, got a number."],
    [{ messages: undefined }, "messages", "messages is required: an array of {role, content} objects."],
    [{ messages: null }, "messages", "messages is required: an array of {role, content} objects."],
    [{ messages: "hi" }, "messages", "messages: expected an array, got a string."],
    [{ messages: { role: "user" } }, "messages", "messages: expected an array, got an object."],
    [{ messages: [] }, "messages", "messages: must hold at least one message."],
    [{ messages: [...messages, "hi"] }, "messages[1]", "messages[1]: expected an object, got a string."],
    [{ messages: [null] }, "messages[0]", "messages[0]: expected an object, got null."],
    [{ messages: [[]] }, "messages[0]", "messages[0]: expected an object, got an array."],
    [
      { messages: [{ content: "x" }] },
      "messages[0].role",
      "messages[0].role is required: such as system, user, assistant or tool.",
    ],
    [
      { messages: [{ role: 1, content: "x" }] },
      "messages[0].role",
      'messages[0].role: expected a role such as "user", got a number.',
    ],
    [
      { messages: [{ role: "", content: "x" }] },
      "messages[0].role",
      'messages[0].role: expected a role such as "user", got a string.',
    ],
    [
      { messages: [...messages, { role: "user" }] },
      "messages[1].content",
      "messages[1].content is required: a string or an array of content parts.",
    ],
    [
      { messages: [{ role: "system", content: null }] },
      "messages[0].content",
      "messages[0].content is required: a string or an array of content parts.",
    ],
    [
      { messages: [{ role: "user", content: 5 }] },
      "messages[0].content",
      "messages[0].content: expected a string or an array of content parts, got a number.",
    ],
    [
      { messages: [{ role: "assistant", content: {} }] },
      "messages[0].content",
      "messages[0].content: expected a string or an array of content parts, got an object.",
    ],
    [
      { messages: [{ role: "user", content: [{ type: "text", text: "a" }, "b"] }] },
      "messages[0].content[1]",
      "messages[0].content[1]: expected an object, got a string.",
    ],
    [
      { messages: [{ role: "user", content: [{ text: "a" }] }] },
      "messages[0].content[0].type",
      'messages[0].content[0].type: expected a part type such as "text".',
    ],
    [{ temperature: 2.01 }, "temperature", "temperature: expected a number from 0 to 2, got 2.01."],
    [{ temperature: -0.1 }, "temperature", "temperature: expected a number from 0 to 2, got -0.1."],
    [{ temperature: "1" }, "temperature", "temperature: expected a number, got a string."],
    [{ top_p: 1.1 }, "top_p", "top_p: expected a number from 0 to 1, got 1.1."],
    [{ frequency_penalty: 3 }, "frequency_penalty", "frequency_penalty: expected a number from -2 to 2, got 3."],
    [{ presence_penalty: -3 }, "presence_penalty", "presence_penalty: expected a number from -2 to 2, got -3."],
    [{ n: 0 }, "n", "n: expected an integer from 1 to 128, got 0."],
    [{ max_tokens: 0 }, "max_tokens", "max_tokens: expected an integer of at least 1, got 0."],
    [
      { max_completion_tokens: 1.5 },
      "max_completion_tokens",
      "max_completion_tokens: expected an integer of at least 1, got 1.5.",
    ],
    [{ top_logprobs: 21 }, "top_logprobs", "top_logprobs: expected an integer from 0 to 20, got 21."],
    [{ stream: "yes" }, "stream", "stream: expected true or false, got a string."],
    [{ stream_options: true }, "stream_options", "stream_options: expected an object, got a boolean."],
    [{ stop: [1] }, "stop[0]", "stop[0]: expected a string, got a number."],
    [{ logit_bias: [] }, "logit_bias", "logit_bias: expected an object, got an array."],
    [{ user: 5 }, "user", "user: expected a string, got a number."],
    [{ tools: {} }, "tools", "tools: expected an array, got an object."],
    [{ reasoning_effort: 1 }, "reasoning_effort", "reasoning_effort: expected a string, got a number."],
    [{ reasoning: "high" }, "reasoning", "reasoning: expected an object, got a string."],
    [{ reasoning: { effort: 1 } }, "reasoning.effort", "reasoning.effort: expected a string, got a number."],
  ];
  test.each(cases)("%j at %s", (more, param, message) => {
    const error = refusal({ model: "m", messages, ...more });
    expect({ param: error.param, message: error.message }).toEqual({ param, message });
    expect(error.code).toBe(message.includes("is required") ? "missing_required_parameter" : "invalid_value");
  });
});
