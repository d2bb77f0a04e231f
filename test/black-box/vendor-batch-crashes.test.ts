// Kills the gateway at each step of a vendor's batch: every line has exactly one result in the end, and the vendor has one batch.

import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { createBatch, linesOf, openaiClient, whenEnded } from "../support/batch-client.ts";
import type { ProcessGateway } from "../support/gateway-process.ts";
import { GeminiVendor } from "../support/gemini-vendor.ts";
import { createTestBed } from "../support/test-bed.ts";
import { AnthropicVendor, OpenAiVendor, type VendorServer } from "../support/vendor-server.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const vendors = { openai: new OpenAiVendor(), anthropic: new AnthropicVendor(), gemini: new GeminiVendor() };
const engine = bed.backend({ models: ["local"] });
const gateway = await bed.process({
  config: {
    backends: [
      ...Object.entries(vendors).map(([type, { url }]) => ({
        name: type,
        type,
        url,
        api_key: "vendor-key",
        models: [type],
      })),
      { name: "engine", type: "vllm", url: engine.url, models: ["local"] },
    ],
    health_checks: { enabled: false },
    batches: { vendor: true },
  },
});

afterAll(() => Promise.all(Object.values(vendors).map((vendor) => vendor.stop())));

afterEach(() => {
  for (const vendor of Object.values(vendors)) {
    expect(vendor.mistakes).toEqual([]);
    reset(vendor);
    vendor.batches.length = 0;
    vendor.requests.length = 0;
  }
});

function reset(vendor: VendorServer): void {
  vendor.looksUntilOver = 0;
  vendor.instead = () => undefined;
  vendor.after = () => undefined;
}

const IDS = Array.from({ length: 30 }, (_, index) => `line ${index}`);

function line(customId: string, model: string): string {
  const body = { model, messages: [{ role: "user", content: customId }] };
  return JSON.stringify({ custom_id: customId, method: "POST", url: "/v1/chat/completions", body });
}

async function begun(lines: readonly string[]): Promise<string> {
  return (await createBatch(openaiClient(gateway), lines)).id;
}

/** The next process finds the vendors well: it goes on before its restart is known here. */
async function killed(process: ProcessGateway): Promise<void> {
  process.process.kill("SIGKILL");
  await process.process.finished();
  for (const vendor of Object.values(vendors)) reset(vendor);
  await process.restart();
}

async function resultsOf(id: string) {
  const client = openaiClient(gateway);
  const batch = await whenEnded(client, id);
  expect(batch).toMatchObject({ status: "completed", error_file_id: null });
  return await linesOf(client, batch.output_file_id);
}

const neverOver = () => new Promise<Response>(() => {});

const CREATES = {
  openai: "POST /v1/batches",
  anthropic: "POST /v1/messages/batches",
  gemini: "POST /v1beta/models/gemini:batchGenerateContent",
};

describe.each(["openai", "anthropic", "gemini"] as const)("a batch at %s whose gateway is killed", (name) => {
  const vendor: VendorServer = vendors[name];
  const lines = IDS.map((id) => line(id, name));
  const creates = CREATES[name];

  async function isWhole(id: string): Promise<void> {
    const results = await resultsOf(id);
    expect(results.map(({ custom_id }) => custom_id).sort()).toEqual(IDS.toSorted());
    const wrong = results.filter(
      ({ custom_id, response }) => !JSON.stringify(response?.body).includes(`answer to ${custom_id}"`),
    );
    expect(wrong).toEqual([]);
    expect(results.filter(({ asked_again }) => asked_again)).toEqual([]);
    expect(vendor.batches.map((batch) => batch.lines.length)).toEqual([IDS.length]);
    expect(vendor.requests).toEqual([]);
  }

  test("before the vendor has it", async () => {
    let tries = 0;
    vendor.instead = (asked) => {
      if (!["POST /v1/files", creates].includes(asked)) return undefined;
      tries++;
      return new Response("{}", { status: 503 });
    };
    const id = await begun(lines);
    await waitFor("the vendor was asked", () => tries > 0);
    await killed(gateway);
    await isWhole(id);
  });

  test("before it has heard that the vendor has begun it", async () => {
    vendor.after = (asked) => (asked === creates ? neverOver() : undefined);
    const id = await begun(lines);
    await waitFor("the vendor has it", () => vendor.batches.length === 1);
    await killed(gateway);
    await isWhole(id);
  });

  test("while the vendor works", async () => {
    vendor.looksUntilOver = Number.POSITIVE_INFINITY;
    const id = await begun(lines);
    const before = vendor.looks;
    await waitFor("the vendor is looked at", () => vendor.looks > before);
    await killed(gateway);
    await isWhole(id);
  });

  test("while it reads the results", async () => {
    vendor.looksUntilOver = 0;
    let looks = 0;
    vendor.after = (asked) => {
      if (!isResults(asked)) return undefined;
      // Gemini's stand in what says that the batch is over.
      return name === "gemini" && ++looks === 1 ? undefined : halfOf(vendor);
    };
    const id = await begun(lines);
    await waitFor("some lines have their result", async () => {
      const { request_counts: counts } = await openaiClient(gateway).batches.retrieve(id);
      return (counts?.completed ?? 0) >= IDS.length / 2;
    });
    await killed(gateway);
    await isWhole(id);
  });
});

const isResults = (asked: string) => /^GET .*(\/content|\/results|\/batches\/vendor-\d+)$/.test(asked);

/** More than half of the results, but not all, and then nothing more. */
function halfOf(vendor: VendorServer): Response {
  const [batch] = vendor.batches;
  const text = vendor.resultsText(batch as NonNullable<typeof batch>);
  // Gemini says everything twice.
  const half = text.slice(0, text.length * (vendor instanceof GeminiVendor ? 0.35 : 0.7));
  return new Response(
    new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(half));
      },
    }),
  );
}

test("lines that were collected and not sent are collected again, and are not asked twice", async () => {
  engine.answer = { hang: true };
  const id = await begun([...IDS.map((each) => line(each, "openai")), line("local", "local")]);
  await waitFor("all lines are under way", async () => {
    const response = await gateway.fetch(`/admin/batches/${id}`);
    const { at_vendors } = (await response.json()) as { at_vendors: number };
    return at_vendors === IDS.length && engine.requests.length === 1;
  });
  expect(vendors.openai.batches).toEqual([]);
  engine.reset();
  await killed(gateway);
  const results = await resultsOf(id);
  expect(results.map(({ custom_id }) => custom_id).sort()).toEqual([...IDS, "local"].sort());
  expect(results.filter(({ asked_again }) => asked_again).map(({ custom_id }) => custom_id)).toEqual(["local"]);
  expect(vendors.openai.batches.map((batch) => batch.lines.length)).toEqual([IDS.length]);
});
