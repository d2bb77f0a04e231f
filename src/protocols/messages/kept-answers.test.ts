// Which Messages answers are kept, and how they are told in their other form.

import { describe, expect, test } from "bun:test";
import { readEvents } from "../sse.ts";
import { messagesKept } from "./kept-answers.ts";

type Members = Record<string, unknown>;

const call = { type: "tool_use", id: "toolu_1", name: "f", input: { a: 1 } };
const content = [
  { type: "thinking", thinking: "hm", signature: "s" },
  { type: "redacted_thinking", data: "d" },
  { type: "text", text: "hi", citations: [{ type: "char_location", cited_text: "c" }] },
  call,
];
const message = (more: Members = {}) => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "m",
  content,
  stop_reason: "tool_use",
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 2, service_tier: "standard" },
  ...more,
});

const told = (answer: object) => messagesKept.asStream(JSON.stringify(answer), true);

describe("whole answers", () => {
  test.each([
    ["complete", message(), true],
    ["at the limit of tokens", message({ stop_reason: "max_tokens" }), true],
    ["that say nothing", message({ content: [], stop_reason: "end_turn" }), true],
    ["without an end", message({ stop_reason: null }), false],
    ["paused", message({ stop_reason: "pause_turn" }), false],
    ["of an error", { type: "error", error: { type: "overloaded_error" } }, false],
    ["with a search", message({ content: [{ type: "server_tool_use" }, ...content] }), false],
    ["with a container", message({ container: { id: "c" } }), false],
    ["with a block of tomorrow", message({ content: [{ type: "tomorrow" }] }), false],
  ])("%s: %p", (_name, answer, expected) => {
    expect(messagesKept.isWhole(answer)).toBe(expected);
    expect(told(answer) !== undefined).toBe(expected);
  });
});

test("a whole answer as a stream, and back", () => {
  const text = told(message({ context_management: { applied_edits: [] } })) as string;
  const events = readEvents(text).map(({ data }) => JSON.parse(data) as Members);
  expect(readEvents(text).map(({ name }) => name)).toEqual(events.map(({ type }) => type as string));
  expect(events[0]).toMatchObject({
    message: { id: "msg_1", content: [], stop_reason: null, usage: { input_tokens: 1, output_tokens: 0 } },
  });
  const deltas = events.flatMap(({ delta }) => (delta as Members | undefined) ?? []);
  expect((deltas as Members[]).map(({ type, stop_reason }) => type ?? stop_reason)).toEqual([
    ...["thinking_delta", "signature_delta", "citations_delta", "text_delta", "input_json_delta"],
    "tool_use",
  ]);
  expect(events.at(-2)).toMatchObject({ context_management: { applied_edits: [] }, usage: { output_tokens: 2 } });
  expect(JSON.parse(messagesKept.asWhole(text) as string)).toEqual(
    message({ context_management: { applied_edits: [] } }),
  );
});

test("the input of a call keeps its digits, or is not told in the other form", () => {
  const text = (told(message()) as string).replace('{\\"a\\":1}', '{\\"a\\":12345678901234567890}');
  expect(messagesKept.asWhole(text)).toContain('"input":{"a":12345678901234567890}');
  const whole = JSON.stringify(message()).replace('"a":1', '"a":12345678901234567890');
  expect(messagesKept.asStream(whole, true)).toBeUndefined();
  const without = JSON.stringify(message({ content: [{ type: "text", text: "12345678901234567890" }] }));
  expect(messagesKept.asStream(without, true)).toContain("12345678901234567890");
});

test("counts at the end replace those of the start, where they are known", () => {
  const text = (told(message()) as string).replace(
    '"usage":{"input_tokens":1,"output_tokens":2,"service_tier":"standard"}}',
    '"usage":{"output_tokens":9,"input_tokens":null}}',
  );
  expect(JSON.parse(messagesKept.asWhole(text) as string).usage).toEqual({
    input_tokens: 1,
    output_tokens: 9,
    service_tier: "standard",
  });
});

describe("streams", () => {
  const whole = told(message()) as string;
  const end = 'event: message_stop\ndata: {"type":"message_stop"}\n\n';
  const before = whole.slice(0, -end.length);
  const server = '{"type":"content_block_start","index":9,"content_block":{"type":"web_search_tool_result"}}';
  test.each([
    ["complete", whole, true],
    ["with pings", `event: ping\ndata: {"type":"ping"}\n\n${whole}`, true],
    ["without its end", before, false],
    ["with an error", `${before}event: error\ndata: {"type":"error","error":{}}\n\n${end}`, false],
    ["with the vendor's own doing", `${before}data: ${server}\n\n${end}`, false],
    ["that was paused", whole.replace('"tool_use","stop_sequence"', '"pause_turn","stop_sequence"'), false],
    ["that tells no reason for its end", whole.replace('"stop_reason":"tool_use"', '"stop_reason":null'), false],
    ["whose texts speak of errors", whole.replaceAll('"hi"', '"{\\"type\\":\\"error\\"}"'), true],
    ["empty", "", false],
  ])("%s: %p", (_name, text, expected) => {
    expect(messagesKept.isWholeStream(text)).toBe(expected);
  });

  test("what is not known is not joined", () => {
    for (const event of [
      '{"type":"content_block_delta","index":0,"delta":{"type":"tomorrow"}}',
      '{"type":"content_block_delta","index":99,"delta":{"type":"text_delta","text":"x"}}',
      '{"type":"tomorrow"}',
      "no JSON",
    ]) {
      expect(messagesKept.asWhole(`${before}data: ${event}\n\n${end}`)).toBeUndefined();
    }
    const cutOff = whole.replace('{\\"a\\":1}', '{\\"a\\":');
    expect(messagesKept.asWhole(cutOff)).toBeUndefined();
  });
});
