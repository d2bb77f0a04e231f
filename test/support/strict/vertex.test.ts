// The strict Vertex AI, as Google's and Anthropic's own clients see it: what they read is what the gateway has to read.

import { afterAll, expect, test } from "bun:test";
import { AnthropicVertex } from "@anthropic-ai/vertex-sdk";
import { GoogleGenAI } from "@google/genai";
import { OAuth2Client } from "google-auth-library";
import { answer, call, type JsonObject, type ScriptEntry, text, thinking } from "./script.ts";
import { startStrictVertex } from "./vertex.ts";

const SCRIPTED = {
  ...answer(thinking("hmm"), text("Hello, wörld 🎉!"), call("get", { city: "Köln" })),
  usage: { input: 20, cacheRead: 8, output: 9, reasoning: 3 },
};
const TOOLS = [{ name: "get", input_schema: { type: "object" as const, properties: { city: { type: "string" } } } }];

const servers: { stop(): void }[] = [];
afterAll(() => {
  for (const server of servers) server.stop();
});

async function clients(...script: ScriptEntry[]) {
  const backend = await startStrictVertex(script, { accepts: (token) => token === "sekret-token" });
  servers.push(backend);
  const authClient = new OAuth2Client();
  authClient.setCredentials({ access_token: "sekret-token", expiry_date: Date.now() + 3_600_000 });
  const place = { project: "p-1", location: "global" };
  return {
    backend,
    claude: new AnthropicVertex({
      baseURL: `${backend.url}/v1`,
      region: place.location,
      projectId: place.project,
      authClient,
      maxRetries: 0,
      defaultHeaders: { "anthropic-version": "2026-10-21" },
    }),
    gemini: new GoogleGenAI({
      vertexai: true,
      ...place,
      googleAuthOptions: { authClient },
      httpOptions: { baseUrl: backend.url, retryOptions: { attempts: 1 } },
    }),
  };
}

test("Claude, whole", async () => {
  const { claude } = await clients(SCRIPTED);
  const message = await claude.messages.create({
    model: "claude-sonnet-4-5@20250929",
    max_tokens: 5_000,
    thinking: { type: "enabled", budget_tokens: 2_000 },
    messages: [{ role: "user", content: "hi" }],
    tools: TOOLS,
  });
  expect(message.content).toMatchObject([
    { type: "thinking", thinking: "hmm" },
    { type: "text", text: "Hello, wörld 🎉!" },
    { type: "tool_use", name: "get", input: { city: "Köln" } },
  ]);
  expect(message.id).toStartWith("msg_vrtx_");
  expect(message.usage).toMatchObject({ input_tokens: 12, cache_read_input_tokens: 8, output_tokens: 9 });
});

test("Claude, as a stream, and counted", async () => {
  const { claude } = await clients(SCRIPTED);
  const ask = { model: "claude-opus-4-6", messages: [{ role: "user" as const, content: "hi" }] };
  const stream = claude.messages.stream({ ...ask, max_tokens: 100, tools: TOOLS });
  expect((await stream.finalMessage()).content.map(({ type }) => type)).toEqual(["thinking", "text", "tool_use"]);
  expect((await claude.messages.countTokens(ask)).input_tokens).toBeGreaterThan(0);
});

test("Claude's errors are told in Google's words", async () => {
  const { claude } = await clients({ error: { status: 429, message: "Quota exceeded.", type: "RESOURCE_EXHAUSTED" } });
  const ask = { model: "claude-opus-4-6", max_tokens: 9, messages: [{ role: "user" as const, content: "hi" }] };
  const error = (await claude.messages.create(ask).catch((reason: unknown) => reason)) as {
    status: number;
    error: JsonObject;
  };
  expect([error.status, error.error]).toMatchObject([429, { error: { code: 429, status: "RESOURCE_EXHAUSTED" } }]);
});

test("Gemini, whole and as a stream, by each of its names", async () => {
  const { gemini } = await clients(SCRIPTED, SCRIPTED, SCRIPTED);
  const config = { thinkingConfig: { includeThoughts: true } };
  for (const model of ["gemini-3-pro", "google/gemini-3-pro", "publishers/google/models/gemini-3-pro"]) {
    if (model === "gemini-3-pro") {
      const response = await gemini.models.generateContent({ model, contents: "hi", config });
      expect(response.text).toBe("Hello, wörld 🎉!");
      expect(response.functionCalls).toEqual([{ name: "get", args: { city: "Köln" } }]);
      expect(response.usageMetadata).toMatchObject({
        promptTokenCount: 20,
        cachedContentTokenCount: 8,
        thoughtsTokenCount: 3,
      });
      continue;
    }
    let seen = "";
    for await (const chunk of await gemini.models.generateContentStream({ model, contents: "hi", config }))
      seen += chunk.text ?? "";
    expect(seen).toBe("Hello, wörld 🎉!");
  }
});

test("Gemini's calls are refused with an id, as Google does", async () => {
  const { gemini, backend } = await clients(SCRIPTED);
  const contents = [
    { role: "user", parts: [{ text: "hi" }] },
    { role: "model", parts: [{ functionCall: { id: "1", name: "get", args: {} } }] },
    { role: "user", parts: [{ functionResponse: { name: "get", response: { output: "sun" } } }] },
  ];
  await expect(gemini.models.generateContent({ model: "gemini-2.5-flash", contents })).rejects.toThrow(
    "Cannot find field",
  );
  expect(backend.refusals[0]).toContain("functionCall.id");
});

test("embeddings by predict and by embedContent, and the list of models", async () => {
  const { gemini, backend } = await clients();
  const one = await gemini.models.embedContent({ model: "text-embedding-005", contents: ["a", "b"] });
  expect(one.embeddings).toEqual([
    { values: [0.6, 0.8], statistics: { tokenCount: 4, truncated: false } },
    { values: [0.6, 0.8], statistics: { tokenCount: 4, truncated: false } },
  ]);
  expect(backend.last.path).toEndWith("text-embedding-005:predict");
  const other = await gemini.models.embedContent({ model: "gemini-embedding-2", contents: "a" });
  expect(other.embeddings).toEqual([{ values: [0.6, 0.8], statistics: { tokenCount: 5 } }]);
  const listed: unknown[] = [];
  for await (const { name } of await gemini.models.list({ config: { queryBase: true } })) listed.push(name);
  expect(listed).toEqual(["publishers/google/models/gemini-2.5-flash", "publishers/google/models/gemini-3-pro"]);
});
