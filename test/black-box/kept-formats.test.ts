// The response cache for Responses, Messages and text completions: what is kept, what never is, and answers that clients go
// on with.

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { Answer } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatStream, completion, eventStream, sseEvent } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
const [generic, vendor, anthropic] = [bed.backend(), bed.backend(), bed.backend()];
const [ANNA, BERT] = ["sk-sekret-anna", "sk-sekret-bert"];
let gateway: Gateway;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      health_checks: { enabled: false },
      retry: { max_attempts: 1 },
      response_cache: { enabled: true },
      api_keys: {
        keys: [
          { key: ANNA as string, organization_id: "a" },
          { key: BERT as string, organization_id: "b" },
        ],
      },
      backends: [
        { name: "a", url: generic.url, models: ["m"] },
        { name: "b", type: "openai", url: vendor.url, models: ["gpt-5"], api_key: "sekret" },
        { name: "c", type: "anthropic", url: anthropic.url, models: ["claude-sonnet-4-5"], api_key: "sekret" },
      ],
    },
  });
});

beforeEach(async () => {
  generic.reset(chat("hello"));
  vendor.reset(vendorAnswer("resp_vendor1"));
  anthropic.reset(messageAnswer("hello"));
  await gateway.fetch("/admin/response-cache", { method: "DELETE" });
});

function vendorAnswer(id: string, more: object = {}): Answer {
  const content = [{ type: "output_text", text: `hello of ${id}`, annotations: [], logprobs: [] }];
  const output = [{ id: `msg_${id}`, type: "message", role: "assistant", status: "completed", content }];
  const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3 };
  return {
    body: JSON.stringify({ id, object: "response", created_at: 5, status: "completed", output, usage, ...more }),
  };
}

function messageAnswer(text: string, more: object = {}): Answer {
  return {
    body: JSON.stringify({
      ...{ id: "msg_1", type: "message", role: "assistant", model: "claude-sonnet-4-5" },
      ...{ content: [{ type: "text", text }], stop_reason: "end_turn", stop_sequence: null },
      usage: { input_tokens: 1, output_tokens: 2 },
      ...more,
    }),
  };
}

const PATHS = { responses: "/v1/responses", messages: "/anthropic/v1/messages", completions: "/v1/completions" };
type Format = keyof typeof PATHS;

const QUESTIONS: Record<Format, object> = {
  responses: { model: "m", input: "hi" },
  messages: { model: "m", max_tokens: 9, messages: [{ role: "user", content: "hi" }] },
  completions: { model: "m", prompt: "hi" },
};

async function ask(format: Format, more: object = {}, key = ANNA as string) {
  const headers = { Authorization: `Bearer ${key}` };
  const response = await gateway.post(PATHS[format], { ...QUESTIONS[format], ...more }, { headers });
  const text = await response.text();
  return { status: response.status, cache: response.headers.get("x-cache"), text };
}

async function decisions(format: Format, ...bodies: object[]): Promise<(string | null)[]> {
  const made: (string | null)[] = [];
  for (const body of bodies) made.push((await ask(format, body)).cache);
  return made;
}

describe.each(["responses", "messages", "completions"] as const)("%s", (format) => {
  beforeEach(() =>
    generic.reset((request) =>
      request.path.endsWith("/completions") && !request.path.includes("chat") ? completion("hello") : chat("hello"),
    ),
  );

  test("the second of two equal requests is a HIT with the same bytes, for the same owner alone", async () => {
    const first = await ask(format);
    const second = await ask(format);
    expect([first.cache, second.cache]).toEqual(["MISS", "HIT"]);
    expect(second.text).toBe(first.text);
    expect(generic.requests).toHaveLength(1);
    expect((await ask(format, {}, BERT)).cache).toBe("MISS");
  });

  test("only temperature 0, or none, is kept; another question is another answer", async () => {
    expect(await decisions(format, { temperature: 0.5 }, { temperature: 0.5 })).toEqual(["BYPASS", "BYPASS"]);
    expect(await decisions(format, { temperature: 0 }, { temperature: 0 }, { top_p: 0.5 })).toEqual([
      "MISS",
      "HIT",
      "MISS",
    ]);
  });

  test("a plain answer is given again as a stream", async () => {
    await ask(format);
    const replayed = await ask(format, { stream: true });
    expect(replayed.cache).toBe("HIT");
    expect(replayed.text).toContain("data: ");
    expect(replayed.text).toContain("hello");
    expect(generic.requests).toHaveLength(1);
  });
});

describe("the official SDKs read what is given again", () => {
  test("a Responses stream as a whole answer, and a whole answer as a stream", async () => {
    const client = new OpenAI({ apiKey: ANNA as string, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
    const question = { model: "m", input: "hi" };
    generic.reset(chat("hello"));
    generic.queue(chatStream(["hel", "lo"]));
    const streamed = await client.responses.stream(question).finalResponse();
    expect(streamed.output_text).toBe("hello");
    const whole = await client.responses.create(question);
    expect([whole.id, whole.output_text, whole.usage]).toEqual([streamed.id, "hello", streamed.usage]);
    const other = { model: "m", input: "ho" };
    const first = await client.responses.create(other);
    const replayed = await client.responses.stream(other).finalResponse();
    expect([replayed.id, replayed.output_text]).toEqual([first.id, "hello"]);
    expect(generic.requests).toHaveLength(2);
  });

  test("Messages likewise", async () => {
    const client = new Anthropic({ apiKey: ANNA as string, baseURL: `${gateway.url}/anthropic`, maxRetries: 0 });
    const question = {
      model: "claude-sonnet-4-5",
      max_tokens: 9,
      messages: [{ role: "user" as const, content: "hi" }],
    };
    const whole = await client.messages.create(question);
    const streamed = await client.messages.stream(question).finalMessage();
    expect(streamed).toMatchObject({
      id: whole.id,
      content: whole.content,
      stop_reason: "end_turn",
      usage: whole.usage,
    });
    expect(anthropic.requests).toHaveLength(1);
  });
});

describe("never kept", () => {
  const unfinished: [string, Format, object, Answer][] = [
    [
      "an incomplete Responses answer",
      "responses",
      { model: "gpt-5" },
      vendorAnswer("resp_1", { status: "incomplete" }),
    ],
    [
      "a failed one",
      "responses",
      { model: "gpt-5" },
      vendorAnswer("resp_1", { status: "failed", error: { code: "x", message: "x" } }),
    ],
    [
      "a Messages answer without an end",
      "messages",
      { model: "claude-sonnet-4-5" },
      messageAnswer("x", { stop_reason: null }),
    ],
    ["a paused one", "messages", { model: "claude-sonnet-4-5" }, messageAnswer("x", { stop_reason: "pause_turn" })],
    [
      "a Messages stream with an error in it",
      "messages",
      { model: "claude-sonnet-4-5", stream: true },
      eventStream([
        sseEvent({ type: "message_start", message: { id: "msg_1", content: [], usage: {} } }),
        sseEvent({ type: "error", error: { type: "overloaded_error", message: "x" } }),
      ]),
    ],
  ];
  test.each(unfinished)("%s", async (_name, format, more, answer) => {
    (format === "responses" ? vendor : anthropic).reset(answer);
    expect(await decisions(format, more, more)).not.toContain("HIT");
    expect([...vendor.requests, ...anthropic.requests]).toHaveLength(2);
  });

  test.each([
    ["background", "responses", { model: "gpt-5", background: true }],
    ["a prompt that the vendor keeps", "responses", { model: "gpt-5", prompt: { id: "pmpt_1" } }],
    ["a search", "responses", { model: "gpt-5", tools: [{ type: "web_search" }] }],
    [
      "the vendor's computer",
      "responses",
      { model: "gpt-5", tools: [{ type: "code_interpreter", container: { type: "auto" } }] },
    ],
    ["a container", "messages", { model: "claude-sonnet-4-5", container: "container_1" }],
    [
      "servers of tools",
      "messages",
      { model: "claude-sonnet-4-5", mcp_servers: [{ type: "url", name: "s", url: "https://h.example" }] },
    ],
    ["a fetch", "messages", { model: "claude-sonnet-4-5", tools: [{ type: "web_fetch_20250910", name: "web_fetch" }] }],
  ] as const)("a request with %s", async (_name, format, more) => {
    expect(await decisions(format, more, more)).toEqual(["BYPASS", "BYPASS"]);
    expect([...vendor.requests, ...anthropic.requests]).toHaveLength(2);
  });

  test("what a Responses answer repeats of its request is not given to another request", async () => {
    const bodies = [
      { metadata: { a: "1" } },
      { metadata: { a: "2" } },
      { user: "u" },
      { store: false },
      { store: true },
    ];
    expect(await decisions("responses", ...bodies)).toEqual(Array(5).fill("MISS"));
    const { text, cache } = await ask("responses", { metadata: { a: "1" } });
    expect([cache, JSON.parse(text).metadata]).toEqual(["HIT", { a: "1" }]);
  });
});

describe("an answer that was given again is gone on with", () => {
  test("where the gateway keeps the conversation", async () => {
    await ask("responses");
    const { text, cache } = await ask("responses");
    expect(cache).toBe("HIT");
    const more = { input: "and?", previous_response_id: JSON.parse(text).id };
    expect(await decisions("responses", more, more)).toEqual(["MISS", "HIT"]);
    expect(JSON.parse(generic.lastRequest.text).messages.map(({ content }: { content: string }) => content)).toEqual([
      ...["hi", "hello", "and?"],
    ]);
    expect((await ask("responses", more, BERT)).status).toBe(404);
  });

  test("where the vendor keeps it: the vendor is asked each time", async () => {
    const question = { model: "gpt-5" };
    expect(await decisions("responses", question, question)).toEqual(["MISS", "HIT"]);
    const more = { ...question, input: "and?", previous_response_id: "resp_vendor1" };
    expect(await decisions("responses", more, more)).toEqual(["BYPASS", "BYPASS"]);
    expect(vendor.requests).toHaveLength(3);
    expect(JSON.parse(vendor.lastRequest.text).previous_response_id).toBe("resp_vendor1");
  });

  test("an answer that is not to be kept by anybody can be given again all the same", async () => {
    expect(await decisions("responses", { store: false }, { store: false })).toEqual(["MISS", "HIT"]);
  });
});
