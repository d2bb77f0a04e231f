// The switch in the middle of a stream: a backend breaks off after some text, and another one of the model or of its
// chain goes on in the same stream, so that the client sees one answer (specification, Errors, "Model fallback").

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { type ChatReading, readChat } from "../support/chat-reading.ts";
import type { Answer } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatEvents, eventStream, failure, sseEvent } from "../support/openai-answers.ts";
import { readUntil } from "../support/sse-reader.ts";
import { STREAM_BREAKS, size } from "../support/stream-breaks.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor, within } from "../support/wait-for.ts";

const bed = createTestBed();
const PROMPT = "Go on, please.";

const first = bed.backend();
const twin = bed.backend();
const second = bed.backend();
const third = bed.backend();

function gatewayWith(mid_stream_fallback: { enabled: boolean; continuation_prompt?: string }): Promise<Gateway> {
  return bed.gateway({
    config: {
      routing: { selection_strategy: "WeightedRoundRobin" },
      retry: { max_attempts: 1 },
      health_checks: { enabled: false },
      circuit_breaker: { enabled: false },
      timeouts: { between_chunks: "300ms" },
      streaming: { mid_stream_fallback },
      fallback: { fallback_chains: { big: ["middle", "small"], double: ["small"] } },
      backends: [
        { name: "first", url: first.url, models: ["big", "alone", "double", "pair"] },
        { name: "twin", url: twin.url, models: ["double", "pair"], weight: 0 },
        { name: "second", url: second.url, models: ["middle"] },
        { name: "third", url: third.url, models: ["small"] },
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
  for (const backend of [first, twin, second, third]) {
    backend.start();
    backend.reset(chat("not asked for a stream"));
  }
});

/** The events of an answer with an id and a model of its own. */
function events(
  id: string,
  texts: readonly string[],
  model = id,
  shape: { finishReason?: null; done?: false } = {},
): string[] {
  return chatEvents(texts, { model, ...shape }).map((event) => event.replace("chatcmpl-1", id));
}

const UNFINISHED = { finishReason: null, done: false } as const;

function stream(gateway: Gateway, model: string, more: Record<string, unknown> = {}): Promise<Response> {
  return gateway.chat({ model, stream: true, ...more });
}

function expectWhole(reading: ChatReading, text: string): void {
  expect(reading.errors).toEqual([]);
  expect(reading.text).toBe(text);
  expect(reading.ids).toEqual(["first"]);
  expect(reading.models).toHaveLength(1);
  expect(reading.roles).toEqual(["assistant"]);
  expect(reading.finishReasons).toEqual(["stop"]);
  expect(reading.done).toBe(1);
  expect(reading.sse.data.at(-1)).toBe("[DONE]");
  expect(reading.sse.end).toBe("clean");
  expect(reading.sse.rest).toBe("");
}

for (const [name, breakOff] of Object.entries(STREAM_BREAKS)) {
  test(`continued after ${name}`, async () => {
    first.reset(breakOff(events("first", ["One ", "two "], "big", UNFINISHED)));
    second.reset(eventStream(events("second", ["three ", "four"])));
    expectWhole(await readChat(await stream(continuing, "big")), "One two three four");
    expect(second.requests).toHaveLength(1);
    await continuing.waitUntilIdle();
  });

  test(`restarted after ${name}`, async () => {
    first.reset(breakOff(events("first", ["One ", "two "], "big", UNFINISHED)));
    second.reset(eventStream(events("second", ["One t", "wo thr", "ee four"])));
    expectWhole(await readChat(await stream(restarting, "big")), "One two three four");
    expect(second.requests).toHaveLength(1);
    await restarting.waitUntilIdle();
  });
}

const brokenOff = (texts: readonly string[]): Answer => eventStream(events("first", texts, "big", UNFINISHED));

describe("with a continuation prompt", () => {
  test("the next backend receives what was sent, and the client's bytes otherwise", async () => {
    first.reset(brokenOff(['Say "one" ', "語\n"]));
    second.reset(eventStream(events("second", ["two"])));
    const body =
      '{ "model":"big", "stream" : true, "seed":9007199254740993,\n "messages":[{"role":"user","content":"hi"}], "top_p":1.0 }';
    expectWhole(await readChat(await continuing.post("/v1/chat/completions", body)), 'Say "one" 語\ntwo');
    expect(first.lastRequest.text).toBe(body);
    const messages = [
      { role: "user", content: "hi" },
      { role: "assistant", content: 'Say "one" 語\n' },
      { role: "user", content: PROMPT },
    ];
    expect(second.lastRequest.json().messages).toEqual(messages);
    expect(second.lastRequest.text).toBe(
      body
        .replace('"model":"big"', '"model":"middle"')
        .replace('[{"role":"user","content":"hi"}]', JSON.stringify(messages)),
    );
  });

  test("a break before any text begins the answer anew, without a prompt", async () => {
    first.reset(brokenOff([]));
    second.reset(eventStream(events("second", ["all of it"])));
    expectWhole(await readChat(await stream(continuing, "big")), "all of it");
    expect(second.lastRequest.json().messages).toEqual([{ role: "user", content: "hi" }]);
  });

  test("the chain goes on when the second breaks off as well", async () => {
    first.reset(brokenOff(["one "]));
    second.reset(eventStream(events("second", ["two "], "middle", UNFINISHED)));
    third.reset(eventStream(events("third", ["three"])));
    expectWhole(await readChat(await stream(continuing, "big")), "one two three");
    expect((third.lastRequest.json().messages as unknown[]).slice(1)).toEqual([
      { role: "assistant", content: "one two " },
      { role: "user", content: PROMPT },
    ]);
  });

  test("a next backend that refuses is passed over", async () => {
    first.reset(brokenOff(["one "]));
    second.reset(failure(503));
    third.reset(eventStream(events("third", ["two"])));
    expectWhole(await readChat(await stream(continuing, "big")), "one two");
    second.stop();
    expectWhole(await readChat(await stream(continuing, "big")), "one two");
  });

  test("a usage chunk behind the end is kept, under the one id", async () => {
    first.reset(brokenOff(["one "]));
    const usage = sseEvent({
      id: "second",
      object: "chat.completion.chunk",
      model: "middle",
      choices: [],
      usage: { total_tokens: 9 },
    });
    const rest = events("second", ["two"]);
    second.reset(eventStream([...rest.slice(0, -1), usage, ...rest.slice(-1)]));
    const reading = await readChat(await stream(continuing, "big", { stream_options: { include_usage: true } }));
    expectWhole(reading, "one two");
    expect(reading.sse.data.filter((data) => data.includes('"total_tokens":9'))).toHaveLength(1);
  });

  test("another backend of the same model comes before the chain", async () => {
    first.reset(brokenOff(["one "]));
    twin.reset(eventStream(events("twin", ["two"])));
    expectWhole(await readChat(await stream(continuing, "double")), "one two");
    expect(twin.lastRequest.json().model).toBe("double");
    expect(third.requests).toHaveLength(0);
  });
});

describe("with a restart", () => {
  test("the next backend receives the request as it was", async () => {
    first.reset(brokenOff(["one "]));
    second.reset(eventStream(events("second", ["one two"])));
    const body =
      '{ "model":"big", "stream" : true, "seed":9007199254740993, "messages":[{"role":"user","content":"hi"}] }';
    expectWhole(await readChat(await restarting.post("/v1/chat/completions", body)), "one two");
    expect(second.lastRequest.text).toBe(body.replace('"big"', '"middle"'));
  });

  test("the repeated beginning is swallowed wherever it is cut, also within characters of several bytes", async () => {
    const text = "Zwölf Boxkämpfer 語語 😀 jagen";
    first.reset(brokenOff([...text]));
    second.reset(eventStream(events("second", [...text, ..." Viktor"])));
    expectWhole(await readChat(await stream(restarting, "big")), `${text} Viktor`);
    second.reset(eventStream(events("second", [`${text} Viktor`])));
    expectWhole(await readChat(await stream(restarting, "big")), `${text} Viktor`);
  });

  test("an answer that begins differently is shown whole, behind what was sent", async () => {
    first.reset(brokenOff(["The answer ", "is"]));
    second.reset(eventStream(events("second", ["The ", "result: ", "42"])));
    expectWhole(await readChat(await stream(restarting, "big")), "The answer is\n\nThe result: 42");
  });

  test("a new answer that is shorter than what was sent ends the stream well", async () => {
    first.reset(brokenOff(["One ", "two ", "three"]));
    second.reset(eventStream(events("second", ["One ", "two"])));
    expectWhole(await readChat(await stream(restarting, "big")), "One two three");
  });

  test("a second break while the beginning is still repeated loses nothing", async () => {
    first.reset(brokenOff(["One ", "two "]));
    second.reset(eventStream(events("second", ["One "], "middle", UNFINISHED)));
    third.reset(eventStream(events("third", ["One ", "two ", "three"])));
    expectWhole(await readChat(await stream(restarting, "big")), "One two three");
  });
});

const TOOL_EVENTS = [
  events("first", [], "big", UNFINISHED)[0] ?? "",
  sseEvent({
    id: "first",
    model: "big",
    choices: [
      {
        index: 0,
        delta: {
          tool_calls: [{ index: 0, id: "call-1", type: "function", function: { name: "f", arguments: '{"a"' } }],
        },
      },
    ],
  }),
];

describe("what cannot be continued ends with an error event", () => {
  function expectError(reading: ChatReading, sent: readonly string[]): void {
    expect(reading.errors).toHaveLength(1);
    expect(reading.errors[0]?.message).not.toBe("");
    expect(reading.sse.events.slice(0, sent.length).map((event) => event.raw)).toEqual([...sent]);
    expect(reading.sse.events).toHaveLength(sent.length + 1);
    expect(reading.done).toBe(0);
    expect(reading.finishReasons).toEqual([]);
  }

  for (const mode of ["continued", "restarted"] as const) {
    const gateway = () => (mode === "continued" ? continuing : restarting);

    test(`a half-sent tool call (${mode})`, async () => {
      first.reset(eventStream(TOOL_EVENTS));
      second.reset(eventStream(events("second", ["text"])));
      expectError(await readChat(await stream(gateway(), "big")), TOOL_EVENTS);
      expect(second.requests).toHaveLength(0);
    });

    test(`several choices (${mode})`, async () => {
      const sent = events("first", ["one "], "big", UNFINISHED);
      first.reset(eventStream(sent));
      expectError(await readChat(await stream(gateway(), "big", { n: 2 })), sent);
      expect(second.requests).toHaveLength(0);
    });
  }

  test("a model without a chain", async () => {
    const sent = events("first", ["one "], "alone", UNFINISHED);
    first.reset(eventStream(sent));
    expectError(await readChat(await stream(continuing, "alone")), sent);
  });

  test("a model without a chain, though another backend serves it", async () => {
    const sent = events("first", ["one "], "pair", UNFINISHED);
    first.reset(eventStream(sent));
    expectError(await readChat(await stream(continuing, "pair")), sent);
    expect(twin.requests).toHaveLength(0);
  });

  test("a chain whose backends are all gone", async () => {
    const sent = events("first", ["one "], "big", UNFINISHED);
    first.reset(failure(503)); // not even the first is there for the rest
    first.queue(eventStream(sent));
    second.stop();
    third.stop();
    expectError(await readChat(await stream(continuing, "big")), sent);
    await continuing.waitUntilIdle();
  });

  test("a backend's own error event is told in its own words when nobody takes over", async () => {
    const sent = events("first", ["one "], "big", UNFINISHED);
    first.reset(failure(503)); // not even the first is there for the rest
    first.queue(eventStream([...sent, sseEvent({ error: { message: "cuda error", code: 500 } })]));
    second.stop();
    third.stop();
    const reading = await readChat(await stream(continuing, "big"));
    expectError(reading, sent);
    expect(reading.errors[0]?.message).toBe("cuda error");
  });

  test("a client error told in band is no reason to switch", async () => {
    const sent = events("first", ["one "], "big", UNFINISHED);
    first.reset(
      eventStream([
        ...sent,
        sseEvent({ error: { message: "context length", type: "invalid_request_error", code: 400 } }),
      ]),
    );
    const reading = await readChat(await stream(continuing, "big"));
    expectError(reading, sent);
    expect(second.requests).toHaveLength(0);
  });
});

test("a backend that breaks between its finish and [DONE] has answered: the stream ends well", async () => {
  const sent = events("first", ["all"], "big", { done: false });
  for (const breakWith of ["reset", "fin"] as const) {
    first.reset(eventStream([...sent, "x"], { breakAfterBytes: size(sent), breakWith, betweenChunksMs: 20 }));
    expectWhole(await readChat(await stream(continuing, "big")), "all");
    first.reset(eventStream([...sent, "x"], { breakAfterBytes: size(sent), breakWith, betweenChunksMs: 20 }));
    expectWhole(await readChat(await stream(restarting, "big")), "all");
  }
  expect(second.requests).toHaveLength(0);
});

test("a backend that broke off once, and is well again, is asked again before the client sees an error", async () => {
  third.stop();
  first.queue(brokenOff(["one "]), eventStream(events("first-again", ["three"])));
  twin.reset(eventStream(events("twin", ["two "], "double", UNFINISHED)));
  expectWhole(await readChat(await stream(continuing, "double")), "one two three");
  expect(first.requests).toHaveLength(2);
});

test("the only backend, back after a reset, may finish its own answer", async () => {
  second.stop();
  third.stop();
  first.queue(brokenOff(["one "]), eventStream(events("first-again", ["two"])));
  expectWhole(await readChat(await stream(continuing, "big")), "one two");
});

test("an answer that is complete but for [DONE] is not continued", async () => {
  first.reset(eventStream(events("first", ["all"], "big", { done: false })));
  const reading = await readChat(await stream(continuing, "big"));
  expect(reading.text).toBe("all");
  expect(reading.errors).toEqual([]);
  expect(second.requests).toHaveLength(0);
});

test("a break during the reasoning: the answer is whole, and reasoning is not shown twice", async () => {
  const thought = (id: string, text: string) =>
    sseEvent({ id, model: "big", choices: [{ index: 0, delta: { reasoning_content: text }, finish_reason: null }] });
  const [role = ""] = events("first", [], "big", UNFINISHED);
  for (const gateway of [continuing, restarting]) {
    first.reset(eventStream([role, thought("first", "I think ")]));
    second.reset(eventStream([thought("second", "I think "), ...events("second", ["42"])]));
    const reading = await readChat(await stream(gateway, "big"));
    expectWhole(reading, "42");
    expect(reading.sse.text.split("I think ")).toHaveLength(2);
  }
});

test("text that merely speaks of errors passes byte for byte", async () => {
  const sent = [
    ...events("first", ['{"error": "', "x", '"}'], "big", UNFINISHED),
    sseEvent({
      id: "first",
      error: null,
      choices: [{ index: 0, delta: { content: '"error"' }, finish_reason: "stop" }],
    }),
    "data: [DONE]\n\n",
  ];
  first.reset(eventStream(sent));
  expect(await (await stream(continuing, "big")).text()).toBe(sent.join(""));
  expect(second.requests).toHaveLength(0);
});

test("text arrives at once, before and after the switch", async () => {
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  first.reset(
    eventStream([...events("first", ["one "], "big", UNFINISHED), "x"], {
      beforeChunk: (index) => (index === 2 ? gates[0]?.promise : undefined),
      breakAfterBytes: size(events("first", ["one "], "big", UNFINISHED)),
    }),
  );
  second.reset(
    eventStream(events("second", ["two ", "three"]), {
      beforeChunk: (index) => (index === 2 ? gates[1]?.promise : undefined),
    }),
  );
  const reader = (await stream(continuing, "big")).body!.getReader();
  await readUntil(reader, "one ");
  gates[0]?.resolve();
  await readUntil(reader, "two ");
  gates[1]?.resolve();
  await readUntil(reader, "[DONE]");
});

test("a client that leaves during the switch frees both backends", async () => {
  first.reset(brokenOff(["one "]));
  second.reset({ hang: true });
  const leaving = new AbortController();
  const response = await continuing.chat({ model: "big", stream: true }, { signal: leaving.signal });
  const reading = response.text().catch(() => "left");
  await waitFor("the second backend is asked", () => second.requests.length === 1);
  leaving.abort();
  await reading;
  await within("the second backend is let go", second.lastRequest.closed);
  await continuing.waitUntilIdle();
  expect(third.requests).toHaveLength(0);
});

test("the official SDK's stream helper sees one complete answer", async () => {
  first.reset(brokenOff(["One ", "two "]));
  second.reset(eventStream(events("second", ["three ", "four"])));
  const client = new OpenAI({ apiKey: "none", baseURL: `${continuing.url}/v1`, maxRetries: 0 });
  const deltas: string[] = [];
  const runner = client.chat.completions
    .stream({ model: "big", messages: [{ role: "user", content: "count" }] })
    .on("content", (delta) => deltas.push(delta));
  const completion = await runner.finalChatCompletion();
  expect(completion.id).toBe("first");
  expect(completion.choices).toHaveLength(1);
  expect(completion.choices[0]).toMatchObject({
    finish_reason: "stop",
    message: { role: "assistant", content: "One two three four" },
  });
  expect(deltas.join("")).toBe("One two three four");
});

test("sixty streams that break at once all end well", async () => {
  const gate = Promise.withResolvers<void>();
  const sent = events("first", ["one "], "big", UNFINISHED);
  first.reset(eventStream([...sent, "x"], { beforeChunk: (index) => (index === 2 ? gate.promise : undefined) }));
  second.reset(eventStream(events("second", ["two ", "three"])));
  const pending = await Promise.all(Array.from({ length: 60 }, () => stream(continuing, "big")));
  const readings = pending.map(readChat);
  await waitFor("all are under way", () => first.requests.length === 60);
  first.stop();
  gate.resolve();
  for (const reading of await Promise.all(readings)) expectWhole(reading, "one two three");
  await continuing.waitUntilIdle();
});
