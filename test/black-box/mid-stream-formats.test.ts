// The switch in the middle of a stream for clients of the Messages and Responses formats, through the official SDKs:
// whatever formats the two backends speak, the client sees one answer.

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { Answer } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatEvents, eventStream, failure, sseEvent } from "../support/openai-answers.ts";
import { readSse, splitSse } from "../support/sse-reader.ts";
import { STREAM_BREAKS } from "../support/stream-breaks.ts";
import { createTestBed } from "../support/test-bed.ts";
import { within } from "../support/wait-for.ts";

const bed = createTestBed();
const PROMPT = "Go on, please.";

const first = bed.backend();
const ownFormat = bed.backend();
const second = bed.backend();

function gatewayWith(mid_stream_fallback: { enabled: boolean; continuation_prompt?: string }): Promise<Gateway> {
  return bed.gateway({
    config: {
      retry: { max_attempts: 1 },
      health_checks: { enabled: false },
      circuit_breaker: { enabled: false },
      timeouts: { between_chunks: "300ms" },
      streaming: { mid_stream_fallback },
      fallback: { fallback_chains: { big: ["small"], "own-messages": ["small"], "own-responses": ["small"] } },
      backends: [
        { name: "first", url: first.url, models: ["big", "alone"] },
        { name: "messages", url: ownFormat.url, models: ["own-messages"], protocols: ["messages"] },
        { name: "responses", url: ownFormat.url, models: ["own-responses"], protocols: ["responses"] },
        { name: "second", url: second.url, models: ["small"] },
      ],
    },
  });
}

let continuing: Gateway;
let restarting: Gateway;

beforeAll(async () => {
  [continuing, restarting] = await Promise.all([
    gatewayWith({ enabled: true, continuation_prompt: PROMPT }),
    gatewayWith({ enabled: false }),
  ]);
});

beforeEach(() => {
  for (const backend of [first, ownFormat, second]) {
    backend.start();
    backend.reset(chat("not asked for a stream"));
  }
});

const TEXTS = ["One ", "two "];
const WHOLE = "One two three four";
const UNFINISHED = { finishReason: null, done: false } as const;

/** What a client of a format reads of one streamed answer. */
interface Reading {
  text: string;
  /** Of the answer as the SDK puts it together in the end; undefined after an error. */
  finalText: string | undefined;
  ids: string[];
  toolCalls: string[];
  error: string | undefined;
}

type Client = (gateway: Gateway, model: string) => Promise<Reading>;

async function readMessages(gateway: Gateway, model: string): Promise<Reading> {
  const client = new Anthropic({ baseURL: gateway.url, apiKey: "any", maxRetries: 0 });
  const stream = client.messages.stream({ model, max_tokens: 100, messages: [{ role: "user", content: "hi" }] });
  const reading: Reading = { text: "", finalText: undefined, ids: [], toolCalls: [], error: undefined };
  stream.on("text", (delta) => {
    reading.text += delta;
  });
  stream.on("streamEvent", (event) => {
    if (event.type === "message_start") reading.ids.push(event.message.id);
    if (event.type === "content_block_start" && event.content_block.type === "tool_use") {
      reading.toolCalls.push(event.content_block.name);
    }
  });
  try {
    const message = await stream.finalMessage();
    if (message.stop_reason === null) throw new Error("the message has no stop_reason");
    reading.finalText = message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
  } catch (error) {
    reading.error = String(error);
  }
  return reading;
}

async function readResponses(gateway: Gateway, model: string): Promise<Reading> {
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: "any", maxRetries: 0 });
  const reading: Reading = { text: "", finalText: undefined, ids: [], toolCalls: [], error: undefined };
  const numbers: number[] = [];
  let finalId: string | undefined;
  try {
    for await (const event of await client.responses.create({ model, input: "hi", stream: true })) {
      numbers.push(event.sequence_number);
      if (event.type === "response.created") reading.ids.push(event.response.id);
      if (event.type === "response.output_text.delta") reading.text += event.delta;
      if (event.type === "response.output_item.added" && event.item.type === "function_call") {
        reading.toolCalls.push(event.item.name);
      }
      if (event.type === "error") reading.error = event.message;
      if (event.type === "response.failed") reading.error = event.response.error?.message ?? "failed";
      if (event.type === "response.completed") {
        reading.finalText = event.response.output
          .flatMap((item) => (item.type === "message" ? item.content : []))
          .map((part) => (part.type === "output_text" ? part.text : ""))
          .join("");
        finalId = event.response.id;
      }
    }
  } catch (error) {
    reading.error = String(error);
  }
  expect(numbers).toEqual(numbers.map((_, index) => index));
  if (finalId !== undefined) expect(finalId).toBe(reading.ids[0] as string);
  return reading;
}

const CLIENTS: [name: "messages" | "responses", read: Client][] = [
  ["messages", readMessages],
  ["responses", readResponses],
];

function expectWhole(reading: Reading, text = WHOLE): void {
  expect(reading.error).toBeUndefined();
  expect(reading.text).toBe(text);
  expect(reading.finalText).toBe(text);
  expect(reading.ids).toHaveLength(1);
}

interface Event {
  type: string;
  [member: string]: unknown;
}

const named = (data: Event) => `event: ${data.type}\n${sseEvent(data)}`;

/** The beginning of an answer of the Messages format, up to some text. */
const MESSAGES_START = [
  named({
    type: "message_start",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "own-messages",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 3, output_tokens: 1 },
    },
  }),
  named({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
  ...TEXTS.map((text) => named({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })),
];

const RESPONSE = {
  id: "resp_1",
  object: "response",
  created_at: 1,
  model: "own-responses",
  status: "in_progress",
  output: [],
  error: null,
  incomplete_details: null,
  usage: null,
};
const PLACE = { item_id: "msg_1", output_index: 0, content_index: 0 };
const ITEM = { id: "msg_1", type: "message", role: "assistant", status: "in_progress", content: [] };

/** The same in the Responses format. */
const RESPONSES_START = (
  [
    { type: "response.created", response: RESPONSE },
    { type: "response.in_progress", response: RESPONSE },
    { type: "response.output_item.added", output_index: 0, item: ITEM },
    { type: "response.content_part.added", ...PLACE, part: { type: "output_text", text: "", annotations: [] } },
    ...TEXTS.map((delta) => ({ type: "response.output_text.delta", ...PLACE, delta, logprobs: [] })),
  ] as Event[]
).map((event, sequence_number) => named({ ...event, sequence_number }));

/** The same answer once more, to its end. */
const MESSAGES_WHOLE = [
  ...MESSAGES_START.map((event) => event.replace("msg_1", "msg_2")),
  named({ type: "ping" }),
  named({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "three four" } }),
  named({ type: "content_block_stop", index: 0 }),
  named({
    type: "message_delta",
    delta: { stop_reason: "end_turn", stop_sequence: null },
    usage: { output_tokens: 9, service_tier: "own" },
  }),
  named({ type: "message_stop" }),
];

const WHOLE_PART = { type: "output_text", text: WHOLE, annotations: [] };
const WHOLE_ITEM = { ...ITEM, id: "msg_2", status: "completed", content: [WHOLE_PART] };

const RESPONSES_WHOLE = [
  ...RESPONSES_START.map((event) => event.replaceAll("msg_1", "msg_2").replaceAll("resp_1", "resp_2")),
  ...(
    [
      { type: "response.keepalive" },
      { type: "response.output_text.delta", ...PLACE, item_id: "msg_2", delta: "three four", logprobs: [] },
      { type: "response.output_text.done", ...PLACE, item_id: "msg_2", text: WHOLE, logprobs: [] },
      { type: "response.content_part.done", ...PLACE, item_id: "msg_2", part: WHOLE_PART },
      { type: "response.output_item.done", output_index: 0, item: WHOLE_ITEM },
      {
        type: "response.completed",
        response: {
          ...RESPONSE,
          id: "resp_2",
          status: "completed",
          service_tier: "own",
          output: [WHOLE_ITEM],
          usage: { input_tokens: 3, output_tokens: 9, total_tokens: 12 },
        },
      },
    ] as Event[]
  ).map((event, index) => named({ ...event, sequence_number: RESPONSES_START.length + index })),
];

const ERRORS_IN_BAND = {
  messages: named({ type: "error", error: { type: "overloaded_error", message: "cuda error" } }),
  responses: named({
    type: "response.failed",
    sequence_number: RESPONSES_START.length,
    response: { ...RESPONSE, status: "failed", error: { code: "server_error", message: "cuda error" } },
  }),
};

for (const [format, read] of CLIENTS) {
  describe(`a ${format} client`, () => {
    for (const [name, breakOff] of Object.entries(STREAM_BREAKS)) {
      test(`continued by a chat backend after another one's ${name}`, async () => {
        first.reset(breakOff(chatEvents(TEXTS, { model: "big", ...UNFINISHED })));
        second.reset(eventStream(chatEvents(["three ", "four"])));
        expectWhole(await read(continuing, "big"));
        expect(second.lastRequest.json().messages).toEqual([
          { role: "user", content: "hi" },
          { role: "assistant", content: "One two " },
          { role: "user", content: PROMPT },
        ]);
        await continuing.waitUntilIdle();
      });
    }

    test("restarted: the repeated beginning is swallowed", async () => {
      first.reset(eventStream(chatEvents(TEXTS, UNFINISHED)));
      second.reset(eventStream(chatEvents(["One t", "wo thr", "ee four"])));
      expectWhole(await read(restarting, "big"));
      await restarting.waitUntilIdle();
    });

    test("restarted: an answer that begins differently is shown whole", async () => {
      first.reset(eventStream(chatEvents(TEXTS, UNFINISHED)));
      second.reset(eventStream(chatEvents(["Uno ", "due"])));
      expectWhole(await read(restarting, "big"), "One two \n\nUno due");
    });

    const start = format === "messages" ? MESSAGES_START : RESPONSES_START;
    const ways: [string, Answer][] = [
      ["the end of its connection", eventStream(start)],
      ["its own error event", eventStream([...start, ERRORS_IN_BAND[format]])],
      ["its own error event in one piece with text", eventStream([start.join("") + ERRORS_IN_BAND[format]])],
    ];
    for (const [name, answer] of ways) {
      test(`a backend of the client's own format breaks off, a chat backend goes on: ${name}`, async () => {
        ownFormat.reset(answer);
        second.reset(eventStream(chatEvents(["three ", "four"])));
        const reading = await read(continuing, `own-${format}`);
        expectWhole(reading);
        expect(reading.ids).toEqual([format === "messages" ? "msg_1" : "resp_1"]);
        await continuing.waitUntilIdle();
      });
    }

    test("another answer in the client's own format goes on, with what only that format knows", async () => {
      ownFormat.reset(eventStream(format === "messages" ? MESSAGES_WHOLE : RESPONSES_WHOLE));
      ownFormat.queue(eventStream(start));
      second.reset(failure(500));
      const reading = await read(restarting, `own-${format}`);
      expectWhole(reading);
      expect(reading.ids).toEqual([format === "messages" ? "msg_1" : "resp_1"]);
      const body =
        format === "messages"
          ? { model: "own-messages", max_tokens: 9, stream: true, messages: [{ role: "user", content: "hi" }] }
          : { model: "own-responses", input: "hi", stream: true };
      ownFormat.queue(eventStream(start));
      const response = await restarting.post(`/v1/${format}`, JSON.stringify(body));
      const { events } = splitSse(await within("the stream ends", response.text(), 10_000));
      expect(events.map(({ event }) => event)).toContain(format === "messages" ? "ping" : "response.keepalive");
      expect(events.map(({ data }) => data).join("")).toContain('"service_tier":"own"');
    });

    test("a tool call of the next backend behind the repeated text", async () => {
      first.reset(eventStream(chatEvents(TEXTS, UNFINISHED)));
      const call = { index: 0, id: "call_1", type: "function", function: { name: "look", arguments: "{}" } };
      const events = chatEvents(["One ", "two "], UNFINISHED);
      const end = { id: "x", created: 1, model: "small" };
      second.reset(
        eventStream([
          ...events,
          sseEvent({ ...end, choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }] }),
          sseEvent({ ...end, choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] }),
          "data: [DONE]\n\n",
        ]),
      );
      const reading = await read(restarting, "big");
      expectWhole(reading, "One two ");
      expect(reading.toolCalls).toEqual(["look"]);
    });

    test("a half-sent tool call is not continued: one error event of the client's format", async () => {
      const call = { index: 0, id: "call_1", type: "function", function: { name: "look", arguments: '{"a' } };
      first.reset(
        eventStream([
          ...chatEvents(["One "], UNFINISHED),
          sseEvent({ id: "x", choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }] }),
        ]),
      );
      const reading = await read(continuing, "big");
      expect(reading.error).toBeDefined();
      expect(reading.finalText).toBeUndefined();
      expect(second.requests).toHaveLength(0);
    });

    test("when the next backend fails too, what was sent stays, and one error event follows", async () => {
      first.reset(eventStream(chatEvents(TEXTS, UNFINISHED)));
      second.reset(
        eventStream([...chatEvents(["three "], UNFINISHED), sseEvent({ error: { message: "cuda error", code: 500 } })]),
      );
      const reading = await read(continuing, "big");
      expect(reading.text).toStartWith("One two three ");
      expect(reading.error).toContain("cuda error");
      expect(reading.finalText).toBeUndefined();
      await continuing.waitUntilIdle();
    });

    test("without a chain: one error event of the client's format, and no end as if all were well", async () => {
      first.reset(eventStream(chatEvents(TEXTS, { model: "alone", ...UNFINISHED })));
      const reading = await read(continuing, "alone");
      expect(reading.text).toBe("One two ");
      expect(reading.error).toBeDefined();
      expect(reading.finalText).toBeUndefined();
    });

    test("the bytes are well-formed events to the last", async () => {
      first.reset(eventStream(chatEvents(TEXTS, UNFINISHED)));
      second.reset(eventStream(chatEvents(["three ", "four"])));
      const body =
        format === "messages"
          ? { model: "big", max_tokens: 9, stream: true, messages: [{ role: "user", content: "hi" }] }
          : { model: "big", input: "hi", stream: true };
      const response = await continuing.post(`/v1/${format}`, JSON.stringify(body));
      const { events, rest } = splitSse(await within("the stream ends", response.text(), 10_000));
      expect(rest).toBe("");
      for (const { event, data } of events) expect(event).toBe(JSON.parse(data as string).type);
      expect(events.at(-1)?.event).toBe(format === "messages" ? "message_stop" : "response.completed");
    });
  });
}

test.each<[string, object]>([
  ["of its own", {}],
  ["shared with others", { temperature: 0 }],
])("a Responses stream that nobody takes over ends with a number that rises: %s", async (_name, more) => {
  ownFormat.reset(eventStream(RESPONSES_START));
  second.reset(failure(500));
  const response = await restarting.post("/v1/responses", {
    model: "own-responses",
    input: "hi",
    stream: true,
    ...more,
  });
  const events = (await readSse(response)).data.map(
    (data) => JSON.parse(data) as { type: string; sequence_number: number },
  );
  expect(events.at(-1)?.type).toMatch(/^(error|response\.failed)$/);
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
});

test("the same after a takeover that breaks off as well", async () => {
  ownFormat.reset(eventStream(RESPONSES_START));
  second.reset(eventStream(chatEvents(["One two ", "three"], UNFINISHED)));
  second.queue(eventStream(chatEvents(["One two ", "three"], UNFINISHED)), failure(500), failure(500));
  const response = await restarting.post("/v1/responses", { model: "own-responses", input: "hi", stream: true });
  const events = (await readSse(response)).data.map(
    (data) => JSON.parse(data) as { type: string; sequence_number: number },
  );
  expect(events.at(-1)?.type).toMatch(/^(error|response\.failed)$/);
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
});
