// The official SDK of Bedrock reads the strict fake: what the gateway is tested with is what AWS's own client takes, whole and
// in frames, with its signature, its exceptions and its checks of checksums.

import { afterAll, expect, test } from "bun:test";
import {
  BedrockRuntimeClient,
  ConverseCommand,
  ConverseStreamCommand,
  CountTokensCommand,
  InvokeModelCommand,
  InvokeModelWithResponseStreamCommand,
} from "@aws-sdk/client-bedrock-runtime";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { BEDROCK_KEY, BEDROCK_TOKEN, startStrictBedrock } from "./bedrock.ts";
import { testRefusals } from "./refused-bodies.ts";
import { answer, call, failure, type ScriptEntry, text, thinking } from "./script.ts";

const NOVA = "us.amazon.nova-2-lite-v1:0";
const CLAUDE = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0";
const SECRET = "sekret-aws-secret";

const script: ScriptEntry[] = [];
const backend = await startStrictBedrock(() => script.shift() ?? answer(text("fine")), {
  models: [NOVA, CLAUDE, "amazon.titan-embed-text-v2:0"],
  key: { ...BEDROCK_KEY, sessionToken: "sekret-session" },
});
const clientWith = (secretAccessKey: string) =>
  new BedrockRuntimeClient({
    region: "us-east-1",
    endpoint: backend.url,
    credentials: { ...BEDROCK_KEY, secretAccessKey, sessionToken: "sekret-session" },
    maxAttempts: 1,
    // The usual one speaks HTTP/2, which the fake does not.
    requestHandler: new NodeHttpHandler(),
  });
const client = clientWith(SECRET);
afterAll(() => {
  client.destroy();
  backend.stop();
});

const messages = [{ role: "user" as const, content: [{ text: "How is the weather?" }] }];
const thinks = { reasoningConfig: { type: "enabled", maxReasoningEffort: "low" } };
const toolConfig = { tools: [{ toolSpec: { name: "get_weather", inputSchema: { json: { type: "object" } } } }] };
const ANSWER = {
  ...answer(thinking("Look."), text("I will look."), call("get_weather", { city: "Bodø" })),
  usage: { input: 120, cacheRead: 64, cacheWrite: 16, output: 40 },
};
const USAGE = {
  inputTokens: 40,
  outputTokens: 40,
  totalTokens: 160,
  cacheReadInputTokens: 64,
  cacheWriteInputTokens: 16,
};

test("a whole answer", async () => {
  script.push(ANSWER);
  const { output, stopReason, usage } = await client.send(
    new ConverseCommand({ modelId: NOVA, messages, toolConfig, additionalModelRequestFields: thinks }),
  );
  expect(output?.message?.content).toMatchObject([
    { reasoningContent: { reasoningText: { text: "Look." } } },
    { text: "I will look." },
    { toolUse: { name: "get_weather", input: { city: "Bodø" } } },
  ]);
  expect(stopReason).toBe("tool_use");
  expect(usage).toMatchObject(USAGE);
});

test("a streamed answer", async () => {
  script.push(ANSWER);
  const { stream } = await client.send(
    new ConverseStreamCommand({ modelId: NOVA, messages, toolConfig, additionalModelRequestFields: thinks }),
  );
  const events = await Array.fromAsync(stream ?? []);
  const texts = events.flatMap(({ contentBlockDelta }) => contentBlockDelta?.delta?.text ?? []);
  const thoughts = events.flatMap(({ contentBlockDelta }) => contentBlockDelta?.delta?.reasoningContent?.text ?? []);
  const input = events.flatMap(({ contentBlockDelta }) => contentBlockDelta?.delta?.toolUse?.input ?? []);
  expect([thoughts.join(""), texts.join(""), JSON.parse(input.join(""))]).toEqual([
    "Look.",
    "I will look.",
    { city: "Bodø" },
  ]);
  expect(events.at(-2)?.messageStop?.stopReason).toBe("tool_use");
  expect(events.at(-1)?.metadata?.usage).toMatchObject(USAGE);
});

test("a model of Anthropic by InvokeModel, whole and streamed, and its count of tokens", async () => {
  const body = JSON.stringify({
    anthropic_version: "bedrock-2023-05-31",
    max_tokens: 100,
    messages: [{ role: "user", content: "Hi" }],
  });
  script.push(answer(text("hello")), answer(text("hello")));
  const whole = await client.send(new InvokeModelCommand({ modelId: CLAUDE, body, contentType: "application/json" }));
  expect(JSON.parse(whole.body.transformToString())).toMatchObject({ content: [{ type: "text", text: "hello" }] });
  const streamed = await client.send(
    new InvokeModelWithResponseStreamCommand({ modelId: CLAUDE, body, contentType: "application/json" }),
  );
  const chunks = await Array.fromAsync(streamed.body ?? []);
  const events = chunks.map(({ chunk }) => JSON.parse(new TextDecoder().decode(chunk?.bytes)) as { type: string });
  expect(events.map(({ type }) => type)).toEqual([
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ]);
  const input = { invokeModel: { body: new TextEncoder().encode(body) } };
  const { inputTokens } = await client.send(new CountTokensCommand({ modelId: CLAUDE, input }));
  expect(inputTokens).toBe(42);
});

test("exceptions, before and inside of a stream", async () => {
  script.push(failure(429, "Too many tokens, please wait before trying again."));
  const refused = client.send(new ConverseCommand({ modelId: NOVA, messages }));
  expect(refused).rejects.toMatchObject({
    name: "ThrottlingException",
    message: "Too many tokens, please wait before trying again.",
  });
  await refused.catch(() => {});
  script.push({ ...answer(text("hello")), breakAfterFrames: 2, breakWith: { status: 503, message: "Busy." } });
  const { stream } = await client.send(new ConverseStreamCommand({ modelId: NOVA, messages }));
  const read = Array.fromAsync(stream ?? []);
  expect(read).rejects.toMatchObject({ name: "ServiceUnavailableException", message: "Busy." });
  await read.catch(() => {});
});

test("the signature is checked, and so is the body", async () => {
  const other = clientWith("sekret-other");
  const wrong = other.send(new ConverseCommand({ modelId: NOVA, messages }));
  expect(wrong).rejects.toMatchObject({ name: "InvalidSignatureException", $metadata: { httpStatusCode: 403 } });
  await wrong.catch(() => {});
  other.destroy();
  const invalid = client.send(new ConverseCommand({ modelId: NOVA, messages: [{ role: "assistant", content: [] }] }));
  expect(invalid).rejects.toMatchObject({ name: "ValidationException" });
  await invalid.catch(() => {});
});

const turn = (role: string, ...content: object[]) => ({ role, content });
const use = { toolUse: { toolUseId: "t1", name: "look", input: {} } };
const result = { toolResult: { toolUseId: "t1", content: [{ text: "dry" }] } };
const hi = turn("user", { text: "Hi" });
const pdf = { format: "pdf", name: "a", source: { bytes: "JVBERi0xLjQK" } };

testRefusals({
  backend: () => backend,
  path: `/model/${encodeURIComponent(NOVA)}/converse`,
  headers: { authorization: `Bearer ${BEDROCK_TOKEN}` },
  good: { messages: [hi] },
  cases: [
    ["an unknown member", { top_k: 5 }, "top_k"],
    ["no messages", { messages: [] }, "messages"],
    ["an assistant that begins", { messages: [turn("assistant", { text: "Hi" })] }, "messages"],
    ["two turns of one role", { messages: [hi, hi] }, "messages.1"],
    ["a blank text", { messages: [turn("user", { text: " " })] }, "messages[0].content[0].text"],
    [
      "two members of a union",
      { messages: [turn("user", { text: "a", image: {} })] },
      "messages[0].content[0].image.format",
    ],
    ["tools of earlier turns alone", { messages: [hi, turn("assistant", use), turn("user", result)] }, "toolConfig"],
    ["a call without a result", { messages: [hi, turn("assistant", use), hi], ...{ toolConfig } }, "messages.2"],
    ["a document alone", { messages: [turn("user", { document: pdf })] }, "messages.0"],
    [
      "a name with an underscore",
      { messages: [turn("user", { document: { ...pdf, name: "a_b" } }, { text: "a" })] },
      "messages[0].content[0].document.name",
    ],
    [
      "a foreign proof",
      { messages: [hi, turn("assistant", { reasoningContent: { reasoningText: { text: "a", signature: "b" } } })] },
      "messages.1",
    ],
    ["a temperature above 1", { inferenceConfig: { temperature: 2 } }, "inferenceConfig.temperature"],
    [
      "a schema for a model that is not constrained",
      { outputConfig: { textFormat: { type: "json_schema", structure: { jsonSchema: { schema: "{}" } } } } },
      "outputConfig",
    ],
    ["an unknown field of the model", { additionalModelRequestFields: { top_k: 5 } }, "top_k"],
    [
      "a high effort with a temperature",
      {
        inferenceConfig: { temperature: 1 },
        additionalModelRequestFields: { reasoningConfig: { type: "enabled", maxReasoningEffort: "high" } },
      },
      "inferenceConfig",
    ],
  ],
  accepted: [
    [
      "calls and results with their tools",
      { messages: [hi, turn("assistant", use), turn("user", result)], toolConfig },
    ],
  ],
});
