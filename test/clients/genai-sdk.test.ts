// Google's official SDK as a client of the running command, in front of strict backends of every format, its own included.

import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { ApiError, type FunctionCall, FunctionCallingConfigMode, GoogleGenAI, type Part, Type } from "@google/genai";
import type { Gateway } from "../support/gateway.ts";
import { pngImage } from "../support/png-images.ts";
import { answer, call, failure, type ScriptEntry, text, thinking } from "../support/strict/script.ts";
import { createTestBed } from "../support/test-bed.ts";
import { BACKEND_NAMES, type BackendName, type MatrixBackend, startBackends } from "../translation/backends.ts";
import { partsOf } from "../translation/features/words.ts";

const bed = createTestBed();
let backends: MatrixBackend[];
let gateway: Gateway;
let client: GoogleGenAI;

beforeAll(async () => {
  backends = await startBackends();
  gateway = await bed.gateway({
    config: {
      retry: { max_attempts: 1 },
      health_checks: { enabled: false },
      backends: [...backends.map(({ config }) => config), { name: "demo", type: "demo" }],
    },
  });
  const httpOptions = { baseUrl: gateway.url, apiVersion: "v1beta" };
  client = new GoogleGenAI({ apiKey: "not-checked-here", httpOptions });
});

afterAll(() => {
  for (const { server } of backends) server.stop();
});

afterEach(() => {
  const refused = backends
    .flatMap(({ server }) => server.requests.splice(0))
    .flatMap((request) => request.refused ?? []);
  expect(refused).toEqual([]);
});

function scripted(name: BackendName, ...entries: ScriptEntry[]): MatrixBackend {
  const backend = backends.find((each) => each.id === name) as MatrixBackend;
  backend.script.splice(0, backend.script.length, ...entries);
  return backend;
}

const lastReceived = (backend: MatrixBackend) => backend.read(backend.server.last.body);

const weather = {
  name: "get_weather",
  description: "The weather in a city",
  parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ["city"] },
};
const tools = [{ functionDeclarations: [weather] }];

const shown = (calls: FunctionCall[] | undefined) => calls?.map(({ name, args }) => [name, args]);

async function refusal(asked: Promise<unknown>): Promise<ApiError> {
  try {
    await asked;
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error("the call was not refused");
}

describe.each([...BACKEND_NAMES])("a %s backend", (name) => {
  const of = (model: "plainModel" | "thinkingModel") =>
    (backends.find((each) => each.id === name) as MatrixBackend)[model];

  test("an answer, with instructions and counts", async () => {
    const backend = scripted(name, { ...answer(text("hello there")), usage: { input: 11, output: 7 } });
    const response = await client.models.generateContent({
      model: of("plainModel"),
      contents: "hi",
      config: { systemInstruction: "Be brief.", temperature: 0.5, maxOutputTokens: 100 },
    });
    expect(response.text).toBe("hello there");
    expect(response.usageMetadata).toMatchObject({
      promptTokenCount: 11,
      candidatesTokenCount: 7,
      totalTokenCount: 18,
    });
    expect(String(response.candidates?.[0]?.finishReason)).toBe("STOP");
    const { system, temperature } = lastReceived(backend);
    expect([system.join(), temperature]).toEqual(["Be brief.", 0.5]);
  });

  test("a stream, piece by piece", async () => {
    scripted(name, { ...answer(text("hello there, you")), deltaLength: 4, usage: { input: 11, output: 7 } });
    const pieces: string[] = [];
    let tokens: number | undefined;
    for await (const chunk of await client.models.generateContentStream({ model: of("plainModel"), contents: "hi" })) {
      if (chunk.text) pieces.push(chunk.text);
      tokens = chunk.usageMetadata?.totalTokenCount ?? tokens;
    }
    expect([pieces.join(""), pieces.length > 1, tokens]).toEqual(["hello there, you", true, 18]);
  });

  // The strict backend ends its streams without parts, upon which the SDK forgets the whole turn; such bytes pass as they are.
  const forms = name === "generate-content" || name === "vertex-gemini" ? [false] : [false, true];

  test.each(forms)("a chat with functions that it calls, stream: %p", async (stream) => {
    const backend = scripted(
      name,
      answer(text("I look. "), call("get_weather", { city: "Oslo" }), call("get_weather", { city: "Rome" })),
      answer(text("Rain in Oslo.")),
    );
    const chat = client.chats.create({ model: of("plainModel"), config: { tools } });
    const calls: FunctionCall[] = [];
    async function say(message: string | Part[]): Promise<string> {
      let said = "";
      const answered = stream ? await chat.sendMessageStream({ message }) : [await chat.sendMessage({ message })];
      for await (const chunk of answered) {
        const parts = chunk.candidates?.[0]?.content?.parts ?? [];
        said += parts.map((part) => part.text ?? "").join("");
        calls.push(...(chunk.functionCalls ?? []));
      }
      return said;
    }
    await say("How is the weather?");
    expect(shown(calls)).toEqual([
      ["get_weather", { city: "Oslo" }],
      ["get_weather", { city: "Rome" }],
    ]);
    // Vertex gives calls no ids, and its answers pass as they are.
    expect(new Set(calls.map(({ id }) => id)).size).toBe(name === "vertex-gemini" ? 1 : 2);
    const outcomes = calls.map(({ id, name: called, args }) => ({
      functionResponse: { id: id as string, name: called as string, response: { output: `rain in ${args?.city}` } },
    }));
    expect(await say(outcomes)).toBe("Rain in Oslo.");
    const received = lastReceived(backend);
    expect(partsOf(received, "result").map(({ text: said }) => said)).toEqual(["rain in Oslo", "rain in Rome"]);
    expect(partsOf(received, "call")).toHaveLength(2);
  });

  test("thoughts, which go back with the results of a function", async () => {
    const backend = scripted(
      name,
      answer(thinking("It is about Oslo."), call("get_weather", { city: "Oslo" })),
      answer(text("Rain.")),
    );
    const thinkingConfig = name === "messages" ? { thinkingBudget: 2048 } : { thinkingLevel: "MEDIUM" as never };
    const config = { tools, thinkingConfig: { includeThoughts: true, ...thinkingConfig } };
    const chat = client.chats.create({ model: of("thinkingModel"), config });
    const first = await chat.sendMessage({ message: "weather?" });
    const parts = first.candidates?.[0]?.content?.parts ?? [];
    const thoughts = parts.filter((part) => part.thought).map((part) => part.text);
    expect(thoughts).toEqual(name === "chat" ? [] : ["It is about Oslo."]);
    const [made] = first.functionCalls ?? [];
    expect(made?.args).toEqual({ city: "Oslo" });
    const { id, name: called } = made as FunctionCall;
    const response = { id: id as string, name: called as string, response: { output: "rain" } };
    expect((await chat.sendMessage({ message: [{ functionResponse: response }] })).text).toBe("Rain.");
    const received = lastReceived(backend);
    // Each vendor gets the proof that it made back, on the thought or on the call.
    const proofs = [...partsOf(received, "thinking"), ...partsOf(received, "call")].map(({ proof }) => proof);
    if (name === "messages" || name === "responses" || name === "generate-content") {
      expect(proofs.some((proof) => proof !== undefined && proof !== "")).toBe(true);
    }
  });

  test("a form of the answer, and a function that must be called", async () => {
    const backend = scripted(name, answer(text('{"city":"Oslo"}')), answer(call("get_weather", { city: "Oslo" })));
    const response = await client.models.generateContent({
      model: of("plainModel"),
      contents: "Where?",
      config: { responseMimeType: "application/json", responseSchema: weather.parameters },
    });
    expect(JSON.parse(response.text ?? "")).toEqual({ city: "Oslo" });
    // Amazon's Converse has no such member for the model that is asked: it is a wish among the instructions, or left out.
    const { format } = lastReceived(backend);
    if (name !== "converse") expect(format).toMatchObject({ properties: { city: {} }, required: ["city"] });
    const functionCallingConfig = { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ["get_weather"] };
    const forced = await client.models.generateContent({
      model: of("plainModel"),
      contents: "Where?",
      config: { tools, toolConfig: { functionCallingConfig } },
    });
    expect(shown(forced.functionCalls)).toEqual([["get_weather", { city: "Oslo" }]]);
    expect(["tool get_weather", "required"]).toContain(lastReceived(backend).choice as string);
  });

  test("a picture", async () => {
    const backend = scripted(name, answer(text("A box.")));
    const data = Buffer.from(pngImage({ width: 4, height: 4 })).toString("base64");
    const contents = ["What is this?", { inlineData: { mimeType: "image/png", data } }];
    expect((await client.models.generateContent({ model: of("plainModel"), contents })).text).toBe("A box.");
    expect(partsOf(lastReceived(backend), "image").map(({ source }) => source)).toEqual([data]);
  });

  test("errors", async () => {
    scripted(name, failure(429, "slow down"), failure(500, "it broke"));
    const limited = await refusal(client.models.generateContent({ model: of("plainModel"), contents: "hi" }));
    expect([limited.status, limited.message.includes("slow down")]).toEqual([429, true]);
    const broken = await refusal(client.models.generateContentStream({ model: of("plainModel"), contents: "hi" }));
    expect([broken.status, broken.message.includes("it broke")]).toEqual([500, true]);
  });

  test("a stream that breaks off throws", async () => {
    scripted(name, { ...answer(text("hello there, you")), deltaLength: 4, breakAfterFrames: 3, breakWith: "cut" });
    let seen = "";
    const failed = await refusal(
      (async () => {
        const stream = await client.models.generateContentStream({ model: of("plainModel"), contents: "hi" });
        for await (const chunk of stream) seen += chunk.text ?? "";
      })(),
    );
    expect([seen === "hello there, you", failed.status >= 500]).toEqual([false, true]);
  });
});

test("models are listed and fetched", async () => {
  const names: (string | undefined)[] = [];
  for await (const model of await client.models.list({ config: { pageSize: 3 } })) names.push(model.name);
  const expected = [...backends.flatMap(({ config }) => config.models ?? []), "demo"].map((id) => `models/${id}`);
  expect(names.filter((name) => expected.includes(name as string)).toSorted()).toEqual(
    [...new Set(expected)].toSorted(),
  );
  expect((await client.models.get({ model: "demo" })).name).toBe("models/demo");
});

test("tokens are counted, and texts embedded", async () => {
  expect((await client.models.countTokens({ model: "demo", contents: "Hello there!" })).totalTokens).toBeGreaterThan(1);
  const { embeddings } = await client.models.embedContent({ model: "demo", contents: ["one", "two"] });
  expect(embeddings?.map(({ values }) => (values?.length ?? 0) > 1)).toEqual([true, true]);
});

test("a request that is given up throws, and ends", async () => {
  const abort = new AbortController();
  const contents = "Tell a long story.";
  const stream = await client.models.generateContentStream({
    model: "demo",
    contents,
    config: { abortSignal: abort.signal },
  });
  await stream.next();
  abort.abort();
  await expect(
    (async () => {
      for await (const _ of stream);
    })(),
  ).rejects.toThrow();
  await gateway.waitUntilIdle();
});
