// The demo backend's wire shapes, over a real socket.

import { afterAll, describe, expect, test } from "bun:test";
import { createDemoBackend, type DemoParts } from "./backend.ts";

/** Over a real socket, as a client outside the process would see it. */
const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: createDemoBackend({ wordDelayMs: 0 }) });
afterAll(() => server.stop(true));

function post(path: string, body: unknown): Promise<Response> {
  return fetch(new URL(path, server.url), {
    method: "POST",
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

function ask(more: object = {}, path = "/v1/chat/completions"): Promise<Response> {
  return post(path, { model: "demo", messages: [{ role: "user", content: "How are you?" }], ...more });
}

interface Chunk {
  id: string;
  object: string;
  choices: { index: number; delta: Record<string, unknown>; text?: string; finish_reason: string | null }[];
  usage?: Record<string, unknown> | null;
}

async function readChunks(response: Response): Promise<Chunk[]> {
  expect(response.headers.get("content-type")).toStartWith("text/event-stream");
  const events = (await response.text()).split("\n\n");
  expect(events.splice(-2)).toEqual(["data: [DONE]", ""]);
  return events.map((event) => {
    expect(event).toStartWith("data: ");
    return JSON.parse(event.slice("data: ".length)) as Chunk;
  });
}

describe("paths", () => {
  test("health and the model list", async () => {
    const health = await fetch(new URL("/health", server.url));
    expect([health.status, await health.json()]).toEqual([200, { status: "ok" }]);
    const head = await fetch(new URL("/health", server.url), { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);

    const list = (await (await fetch(new URL("/v1/models", server.url))).json()) as { data: { id: string }[] };
    expect(list.data.map((model) => model.id)).toEqual(["demo", "demo-embedding", "demo-image"]);
  });

  test("unknown path and wrong method", async () => {
    expect((await post("/v1/nothing", {})).status).toBe(404);
    const wrong = await fetch(new URL("/v1/embeddings", server.url));
    expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "POST"]);
  });
});

describe("chat", () => {
  test("the plain answer has the whole shape", async () => {
    const answer = (await (await ask()).json()) as { choices: { message: { content: string } }[] };
    expect(answer).toEqual({
      id: expect.stringMatching(/^chatcmpl-[0-9a-f]{24}$/),
      object: "chat.completion",
      created: expect.any(Number),
      model: "demo",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: expect.any(String), refusal: null },
          logprobs: null,
          finish_reason: "stop",
        },
      ],
      usage: expect.objectContaining({ prompt_tokens: 6 }),
    } as never);
    const text = answer.choices[0]?.message.content;
    expect(text).toContain("demo model built into Signalbox");
    expect(text).toContain('"How are you?"');
    expect(text).toContain("OPENAI_API_KEY");
  });

  test("the same request gives the same content", async () => {
    const exact = (options: DemoParts) =>
      createDemoBackend({ clock: { now: () => 0, wallTime: () => 5_000 }, random: () => 0.5, ...options });
    const request = () =>
      new Request("http://demo.invalid/v1/chat/completions", {
        method: "POST",
        body: JSON.stringify({ model: "demo", messages: [{ role: "user", content: "x" }] }),
      });
    const [one, other] = [await exact({})(request()), await exact({ wordDelayMs: 0 })(request())];
    const text = await one.text();
    expect(await other.text()).toBe(text);
    expect(JSON.parse(text)).toMatchObject({ id: `chatcmpl-${"8".repeat(24)}`, created: 5 });
  });

  test("chunks come in order and add up to the plain answer", async () => {
    const plain = (await (await ask()).json()) as {
      choices: { message: { content: string } }[];
      usage: { completion_tokens: number };
    };
    const chunks = await readChunks(await ask({ stream: true, stream_options: { include_usage: true } }));
    expect(chunks[0]?.choices).toEqual([
      {
        index: 0,
        delta: { role: "assistant", content: "", refusal: null },
        logprobs: null,
        finish_reason: null,
      } as never,
    ]);
    const words = chunks.slice(1, -2).map((chunk) => chunk.choices[0]?.delta.content);
    expect(words.join("")).toBe(plain.choices[0]?.message.content as string);
    expect(words).toHaveLength(plain.usage.completion_tokens);
    expect(chunks.at(-2)?.choices[0]).toMatchObject({ delta: {}, finish_reason: "stop" });
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: plain.usage });
    expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true);
    expect(new Set(chunks.map((chunk) => `${chunk.id} ${chunk.object}`)).size).toBe(1);
  });

  test("no usage anywhere in a stream that did not ask", async () => {
    const chunks = await readChunks(await ask({ stream: true }));
    expect(chunks.some((chunk) => "usage" in chunk || chunk.choices.length === 0)).toBe(false);
  });

  test.each([{ max_tokens: 3 }, { max_completion_tokens: 3, max_tokens: 99 }])("%j cuts the answer", async (limit) => {
    const plain = (await (await ask(limit)).json()) as { choices: object[]; usage: object };
    expect(plain).toMatchObject({ choices: [{ finish_reason: "length" }], usage: { completion_tokens: 3 } });
    const chunks = await readChunks(await ask({ ...limit, stream: true }));
    expect(chunks.map((chunk) => chunk.choices[0]?.finish_reason)).toEqual([null, null, null, null, "length"]);
  });

  test("stop sequences end the answer before them", async () => {
    const answer = await (await ask({ stop: ["zzz", " demo"] })).json();
    expect(answer).toMatchObject({
      choices: [{ message: { content: "Hello! I am the" }, finish_reason: "stop" }],
      usage: { completion_tokens: 4 },
    });
  });

  test("n choices, plain and streamed", async () => {
    const plain = (await (await ask({ n: 3 })).json()) as {
      choices: { index: number; message: { content: string } }[];
    };
    expect(plain.choices.map((choice) => choice.index)).toEqual([0, 1, 2]);
    expect(plain.choices[2]?.message.content).toStartWith("(Answer 3 of 3)");
    const chunks = await readChunks(await ask({ n: 3, stream: true }));
    for (const { index, message } of plain.choices) {
      const own = chunks.flatMap((chunk) => chunk.choices).filter((choice) => choice.index === index);
      expect(own[0]?.delta.role).toBe("assistant");
      expect(own.map((choice) => choice.delta.content ?? "").join("")).toBe(message.content);
      expect(own.at(-1)?.finish_reason).toBe("stop");
    }
  });

  test("structured answers are JSON", async () => {
    const content = async (format: object) => {
      const answer = (await (await ask({ response_format: format })).json()) as {
        choices: { message: { content: string } }[];
      };
      return JSON.parse(answer.choices[0]?.message.content as string);
    };
    expect(await content({ type: "json_object" })).toEqual({ answer: expect.any(String) });
    const schema = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] };
    expect(await content({ type: "json_schema", json_schema: { name: "x", schema } })).toEqual({ ok: true });
  });

  test("a tool's result is repeated, content parts are read", async () => {
    const messages = [
      {
        role: "user",
        content: [
          { type: "text", text: "Weather?" },
          { type: "image_url", image_url: { url: "x" } },
        ],
      },
      { role: "assistant", content: null, tool_calls: [] },
      { role: "tool", tool_call_id: "call_1", content: "21 degrees" },
    ];
    const afterTool = (await (await ask({ messages })).text()).replaceAll("\\", "");
    expect(afterTool).toContain('Your tool answered: "21 degrees"');
    const question = (await (await ask({ messages: messages.slice(0, 1) })).text()).replaceAll("\\", "");
    expect(question).toContain('You asked: "Weather?"');
  });
});

describe("completions", () => {
  test("prompts are answered prompt-major, plain and streamed", async () => {
    const body = { model: "demo", prompt: ["Hi", "Ho"], n: 2, echo: true, max_tokens: 6 };
    const plain = (await (await post("/v1/completions", body)).json()) as {
      choices: { text: string; index: number; finish_reason: string }[];
    };
    expect(plain).toMatchObject({ object: "text_completion", usage: { prompt_tokens: 2, completion_tokens: 24 } });
    expect(plain.choices.map(({ text }) => text.slice(0, 4))).toEqual(["Hi(A", "Hi(A", "Ho(A", "Ho(A"]);
    expect(plain.choices.every((choice) => choice.finish_reason === "length")).toBe(true);

    const stream = { ...body, stream: true, stream_options: { include_usage: true } };
    const chunks = await readChunks(await post("/v1/completions", stream));
    for (const { index, text } of plain.choices) {
      const own = chunks.flatMap((chunk) => chunk.choices).filter((choice) => choice.index === index);
      expect(own.map((choice) => choice.text).join("")).toBe(text);
      expect(own.at(-1)?.finish_reason).toBe("length");
    }
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 26 } });
  });

  test.each([
    [[1, 2, 3], 3],
    [[[1], [2, 3]], 3],
    [null, 0],
    ["", 0],
  ])("prompt %j", async (prompt, tokens) => {
    const answer = await (await post("/v1/completions", { model: "demo", prompt })).json();
    expect(answer).toMatchObject({ usage: { prompt_tokens: tokens } });
  });
});

describe("bad input", () => {
  test.each([
    ["not JSON", "/v1/chat/completions", "{", { code: "invalid_json" }],
    ["no object", "/v1/chat/completions", "[]", { code: "invalid_value" }],
    ["no model", "/v1/chat/completions", { messages: [] }, { param: "model", code: "missing_required_parameter" }],
    ["no messages", "/v1/chat/completions", { model: "demo" }, { param: "messages" }],
    ["empty messages", "/v1/chat/completions", { model: "demo", messages: [] }, { param: "messages" }],
    [
      "unknown role",
      "/v1/chat/completions",
      { model: "demo", messages: [{ role: "robot", content: "" }] },
      { param: "messages[0].role", code: "invalid_value" },
    ],
    ["too many prompts", "/v1/completions", { model: "demo", prompt: ["a", "b"], n: 100 }, { param: "n" }],
    ["no input", "/v1/embeddings", { model: "demo" }, { param: "input", code: "missing_required_parameter" }],
    ["empty input", "/v1/embeddings", { model: "demo", input: ["a", ""] }, { code: "invalid_value" }],
    ["long input", "/v1/embeddings", { model: "demo", input: "a ".repeat(9_000) }, { param: "input[0]" }],
  ])("%s is 400", async (_, path, body, error) => {
    const response = await post(path, body);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: { type: "invalid_request_error", message: expect.any(String), ...error } as never,
    });
  });

  test.each([
    [{ temperature: 3 }, "temperature"],
    [{ max_tokens: 0 }, "max_tokens"],
    [{ n: 0 }, "n"],
    [{ stop: ["a", "b", "c", "d", "e"] }, "stop"],
    [{ tool_choice: "required" }, "tool_choice"],
    [
      {
        tools: [{ type: "function", function: { name: "a" } }],
        tool_choice: { type: "function", function: { name: "b" } },
      },
      "tool_choice",
    ],
  ])("%j is 400", async (more, param) => {
    const response = await ask(more);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { param } });
  });
});
