// Batches by way of vendors' batches (batches.vendor): what vendors get, what clients get of it, what it costs, and what becomes of
// lines that a vendor does not answer.

import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { createBatch, linesOf, openaiClient, whenEnded } from "../support/batch-client.ts";
import type { Gateway } from "../support/gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { AnthropicVendor, type LineOutcome, OpenAiVendor } from "../support/vendor-server.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const openai = new OpenAiVendor();
const anthropic = new AnthropicVendor();
const engine = bed.backend({ models: ["local"] });
let gateway: Gateway;

const PRICES = { input_tokens: 0.01, output_tokens: 0.1 };
/** Of 100 input tokens and 10 output tokens. */
const FULL_PRICE = 0.002;

afterAll(() => Promise.all([openai.stop(), anthropic.stop()]));

afterEach(() => {
  for (const vendor of [openai, anthropic]) {
    expect(vendor.mistakes).toEqual([]);
    vendor.looksUntilOver = 1;
    vendor.outcome = ({ body }) => vendor.single(body);
    vendor.instead = () => undefined;
    vendor.after = () => undefined;
    vendor.refusesToBegin = false;
    vendor.requests.length = 0;
    vendor.batches.length = 0;
  }
});

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      backends: [
        {
          ...{ name: "openai", type: "openai", url: openai.url, api_key: "vendor-key", models: ["gpt", "embed"] },
          model_configs: [{ id: "gpt", metadata: { pricing: PRICES } }],
        },
        {
          ...{ name: "anthropic", type: "anthropic", url: anthropic.url, api_key: "vendor-key", models: ["claude"] },
          model_configs: [{ id: "claude", metadata: { pricing: { ...PRICES, batch_discount: 0.25 } } }],
        },
        { name: "engine", type: "vllm", url: engine.url, models: ["local"] },
      ],
      health_checks: { enabled: false },
      batches: { vendor: true },
    },
  });
});

function chatLine(customId: string, model: string): string {
  const body = { model, messages: [{ role: "user", content: customId }] };
  return JSON.stringify({ custom_id: customId, method: "POST", url: "/v1/chat/completions", body });
}

async function ran(lines: readonly string[]) {
  const client = openaiClient(gateway);
  const { id } = await createBatch(client, lines);
  const batch = await whenEnded(client, id);
  const results = [...(await linesOf(client, batch.output_file_id)), ...(await linesOf(client, batch.error_file_id))];
  return { batch, results };
}

const contentOf = (body: unknown) =>
  (body as { choices: { message: { content: string } }[] }).choices[0]?.message.content;

const record = async (id: string) =>
  (await (await gateway.fetch(`/admin/batches/${id}`)).json()) as {
    cost: number;
    at_vendors: number;
    vendor_batches: { id: string; backend: string; requests: number }[];
  };

describe("lines for a vendor with batches", () => {
  test("go there as one batch, and cost half", async () => {
    const ids = Array.from({ length: 40 }, (_, index) => `line ${index}`);
    const { batch, results } = await ran(ids.map((id) => chatLine(id, "gpt")));
    expect(batch).toMatchObject({
      status: "completed",
      request_counts: { total: 40, completed: 40, failed: 0 },
      usage: { input_tokens: 4000, output_tokens: 400 },
    });
    expect(results.map((line) => line.custom_id).sort()).toEqual(ids.toSorted());
    expect(results.filter((line) => contentOf(line.response?.body) !== `answer to ${line.custom_id}`)).toEqual([]);
    expect(results.filter((line) => line.asked_again)).toEqual([]);
    expect(openai.batches.map(({ lines }) => lines.length)).toEqual([40]);
    expect(openai.requests).toEqual([]);
    const shown = await record(batch.id);
    expect(shown).toMatchObject({ at_vendors: 0, vendor_batches: [{ backend: "openai", requests: 40 }] });
    expect(shown.cost).toBeCloseTo((40 * FULL_PRICE) / 2, 6);
  });

  test("are named by their place, not by what the client calls them", async () => {
    await ran([chatLine("secret name", "gpt")]);
    expect(openai.batches[0]?.lines[0]?.customId).not.toContain("secret");
  });

  test("of several vendors and of an own engine are answered each in its way", async () => {
    const models = ["gpt", "claude", "local"];
    const ids = Array.from({ length: 12 }, (_, index) => `${models[index % 3]}-${index}`);
    const asked = engine.requests.length;
    const { batch, results } = await ran(ids.map((id) => chatLine(id, id.split("-")[0] as string)));
    expect(batch.request_counts).toEqual({ total: 12, completed: 12, failed: 0 });
    expect(results.map((line) => line.custom_id).sort()).toEqual(ids.toSorted());
    expect(openai.batches.map(({ lines }) => lines.length)).toEqual([4]);
    expect(anthropic.batches.map(({ lines }) => lines.length)).toEqual([4]);
    expect(engine.requests.length - asked).toBe(4);
    // Chat completions of an Anthropic backend are translated on both ways.
    const translated = results.find(({ custom_id }) => custom_id === "claude-1");
    expect(translated?.response?.body).toMatchObject({
      object: "chat.completion",
      usage: { prompt_tokens: 100, completion_tokens: 10 },
    });
    expect(contentOf(translated?.response?.body)).toBe("answer to claude-1");
    // Half for the one, three quarters for the other.
    expect((await record(batch.id)).cost).toBeCloseTo(4 * FULL_PRICE * (0.5 + 0.75), 6);
  });

  test("can be embeddings", async () => {
    const line = (id: string) =>
      JSON.stringify({ custom_id: id, method: "POST", url: "/v1/embeddings", body: { model: "embed", input: id } });
    const client = openaiClient(gateway);
    const { id } = await createBatch(client, [line("a"), line("b")], "/v1/embeddings");
    const batch = await whenEnded(client, id);
    const results = await linesOf(client, batch.output_file_id);
    expect(results.map(({ response }) => response?.body)).toEqual([
      expect.objectContaining({ object: "list", model: "embed" }),
      expect.objectContaining({ object: "list", model: "embed" }),
    ]);
    expect(openai.batches).toHaveLength(1);
  });

  test("count once in the statistics, and their stories name the batch of the vendor", async () => {
    const requests = async () => {
      const response = await gateway.fetch("/admin/requests?model=gpt&limit=100");
      return (await response.json()) as { total: number; requests: { vendor_batch: string | null; outcome: string }[] };
    };
    const before = (await requests()).total;
    await ran([chatLine("one", "gpt"), chatLine("two", "gpt")]);
    const { total, requests: rows } = await requests();
    expect(total - before).toBe(2);
    expect(rows.slice(0, 2)).toEqual([
      expect.objectContaining({ vendor_batch: openai.batches[0]?.id, outcome: "succeeded", status: 200 }),
      expect.objectContaining({ vendor_batch: openai.batches[0]?.id, outcome: "succeeded", status: 200 }),
    ]);
  });

  test("are shown at their vendor until it has answered", async () => {
    openai.looksUntilOver = Number.POSITIVE_INFINITY;
    const client = openaiClient(gateway);
    const { id } = await createBatch(client, [chatLine("slow", "gpt"), chatLine("quick", "local")]);
    await waitFor("the line is at its vendor", async () => {
      const { at_vendors, vendor_batches } = await record(id);
      return at_vendors === 1 && vendor_batches.length === 1;
    });
    await waitFor("the other line has its result", async () => {
      return (await client.batches.retrieve(id)).request_counts?.completed === 1;
    });
    openai.looksUntilOver = 0;
    expect((await whenEnded(client, id)).request_counts).toEqual({ total: 2, completed: 2, failed: 0 });
  });
});

describe("a line that its vendor's batch does not answer", () => {
  const overloaded = { status: 503, body: { error: { message: "overloaded", type: "server_error" } } };
  const limited = { status: 429, body: { error: { message: "slow down", type: "rate_limit_error" } } };

  test.each<[string, LineOutcome]>([
    ["failed", overloaded],
    ["was limited", limited],
    ["has expired", "expired"],
  ])("is asked by itself at the full price: it %s", async (_, outcome) => {
    openai.outcome = (line) => (contentsOf(line.body) === "bad" ? outcome : openai.single(line.body));
    const { batch, results } = await ran([chatLine("good", "gpt"), chatLine("bad", "gpt")]);
    expect(batch.request_counts).toEqual({ total: 2, completed: 2, failed: 0 });
    expect(results.map((line) => contentOf(line.response?.body)).sort()).toEqual(["answer to bad", "answer to good"]);
    expect(openai.requests.map(contentsOf)).toEqual(["bad"]);
    expect((await record(batch.id)).cost).toBeCloseTo(FULL_PRICE * 1.5, 6);
  });

  test("has the vendor's refusal as its result", async () => {
    const body = {
      error: { message: "max_tokens is too large", type: "invalid_request_error", param: null, code: null },
    };
    openai.outcome = () => ({ status: 400, body });
    const { batch, results } = await ran([chatLine("refused", "gpt")]);
    expect(batch.request_counts).toEqual({ total: 1, completed: 0, failed: 1 });
    expect(results[0]?.response).toMatchObject({
      status_code: 400,
      body: { error: { message: "max_tokens is too large" } },
    });
    expect(openai.requests).toEqual([]);
  });

  test("is asked by itself where the answer cannot be read", async () => {
    openai.outcome = () => ({ status: 200, body: { error: { message: "broken", type: "server_error", code: 500 } } });
    const { results } = await ran([chatLine("unread", "gpt")]);
    expect(contentOf(results[0]?.response?.body)).toBe("answer to unread");
    expect(openai.requests.map(contentsOf)).toEqual(["unread"]);
  });

  test("is asked by itself where the vendor refuses the whole batch", async () => {
    openai.instead = (asked) =>
      asked === "POST /v1/batches"
        ? Response.json({ error: { message: "no batches for you", type: "invalid_request_error" } }, { status: 400 })
        : undefined;
    const { batch, results } = await ran([chatLine("a", "gpt"), chatLine("b", "gpt")]);
    expect(batch.request_counts).toEqual({ total: 2, completed: 2, failed: 0 });
    expect(results.map((line) => line.custom_id).sort()).toEqual(["a", "b"]);
    expect(openai.requests.map(contentsOf).sort()).toEqual(["a", "b"]);
  });

  test("is asked by itself where the vendor does not begin the batch", async () => {
    openai.refusesToBegin = true;
    const { results } = await ran([chatLine("a", "gpt")]);
    expect(contentOf(results[0]?.response?.body)).toBe("answer to a");
    expect(openai.requests.map(contentsOf)).toEqual(["a"]);
  });

  test("is asked by itself where it is large", async () => {
    const long = "x".repeat(4.5 * 1024 * 1024);
    const body = {
      model: "gpt",
      messages: [
        { role: "system", content: long },
        { role: "user", content: "large" },
      ],
    };
    const line = JSON.stringify({ custom_id: "large", method: "POST", url: "/v1/chat/completions", body });
    const { results } = await ran([line, chatLine("small", "gpt")]);
    expect(results.map((result) => contentOf(result.response?.body)).sort()).toEqual([
      "answer to large",
      "answer to small",
    ]);
    expect(openai.requests.map(contentsOf)).toEqual(["large"]);
  });
});

test("more bytes than a vendor's batch may have go in several", async () => {
  const long = "x".repeat(3.9 * 1024 * 1024);
  const lines = ["a", "b", "c", "d", "e"].map((id) => {
    const body = {
      model: "gpt",
      messages: [
        { role: "system", content: long },
        { role: "user", content: id },
      ],
    };
    return JSON.stringify({ custom_id: id, method: "POST", url: "/v1/chat/completions", body });
  });
  const { results } = await ran(lines);
  expect(results.map(({ custom_id }) => custom_id).sort()).toEqual(["a", "b", "c", "d", "e"]);
  expect(openai.batches.map((batch) => batch.lines.length).sort()).toEqual([1, 4]);
  expect(openai.requests).toEqual([]);
});

describe("with other settings", () => {
  const backends = [
    { name: "openai", type: "openai", url: openai.url, api_key: "vendor-key", models: ["gpt", "other"] },
  ];
  const base = { backends, health_checks: { enabled: false } };

  async function runAt(other: Gateway, lines: readonly string[], apiKey?: string) {
    const client = openaiClient(other, apiKey);
    const batch = await whenEnded(client, (await createBatch(client, lines)).id);
    return {
      batch,
      results: [...(await linesOf(client, batch.output_file_id)), ...(await linesOf(client, batch.error_file_id))],
    };
  }

  test.each([
    ["batches.vendor is off", {}],
    ["batches.vendor names other backends", { vendor: ["elsewhere"] }],
  ])("every line is asked by itself: %s", async (_, batches) => {
    const other = await bed.gateway({ config: { ...base, batches } });
    const { results } = await runAt(other, [chatLine("a", "gpt"), chatLine("b", "gpt")]);
    expect(results.map(({ custom_id }) => custom_id).sort()).toEqual(["a", "b"]);
    expect(openai.batches).toEqual([]);
    expect(openai.requests).toHaveLength(2);
  });

  test("lines keep the target of their route, and its name in the answer", async () => {
    const targets = [
      { model: "gpt", weight: 1 },
      { model: "other", weight: 1 },
    ];
    const other = await bed.gateway({
      config: { ...base, batches: { vendor: ["openai"] }, routes: [{ name: "either", targets }] },
    });
    const ids = Array.from({ length: 40 }, (_, index) => `line ${index}`);
    const { results } = await runAt(
      other,
      ids.map((id) => chatLine(id, "either")),
    );
    expect(results.map((line) => contentOf(line.response?.body)).sort()).toEqual(
      ids.map((id) => `answer to ${id}`).sort(),
    );
    expect(results.filter(({ response }) => response?.body.model !== "either")).toEqual([]);
    // One model in each batch of the vendor.
    expect(openai.batches.map(({ lines }) => lines[0]?.body.model).sort()).toEqual(["gpt", "other"]);
    const rows = await (await other.fetch("/admin/requests?limit=100")).json();
    const answered = (rows as { requests: { model: string; arm: string; vendor_batch: string | null }[] }).requests;
    expect(answered).toHaveLength(40);
    const batchOf = (model: string) => openai.batches.find(({ lines }) => lines[0]?.body.model === model);
    const wrong = answered.filter(
      ({ model, arm, vendor_batch }) => arm !== model || batchOf(model)?.id !== vendor_batch,
    );
    expect(wrong).toEqual([]);
  });

  test("a model that stands in for another answers by its vendor's batch, and is what is paid", async () => {
    const priced = backends.map((each) => ({ ...each, model_configs: [{ id: "gpt", metadata: { pricing: PRICES } }] }));
    const gone = { name: "gone", type: "vllm", url: "http://127.0.0.1:9", models: ["away"] };
    const other = await bed.gateway({
      config: {
        ...{ ...base, backends: [gone, ...priced], batches: { vendor: true } },
        fallback: { enabled: true, fallback_chains: { away: ["gpt"] } },
      },
    });
    const { batch, results } = await runAt(other, [chatLine("a", "away")]);
    expect(contentOf(results[0]?.response?.body)).toBe("answer to a");
    expect(openai.batches.map(({ lines }) => lines[0]?.body.model)).toEqual(["gpt"]);
    const { requests } = (await (await other.fetch("/admin/requests?limit=10")).json()) as { requests: unknown[] };
    const vendor_batch = openai.batches[0]?.id;
    expect(requests).toEqual([expect.objectContaining({ model: "away", answered_by: "gpt", vendor_batch })]);
    const { cost } = (await (await other.fetch(`/admin/batches/${batch.id}`)).json()) as { cost: number };
    expect(cost).toBeCloseTo(FULL_PRICE / 2, 6);
  });

  test("lines that are equal are all answered, and a cached answer needs no vendor", async () => {
    const other = await bed.gateway({
      config: { ...base, batches: { vendor: true }, response_cache: { enabled: true } },
    });
    const line = (id: string) => {
      const body = { model: "gpt", temperature: 0, messages: [{ role: "user", content: "the same" }] };
      return JSON.stringify({ custom_id: id, method: "POST", url: "/v1/chat/completions", body });
    };
    const { results } = await runAt(other, [line("a"), line("b")]);
    expect(results.map(({ custom_id }) => custom_id).sort()).toEqual(["a", "b"]);
    expect(openai.batches.map(({ lines }) => lines.length)).toEqual([2]);
    const again = await runAt(other, [line("c")]);
    expect(contentOf(again.results[0]?.response?.body)).toBe("answer to the same");
    expect(openai.batches).toHaveLength(1);
    expect(openai.requests).toEqual([]);
  });

  test("a budget holds back what vendors may cost, and counts what they did", async () => {
    const price = { input_tokens: 0, output_tokens: 1 };
    const priced = backends.map((each) => ({ ...each, model_configs: [{ id: "gpt", metadata: { pricing: price } }] }));
    const other = await bed.gateway({
      config: {
        ...{ ...base, backends: priced, batches: { vendor: true, max_concurrent: 1 } },
        budgets: { rules: [{ id: "all", limit: { cost: 0.35 }, window: "month", strict: true }] },
      },
    });
    openai.looksUntilOver = Number.POSITIVE_INFINITY;
    const client = openaiClient(other);
    const line = (id: string) => {
      const body = { model: "gpt", max_tokens: 100, messages: [{ role: "user", content: id }] };
      return JSON.stringify({ custom_id: id, method: "POST", url: "/v1/chat/completions", body });
    };
    const budget = async () => {
      const told = (await (await other.fetch("/admin/budgets")).json()) as {
        budgets: { limits: { spent: number; held: number }[] }[];
      };
      return told.budgets[0]?.limits[0];
    };
    // Each may cost 0.1, so that three have room; the fourth waits until their answers have cost 0.005 each.
    const { id } = await createBatch(client, ["a", "b", "c", "d"].map(line));
    await waitFor("three lines are held", async () => {
      const shown = await (await other.fetch(`/admin/batches/${id}`)).json();
      return (shown as { at_vendors: number }).at_vendors === 3;
    });
    expect((await budget())?.held).toBeCloseTo(0.3, 6);
    await client.batches.cancel(id);
    expect((await whenEnded(client, id)).status).toBe("cancelled");
    expect(await budget()).toMatchObject({ spent: 0, held: 0 });
    openai.looksUntilOver = 0;
    expect((await runAt(other, ["e", "f", "g"].map(line))).batch.request_counts?.completed).toBe(3);
    expect((await budget())?.spent).toBeCloseTo(0.015, 6);
    expect((await budget())?.held).toBe(0);
  });

  test("a limit of requests counts each line once", async () => {
    const other = await bed.gateway({
      config: {
        ...{ ...base, batches: { vendor: true } },
        api_keys: { mode: "blocking", keys: [{ key: "sekret-of-few", id: "few", rate_limit: 20 }] },
      },
    });
    // The upload, the creation, and the looks at the batch count as well.
    const client = openaiClient(other, "sekret-of-few");
    const { id } = await createBatch(
      client,
      Array.from({ length: 15 }, (_, index) => chatLine(`${index}`, "gpt")),
    );
    const admin = () =>
      other.fetch(`/admin/batches/${id}`).then((response) => response.json()) as Promise<{
        has_ended: boolean;
        completed: number;
      }>;
    await waitFor("the batch is over", async () => (await admin()).has_ended);
    expect((await admin()).completed).toBe(15);
  });
});

describe("a vendor in trouble", () => {
  test("is asked again until it takes the batch, and has one", async () => {
    let tries = 0;
    openai.instead = (asked) => {
      const isUpload = asked === "POST /v1/files";
      return isUpload && ++tries < 3 ? new Response("{}", { status: tries === 1 ? 503 : 429 }) : undefined;
    };
    const { batch } = await ran([chatLine("a", "gpt")]);
    expect(batch.status).toBe("completed");
    expect(openai.batches).toHaveLength(1);
    expect(openai.requests).toEqual([]);
  });

  test("that lost the answer to the creation has one batch", async () => {
    let isLost = false;
    openai.after = (asked) => {
      if (asked !== "POST /v1/batches" || isLost) return undefined;
      isLost = true;
      return new Response("a proxy has lost the answer", { status: 502 });
    };
    const { batch, results } = await ran([chatLine("a", "gpt"), chatLine("b", "gpt")]);
    openai.after = () => undefined;
    expect(isLost).toBe(true);
    expect(batch.request_counts).toEqual({ total: 2, completed: 2, failed: 0 });
    expect(results.map((line) => line.custom_id).sort()).toEqual(["a", "b"]);
    expect(openai.batches).toHaveLength(1);
  });

  test("is not credited with the batch of another program", async () => {
    anthropic.looksUntilOver = 0;
    const theirs = { model: "claude", max_tokens: 1, messages: [{ role: "user", content: "theirs" }] };
    const foreign = { isCancelled: false, isDeleted: false, headers: new Headers() };
    anthropic.batches.push({ id: "msgbatch_foreign", lines: [{ customId: "theirs-0", body: theirs }], ...foreign });
    let isLost = false;
    anthropic.instead = (asked) => {
      if (asked !== "POST /v1/messages/batches" || isLost) return undefined;
      isLost = true;
      return new Response("the vendor has not got it", { status: 502 });
    };
    const { results } = await ran([chatLine("ours", "claude")]);
    expect(isLost).toBe(true);
    expect(contentOf(results[0]?.response?.body)).toBe("answer to ours");
    expect(anthropic.batches.map(({ lines }) => lines.length)).toEqual([1, 1]);
    expect(anthropic.requests).toEqual([]);
  });

  test("keeps nothing of a batch that is over", async () => {
    const { batch } = await ran([chatLine("a", "gpt")]);
    expect(batch.status).toBe("completed");
    await waitFor("the files are deleted", () => openai.files.size === 0);
  });
});

describe("a batch that is cancelled", () => {
  test.each([
    ["gpt", openai],
    ["claude", anthropic],
  ] as const)("is cancelled at the vendor of %s as well", async (model, vendor) => {
    vendor.looksUntilOver = Number.POSITIVE_INFINITY;
    const client = openaiClient(gateway);
    const { id } = await createBatch(client, [chatLine("a", model)]);
    await waitFor("the vendor has it", async () => (await record(id)).vendor_batches.length === 1);
    await client.batches.cancel(id);
    const batch = await whenEnded(client, id);
    expect(batch.status).toBe("cancelled");
    const [result] = await linesOf(client, batch.error_file_id);
    expect(result).toMatchObject({ custom_id: "a", error: { code: "batch_cancelled" } });
    await waitFor("the vendor has cancelled", () => vendor.batches.every(({ isCancelled }) => isCancelled));
  });
});

test("Anthropic's SDK runs a batch by way of Anthropic's batches", async () => {
  const client = new Anthropic({ baseURL: `${gateway.url}/anthropic`, apiKey: "unused", maxRetries: 0 });
  const ids = ["first", "second", "third"];
  anthropic.outcome = (line) =>
    contentsOf(line.body) === "third"
      ? {
          status: 400,
          body: { type: "error", error: { type: "invalid_request_error", message: "no" }, request_id: null },
        }
      : anthropic.single(line.body);
  const { id } = await client.messages.batches.create(
    {
      requests: ids.map((custom_id) => ({
        custom_id,
        params: { model: "claude", max_tokens: 64, messages: [{ role: "user", content: custom_id }] },
      })),
    },
    { headers: { "anthropic-beta": "some-beta-2026-01-01" } },
  );
  await waitFor("the batch has ended", async () => {
    return (await client.messages.batches.retrieve(id)).processing_status === "ended";
  });
  const results: Record<string, unknown> = {};
  for await (const { custom_id, result } of await client.messages.batches.results(id)) results[custom_id] = result;
  const succeeded = (text: string) => ({ type: "succeeded", message: { content: [{ type: "text", text }] } });
  expect(results).toMatchObject({
    first: succeeded("answer to first"),
    second: succeeded("answer to second"),
    third: { type: "errored", error: { error: { type: "invalid_request_error" } } },
  });
  expect(anthropic.batches).toHaveLength(1);
  expect(anthropic.batches[0]?.headers.get("anthropic-beta")).toBe("some-beta-2026-01-01");
  expect(anthropic.requests).toEqual([]);
  expect((await record(id)).cost).toBeCloseTo(2 * FULL_PRICE * 0.75, 6);
});

const contentsOf = (body: Record<string, unknown>) => {
  const { content } = (body.messages as { content: unknown }[]).at(-1) as { content: unknown };
  return typeof content === "string" ? content : (content as { text: string }[])[0]?.text;
};
