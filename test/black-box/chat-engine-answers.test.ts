// What a chat client gets of a chat engine: its own bytes, but for tool call ids that are not unique, and thoughts that
// are told in `reasoning` alone.

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Gateway } from "../support/gateway.ts";
import { chatBody, eventStream, sseEvent } from "../support/openai-answers.ts";
import { readSse } from "../support/sse-reader.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
const engine = bed.backend();
let gateway: Gateway;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      health_checks: { enabled: false },
      backends: ["vllm", "ollama", "generic", "openai"].map((type) => ({
        name: type,
        type,
        url: engine.url,
        models: [type],
        ...(type === "openai" && { api_key: "sk-sekret" }),
      })),
    },
  });
});

beforeEach(() => engine.reset());

const TOOLS = [{ type: "function", function: { name: "f", parameters: { type: "object", properties: {} } } }];
const MESSAGES = [{ role: "user", content: "hi" }];

interface Call {
  id?: string;
  index?: number;
  function: { name?: string; arguments: string };
}

interface Message {
  reasoning?: string;
  reasoning_content?: string;
  tool_calls?: Call[];
}

interface Item {
  type: string;
}

const callOf = (id: string | undefined, index?: number): Call => ({
  ...(id !== undefined && { id }),
  ...(index !== undefined && { index }),
  function: { name: "f", arguments: "{}" },
});

const chunk = (delta: object, finish_reason: string | null = null) =>
  sseEvent({ id: "a", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] });

async function plain(model: string, message: object, more: object = {}): Promise<Message> {
  const choices = [
    { index: 0, message: { role: "assistant", content: null, ...message }, finish_reason: "tool_calls" },
  ];
  engine.answer = { body: chatBody("", { choices, big: 1 }).replace('"big":1', '"big": 12345678901234567890') };
  const response = await gateway.chat({ model, tools: TOOLS, ...more });
  const text = await response.text();
  expect(text).toContain('"big": 12345678901234567890');
  return (JSON.parse(text) as { choices: { message: Message }[] }).choices[0]?.message as Message;
}

async function streamed(model: string, events: readonly string[], more: object = {}): Promise<string> {
  engine.answer = eventStream(events);
  return (await readSse(await gateway.chat({ model, stream: true, tools: TOOLS, ...more }))).text;
}

function deltasOf(text: string): Message[] {
  return text
    .split("\n\n")
    .filter((event) => event.startsWith("data: {"))
    .map((event) => (JSON.parse(event.slice(6)) as { choices: { delta: Message }[] }).choices[0]?.delta as Message);
}

describe("ids of tool calls", () => {
  test.each(["0", "function-call-123", "a1B2c3D4e", "functions.f:0", "ünïcode"])(
    "%s is rewritten, plain and streamed, and comes back as it was",
    async (id) => {
      const [first] = (await plain("ollama", { tool_calls: [callOf(id)] })).tool_calls as Call[];
      const events = [chunk({ tool_calls: [callOf(id, 0)] }), chunk({}, "tool_calls"), "data: [DONE]\n\n"];
      const [second] = deltasOf(await streamed("generic", events)).flatMap((delta) => delta.tool_calls ?? []);
      for (const call of [first, second]) expect(call?.id).toStartWith("crt_");
      expect(first?.id).not.toBe(second?.id);
      expect(first?.function).toEqual({ name: "f", arguments: "{}" });

      await gateway.chat({
        model: "vllm",
        tools: TOOLS,
        messages: [
          ...MESSAGES,
          { role: "assistant", content: null, tool_calls: [{ ...first, type: "function" }] },
          { role: "tool", tool_call_id: first?.id, content: "x" },
        ],
      });
      expect(engine.lastRequest.json<{ messages: object[] }>().messages.slice(1)).toMatchObject([
        { tool_calls: [{ id }] },
        { tool_call_id: id },
      ]);
    },
  );

  test("that would become the same one stay apart", async () => {
    const ids = [];
    for (let turn = 0; turn < 2; turn++)
      ids.push((await plain("ollama", { tool_calls: [callOf("0")] })).tool_calls?.[0]?.id);
    const turns = ids.flatMap((id) => [
      { role: "assistant", content: null, tool_calls: [{ ...callOf(id), type: "function" }] },
      { role: "tool", tool_call_id: id, content: "x" },
    ]);
    await gateway.chat({ model: "ollama", tools: TOOLS, messages: [...MESSAGES, ...turns] });
    const results = engine.lastRequest.json<{ messages: { tool_call_id?: string }[] }>().messages;
    expect(results.flatMap(({ tool_call_id }) => tool_call_id ?? [])).toEqual(ids as string[]);
  });

  test("several in one answer, an id repeated with each piece, and none with later pieces", async () => {
    const text = await streamed("vllm", [
      chunk({ role: "assistant", content: "", tool_calls: [] }),
      chunk({ tool_calls: [callOf("7", 0)] }) + chunk({ tool_calls: [callOf("7", 0)] }),
      chunk({ tool_calls: [callOf(undefined, 0)] }),
      `: a comment\n\n${chunk({ tool_calls: [callOf("7", 1), callOf("call_1", 2)] })}`,
      chunk({}, "tool_calls"),
      "data: [DONE]\n\n",
    ]);
    const calls = deltasOf(text).flatMap((delta) => delta.tool_calls ?? []);
    const ids = calls.map(({ id }) => id);
    expect(ids[0]).toStartWith("crt_");
    expect(ids[1]).toBe(ids[0] as string);
    expect(ids[2]).toBeUndefined();
    expect(ids[3]).toStartWith("crt_");
    expect(ids[3]).not.toBe(ids[0] as string);
    expect(ids[4]).toBe("call_1");
    expect(text).toContain(": a comment\n\n");
  });

  const PASSING: [string, string, string][] = [
    ["call_", "ollama", "call_x1"],
    ["toolu_", "ollama", "toolu_01"],
    ["fc_", "generic", "fc_01"],
    ["chatcmpl-tool-", "vllm", "chatcmpl-tool-01"],
    ["the hosted API's", "openai", "whatever"],
  ];
  test.each(PASSING)("bytes stay as they are: %s", async (_name, model, id) => {
    const events = [
      `data: {"choices" : [ {"delta":{"tool_calls": [{"id":"${id}", "index":0}]}} ]}\n\n`,
      chunk({ content: 'about "tool_calls":[{ and "reasoning":"' }),
      'data: {"choices":[{"index":0,"delta":{"content":"x","reasoning":null,"tool_calls":[]},"finish_reason":null}]}\r\n\r\n',
      chunk({}, "tool_calls"),
      "data: [DONE]\n\n",
    ];
    expect(await streamed(model, events)).toBe(events.join(""));
  });
});

describe("thoughts", () => {
  test.each(["vllm", "ollama", "generic"])("%s: in `reasoning` reach the client under both names", async (model) => {
    expect(await plain(model, { reasoning: "Hm." })).toMatchObject({ reasoning: "Hm.", reasoning_content: "Hm." });
    const text = await streamed(
      model,
      [chunk({ reasoning: "H", reasoning_content: null }), chunk({ reasoning: "m." }), chunk({ content: "x" }, "stop")],
      { tools: undefined },
    );
    expect(deltasOf(text)).toMatchObject([
      { reasoning: "H", reasoning_content: "H" },
      { reasoning: "m.", reasoning_content: "m." },
      { content: "x" },
    ]);
  });

  test("in both members pass as they are, and so do other vendors' answers", async () => {
    const both = [chunk({ reasoning: "a", reasoning_content: "b" }), chunk({}, "stop"), "data: [DONE]\n\n"];
    expect(await streamed("vllm", both)).toBe(both.join(""));
    const hosted = [chunk({ reasoning: "a" }), chunk({}, "stop"), "data: [DONE]\n\n"];
    expect(await streamed("openai", hosted)).toBe(hosted.join(""));
  });

  test("sealed in a format that only chat engines know reach clients that ask for them, and come back", async () => {
    const detail = { type: "reasoning.encrypted", format: "xai-responses-v1", data: "opaque", id: "rs_1" };
    const asked = { model: "generic", input: "hi", include: ["reasoning.encrypted_content"] };
    const message = { role: "assistant", content: "Hello", reasoning: "Hm.", reasoning_details: [detail] };
    engine.answer = { body: chatBody("", { choices: [{ index: 0, message, finish_reason: "stop" }] }) };
    const { output } = (await (await gateway.post("/v1/responses", asked)).json()) as { output: Item[] };

    engine.answer = eventStream([
      chunk({ reasoning: "Hm." }),
      chunk({ reasoning_details: [detail] }),
      chunk({ content: "Hello" }, "stop"),
      "data: [DONE]\n\n",
    ]);
    const { text } = await readSse(await gateway.post("/v1/responses", { ...asked, stream: true }));
    const streamedItems = text
      .split("\n")
      .filter((line) => line.includes('"response.output_item.done"'))
      .map((line) => (JSON.parse(line.slice("data: ".length)) as { item: Item }).item);

    for (const items of [output, streamedItems]) {
      engine.reset();
      await gateway.post("/v1/responses", { ...asked, input: [...items, { role: "user", content: "more" }] });
      const [answer] = engine.lastRequest.json<{ messages: object[] }>().messages;
      expect(answer).toMatchObject({
        role: "assistant",
        content: "Hello",
        reasoning: "Hm.",
        reasoning_details: [detail],
      });
    }
    const plainly = await gateway.post("/v1/responses", { ...asked, include: [] });
    expect(await plainly.text()).not.toContain("encrypted_content");
  });
});
