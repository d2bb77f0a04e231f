// POST /v1/audio/* and /v1/moderations: routed by model like any other request, nothing is translated.

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import OpenAI, { toFile } from "openai";
import { expectError } from "../support/expect-error.ts";
import type { Answer } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const models = ["m", "tts", "whisper", "omni-moderation-latest"];
const first = bed.backend({ models });
const second = bed.backend({ models });
const local = bed.backend({ models: ["local"] });
let gateway: Gateway;
let client: OpenAI;

const SOUND = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7) % 251));
const RECORDING = Buffer.from("RIFF....WAVEfmt a recording");

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      retry: { base_delay: "1ms", max_delay: "5ms" },
      backends: [
        { name: "first", type: "openai", url: first.url, api_key: "sekret-vendor" },
        { name: "second", url: second.url, weight: 0 },
        { name: "local", type: "llamacpp", url: local.url },
      ],
    },
  });
  client = new OpenAI({ apiKey: "sk-none", baseURL: `${gateway.url}/v1`, maxRetries: 0 });
});

beforeEach(() => {
  for (const backend of [first, second, local]) backend.reset();
});

const sound: Answer = {
  headers: { "Content-Type": "audio/mpeg" },
  body: SOUND,
  chunkBytes: 16_000,
  framing: "chunked",
};
const json = (value: unknown): Answer => ({
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(value),
});
const unavailable: Answer = { status: 503, ...json({ error: { message: "busy", type: "overloaded" } }) };
const events = (...values: object[]): Answer => ({
  headers: { "Content-Type": "text/event-stream" },
  body: values.map((value) => `data: ${JSON.stringify(value)}\n\n`),
});

const speak = (more: object = {}) =>
  gateway.post("/v1/audio/speech", { model: "tts", input: "Hi", voice: "a", ...more });

function transcribe(fields: Record<string, string>, path = "transcriptions", file: Blob | null = recording()) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  if (file !== null) form.append("file", file, "talk.wav");
  return fetch(`${gateway.url}/v1/audio/${path}`, { method: "POST", body: form });
}

const recording = () => new Blob([RECORDING], { type: "audio/wav" });

describe("speech", () => {
  test("its bytes go on as they come, with the backend's type", async () => {
    first.answer = sound;
    const answer = await client.audio.speech.create({ model: "tts", input: "Mind the gap.", voice: "alloy" });
    expect(answer.headers.get("content-type")).toBe("audio/mpeg");
    expect(answer.headers.get("x-signalbox-backend")).toBe("first");
    expect(Buffer.from(await answer.arrayBuffer()).equals(SOUND)).toBe(true);
    expect(first.lastRequest.path).toBe("/v1/audio/speech");
    expect(first.lastRequest.json()).toEqual({ model: "tts", input: "Mind the gap.", voice: "alloy" });
    expect(first.lastRequest.headers.authorization).toBe("Bearer sekret-vendor");
  });

  test("the first bytes do not wait for the last", async () => {
    const { promise: more, resolve: send } = Promise.withResolvers<void>();
    first.answer = {
      headers: sound.headers as Record<string, string>,
      body: [SOUND.subarray(0, 1000), SOUND.subarray(1000)],
      beforeChunk: (index) => (index === 1 ? more : undefined),
    };
    const reader = (await speak()).body?.getReader();
    const { value } = (await reader?.read()) ?? {};
    expect(value?.length).toBe(1000);
    send();
  });

  test("a failure before the first byte is tried elsewhere, unseen", async () => {
    first.answer = unavailable;
    second.answer = sound;
    const answer = await speak();
    expect(answer.headers.get("x-signalbox-backend")).toBe("second");
    expect(Buffer.from(await answer.arrayBuffer()).equals(SOUND)).toBe(true);
  });

  test("a broken answer never looks complete, and the story says so", async () => {
    first.answer = { ...sound, breakAfterBytes: 100_000, breakWith: "reset" };
    const answer = await speak();
    expect(answer.status).toBe(200);
    expect(await answer.arrayBuffer().catch(() => "broken")).toBe("broken");
    const id = answer.headers.get("x-signalbox-request-id");
    const story = await waitFor("the story is told", async () => {
      const told = await fetch(`${gateway.url}/admin/requests/${id}`);
      return told.status === 200 && ((await told.json()) as { failure?: unknown });
    });
    expect(JSON.stringify(story)).toContain("reset");
    expect(gateway.printed.stderr).not.toContain("the answer broke off");
  });

  test.each([
    ["an error", json({ error: { message: "no such voice" } })],
    ["an empty answer", { headers: { "Content-Type": "audio/mpeg" }, body: "" }],
    ["HTML", { headers: { "Content-Type": "text/html" }, body: "<html>" }],
  ] satisfies [string, Answer][])("%s inside a 200 is a failure", async (_what, answer) => {
    first.answer = answer;
    second.answer = answer;
    await expectError(await speak(), [400, 502]);
  });

  test("events where they are asked for", async () => {
    const told = [
      { type: "speech.audio.delta", audio: "AAAA" },
      { type: "speech.audio.done", usage: { input_tokens: 3, output_tokens: 5, total_tokens: 8 } },
    ];
    first.answer = events(...told);
    const answer = await speak({ stream_format: "sse" });
    expect(answer.headers.get("content-type")).toStartWith("text/event-stream");
    expect(await answer.text()).toBe(told.map((value) => `data: ${JSON.stringify(value)}\n\n`).join(""));
  });

  test("a client that leaves frees the backend", async () => {
    first.answer = { ...sound, betweenChunksMs: 20 };
    const abort = new AbortController();
    const answer = await fetch(`${gateway.url}/v1/audio/speech`, {
      method: "POST",
      body: JSON.stringify({ model: "tts", input: "Hi" }),
      signal: abort.signal,
    });
    await answer.body?.getReader().read();
    abort.abort();
    await first.lastRequest.closed;
    expect(first.lastRequest.answerComplete).toBe(false);
  });

  test.each([
    ["model", { model: "" }],
    ["input", { input: undefined }],
    ["input", { input: 3 }],
    ["input", { input: "" }],
  ])("bad input names the field: %s", async (param, more) => {
    expect((await expectError(await speak(more), 400)).param).toBe(param);
    expect(first.requests).toHaveLength(0);
  });
});

describe("transcriptions and translations", () => {
  test("the form goes on untouched, byte for byte", async () => {
    first.answer = json({
      text: "hello",
      usage: { type: "tokens", input_tokens: 4, output_tokens: 1, total_tokens: 5 },
    });
    const boundary = "----odd boundary'";
    const body = [
      `--${boundary}\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper\r\n`,
      `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="täg.wav"\r\nContent-Type: audio/wav\r\nX-Own: 1\r\n\r\n`,
      `${RECORDING.toString("latin1")}\r\n--${boundary}\r\nContent-Disposition: form-data; name="x-unknown"\r\n\r\n1\r\n--${boundary}--\r\n`,
    ].join("");
    const contentType = `multipart/form-data; boundary="${boundary}"`;
    const answer = await fetch(`${gateway.url}/v1/audio/transcriptions`, {
      method: "POST",
      headers: { "content-type": contentType },
      body,
    });
    expect(await answer.json()).toMatchObject({ text: "hello" });
    expect(first.lastRequest.text).toBe(body);
    expect(first.lastRequest.headers["content-type"]).toBe(contentType);
    expect(first.lastRequest.path).toBe("/v1/audio/transcriptions");
  });

  test("with the official SDK, as JSON, as a text and as a stream", async () => {
    first.answer = json({ text: "hello" });
    const file = await toFile(RECORDING, "talk.wav");
    expect((await client.audio.transcriptions.create({ file, model: "whisper" })).text).toBe("hello");
    first.answer = { headers: { "Content-Type": "text/plain; charset=utf-8" }, body: "1\n00:00 --> 00:01\nhello\n" };
    const srt = await client.audio.transcriptions.create({ file, model: "whisper", response_format: "srt" });
    expect(String(srt)).toBe("1\n00:00 --> 00:01\nhello\n");
    first.answer = events(
      { type: "transcript.text.delta", delta: "hel" },
      { type: "transcript.text.done", text: "hello", usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } },
    );
    const types: string[] = [];
    const stream = await client.audio.transcriptions.create({ file, model: "whisper", stream: true });
    for await (const event of stream) types.push(event.type);
    expect(types).toEqual(["transcript.text.delta", "transcript.text.done"]);
    first.answer = json({ text: "hello" });
    expect((await client.audio.translations.create({ file, model: "whisper" })).text).toBe("hello");
    expect(first.lastRequest.path).toBe("/v1/audio/translations");
  });

  test("a stream that was asked for of a model that does not stream is one event", async () => {
    first.answer = json({ text: "hello" });
    const answer = await transcribe({ model: "whisper", stream: "true" });
    expect(answer.headers.get("content-type")).toStartWith("text/event-stream");
    expect(await answer.text()).toBe(
      'event: transcript.text.done\ndata: {"type":"transcript.text.done","text":"hello"}\n\n',
    );
  });

  test("silence is an empty text", async () => {
    first.answer = { headers: { "Content-Type": "text/plain" }, body: "" };
    const answer = await transcribe({ model: "whisper", response_format: "text" });
    expect([answer.status, await answer.text()]).toEqual([200, ""]);
  });

  test("a stream that breaks off ends with an error event", async () => {
    first.answer = {
      ...events({ type: "transcript.text.delta", delta: "hel" }),
      breakWith: "reset",
      breakAfterBytes: 70,
    };
    first.answer.body = ['data: {"type":"transcript.text.delta","delta":"hel"}\n\n', "x".repeat(100)];
    const text = await (await transcribe({ model: "whisper", stream: "true" })).text();
    expect(text).toContain('"delta":"hel"');
    expect(text).toContain('"error"');
  });

  test.each([
    ["model", () => transcribe({})],
    ["file", () => transcribe({ model: "whisper" }, "transcriptions", null)],
    ["file", () => transcribe({ model: "whisper" }, "translations", new Blob([]))],
  ])("bad input names the field: %s", async (param, ask) => {
    expect((await expectError(await ask(), 400)).param).toBe(param);
    expect(first.requests).toHaveLength(0);
  });

  test("what is no form is told so", async () => {
    const answer = await gateway.post("/v1/audio/transcriptions", { model: "whisper" });
    expect((await expectError(answer, 400)).message).toContain("multipart/form-data");
  });
});

describe("moderations", () => {
  test("go on as they came, also without a model", async () => {
    first.answer = json({ id: "modr-1", model: "omni-moderation-latest", results: [{ flagged: false }] });
    const answer = await client.moderations.create({ input: "hello" });
    expect(answer.results).toHaveLength(1);
    expect(first.lastRequest.text).toBe('{"input":"hello"}');
  });

  test("without input", async () => {
    expect((await expectError(await gateway.post("/v1/moderations", {}), 400)).param).toBe("input");
  });
});

test("a type of backend that cannot is told so", async () => {
  const asked = [
    ["speech", await gateway.post("/v1/audio/speech", { model: "local", input: "Hi" })],
    ["transcriptions", await transcribe({ model: "local" })],
    ["moderations", await gateway.post("/v1/moderations", { model: "local", input: "Hi" })],
  ] as const;
  for (const [name, answer] of asked) {
    const { param, message } = await expectError(answer, 400);
    expect([param, message]).toEqual(["model", expect.stringContaining(name)]);
    expect(message).toContain("local");
  }
  expect(local.requests).toHaveLength(0);
});
