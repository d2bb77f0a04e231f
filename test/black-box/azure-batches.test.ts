// Batches by way of Azure's batches, which are for deployments that answer nothing else.

import { afterAll, afterEach, describe, expect, test } from "bun:test";
import OpenAI, { toFile } from "openai";
import { AzureVendor } from "../support/azure-vendor.ts";
import { createBatch, linesOf, openaiClient, whenEnded } from "../support/batch-client.ts";
import { createTestBed } from "../support/test-bed.ts";
import type { VendorLine } from "../support/vendor-server.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const azure = new AzureVendor();

afterAll(() => azure.stop());

afterEach(() => {
  expect(azure.mistakes).toEqual([]);
  azure.looksUntilOver = 1;
  azure.outcome = ({ body }) => azure.single(body);
  azure.after = () => undefined;
  azure.files.clear();
  azure.requests.length = 0;
  azure.batches.length = 0;
});

function gatewayOf(more: object = {}) {
  return bed.gateway({
    config: {
      backends: [
        {
          ...{ name: "azure", type: "azure", url: azure.url, api_key: "vendor-key", models: ["other"] },
          ...{ deployments: { gpt: "my-gpt" }, batch_deployments: { gpt: "my-gpt-batch" }, ...more },
        },
      ],
      health_checks: { enabled: false },
      batches: { vendor: true },
    },
  });
}

function chatLine(customId: string, model = "gpt"): string {
  const body = { model, messages: [{ role: "user", content: customId }] };
  return JSON.stringify({ custom_id: customId, method: "POST", url: "/v1/chat/completions", body });
}

async function ranAt(gateway: Awaited<ReturnType<typeof gatewayOf>>, lines: readonly string[]) {
  const client = openaiClient(gateway);
  const { id } = await createBatch(client, lines);
  const batch = await whenEnded(client, id);
  return { batch, results: await linesOf(client, batch.output_file_id) };
}

const contentOf = (body: unknown) =>
  (body as { choices: { message: { content: string } }[] }).choices[0]?.message.content;

const answersOf = (results: Awaited<ReturnType<typeof linesOf>>) =>
  results.map(({ response }) => contentOf(response?.body)).sort();

const askedFor = ({ messages }: VendorLine["body"]) => (messages as { content: string }[]).at(-1)?.content;

test("Microsoft's way of OpenAI's client finds the vendor of these tests as it finds Azure", async () => {
  const client = new OpenAI({
    baseURL: `${azure.url}/openai/v1/`,
    apiKey: "unused",
    defaultHeaders: { "api-key": "vendor-key" },
  });
  const body = { model: "my-gpt-batch", messages: [{ role: "user", content: "hello" }] };
  const line = { custom_id: "a", method: "POST", url: "/v1/chat/completions", body };
  const file = await client.files.create({
    file: await toFile(Buffer.from(JSON.stringify(line)), "a.jsonl"),
    purpose: "batch",
  });
  await waitFor("the file is read", async () => (await client.files.retrieve(file.id)).status === "processed");
  const endpoint = "/chat/completions" as "/v1/chat/completions";
  const { id } = await client.batches.create({ input_file_id: file.id, endpoint, completion_window: "24h" });
  await client.batches.retrieve(id);
  const { status, output_file_id } = await client.batches.retrieve(id);
  expect(status.toLowerCase()).toBe("completed");
  const [result] = (await (await client.files.content(output_file_id ?? "")).text()).split("\n");
  expect(JSON.parse(result ?? "")).toMatchObject({ custom_id: "a", response: { status_code: 200 } });
});

describe.each([
  ["in versions", {}],
  ["without versions", { api_version: "v1" }],
])("lines for Azure %s", (_, form) => {
  test("go to the deployment for batches", async () => {
    const { batch, results } = await ranAt(
      await gatewayOf(form),
      ["a", "b"].map((id) => chatLine(id)),
    );
    expect(batch.request_counts).toEqual({ total: 2, completed: 2, failed: 0 });
    expect(answersOf(results)).toEqual(["answer to a", "answer to b"]);
    expect(azure.batches.map(({ lines }) => lines.map(({ body }) => body.model))).toEqual([
      ["my-gpt-batch", "my-gpt-batch"],
    ]);
    expect(azure.requests).toEqual([]);
    await waitFor("the files are deleted", () => azure.files.size === 0);
  });

  test("go to the usual one where the batch does not answer them", async () => {
    azure.outcome = (line) => (askedFor(line.body) === "bad" ? "expired" : azure.single(line.body));
    const { results } = await ranAt(
      await gatewayOf(form),
      ["good", "bad"].map((id) => chatLine(id)),
    );
    expect(answersOf(results)).toEqual(["answer to bad", "answer to good"]);
    expect(azure.requests.map(askedFor)).toEqual(["bad"]);
  });

  test("are asked one by one where no deployment for batches is named", async () => {
    const { results } = await ranAt(await gatewayOf(form), [chatLine("a", "other")]);
    expect(answersOf(results)).toEqual(["answer to a"]);
    expect(azure.batches).toEqual([]);
    expect(azure.requests.map(askedFor)).toEqual(["a"]);
  });
});

test("lines in the Responses format go there as well", async () => {
  const output = [{ type: "message", id: "msg_1", role: "assistant", status: "completed", content: [] }];
  const usage = { input_tokens: 100, output_tokens: 10, total_tokens: 110 };
  const body = { id: "resp_1", object: "response", status: "completed", model: "gpt", output, usage };
  azure.outcome = () => ({ status: 200, body });
  const asked = { model: "gpt", input: "hello" };
  const line = JSON.stringify({ custom_id: "a", method: "POST", url: "/v1/responses", body: asked });
  const client = openaiClient(await gatewayOf());
  const { id } = await createBatch(client, [line], "/v1/responses");
  const batch = await whenEnded(client, id);
  expect(batch.request_counts).toEqual({ total: 1, completed: 1, failed: 0 });
  expect(azure.batches.map(({ lines }) => lines.map((each) => each.body))).toEqual([
    [{ model: "my-gpt-batch", input: "hello" }],
  ]);
});

test("a batch whose creation was cut off is found at Azure", async () => {
  let isLost = false;
  azure.after = (asked) => {
    if (asked !== "POST /openai/v1/batches" || isLost) return undefined;
    isLost = true;
    return new Response("a proxy has lost the answer", { status: 502 });
  };
  const { results } = await ranAt(await gatewayOf(), [chatLine("a")]);
  expect(isLost).toBe(true);
  expect(answersOf(results)).toEqual(["answer to a"]);
  expect(azure.batches).toHaveLength(1);
  expect(azure.requests).toEqual([]);
});
