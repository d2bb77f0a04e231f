// Batches by way of Gemini's batches: what Gemini gets, what clients get of it, and what becomes of lines that it does not answer.

import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { GoogleGenAI, JobState } from "@google/genai";
import { createBatch, linesOf, openaiClient, whenEnded } from "../support/batch-client.ts";
import type { Gateway } from "../support/gateway.ts";
import { GeminiVendor } from "../support/gemini-vendor.ts";
import { createTestBed } from "../support/test-bed.ts";
import type { LineOutcome, VendorLine } from "../support/vendor-server.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const gemini = new GeminiVendor();
let gateway: Gateway;

/** Of 100 input tokens and 10 output tokens. */
const FULL_PRICE = 0.002;

afterAll(() => gemini.stop());

afterEach(() => {
  expect(gemini.mistakes).toEqual([]);
  gemini.looksUntilOver = 1;
  gemini.pageSize = 100;
  gemini.hidesKeys = false;
  gemini.outcome = ({ body }) => gemini.single(body);
  gemini.instead = () => undefined;
  gemini.after = () => undefined;
  gemini.refusesToBegin = false;
  gemini.requests.length = 0;
  gemini.batches.length = 0;
});

beforeAll(async () => {
  const pricing = { input_tokens: 0.01, output_tokens: 0.1 };
  gateway = await bed.gateway({
    config: {
      backends: [
        {
          ...{ name: "google", type: "gemini", url: gemini.url, api_key: "vendor-key", models: ["gemini"] },
          model_configs: [{ id: "gemini", metadata: { pricing } }],
        },
      ],
      health_checks: { enabled: false },
      batches: { vendor: true },
    },
  });
});

function chatLine(customId: string): string {
  const body = { model: "gemini", messages: [{ role: "user", content: customId }] };
  return JSON.stringify({ custom_id: customId, method: "POST", url: "/v1/chat/completions", body });
}

async function ran(ids: readonly string[]) {
  const client = openaiClient(gateway);
  const { id } = await createBatch(client, ids.map(chatLine));
  const batch = await whenEnded(client, id);
  const results = [...(await linesOf(client, batch.output_file_id)), ...(await linesOf(client, batch.error_file_id))];
  return { batch, results };
}

const contentOf = (body: unknown) =>
  (body as { choices: { message: { content: string } }[] }).choices[0]?.message.content;

const askedFor = (body: VendorLine["body"]) =>
  (body.contents as { parts: { text: string }[] }[]).at(-1)?.parts[0]?.text;

const record = async (id: string) =>
  (await (await gateway.fetch(`/admin/batches/${id}`)).json()) as {
    cost: number;
    at_vendors: number;
    vendor_batches: { id: string; backend: string; requests: number }[];
  };

test("Google's own client finds the vendor of these tests as it finds Google", async () => {
  const { batches } = new GoogleGenAI({ apiKey: "vendor-key", httpOptions: { baseUrl: gemini.url } });
  gemini.pageSize = 1;
  const src = ["first", "second"].map((text) => ({
    contents: [{ role: "user", parts: [{ text }] }],
    metadata: { key: `key of ${text}` },
  }));
  const { name = "" } = await batches.create({ model: "gemini", src, config: { displayName: "ours" } });
  const other = await batches.create({ model: "gemini", src, config: { displayName: "another" } });
  expect(await batches.get({ name })).toMatchObject({ displayName: "ours", state: JobState.JOB_STATE_RUNNING });
  const { state, dest, model } = await batches.get({ name });
  expect([state, model]).toEqual([JobState.JOB_STATE_SUCCEEDED, "models/gemini"]);
  const answers = dest?.inlinedResponses?.map(({ metadata, response }) => [
    metadata?.key,
    response?.candidates?.[0]?.content?.parts?.[0]?.text,
  ]);
  expect(Object.fromEntries(answers ?? [])).toEqual({
    "key of first": "answer to first",
    "key of second": "answer to second",
  });
  const listed: (string | undefined)[] = [];
  for await (const { displayName } of await batches.list()) listed.push(displayName);
  expect(listed).toEqual(["another", "ours"]);
  await batches.cancel({ name: other.name ?? "" });
  expect((await batches.get({ name: other.name ?? "" })).state).toBe(JobState.JOB_STATE_CANCELLED);
  await batches.delete({ name });
  expect(await batches.get({ name }).catch((error) => error.status)).toBe(404);
});

describe("lines for Gemini", () => {
  test("go there as one batch, and cost half", async () => {
    const ids = Array.from({ length: 40 }, (_, index) => `line ${index}`);
    const { batch, results } = await ran(ids);
    expect(batch).toMatchObject({
      status: "completed",
      request_counts: { total: 40, completed: 40, failed: 0 },
      usage: { input_tokens: 4000, output_tokens: 400 },
    });
    expect(results.map((line) => line.custom_id).sort()).toEqual(ids.toSorted());
    expect(results.filter((line) => contentOf(line.response?.body) !== `answer to ${line.custom_id}`)).toEqual([]);
    expect(gemini.batches.map(({ lines }) => lines.length)).toEqual([40]);
    expect(gemini.requests).toEqual([]);
    const shown = await record(batch.id);
    const [vendorBatch] = shown.vendor_batches;
    expect(shown).toMatchObject({ at_vendors: 0, vendor_batches: [{ backend: "google", requests: 40 }] });
    expect(vendorBatch?.id).toBe(gemini.batches[0]?.id as string);
    expect(shown.cost).toBeCloseTo((40 * FULL_PRICE) / 2, 6);
    await waitFor("the batch is deleted", () => gemini.batches[0]?.isDeleted);
  });

  test.each<[string, LineOutcome]>([
    ["failed", { status: 503, body: { error: { message: "overloaded" } } }],
    ["was limited", { status: 429, body: { error: { message: "slow down" } } }],
    ["has no answer", "expired"],
  ])("are asked one by one where Gemini's batch has no answer: it %s", async (_, outcome) => {
    gemini.outcome = (line) => (askedFor(line.body) === "bad" ? outcome : gemini.single(line.body));
    const { batch, results } = await ran(["good", "bad"]);
    expect(batch.request_counts).toEqual({ total: 2, completed: 2, failed: 0 });
    expect(results.map((line) => contentOf(line.response?.body)).sort()).toEqual(["answer to bad", "answer to good"]);
    expect(gemini.requests.map(askedFor)).toEqual(["bad"]);
    expect((await record(batch.id)).cost).toBeCloseTo(FULL_PRICE * 1.5, 6);
  });

  test("are asked one by one where results do not say what they are of", async () => {
    gemini.hidesKeys = true;
    const { results } = await ran(["a", "b"]);
    expect(results.map((line) => contentOf(line.response?.body)).sort()).toEqual(["answer to a", "answer to b"]);
    expect(gemini.requests.map(askedFor).sort()).toEqual(["a", "b"]);
  });

  test("have Gemini's refusal as their result, as a single request has it", async () => {
    gemini.outcome = () => ({
      status: 400,
      body: { error: { message: "The input token count exceeds the maximum." } },
    });
    const { batch, results } = await ran(["refused"]);
    expect(batch.request_counts).toEqual({ total: 1, completed: 0, failed: 1 });
    expect(results[0]?.response).toMatchObject({
      status_code: 400,
      body: { error: { type: "invalid_request_error", code: "context_length_exceeded" } },
    });
    expect(gemini.requests).toEqual([]);
  });

  test.each([
    [
      "refuses the batch",
      () => {
        gemini.instead = (asked) =>
          asked.endsWith(":batchGenerateContent")
            ? Response.json({ error: { code: 400 } }, { status: 400 })
            : undefined;
      },
    ],
    [
      "does not begin it",
      () => {
        gemini.refusesToBegin = true;
      },
    ],
  ])("are asked one by one where Gemini %s", async (_, prepare) => {
    prepare();
    const { batch, results } = await ran(["a", "b"]);
    expect(batch.request_counts).toEqual({ total: 2, completed: 2, failed: 0 });
    expect(results.map((line) => line.custom_id).sort()).toEqual(["a", "b"]);
    expect(gemini.requests.map(askedFor).sort()).toEqual(["a", "b"]);
  });

  test("are in one batch though the answer to its creation was lost, on whatever page of the list it is", async () => {
    const facts = { isCancelled: false, isDeleted: false, headers: new Headers() };
    gemini.pageSize = 2;
    let isLost = false;
    let isHidden = false;
    // What is no list does not say that the batch is not there.
    gemini.instead = (asked) => {
      if (isHidden || asked !== "GET /v1beta/batches") return undefined;
      isHidden = true;
      return new Response("<html>{}</html>");
    };
    gemini.after = (asked) => {
      if (isLost || !asked.endsWith(":batchGenerateContent")) return undefined;
      isLost = true;
      for (let number = 0; number < 5; number++)
        gemini.batches.push({ id: `batches/foreign-${number}`, lines: [], ...facts });
      return new Response("a proxy has lost the answer", { status: 502 });
    };
    const { results } = await ran(["a", "b"]);
    expect([isLost, isHidden]).toEqual([true, true]);
    expect(results.map((line) => line.custom_id).sort()).toEqual(["a", "b"]);
    expect(gemini.batches.map(({ lines }) => lines.length)).toEqual([2, 0, 0, 0, 0, 0]);
    expect(gemini.requests).toEqual([]);
  });
});

test("a batch that is not at Gemini is created again, without a look at all old batches of other programs", async () => {
  const facts = { lines: [], isCancelled: false, isDeleted: false, headers: new Headers() };
  for (let number = 0; number < 6; number++) {
    const createdMs = Date.now() - 7_200_000 + number * 60_000;
    gemini.batches.push({ id: `batches/old-${number}`, createdMs, ...facts });
  }
  gemini.pageSize = 2;
  let pages = 0;
  let isLost = false;
  gemini.instead = (asked) => {
    if (asked === "GET /v1beta/batches") pages++;
    if (isLost || !asked.endsWith(":batchGenerateContent")) return undefined;
    isLost = true;
    return new Response("Google has not got it", { status: 502 });
  };
  const { results } = await ran(["a"]);
  expect(contentOf(results[0]?.response?.body)).toBe("answer to a");
  expect([isLost, pages]).toEqual([true, 1]);
  expect(gemini.batches.filter(({ lines }) => lines.length > 0)).toHaveLength(1);
  expect(gemini.requests).toEqual([]);
});

test("a batch that is cancelled is cancelled at Gemini as well", async () => {
  gemini.looksUntilOver = Number.POSITIVE_INFINITY;
  const client = openaiClient(gateway);
  const { id } = await createBatch(client, [chatLine("a")]);
  await waitFor("Gemini has it", async () => (await record(id)).vendor_batches.length === 1);
  await client.batches.cancel(id);
  const batch = await whenEnded(client, id);
  expect(batch.status).toBe("cancelled");
  await waitFor("Gemini has cancelled", () => gemini.batches.every(({ isCancelled }) => isCancelled));
});
