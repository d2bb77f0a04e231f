// A pool loses an engine, its streams do not: another backend of the same model goes on exactly where the text stopped,
// without a chain and with default settings, for clients of every format.

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { type EngineOptions, engineAnswer } from "../support/engine.ts";
import type { Answer, FakeBackend, RecordedRequest } from "../support/fake-backend.ts";
import {
  CLIENT_FORMATS,
  type ClientFormat,
  type Reading,
  readAnswer,
  readResponse,
  requestOf,
} from "../support/format-readings.ts";
import type { Gateway } from "../support/gateway.ts";
import { readSse } from "../support/sse-reader.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

/** What every engine of the pool answers: blanks of all kinds at the seams, and characters of two halves. */
function answerTo(question: string): string {
  const words = Array.from(
    { length: 40 },
    (_, index) => `${question}:${index}${["", ",", ".\n\n", " 🚂", "  "][index % 5]}`,
  );
  return words.join(" ");
}

const VLLM: EngineOptions = { kind: "vllm", answer: (question) => ({ text: answerTo(question) }) };

async function ask(gateway: Gateway, format: ClientFormat, question: string, more: object = {}): Promise<Reading> {
  const [path, body] = requestOf(format, "m", question, true);
  const response = await gateway.post(path, { ...body, ...more });
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  return await readResponse(format, response);
}

function poolOf(backends: readonly FakeBackend[], type: string, more: object = {}): Promise<Gateway> {
  return bed.gateway({
    config: { backends: backends.map(({ url }, index) => ({ name: `engine-${index}`, type, url })), ...more },
  });
}

const SECONDS = Number(process.env.SIGNALBOX_POOL_SECONDS ?? "6");
const STREAMS_AT_ONCE = 6;

test(
  `${SECONDS} s of default settings: three engines, one killed every two seconds, and nobody notices`,
  async () => {
    // Their templates and tokens differ, so that sent texts end with blanks, without, and within words.
    const engines = [
      { ...VLLM, betweenTokensMs: 12 },
      { ...VLLM, betweenTokensMs: 12, trims: true, tokens: /\s?\S+|\s/g },
      { ...VLLM, betweenTokensMs: 6, tokens: /.{1,7}/gsu },
    ].map((options) => bed.backend({ answer: (request) => engineAnswer(request, options) }));
    const gateway = await poolOf(engines, "vllm");
    const untilMs = performance.now() + SECONDS * 1000;
    const failures: string[] = [];
    const sent = { plain: 0, streams: 0 };

    async function askOnce(format: ClientFormat, question: string): Promise<void> {
      try {
        if (sent.streams % 4 === 3) {
          sent.plain++;
          const [path, body] = requestOf(format, "m", question, false);
          const response = await gateway.post(path, body);
          const text = await response.text();
          if (response.status !== 200) throw new Error(`plain: ${response.status} ${text}`);
          if (!text.includes(JSON.stringify(answerTo(question)).slice(1, -1))) throw new Error(`plain: ${text}`);
        }
        sent.streams++;
        const { text, finish, error } = await ask(gateway, format, question);
        const isWhole = text === answerTo(question) && finish !== undefined && error === undefined;
        if (!isWhole) throw new Error(JSON.stringify({ text, finish, error }));
      } catch (error) {
        failures.push(`${format} ${question}: ${error}`);
      }
    }

    const clients = CLIENT_FORMATS.flatMap((format) =>
      Array.from({ length: STREAMS_AT_ONCE }, async (_, client) => {
        for (let count = 0; performance.now() < untilMs; count++) await askOnce(format, `${format}-${client}-${count}`);
      }),
    );
    let kills = 0;
    while (performance.now() < untilMs) {
      const victim = engines[kills++ % engines.length] as FakeBackend;
      victim.stop();
      await Bun.sleep(1000);
      victim.start();
      await Bun.sleep(1000);
    }
    await Promise.all(clients);
    await gateway.waitUntilIdle();
    const switched = gateway.printed.logEntries.filter(({ msg }) => String(msg).includes("another backend took over"));
    console.log(
      `pool (${SECONDS} s, ${kills} kills): ${sent.plain} plain, ${sent.streams} streams, ` +
        `${failures.length} failed visibly, ${switched.length} takeovers`,
    );
    expect(failures.slice(0, 5)).toEqual([]);
    expect(switched.length).toBeGreaterThan(kills);
  },
  SECONDS * 1000 + 60_000,
);

/** What is read together with the end of a connection may be lost: the end comes a little later. */
const READ_MS = 20;

/** Answers with so many events of an engine's stream, and others behind them, then breaks the connection. */
function brokenAfter(
  events: number,
  options: EngineOptions,
  ...others: string[]
): (request: RecordedRequest) => Answer {
  return (request) => {
    const answer = engineAnswer(request, options);
    const body = [...(answer.body as string[]).slice(0, events), ...others];
    return {
      ...answer,
      body: [...body, "x"],
      breakAfterBytes: Buffer.byteLength(body.join("")),
      beforeChunk: (index) => (index === body.length ? Bun.sleep(READ_MS) : undefined),
    };
  };
}

const first = bed.backend();
const second = bed.backend();
const pair = [first, second];

/** Requests that reached the second backend, which stands by until the first breaks off. */
async function pairOf(type: string, more: object = {}): Promise<Gateway> {
  return bed.gateway({
    config: {
      health_checks: { enabled: false },
      circuit_breaker: { enabled: false },
      backends: [
        { name: "first", type, url: first.url, models: ["m", "claude-sonnet-4-5"] },
        { name: "second", type, url: second.url, models: ["m", "claude-sonnet-4-5"], weight: 0 },
      ],
      ...more,
    },
  });
}

const THINKING: EngineOptions = {
  kind: "vllm",
  answer: (question) => ({ thought: "Let me think about that.", text: answerTo(question) }),
};

const TOOL = { type: "function", function: { name: "f", parameters: { type: "object", properties: {} } } };

describe("exactly where the text stopped", () => {
  let vllm: Gateway;
  let llamacpp: Gateway;
  let generic: Gateway;
  let switchedOff: Gateway;

  beforeAll(async () => {
    [vllm, llamacpp, generic, switchedOff] = await Promise.all([
      pairOf("vllm"),
      pairOf("llamacpp"),
      pairOf("generic"),
      pairOf("vllm", { streaming: { mid_stream_fallback: { exact_continuation: false } } }),
    ]);
  });

  beforeEach(() => {
    for (const backend of pair) {
      backend.start();
      backend.reset((request) => engineAnswer(request, VLLM));
    }
  });

  for (const format of CLIENT_FORMATS) {
    test(`${format}: wherever the stream broke off`, async () => {
      const expected = await ask(vllm, format, "q");
      expect(expected.text).toBe(answerTo("q"));
      for (let events = 1; events <= 42; events += 3) {
        first.queue(brokenAfter(events, VLLM));
        const reading = await ask(vllm, format, "q");
        expect({ ...reading, usage: undefined }).toEqual({ ...expected, usage: undefined });
        expect(reading.usage?.asked).toBe(expected.usage?.asked as number);
        // A blank at the seam may be a token of its own.
        expect(Math.abs((reading.usage?.answered ?? 0) - (expected.usage?.answered ?? 0))).toBeLessThanOrEqual(1);
      }
      expect(second.requests.length).toBeGreaterThan(10);
    });

    test(`${format}: thoughts go along with the text`, async () => {
      const expected = { ...(await ask(vllm, format, "q")), usage: undefined };
      for (const field of ["reasoning_content", "reasoning"]) {
        const thinking = { ...THINKING, reasoningField: field };
        for (const backend of pair) backend.answer = (request) => engineAnswer(request, thinking);
        first.queue(brokenAfter(12, thinking));
        const reading = await ask(vllm, format, "q");
        expect({ ...reading, thought: "", usage: undefined }).toEqual(expected);
      }
    });
  }

  test("completions: an error that the engine tells in the middle is not shown, if another engine goes on", async () => {
    const told = { error: { message: "engine died", type: "InternalServerError", param: null, code: 500 } };
    const dying = brokenAfter(12, VLLM, `data: ${JSON.stringify(told)}\n\n`, "data: [DONE]\n\n");
    first.queue(dying);
    const { text, finish, error } = await ask(vllm, "completions", "q");
    expect([text, finish, error]).toEqual([answerTo("q"), "stop", undefined]);
    expect(second.requests).toHaveLength(1);

    first.queue(dying);
    const ended = await ask(switchedOff, "completions", "q");
    expect(answerTo("q")).toStartWith(ended.text);
    expect([ended.finish, ended.error]).toEqual([undefined, "engine died"]);
    expect(second.requests).toHaveLength(1);
  });

  test("the second engine is asked to go on, with the client's own bytes otherwise", async () => {
    const tokens = /\s?\S+|\s/g;
    first.queue(brokenAfter(3, { ...VLLM, tokens }));
    second.answer = (request) => engineAnswer(request, { ...VLLM, tokens });
    const body =
      '{ "model":"m", "stream" : true, "seed":9007199254740993,\n "messages":[{"role":"user","content":"q"}], "max_tokens":30 }';
    const response = await vllm.post("/v1/chat/completions", body);
    const { text, finish } = readAnswer("chat", await readSse(response));
    expect(text).toBe((answerTo("q").match(tokens) ?? []).slice(0, 30).join(""));
    expect(finish).toBe("length");
    expect(second.lastRequest.text).toContain('"stream" : true, "seed":9007199254740993,\n "messages"');
    expect(second.lastRequest.json()).toMatchObject({
      messages: [
        { role: "user", content: "q" },
        { role: "assistant", content: "q:0 q:1," },
      ],
      max_tokens: 28,
      continue_final_message: true,
      add_generation_prompt: false,
    });
  });

  test("llama.cpp is given the text as a last message, and nothing else", async () => {
    const options: EngineOptions = { ...VLLM, kind: "llamacpp" };
    for (const backend of pair) backend.answer = (request) => engineAnswer(request, options);
    first.queue(brokenAfter(9, options));
    const { text, error } = await ask(llamacpp, "chat", "q");
    expect([text, error]).toEqual([answerTo("q"), undefined]);
    expect(Object.keys(second.lastRequest.json())).toEqual(["model", "messages", "stream", "stream_options"]);
  });

  test("a beginning that the client gave is prolonged", async () => {
    const options: EngineOptions = { ...VLLM, kind: "llamacpp" };
    for (const backend of pair) backend.answer = (request) => engineAnswer(request, options);
    first.queue(brokenAfter(5, options));
    const messages = [
      { role: "user", content: "q" },
      { role: "assistant", content: "q:0 q:1," },
    ];
    const { text, error } = await ask(llamacpp, "chat", "q", { messages });
    expect([text, error]).toEqual([answerTo("q").slice(8), undefined]);
    expect(second.lastRequest.json<{ messages: object[] }>().messages).toHaveLength(2);
  });

  test("an engine that refuses leaves the stream with an error", async () => {
    const thinking: EngineOptions = { ...THINKING, kind: "llamacpp" };
    for (const backend of pair) backend.answer = (request) => engineAnswer(request, thinking);
    first.queue(brokenAfter(12, thinking));
    const { finish, error } = await ask(llamacpp, "chat", "q");
    expect(finish).toBeUndefined();
    expect(error).toBeString();
  });

  test("an engine that takes the rest of the text for thoughts leaves the stream with an error", async () => {
    for (const backend of pair) {
      backend.answer = (request) => engineAnswer({ ...request, json: withoutFlags(request) }, THINKING);
    }
    for (const format of ["chat", "messages", "responses"] as const) {
      first.queue(brokenAfter(12, VLLM));
      const { text, error } = await ask(vllm, format, "q");
      expect(error).toContain("thinks where it was to go on");
      expect(answerTo("q")).toStartWith(text);
    }
  });

  test("nothing was said yet: any backend begins anew, and its thoughts are not told twice", async () => {
    for (const backend of pair) backend.answer = (request) => engineAnswer(request, THINKING);
    for (const format of ["chat", "messages", "responses"] as const) {
      first.queue(brokenAfter(4, THINKING));
      const { text, thought, error } = await ask(generic, format, "q");
      expect([text, error]).toEqual([answerTo("q"), undefined]);
      expect("Let me think about that.").toStartWith(thought);
    }
  });

  test.each<[string, object]>([
    ["a form of the answer", { response_format: { type: "json_object" } }],
    ["a form in an engine's own words", { structured_outputs: { regex: "q.*" } }],
    ["a tool that must be called", { tools: [TOOL], tool_choice: "required" }],
    ["several choices", { n: 2 }],
    ["an echo", { echo: true }],
  ])("not with %s", async (_name, more) => {
    first.queue(brokenAfter(12, VLLM));
    expect((await ask(vllm, "chat", "q", more)).error).toBeString();
    expect(second.requests).toHaveLength(0);
  });

  test("not behind the beginning of a tool call", async () => {
    const call = { index: 0, id: "call_1", type: "function", function: { name: "f", arguments: '{"a' } };
    const event = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [call] } }] })}\n\n`;
    first.queue(brokenAfter(6, VLLM, event));
    expect((await ask(vllm, "chat", "q", { tools: [TOOL] })).error).toBeString();
    expect(second.requests).toHaveLength(0);
  });

  test("not by a backend of which nobody knows whether it can, and not when it is switched off", async () => {
    for (const gateway of [generic, switchedOff]) {
      first.queue(brokenAfter(12, VLLM));
      expect((await ask(gateway, "chat", "q")).error).toBeString();
    }
    expect(second.requests).toHaveLength(0);
  });

  test("a client that leaves is no break", async () => {
    first.queue((request) => ({ ...engineAnswer(request, VLLM), betweenChunksMs: 20 }));
    const [path, body] = requestOf("chat", "m", "q", true);
    const leaving = new AbortController();
    const response = await vllm.post(path, body, { signal: leaving.signal });
    await response.body?.getReader().read();
    leaving.abort();
    await vllm.waitUntilIdle();
    expect(second.requests).toHaveLength(0);
  });

  test("several breaks in one stream, as many as the policy allows, and the story tells of each", async () => {
    first.queue(brokenAfter(4, VLLM), brokenAfter(4, VLLM));
    second.queue(brokenAfter(4, VLLM));
    const [path, body] = requestOf("chat", "m", "q", true);
    const response = await vllm.post(path, body);
    const id = response.headers.get("x-request-id") ?? "";
    expect(readAnswer("chat", await readSse(response))).toMatchObject({ text: answerTo("q"), finish: "stop" });
    await vllm.waitUntilIdle();
    const story = (await (await vllm.fetch(`/admin/requests/${id}`)).json()) as { steps: { kind: string }[] };
    expect(story.steps.filter(({ kind }) => kind === "takeover")).toHaveLength(3);
    expect(story.steps.filter(({ kind }) => kind === "attempt")).toHaveLength(4);

    for (const backend of pair) backend.answer = brokenAfter(4, VLLM);
    const { text, error } = await ask(vllm, "chat", "q");
    expect(error).toBeString();
    expect(answerTo("q")).toStartWith(text);
  });
});

/** A request that an engine reads as if it were an ordinary one. */
function withoutFlags(request: RecordedRequest): RecordedRequest["json"] {
  return <Shape>() => {
    const { continue_final_message: _, add_generation_prompt: __, messages, ...body } = request.json();
    return { ...body, messages: (messages as unknown[]).slice(0, -1) } as Shape;
  };
}
