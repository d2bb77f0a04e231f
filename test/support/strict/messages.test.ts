import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { startStrictMessages } from "./messages.ts";
import { testRefusals } from "./refused-bodies.ts";
import { answer, call, failure, type JsonObject, type Script, text, thinking } from "./script.ts";
import type { StrictBackend } from "./server.ts";

const user = { role: "user", content: "hi" } as const;
const MODEL = "claude-opus-4-6";
const PNG = "iVBORw0KGgoAAAANSUhEUg==";

async function clientOf(script: Script) {
  const backend = await startStrictMessages(script);
  const client = new Anthropic({ apiKey: "sekret", baseURL: backend.url, maxRetries: 0 });
  return { backend, client, [Symbol.dispose]: () => backend.stop() };
}

const create = { model: MODEL, max_tokens: 4096, messages: [user] } satisfies Anthropic.MessageCreateParams;

describe("the official client reads", () => {
  const script = {
    ...answer(
      thinking("hmm"),
      thinking("", true),
      text("Hello, wörld 🎉!"),
      call("get", { city: "Köln" }),
      call("ping"),
    ),
    usage: { input: 20, cacheRead: 8, cacheWrite: 4, output: 9, reasoning: 3 },
  };
  const message = {
    content: [
      { type: "thinking", thinking: "hmm", signature: expect.any(String) },
      { type: "redacted_thinking", data: expect.any(String) },
      { type: "text", text: "Hello, wörld 🎉!" },
      { type: "tool_use", id: expect.stringMatching(/^toolu_/), name: "get", input: { city: "Köln" } },
      { type: "tool_use", id: expect.stringMatching(/^toolu_/), name: "ping", input: {} },
    ],
    stop_reason: "tool_use",
    usage: { input_tokens: 8, cache_read_input_tokens: 8, cache_creation_input_tokens: 4, output_tokens: 9 },
  };

  test("a whole answer and a stream alike", async () => {
    using bed = await clientOf([script, script]);
    expect(await bed.client.messages.create(create)).toMatchObject(message as never);
    expect(await bed.client.messages.stream(create).finalMessage()).toMatchObject(message as never);
  });

  test("a web search with citations", async () => {
    const citation = { url: "https://a.example", title: "A", citedText: "x", start: 0, end: 1 };
    const searched = answer(
      { type: "search", query: "q", results: [{ url: "https://a.example", title: "A" }] },
      text("x", [citation]),
    );
    using bed = await clientOf([searched, searched]);
    const expected = {
      content: [
        { type: "server_tool_use", input: { query: "q" } },
        { type: "web_search_tool_result", content: [{ url: "https://a.example" }] },
        { type: "text", text: "x", citations: [{ url: "https://a.example", cited_text: "x" }] },
      ],
      stop_reason: "end_turn",
    };
    const whole = await bed.client.messages.create(create);
    expect(whole).toMatchObject(expected as never);
    expect(whole.usage.server_tool_use?.web_search_requests).toBe(1);
    expect(await bed.client.messages.stream(create).finalMessage()).toMatchObject(expected as never);
  });

  test("how an answer ends", async () => {
    const base = answer(text("x"));
    using bed = await clientOf([
      { ...base, finish: "length" },
      { ...base, finish: "stop-sequence", stopSequence: "END" },
      { ...base, finish: "content-filter" },
      { ...base, finish: "pause" },
    ]);
    const endings = [];
    for (let turn = 0; turn < 4; turn++) {
      const { stop_reason, stop_sequence } = await bed.client.messages.create(create);
      endings.push([stop_reason, stop_sequence]);
    }
    expect(endings).toEqual([
      ["max_tokens", null],
      ["stop_sequence", "END"],
      ["refusal", null],
      ["pause_turn", null],
    ]);
  });

  test("errors before, inside and instead of the end of a stream", async () => {
    const broken = { ...answer(text("Hello there")), breakAfterFrames: 4 };
    using bed = await clientOf([
      failure(529, "busy"),
      { ...broken, breakWith: { status: 529, message: "busy now" } },
      { ...broken, breakWith: "cut" },
    ]);
    const read = async () => {
      let seen = "";
      try {
        for await (const event of await bed.client.messages.create({ ...create, stream: true })) {
          if (event.type === "content_block_delta" && event.delta.type === "text_delta") seen += event.delta.text;
        }
        return { seen, error: undefined };
      } catch (error) {
        return { seen, error };
      }
    };
    expect(await read()).toMatchObject({ error: { status: 529, error: { error: { type: "overloaded_error" } } } });
    expect(await read()).toMatchObject({ seen: "Hello", error: { message: expect.stringContaining("busy now") } });
    const cut = await read();
    expect(cut.seen).toBe("Hello");
    expect(cut.error).toBeInstanceOf(Error);
  });

  test("models and token counts", async () => {
    using bed = await clientOf([]);
    expect((await bed.client.models.list()).data.map(({ id }) => id)).toContain(MODEL);
    expect((await bed.client.messages.countTokens({ model: MODEL, messages: [user] })).input_tokens).toBeGreaterThan(0);
  });
});

describe("proofs", () => {
  const tools = [{ name: "get", input_schema: { type: "object" as const } }];
  const enabled = { type: "enabled" as const, budget_tokens: 1024 };

  /** Not one of those whose budget the client warns of. */
  const model = "claude-sonnet-4-5";

  async function secondTurn(change: (content: JsonObject[]) => JsonObject[]) {
    using bed = await clientOf([answer(thinking("hmm"), call("get")), answer(text("done"))]);
    const first = await bed.client.messages.create({ ...create, model, tools, thinking: enabled });
    const content = change(first.content as unknown as JsonObject[]) as unknown as Anthropic.ContentBlockParam[];
    const id = first.content.find((block) => block.type === "tool_use")?.id as string;
    const result = {
      role: "user" as const,
      content: [{ type: "tool_result" as const, tool_use_id: id, content: "r" }],
    };
    const messages = [user, { role: "assistant" as const, content }, result];
    const outcome = await bed.client.messages
      .create({ ...create, model, tools, thinking: enabled, messages })
      .catch((error: unknown) => error);
    return { outcome, refusals: bed.backend.refusals };
  }

  test("its own signature comes back unaltered", async () => {
    expect((await secondTurn((content) => content)).refusals).toEqual([]);
  });

  test.each([
    [
      "an altered signature",
      (content: JsonObject[]) => [{ ...content[0], signature: "AAAA" }, ...content.slice(1)],
      "messages.1.content.0.signature",
    ],
    [
      "altered thoughts",
      (content: JsonObject[]) => [{ ...content[0], thinking: "other" }, ...content.slice(1)],
      "messages.1.content.0.signature",
    ],
    ["lost thoughts", (content: JsonObject[]) => content.slice(1), "messages.1.content.0.type"],
    [
      "thoughts without a signature",
      (content: JsonObject[]) => [{ type: "thinking", thinking: "hmm" }, ...content.slice(1)],
      "messages[1].content[0].signature",
    ],
  ])("%s", async (_what, change, field) => {
    const { outcome, refusals } = await secondTurn(change);
    expect(outcome).toMatchObject({ status: 400 });
    expect(refusals[0]).toStartWith(field);
  });
});

let backend: StrictBackend;
beforeAll(async () => {
  const models = [MODEL, "claude-sonnet-4-5", "claude-opus-5", "claude-opus-5-5", "claude-3-haiku-20240307"];
  backend = await startStrictMessages(() => answer(text("ok")), { models });
});
afterAll(() => backend.stop());

const content = (...blocks: JsonObject[]) => ({ messages: [{ role: "user", content: blocks }] });
const use = (id: string) => ({ type: "tool_use", id, name: "f", input: {} });
const calls = (...ids: string[]) => ({ role: "assistant", content: ids.map(use) });
const result = (id: string) => ({ type: "tool_result", tool_use_id: id, content: "r" });
const results = (...blocks: JsonObject[]) => ({ role: "user", content: blocks });
const f = { name: "f", input_schema: { type: "object" } };
const cached = { type: "text", text: "x", cache_control: { type: "ephemeral" } };
const image = (media_type: string, data = PNG) => ({ type: "image", source: { type: "base64", media_type, data } });

testRefusals({
  backend: () => backend,
  path: "/v1/messages",
  headers: { "x-api-key": "sekret", "anthropic-version": "2023-06-01" },
  good: { model: MODEL, max_tokens: 4096, messages: [user] },
  cases: [
    ["an unknown member", { max_completion_tokens: 5 }, "max_completion_tokens"],
    ["no max_tokens", { max_tokens: undefined }, "max_tokens"],
    ["too large max_tokens", { model: "claude-3-haiku-20240307", max_tokens: 4097 }, "max_tokens"],
    ["neighbours of one role", { messages: [user, user] }, "messages.1.role"],
    ["an assistant first", { messages: [{ role: "assistant", content: "x" }, user] }, "messages.0.role"],
    ["empty text", content({ type: "text", text: "" }), "messages[0].content[0].text"],
    ["blank text", { messages: [{ role: "user", content: " " }] }, "messages[0].content"],
    ["a call without a result", { messages: [user, calls("a"), user] }, "messages.2.content"],
    ["a call at the end", { messages: [user, calls("a")] }, "messages.1"],
    ["one of two results", { messages: [user, calls("a", "b"), results(result("a"))] }, "messages.2.content"],
    ["a result without a call", { messages: [results(result("a"))] }, "messages.0.content.0.tool_use_id"],
    [
      "text before the result",
      { messages: [user, calls("a"), results({ type: "text", text: "x" }, result("a"))] },
      "messages.2.content",
    ],
    [
      "an id twice",
      { messages: [user, calls("a"), results(result("a")), calls("a"), results(result("a"))] },
      "messages.3.content.0.id",
    ],
    ["an odd id", { messages: [user, calls("a:1"), results(result("a:1"))] }, "messages[1].content[0].id"],
    [
      "arguments as text",
      { messages: [user, { role: "assistant", content: [{ ...use("a"), input: "{}" }] }] },
      "messages[1].content[0].input",
    ],
    [
      "a foreign signature",
      { messages: [user, { role: "assistant", content: [{ type: "thinking", thinking: "x", signature: "y" }] }, user] },
      "messages.1.content.0.signature",
    ],
    [
      "foreign redacted thoughts",
      { messages: [user, { role: "assistant", content: [{ type: "redacted_thinking", data: "y" }] }, user] },
      "messages.1.content.0.data",
    ],
    ["trailing blanks of a prefill", { messages: [user, { role: "assistant", content: "x " }] }, "messages"],
    [
      "a prefill of a newer model",
      { model: "claude-opus-5", messages: [user, { role: "assistant", content: "x" }] },
      "messages",
    ],
    ["a nested tool", { tools: [{ type: "function", function: { name: "f" } }] }, "tools[0].type"],
    ["a schema without a type", { tools: [{ name: "f", input_schema: {} }] }, "tools[0].input_schema.type"],
    ["a tool name", { tools: [{ ...f, name: "a.b" }] }, "tools[0].name"],
    ["two tools of one name", { tools: [f, f] }, "tools"],
    ["a choice without tools", { tool_choice: { type: "auto" } }, "tool_choice"],
    ["a choice of an unknown tool", { tools: [f], tool_choice: { type: "tool", name: "g" } }, "tool_choice.name"],
    [
      "a forced tool of the newest models",
      { model: "claude-opus-5-5", tools: [f], tool_choice: { type: "any" } },
      "tool_choice.type",
    ],
    [
      "a forced tool while thinking",
      { tools: [f], tool_choice: { type: "any" }, thinking: { type: "enabled", budget_tokens: 1024 } },
      "tool_choice.type",
    ],
    ["a small budget", { thinking: { type: "enabled", budget_tokens: 1000 } }, "thinking.budget_tokens"],
    ["a budget above max_tokens", { thinking: { type: "enabled", budget_tokens: 4096 } }, "max_tokens"],
    [
      "a budget of a newer model",
      { model: "claude-opus-5", thinking: { type: "enabled", budget_tokens: 1024 } },
      "thinking.type",
    ],
    [
      "adaptive thinking of an older model",
      { model: "claude-sonnet-4-5", thinking: { type: "adaptive" } },
      "thinking.type",
    ],
    [
      "thinking off, at the top effort",
      { model: "claude-opus-5", thinking: { type: "disabled" }, output_config: { effort: "max" } },
      "thinking.type",
    ],
    [
      "effort of an older model",
      { model: "claude-sonnet-4-5", output_config: { effort: "low" } },
      "output_config.effort",
    ],
    ["effort xhigh of 4.6", { output_config: { effort: "xhigh" } }, "output_config.effort"],
    [
      "temperature while thinking",
      { temperature: 0.5, thinking: { type: "enabled", budget_tokens: 1024 } },
      "temperature",
    ],
    ["temperature of a newer model", { model: "claude-opus-5", temperature: 0.5 }, "temperature"],
    ["temperature above 1", { temperature: 1.5 }, "temperature"],
    ["a blank stop sequence", { stop_sequences: ["\n"] }, "stop_sequences[0]"],
    ["invalid base64", content(image("image/png", "iVBORw0KGgo*")), "messages[0].content[0].source.data"],
    ["an image of another type", content(image("image/jpeg")), "messages[0].content[0].source.data"],
    ["an unknown image type", content(image("image/svg+xml")), "messages[0].content[0].source.media_type"],
    [
      "a PDF that is none",
      content({ type: "document", source: { type: "base64", media_type: "application/pdf", data: PNG } }),
      "messages[0].content[0].source.data",
    ],
    ["five breakpoints", { system: [cached, cached], ...content(cached, cached, cached) }, "cache_control"],
    [
      "an open output schema",
      { output_config: { format: { type: "json_schema", schema: { type: "object" } } } },
      "output_config.format.schema",
    ],
    [
      "a foreign page of a search",
      {
        messages: [
          user,
          {
            role: "assistant",
            content: [
              { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} },
              {
                type: "web_search_tool_result",
                tool_use_id: "srvtoolu_1",
                content: [{ type: "web_search_result", url: "u", title: "t", encrypted_content: "x" }],
              },
            ],
          },
          user,
        ],
      },
      "messages.1.content.1.content.0.encrypted_content",
    ],
    [
      "both lists of domains",
      { tools: [{ type: "web_search_20250305", name: "web_search", allowed_domains: ["a"], blocked_domains: ["b"] }] },
      "tools[0]",
    ],
    ["metadata of one's own", { metadata: { trace: "x" } }, "metadata.trace"],
  ],
  accepted: [
    [
      "results in any order, then text",
      { messages: [user, calls("a", "b"), results(result("b"), result("a"), { type: "text", text: "x" })] },
    ],
    ["an instruction in the middle", { messages: [user, { role: "system", content: "x" }, user] }],
    ["four breakpoints", { system: [cached], ...content(cached, cached, cached) }],
    ["an image", content(image("image/png"))],
    ["adaptive thinking", { thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: "max" } }],
    [
      "a web search",
      {
        tools: [{ type: "web_search_20250305", name: "web_search", max_uses: 2 }, f],
        tool_choice: { type: "tool", name: "f" },
      },
    ],
  ],
});

describe("headers", () => {
  const post = async (headers: Record<string, string>, change: JsonObject = {}) => {
    const body = JSON.stringify({ model: MODEL, max_tokens: 10, messages: [user], ...change });
    const response = await fetch(`${backend.url}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body,
    });
    return response.status;
  };
  const version = { "anthropic-version": "2023-06-01" };

  test.each([
    ["no key", version, 401],
    ["no version", { "x-api-key": "sekret" }, 400],
    ["an unknown version", { "x-api-key": "sekret", "anthropic-version": "2030-01-01" }, 400],
    ["a bearer token", { authorization: "Bearer sekret", ...version }, 200],
  ] as [string, Record<string, string>, number][])("%s", async (_what, headers, status) => {
    expect(await post(headers)).toBe(status);
  });

  test("the newer version knows no sampling", async () => {
    const newer = { "x-api-key": "sekret", "anthropic-version": "2026-10-21" };
    expect(await post(newer)).toBe(200);
    expect(await post(newer, { temperature: 1 })).toBe(400);
    expect(await post({ "x-api-key": "sekret", ...version }, { temperature: 1 })).toBe(200);
  });
});

test("neighbours with one role are joined where the backend is told to", async () => {
  using merging = await startStrictMessages(() => answer(text("ok")), { mergesTurns: true });
  const client = new Anthropic({ apiKey: "sekret", baseURL: merging.url, maxRetries: 0 });
  const messages = [user, calls("a", "b"), results(result("a")), results(result("b")), user];
  await client.messages.create({ ...create, messages: messages as Anthropic.MessageParam[] });
  expect(merging.refusals).toEqual([]);
});
