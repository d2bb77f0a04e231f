// Hooks of answers in every client format: whole and streamed, passed and translated, from the cache, and taken over in mid-stream.

import { beforeAll, describe, expect, test } from "bun:test";
import { answerWell } from "../support/all-formats.ts";
import type { Responder } from "../support/fake-backend.ts";
import { CLIENT_FORMATS, type ClientFormat, readResponse, requestOf } from "../support/format-readings.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatStream, completion, eventStream, sseEvent } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
/** Speaks every format natively. */
const native = bed.backend({ answer: answerWell });
/** Speaks chat and text completions. */
const chats = bed.backend();
const ollama = bed.backend({
  answer: (request) => {
    const end = {
      model: "m",
      created_at: "2026-01-01T00:00:00Z",
      done: true,
      done_reason: "stop",
      eval_count: 2,
      prompt_eval_count: 3,
    };
    const message = { role: "assistant", content: "hello" };
    if (!request.text.includes('"stream":true')) return { body: JSON.stringify({ ...end, message }) };
    const lines = [
      { ...end, done: false, done_reason: undefined, message },
      { ...end, message: { role: "assistant", content: "" } },
    ];
    return {
      headers: { "Content-Type": "application/x-ndjson" },
      body: lines.map((line) => `${JSON.stringify(line)}\n`),
    };
  },
});
const breaking = bed.backend();
const taking = bed.backend();

const SHOUT = `
import { change, defineHook } from "signalbox/hooks";
export default defineHook({
  chunks: { by: "sentence", hold: 64 },
  answer: ({ result }) => change({
    result: { ...result, parts: result.parts.map((part) => part.type === "text" ? { ...part, text: part.text.toUpperCase() } : part) },
  }),
  chunk: ({ text }) => change({ text: text.toUpperCase() }),
});
`;
/** It reads answers, and no pieces: streams are held back for it. */
const WHOLE = `
import { change, defineHook } from "signalbox/hooks";
export default defineHook({
  answer: ({ result }) => change({ result: { ...result, parts: [{ type: "text", text: "[" + result.parts[0].text + "]" }] } }),
});
`;
/** It reads pieces alone: whole answers are cut for it. */
const PIECES = `
import { change, defineHook } from "signalbox/hooks";
export default defineHook({ chunk: ({ text }) => change({ text: text.replaceAll("l", "L") }) });
`;

/** In the format of the path, as a stream where one is asked for. */
function said(texts: readonly string[]): Responder {
  return ({ path, text }) => {
    const isStream = text.includes('"stream":true');
    if (!path.endsWith("/v1/completions")) return isStream ? chatStream(texts) : chat(texts.join(""));
    if (!isStream) return completion(texts.join(""));
    const chunk = (piece: string, finish_reason: string | null) =>
      sseEvent({
        id: "cmpl-1",
        object: "text_completion",
        created: 1,
        model: "m",
        choices: [{ index: 0, text: piece, finish_reason }],
      });
    return eventStream([...texts.map((piece) => chunk(piece, null)), chunk("", "stop"), "data: [DONE]\n\n"]);
  };
}

let gateway: Gateway;
beforeAll(async () => {
  const hook = (name: string, module: string) => ({
    name,
    module: `./${module}.ts`,
    timeout: "10s",
    match: { model: `${name}*` },
  });
  gateway = await bed.gateway({
    config: {
      backends: [
        { name: "native", url: native.url, type: "openai", models: ["shout", "whole", "pieces", "plain"] },
        { name: "anthropic", url: native.url, type: "anthropic", models: ["shout-m"] },
        { name: "gemini", url: native.url, type: "gemini", models: ["shout-g"] },
        { name: "ollama", url: ollama.url, type: "ollama", models: ["shout-o"] },
        { name: "chats", url: chats.url, type: "generic", models: ["shout-t", "whole-t", "pieces-t", "plain-t"] },
        { name: "breaking", url: breaking.url, models: ["shout-b"] },
        { name: "taking", url: taking.url, models: ["shout-c"] },
      ],
      fallback: { fallback_chains: { "shout-b": ["shout-c"] } },
      retry: { max_attempts: 1 },
      health_checks: { enabled: false },
      streaming: { mid_stream_fallback: { enabled: true } },
      response_cache: { enabled: true },
      hooks: [hook("shout", "shout"), hook("whole", "whole"), hook("pieces", "pieces")],
    } as never,
    files: { "shout.ts": SHOUT, "whole.ts": WHOLE, "pieces.ts": PIECES },
  });
});

const NATIVE: Record<ClientFormat, string> = {
  chat: "shout",
  completions: "shout",
  messages: "shout-m",
  responses: "shout",
  "generate-content": "shout-g",
  "ollama-api": "shout-o",
};

async function streamed(format: ClientFormat, model: string) {
  const [path, body] = requestOf(format, model, "hi", true);
  return await readResponse(format, await gateway.post(path, body));
}

async function whole(format: ClientFormat, model: string): Promise<string> {
  const [path, body] = requestOf(format, model, "hi", false);
  const response = await gateway.post(path, body);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status} ${text}`);
  return text;
}

describe.each(CLIENT_FORMATS)("answers in the format %s", (format) => {
  test("pass a hook as a stream of a backend that speaks it", async () => {
    const reading = await streamed(format, NATIVE[format]);
    expect(reading).toMatchObject({ text: "HELLO", error: undefined });
    expect(reading.finish).toBeDefined();
    // Those of OpenAI's own formats come without counts here.
    if (["messages", "responses", "generate-content"].includes(format)) expect(reading.usage?.answered).toBe(2);
  });

  test("pass a hook as a whole of a backend that speaks it", async () => {
    expect(await whole(format, NATIVE[format])).toContain("HELLO");
  });

  test("pass a hook where they are translated", async () => {
    chats.reset(said(["One. ", "Two"]));
    expect((await streamed(format, "shout-t")).text).toBe("ONE. TWO");
    chats.reset(said(["one"]));
    expect(await whole(format, "shout-t")).toContain("ONE");
  });

  test("wait for a hook that reads whole answers", async () => {
    chats.reset(said(["One. ", "Two"]));
    expect((await streamed(format, "whole-t")).text).toBe("[One. Two]");
  });

  test("are cut for a hook that reads pieces", async () => {
    chats.reset(said(["hello. all"]));
    expect(await whole(format, "pieces-t")).toContain("heLLo. aLL");
  });
});

describe("an answer", () => {
  test("is kept as the backend gave it, and passes the hook each time", async () => {
    chats.reset(chat("kept"));
    const body = { model: "shout-t", temperature: 0, messages: [{ role: "user", content: "cache" }] };
    const answers = [];
    for (let times = 0; times < 2; times++) {
      const response = await gateway.post("/v1/chat/completions", body);
      const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
      answers.push([response.headers.get("x-cache"), choices[0]?.message.content]);
    }
    expect(answers).toEqual([
      ["MISS", "KEPT"],
      ["HIT", "KEPT"],
    ]);
  });

  test("that another backend takes over in mid-stream is one answer behind the hook", async () => {
    breaking.reset(chatStream(["One ", "two "], { finishReason: null, done: false }));
    taking.reset(chatStream(["three. ", "Four."]));
    const response = await gateway.chat({ model: "shout-b", stream: true });
    const text = await response.text();
    expect(text).toContain("ONE TWO THREE. ");
    expect(text).toContain("FOUR.");
    expect(text).toEndWith("data: [DONE]\n\n");
    expect(taking.requests.length).toBe(1);
  });

  test("whose stream breaks off ends with an error, behind what was held back", async () => {
    chats.reset(chatStream(["half a sen"], { finishReason: null, done: false }));
    const text = await (
      await gateway.chat({ model: "shout-t", stream: true, messages: [{ role: "user", content: "break" }] })
    ).text();
    expect(text).toContain("HALF A SEN");
    expect(text).toContain('"error"');
    expect(text.indexOf("HALF")).toBeLessThan(text.indexOf('"error"'));
  });
});
