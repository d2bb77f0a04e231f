// Presets against vendors that are as strict as the real ones: a type and a key are enough for every client format.

import { afterEach, expect, test } from "bun:test";
import { PRESETS, type Preset } from "../../src/presets.ts";
import { chat, models } from "../support/openai-answers.ts";
import { startGateway } from "../support/start-gateway.ts";
import { answer, call, text, thinking } from "../support/strict/script.ts";
import type { StrictBackend } from "../support/strict/server.ts";
import { STRICT_VENDORS, type StrictVendorName, startStrictVendor } from "../support/strict/vendors.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
const KEY = "sekret-vendor";
const NAMES = Object.keys(STRICT_VENDORS) as StrictVendorName[];
const open: StrictBackend[] = [];

afterEach(() => {
  for (const backend of open.splice(0)) backend.stop();
});

async function bedOf(name: StrictVendorName, script: Parameters<typeof startStrictVendor>[1]) {
  const backend = await startStrictVendor(name, script);
  open.push(backend);
  const { base, model } = STRICT_VENDORS[name];
  const listed = "list" in STRICT_VENDORS[name] ? {} : { models: [model] };
  const gateway = await startGateway({
    config: { backends: [{ name, type: name, url: backend.url + base, api_key: KEY, ...listed }] },
  });
  return { backend, gateway, model };
}

/** What clients of OpenAI send, and what their SDKs send back. */
const EVERYTHING = {
  max_completion_tokens: 100,
  temperature: 0.5,
  top_p: 0.9,
  seed: 7,
  stop: ["END"],
  presence_penalty: 0,
  frequency_penalty: 0,
  logit_bias: { "50256": -100 },
  user: "someone",
  parallel_tool_calls: false,
  reasoning_effort: "high",
  stream_options: null,
  tools: [{ type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } }],
  tool_choice: { type: "function", function: { name: "look" } },
  messages: [
    { role: "developer", content: "Be brief." },
    {
      role: "user",
      content: [
        { type: "text", text: "Look." },
        { type: "text", text: "Please." },
      ],
    },
    {
      role: "assistant",
      content: "",
      refusal: null,
      annotations: [],
      reasoning_content: "I look.",
      tool_calls: [{ id: "call_abcdefghijkl", type: "function", function: { name: "look", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "call_abcdefghijkl", content: "a tree" },
    { role: "assistant", content: "A tree." },
    { role: "user", content: "And now?" },
  ],
};

interface ChatMessage {
  content: string;
  tool_call_id?: string;
  tool_calls?: { id: string }[];
}

test.each(NAMES.filter((name) => name !== "github"))("%s refuses the same from a client of its own", async (name) => {
  const backend = await startStrictVendor(name, [answer(text("hello"))]);
  open.push(backend);
  const { base, model } = STRICT_VENDORS[name];
  const response = await fetch(`${backend.url}${base}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${KEY}` },
    body: JSON.stringify({ ...EVERYTHING, stream_options: {}, model }),
  });
  expect([400, 422]).toContain(response.status);
});

test.each(NAMES)("%s is healthy, lists its models and takes a chat client's request", async (name) => {
  const { backend, gateway, model } = await bedOf(name, [answer(text("hello")), answer(text("hello"))]);
  await using _ = gateway;
  expect(await gateway.backend(name)).toMatchObject({ type: name, is_healthy: true, models: [model] });
  const asked = backend.requests.length; // the probe of those without a list
  const { stream_options: _null, ...body } = EVERYTHING;
  const plain = await gateway.chat({ ...body, model });
  expect([plain.status, backend.refusals.slice(asked)]).toEqual([200, []]);
  expect(await plain.json()).toMatchObject({ choices: [{ message: { content: "hello" } }] });
  const streamed = await gateway.chat({ ...body, model, stream: true, stream_options: { include_usage: true } });
  expect([streamed.status, backend.refusals.slice(asked)]).toEqual([200, []]);
  expect(await streamed.text()).toContain("[DONE]");
});

test.each(NAMES)("%s takes what a Messages client says, whole and streamed", async (name) => {
  const turn = () => answer(thinking("hm"), call("look", {}));
  const { backend, gateway, model } = await bedOf(name, [turn(), turn(), answer(text("done"))]);
  await using _ = gateway;
  const asked = backend.requests.length;
  const first = {
    model,
    max_tokens: 64,
    system: "Be brief.",
    stop_sequences: ["END"],
    top_k: 5,
    tools: [{ name: "look", input_schema: { type: "object", properties: {} } }],
    tool_choice: { type: "any" },
    metadata: { user_id: "someone" },
    messages: [{ role: "user", content: "Look." }] as unknown[],
  };
  const streamed = await gateway.post("/v1/messages", { ...first, stream: true });
  expect([streamed.status, backend.refusals.slice(asked)]).toEqual([200, []]);
  expect(await streamed.text()).toContain("message_stop");
  const response = await gateway.post("/v1/messages", first);
  const { content } = (await response.json()) as { content: { type: string; id?: string }[] };
  const used = content.find(({ type }) => type === "tool_use");
  first.messages.push(
    { role: "assistant", content },
    {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: used?.id, content: "a tree" }],
    },
  );
  const next = await gateway.post("/v1/messages", first);
  expect([next.status, backend.refusals.slice(asked)]).toEqual([200, []]);
  expect(await next.json()).toMatchObject({ content: [{ type: "text", text: "done" }] });
});

test("a vendor without a key says which one it wants, and where its documentation keeps it", async () => {
  const backend = await startStrictVendor("groq", []);
  open.push(backend);
  await using gateway = await startGateway({
    config: { backends: [{ name: "a", type: "groq", url: `${backend.url}/openai/v1` }] },
  });
  expect((await gateway.backend("a")).last_error).toContain("none is configured (api_key: ${GROQ_API_KEY})");
});

test("what a vendor refuses is told as dropped", async () => {
  const { gateway, model } = await bedOf("groq", [answer(text("hello"))]);
  await using _ = gateway;
  const response = await gateway.chat({ model, logprobs: true, logit_bias: null });
  expect(response.status).toBe(200);
  expect(response.headers.get("x-signalbox-dropped")).toBe("logprobs");
});

test("mistral: the seed has its name, ids of calls agree with their results, and its own ids pass", async () => {
  const { backend, gateway, model } = await bedOf("mistral", [answer(text("a")), answer(call("look", {}))]);
  await using _ = gateway;
  await gateway.chat({ ...EVERYTHING, stream_options: undefined, model });
  const { random_seed, messages } = backend.last.body as { random_seed: number; messages: ChatMessage[] };
  expect(random_seed).toBe(7);
  expect(messages[2]?.tool_calls?.[0]?.id).toBe(messages[3]?.tool_call_id as string);
  const called = await (await gateway.chat({ model, tools: EVERYTHING.tools })).json();
  expect(called).toMatchObject({ choices: [{ message: { tool_calls: [{ id: "D681PevKs" }] } }] });
});

test("deepseek: a schema is told to the model, and thinking is switched off by its own member", async () => {
  const { backend, gateway, model } = await bedOf("deepseek", [answer(text('{"a":1}'))]);
  await using _ = gateway;
  const schema = { type: "object", properties: { a: { type: "integer" } } };
  const response = await gateway.chat({
    model,
    reasoning_effort: "none",
    response_format: { type: "json_schema", json_schema: { name: "a", schema } },
  });
  expect(response.headers.get("x-signalbox-dropped")).toBe("response_format.json_schema");
  const { messages, response_format, reasoning_effort, thinking: mode } = backend.last.body;
  expect([response_format, reasoning_effort, mode]).toEqual([{ type: "json_object" }, undefined, { type: "disabled" }]);
  expect((messages as ChatMessage[])[0]?.content).toContain(JSON.stringify(schema));
});

test("xai: a model that does not think keeps its stop sequences", async () => {
  const { backend, gateway } = await bedOf("xai", [answer(text("a"))]);
  await using _ = gateway;
  await gateway.chat({ model: "grok-4.3", stop: ["END"] });
  expect(backend.last.body).not.toHaveProperty("stop");
});

test("perplexity: what it has searched reaches clients of other formats, and chat clients as it is", async () => {
  const answers = () => answer(text("A tree [1]."));
  const { gateway, model } = await bedOf("perplexity", [answers(), answers(), answers(), answers()]);
  await using _ = gateway;
  const ask = { model, input: "What is there?" };
  const annotation = { type: "url_citation", url: "https://a.example/tree", title: "Trees" };
  const whole = await (await gateway.post("/v1/responses", ask)).json();
  expect(whole).toMatchObject({ output: [{ content: [{ text: "A tree [1].", annotations: [annotation] }] }] });
  const streamed = await (await gateway.post("/v1/responses", { ...ask, stream: true })).text();
  expect(streamed).toContain("response.output_text.annotation.added");
  expect(streamed).toContain("https://a.example/tree");
  const plain = await (await gateway.chat({ model })).json();
  expect(plain).toMatchObject({
    search_results: [{ title: "Trees" }],
    choices: [{ message: { content: "A tree [1]." } }],
  });
});

test("cohere: rerank has the path of its own API", async () => {
  const backend = bed.backend({ models: ["rerank-v4.0-pro"] });
  backend.answer = () => ({ body: JSON.stringify({ results: [{ index: 0, relevance_score: 0.5 }] }) });
  await using gateway = await startGateway({
    config: {
      backends: [
        {
          name: "c",
          type: "cohere",
          url: `${backend.url}/compatibility/v1`,
          api_key: KEY,
          models: ["rerank-v4.0-pro"],
        },
      ],
    },
  });
  const response = await gateway.post("/v1/rerank", { model: "rerank-v4.0-pro", query: "q", documents: ["d"] });
  expect([response.status, backend.lastRequest.path]).toEqual([200, "/v2/rerank"]);
});

/** The addresses under which people write down the same vendor. */
test.each([
  ["groq", "https://api.groq.com/openai/v1"],
  ["groq", "https://api.groq.com/openai/v1/"],
  ["groq", "https://api.groq.com/openai"],
  ["groq", "https://api.groq.com"],
  ["zai", "https://api.z.ai/api/paas/v4"],
  ["zai", "https://api.z.ai"],
  ["deepinfra", "https://api.deepinfra.com/v1/openai"],
  ["deepinfra", "https://api.deepinfra.com/v1"],
  ["cohere", "https://api.cohere.ai/compatibility/v1"],
  ["cohere", "https://api.cohere.ai"],
  ["perplexity", "https://api.perplexity.ai/"],
] as const)("%s at %s is the vendor's own address", async (type, url) => {
  await using gateway = await startGateway({
    config: {
      backends: [
        { name: "given", type, url, api_key: KEY, enabled: false, models: ["m"] },
        { name: "usual", type, api_key: KEY, enabled: false, models: ["m"] },
      ],
    },
  });
  expect((await gateway.backend("given")).url).toBe((await gateway.backend("usual")).url);
});

test("every spelling of every preset is a type", async () => {
  const spelled = Object.entries<Preset>(PRESETS).flatMap(([name, { spellings = [] }]) =>
    [name, ...spellings].map((type) => ({ name, type })),
  );
  await using gateway = await startGateway({
    config: {
      backends: spelled.map(({ type }, index) => ({
        name: `b${index}`,
        type: type as "groq",
        url: "http://127.0.0.1:9",
        enabled: false,
        models: ["m"],
      })),
    },
  });
  for (const [index, { name }] of spelled.entries())
    expect((await gateway.backend(`b${index}`)).type).toBe(name as "groq");
});

test("engines: SGLang is asked as before, and an engine that names itself is recognised", async () => {
  const backend = bed.backend({ answer: chat("hello") });
  backend.probeAnswer = (request) =>
    request.path === "/v1/models" ? models(["m"], "sglang") : { body: JSON.stringify({ status: "ok" }) };
  await using gateway = await startGateway({ config: { backends: [{ name: "a", url: backend.url }] } });
  expect((await gateway.chat()).status).toBe(200);
  expect((await gateway.backend("a")).type).toBe("sglang");
});
