// Which Responses answers are kept, and how they are told in their other form.

import { describe, expect, test } from "bun:test";
import { readEvents } from "../sse.ts";
import { responsesKept } from "./kept-answers.ts";

type Members = Record<string, unknown>;

const message = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  status: "completed",
  content: [
    { type: "output_text", text: "hi", annotations: [{ type: "url_citation", url: "https://h" }], logprobs: [] },
  ],
};
const thoughts = {
  id: "rs_1",
  type: "reasoning",
  summary: [{ type: "summary_text", text: "hm" }],
  encrypted_content: "x",
};
const call = { id: "fc_1", type: "function_call", status: "completed", call_id: "c", name: "f", arguments: '{"a":1}' };
const custom = { id: "ctc_1", type: "custom_tool_call", call_id: "d", name: "g", input: "run" };
const response = (more: Members = {}) => ({
  id: "resp_1",
  object: "response",
  created_at: 5,
  completed_at: 6,
  status: "completed",
  error: null,
  metadata: { a: "b" },
  output: [thoughts, message, call, custom],
  usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
  ...more,
});

const told = (answer: object) => responsesKept.asStream(JSON.stringify(answer), true);
const eventsOf = (text = ""): Members[] => readEvents(text).map(({ data }) => JSON.parse(data) as Members);

describe("whole answers", () => {
  test.each([
    ["complete", response(), true],
    ["incomplete", response({ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }), false],
    ["failed", response({ status: "failed", error: { code: "x" } }), false],
    ["queued", response({ status: "queued", output: [] }), false],
    ["of nothing", response({ output: [] }), false],
    ["with an error", response({ error: { code: "x" } }), false],
    ["with an item cut off", response({ output: [{ ...message, status: "incomplete" }] }), false],
    ["with a search", response({ output: [{ type: "web_search_call", status: "completed" }, message] }), false],
    ["with an item of tomorrow", response({ output: [{ type: "tomorrow" }] }), false],
  ])("%s: %p", (_name, answer, expected) => {
    expect(responsesKept.isWhole(answer)).toBe(expected);
    expect(told(answer) !== undefined).toBe(expected);
  });
});

test("a whole answer as a stream: numbered events, items in their order, the answer itself at the end", () => {
  const text = told(response()) as string;
  const events = eventsOf(text);
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
  expect(readEvents(text).map(({ name }) => name)).toEqual(events.map(({ type }) => type as string));
  expect(events.map(({ type }) => String(type).replace("response.", ""))).toEqual([
    ...["created", "in_progress"],
    ...["output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta"],
    ...["reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done"],
    ...["output_item.added", "content_part.added", "output_text.delta", "output_text.annotation.added"],
    ...["output_text.done", "content_part.done", "output_item.done"],
    ...["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"],
    ...["output_item.added", "custom_tool_call_input.delta", "custom_tool_call_input.done", "output_item.done"],
    "completed",
  ]);
  expect(events[0]?.response).toEqual({
    ...response(),
    status: "in_progress",
    completed_at: null,
    output: [],
    usage: null,
  });
  expect(events[2]).toMatchObject({ output_index: 0, item: { id: "rs_1", type: "reasoning", summary: [] } });
  expect(events[2]?.item).not.toHaveProperty("encrypted_content");
  expect(events.at(-1)?.response).toEqual(response());
  expect(JSON.parse(responsesKept.asWhole(text) as string)).toEqual(response());
});

describe("streams", () => {
  const whole = told(response()) as string;
  const cut = (type: string) => {
    const events = whole.split(/(?<=\n\n)/);
    return events.filter((event) => !event.startsWith(`event: ${type}\n`)).join("");
  };
  test.each([
    ["complete", whole, true],
    ["without its end", cut("response.completed"), false],
    ["that failed", whole.replaceAll("response.completed", "response.failed"), false],
    ["with an error", `event: error\ndata: {"type":"error","message":"x"}\n\n${whole}`, false],
    ["whose end holds fewer items than were told", whole.replace(/"output":\[\{.*?\},\{/s, '"output":[{'), false],
    ["whose texts speak of errors", whole.replaceAll('"hi"', '"{\\"type\\":\\"error\\"}"'), true],
    ["something after the end", `${whole}data: {}\n\n`, false],
    ["empty", "", false],
  ])("%s: %p", (_name, text, expected) => {
    expect(responsesKept.isWholeStream(text)).toBe(expected);
    if (!expected && !text.includes('"error","message"')) expect(responsesKept.asWhole(text)).toBeUndefined();
  });
});
