// Batches of several gateways on one Redis server and one bucket: each line is done once, whichever gateway was asked for what, and
// whatever happens to gateways and servers meanwhile.

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { INSTALL_TIMEOUT_MS } from "../../scripts/npm-programs.ts";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { batchLine, createBatch, linesOf, openaiClient, type ResultLine, whenEnded } from "../support/batch-client.ts";
import type { ProcessGateway } from "../support/gateway-process.ts";
import { chat } from "../support/openai-answers.ts";
import { type RedisServer, startRedisServer } from "../support/redis-server.ts";
import { type S3Server, startS3Server } from "../support/s3-server.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
let redis: RedisServer;
let s3: S3Server;
let pair: [ProcessGateway, ProcessGateway];
let pairs = 0;

const KILLS = Number(process.env.SIGNALBOX_BATCH_KILLS ?? 2);
/** Lines under way at one gateway. */
const AT_ONCE = 8;

const asks = new Map<string, number>();
/** By gateway. */
const asked = [0, 0];
/** What backends say that a line has used, by its number; in turn. */
let usages: readonly object[] = [];
const held = { isHeld: false, waiting: [] as (() => void)[] };

const total = () => [...asks.values()].reduce((sum, times) => sum + times, 0);
const hasAsked = (lines: number) =>
  waitFor(`${lines} lines are asked`, () => total() >= lines, { timeoutMs: 40_000, explain: () => `${total()} are` });
const allHeld = () => waitFor("all that is under way is held", () => held.waiting.length === 2 * AT_ONCE);

function release(): void {
  held.isHeld = false;
  for (const answer of held.waiting.splice(0)) answer();
}

/** Two gateways that share their batches, each with a backend of its own, which counts what is asked. */
async function startPair(server: RedisServer): Promise<[ProcessGateway, ProcessGateway]> {
  const prefix = `batches-${pairs++}`;
  const place = {
    rate_limiting: { storage: "redis", redis: { url: server.url, key_prefix: `${prefix}:` } },
    files: { storage: "s3", s3: { ...s3.settings, key_prefix: `${prefix}/` } },
  } satisfies Partial<ConfigDocument>;
  const gateways = await Promise.all(
    [0, 1].map((index) => {
      const backend = bed.backend({
        answer(request) {
          const id = /line-\d+/.exec(request.text)?.[0] ?? "";
          asks.set(id, (asks.get(id) ?? 0) + 1);
          asked[index] = (asked[index] ?? 0) + 1;
          backend.requests.length = 0;
          const headersAfter = held.isHeld ? new Promise<void>((resolve) => held.waiting.push(resolve)) : undefined;
          const usage = usages[Number(id.slice("line-".length)) % usages.length];
          return {
            ...chat(`answer to ${id}`, usage && { usage }),
            ...(headersAfter ? { headersAfter } : { beforeHeadersMs: 8 }),
          };
        },
      });
      return bed.process({
        config: {
          ...place,
          backends: [{ name: "engine", type: "vllm", url: backend.url, models: ["m"] }],
          health_checks: { enabled: false },
          batches: { max_concurrent: AT_ONCE },
        },
      });
    }),
  );
  return gateways as [ProcessGateway, ProcessGateway];
}

beforeAll(async () => {
  [redis, s3] = await Promise.all([startRedisServer({ keepsData: true }), startS3Server()]);
  pair = await startPair(redis);
}, INSTALL_TIMEOUT_MS);
afterAll(async () => {
  await redis.stop();
  await s3.stop();
});
beforeEach(() => {
  asks.clear();
  asked.fill(0);
});
afterEach(() => {
  release();
  usages = [];
});

const idsOf = (lines: number) => Array.from({ length: lines }, (_, index) => `line-${index}`);
const linesFor = (ids: readonly string[]) =>
  ids.map((id) => batchLine(id, { body: { model: "m", messages: [{ role: "user", content: id }] } }));

/** The clients' promises are none of the runtime's. */
const refusalOf = (asking: PromiseLike<unknown>) =>
  asking.then(
    () => undefined,
    (error: { status?: number }) => error.status,
  );

/** Each line once, with its own answer, and every line that was asked more than once says so. */
function expectOnce(results: readonly ResultLine[], ids: readonly string[], asks: ReadonlyMap<string, number>): void {
  expect(results.map(({ custom_id }) => custom_id).toSorted()).toEqual(ids.toSorted());
  const wrong = results.filter(
    ({ custom_id, response }) => !JSON.stringify(response?.body).includes(`"answer to ${custom_id}"`),
  );
  expect(wrong).toEqual([]);
  const again = new Set(results.filter(({ asked_again }) => asked_again === true).map(({ custom_id }) => custom_id));
  expect([...asks].filter(([id, times]) => times > 1 && !again.has(id))).toEqual([]);
}

test("a file, a batch, its progress, and its results, each at the other gateway", async () => {
  const [one, two] = pair;
  const [atOne, atTwo] = [openaiClient(one), openaiClient(two)];
  const ids = idsOf(300);
  const file = await atOne.files.create({
    file: new File([[...linesFor(ids), "no line"].join("\n")], "in.jsonl"),
    purpose: "batch",
  });
  const created = await atTwo.batches.create({
    input_file_id: file.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
    metadata: { night: "first" },
  });
  const batch = await whenEnded(atOne, created.id);
  expect(batch).toMatchObject({
    status: "completed",
    metadata: { night: "first" },
    request_counts: { total: 301, completed: 300, failed: 1 },
    usage: { input_tokens: 900, output_tokens: 600 },
  });
  expect(await atTwo.batches.retrieve(created.id)).toEqual(batch);
  expect((await atOne.batches.list({ limit: 1 })).data.map(({ id }) => id)).toEqual([created.id]);
  const results = await linesOf(atTwo, batch.output_file_id);
  expectOnce(results, ids, asks);
  expect([...asks.values()].every((times) => times === 1)).toBe(true);
  expect((await linesOf(atOne, batch.error_file_id)).map(({ error }) => error?.code)).toEqual(["invalid_json_line"]);
  expect(asked.every((lines) => lines > 0)).toBe(true);
  await waitFor(
    "its lines are gone from the bucket",
    () => !s3.keys().some((key) => key.includes(`data/${created.id}`)),
  );
});

// The long form: SIGNALBOX_BATCH_KILLS=100.
test(
  "each gateway is killed in turn: no line is lost or doubled, and only lines under way are asked again",
  async () => {
    const lines = Math.max(1_200, 20 * (KILLS + 1));
    const [one, two] = pair;
    const ids = idsOf(lines);
    const { id } = await createBatch(openaiClient(one), linesFor(ids));
    for (let kill = 0; kill < KILLS; kill++) {
      await hasAsked((lines / (KILLS + 1)) * kill + 1);
      const killed = kill % 2 === 0 ? one : two;
      killed.process.kill("SIGKILL");
      await killed.process.finished();
      await killed.restart();
    }
    const batch = await whenEnded(openaiClient(two), id);
    expect(batch).toMatchObject({
      status: "completed",
      error_file_id: null,
      request_counts: { total: lines, completed: lines, failed: 0 },
      usage: { input_tokens: 3 * lines, output_tokens: 2 * lines },
    });
    const results = await linesOf(openaiClient(one), batch.output_file_id);
    expectOnce(results, ids, asks);
    const again = results.filter(({ asked_again }) => asked_again === true).length;
    expect(again).toBeLessThanOrEqual(KILLS * AT_ONCE);
    expect(total() - lines).toBeLessThanOrEqual(again);
    expect(asked.every((count) => count > 0)).toBe(true);
  },
  60_000 + KILLS * 10_000,
);

test("a gateway that is halted past its lease neither doubles a line nor counts one twice", async () => {
  const [one, two] = pair;
  const ids = idsOf(250);
  held.isHeld = true;
  const { id } = await createBatch(openaiClient(one), linesFor(ids));
  await allHeld();
  process.kill(one.pid, "SIGSTOP");
  release();
  const client = openaiClient(two);
  // The other gateway has them all, those that were under way at the halted one too.
  const batch = await whenEnded(client, id);
  process.kill(one.pid, "SIGCONT");
  expect(batch.request_counts).toEqual({ total: 250, completed: 250, failed: 0 });
  const results = await linesOf(client, batch.output_file_id);
  expectOnce(results, ids, asks);
  expect(results.filter(({ asked_again }) => asked_again === true)).toHaveLength(AT_ONCE);
  await waitFor(
    "the halted one sees the end",
    async () => (await openaiClient(one).batches.retrieve(id)).status === "completed",
  );
  expect(await openaiClient(one).batches.retrieve(id)).toEqual(batch);
  const outputs = (await client.files.list()).data.filter(({ filename }) => filename.startsWith(id));
  expect(outputs.map((file) => file.id)).toEqual([batch.output_file_id as string]);
});

test("token counts that no backend should send neither hold a batch up nor hide it", async () => {
  usages = [
    { prompt_tokens: 1.5, completion_tokens: 2.25, total_tokens: 3.75 },
    { prompt_tokens: -3, completion_tokens: 1e300 },
    { prompt_tokens: "7", completion_tokens: null },
    { prompt_tokens: Number.MAX_SAFE_INTEGER + 2, completion_tokens: 5 },
    { prompt_tokens: 4, completion_tokens: 5, completion_tokens_details: { reasoning_tokens: 1e21 } },
    { prompt_tokens: 3, completion_tokens: 2 },
  ];
  const ids = idsOf(6);
  const client = openaiClient(pair[0]);
  const { id } = await createBatch(client, linesFor(ids));
  const batch = await whenEnded(openaiClient(pair[1]), id);
  expect(batch.request_counts).toEqual({ total: 6, completed: 6, failed: 0 });
  expect(batch.usage).toMatchObject({ input_tokens: 2 + 4 + 3, output_tokens: 2 + 5 + 5 + 2 });
  expectOnce(await linesOf(client, batch.output_file_id), ids, asks);
});

test("a batch is cancelled at the other gateway: lines with a result keep it", async () => {
  const [one, two] = pair;
  const [atOne, atTwo] = [openaiClient(one), openaiClient(two)];
  const ids = idsOf(500);
  const { id } = await createBatch(atOne, linesFor(ids));
  await hasAsked(50);
  held.isHeld = true;
  await allHeld();
  expect((await atTwo.batches.cancel(id)).status).toBe("cancelling");
  const before = total();
  const batch = await whenEnded(atOne, id);
  release();
  expect(total()).toBe(before);
  expect(batch.status).toBe("cancelled");
  const results = [...(await linesOf(atTwo, batch.output_file_id)), ...(await linesOf(atTwo, batch.error_file_id))];
  expect(results.map(({ custom_id }) => custom_id).toSorted()).toEqual(ids.toSorted());
  const answered = results.filter(({ response }) => response !== null);
  expect(answered).toHaveLength(batch.request_counts?.completed as number);
  expect(answered.length).toBeGreaterThan(0);
  expect(new Set(results.flatMap(({ error }) => error?.code ?? []))).toEqual(new Set(["batch_cancelled"]));
  expect((await atOne.batches.cancel(id)).status).toBe("cancelled");
  expect(asks.size).toBe(before);
});

test("Redis is killed and comes back: lines wait with their results, and each is done once", async () => {
  const own = await startRedisServer({ keepsData: true });
  try {
    const [one, two] = await startPair(own);
    const ids = idsOf(400);
    const { id } = await createBatch(openaiClient(one), linesFor(ids));
    await hasAsked(100);
    held.isHeld = true;
    await allHeld();
    await own.kill();
    const before = total();
    release();
    await waitFor("both say that they wait", () =>
      [one, two].every(({ printed }) => printed.stderr.includes("batches wait")),
    );
    expect(total()).toBe(before);
    expect(await refusalOf(openaiClient(two).batches.retrieve(id))).toBe(503);
    await own.start();
    await waitFor("both use it again", async () => {
      const asking = [one, two].map((gateway) => openaiClient(gateway).batches.retrieve(id));
      return (await Promise.allSettled(asking)).every(({ status }) => status === "fulfilled");
    });
    const batch = await whenEnded(openaiClient(two), id);
    expect(batch.request_counts).toEqual({ total: 400, completed: 400, failed: 0 });
    expectOnce(await linesOf(openaiClient(one), batch.output_file_id), ids, asks);
    expect(total()).toBe(400);
  } finally {
    await own.stop();
  }
});

test("Redis loses its data: batches go on from the bucket, and lines that may have been asked say so", async () => {
  const own = await startRedisServer();
  try {
    const [one, two] = await startPair(own);
    const client = openaiClient(two);
    const earlier = await whenEnded(client, (await createBatch(client, linesFor(["line-0"]))).id);
    asks.clear();
    const ids = idsOf(450);
    const { id } = await createBatch(openaiClient(one), [...linesFor(ids), "no line"]);
    await hasAsked(300);
    held.isHeld = true;
    await allHeld();
    await own.kill();
    await own.start();
    release();
    const batch = await waitFor("the batch is there again", () => client.batches.retrieve(id).catch(() => undefined));
    expect(batch.request_counts?.total).toBe(451);
    const ended = await whenEnded(client, id);
    expect(ended).toMatchObject({
      status: "completed",
      request_counts: { total: 451, completed: 450, failed: 1 },
      usage: { input_tokens: 3 * 450, output_tokens: 2 * 450 },
    });
    const results = await linesOf(client, ended.output_file_id);
    expectOnce(results, ids, asks);
    // Whole segments were done before.
    expect(results.filter(({ asked_again }) => asked_again !== true).length).toBeGreaterThanOrEqual(100);
    expect(await client.batches.retrieve(earlier.id)).toEqual(earlier);
    expect((await client.batches.list()).data.map((one) => one.id)).toEqual([id, earlier.id]);
  } finally {
    await own.stop();
  }
});

test("the bucket's server is away for a while: nothing is lost", async () => {
  const [one, two] = pair;
  const ids = idsOf(400);
  const { id } = await createBatch(openaiClient(one), linesFor(ids));
  await hasAsked(50);
  s3.faults.answer = () => new Response("", { status: 500 });
  try {
    await waitFor("both wait", () => [one, two].every(({ printed }) => printed.stderr.includes("batches wait")));
  } finally {
    s3.faults.answer = () => undefined;
  }
  const batch = await whenEnded(openaiClient(two), id);
  expectOnce(await linesOf(openaiClient(one), batch.output_file_id), ids, asks);
  expect(total()).toBe(400);
});

test("lines that are gone from the bucket fail the one batch, at all gateways", async () => {
  const [one, two] = pair;
  held.isHeld = true;
  const { id } = await createBatch(openaiClient(one), linesFor(idsOf(400)));
  await allHeld();
  const { endpoint, bucket, region, access_key, secret_key } = s3.settings;
  const keys = { accessKeyId: access_key, secretAccessKey: secret_key };
  const client = new Bun.S3Client({ endpoint, bucket, region, ...keys, virtualHostedStyle: false });
  const lost = s3.keys().filter((key) => key.includes(id) && /lines-[^/]+\/[23]$/.test(key));
  expect(lost).toHaveLength(2);
  for (const key of lost) await client.delete(key);
  release();
  const batch = await whenEnded(openaiClient(two), id);
  expect([batch.status, batch.errors?.data?.map(({ code }) => code)]).toEqual(["failed", ["internal_error"]]);
  expect((await openaiClient(one).batches.retrieve(id)).status).toBe("failed");
  const next = await createBatch(openaiClient(two), linesFor(["line-0"]));
  expect((await whenEnded(openaiClient(one), next.id)).status).toBe("completed");
});

test("Anthropic's batches: created at one gateway, read, cancelled and deleted at the other", async () => {
  const [one, two] = pair;
  const clientOf = ({ url }: ProcessGateway) =>
    new Anthropic({ baseURL: `${url}/anthropic`, apiKey: "unused", maxRetries: 0 });
  const [atOne, atTwo] = [clientOf(one).messages.batches, clientOf(two).messages.batches];
  const requestsFor = (ids: readonly string[]) =>
    ids.map((id) => ({
      custom_id: id,
      params: { model: "m", max_tokens: 16, messages: [{ role: "user" as const, content: id }] },
    }));
  const endOf = (id: string) =>
    waitFor("the batch has ended", async () => {
      const batch = await atTwo.retrieve(id);
      return batch.processing_status === "ended" ? batch : undefined;
    });
  const ids = idsOf(250);
  const { id } = await atOne.create({ requests: requestsFor(ids) });
  const ended = await endOf(id);
  expect(ended.request_counts).toMatchObject({ succeeded: 250, errored: 0 });
  const results = [];
  for await (const result of await atTwo.results(id)) results.push(result);
  expect(results.map(({ custom_id }) => custom_id).toSorted()).toEqual(ids.toSorted());
  expect(results.every(({ custom_id, result }) => JSON.stringify(result).includes(`answer to ${custom_id}"`))).toBe(
    true,
  );
  expect([...asks.values()].every((times) => times === 1)).toBe(true);

  held.isHeld = true;
  const other = await atOne.create({ requests: requestsFor(ids) });
  await allHeld();
  expect((await atTwo.list()).data.map((batch) => batch.id)).toEqual([other.id, id]);
  expect((await atTwo.list({ before_id: id })).data.map((batch) => batch.id)).toEqual([other.id]);
  await atTwo.cancel(other.id);
  expect((await endOf(other.id)).request_counts).toMatchObject({ succeeded: 0, canceled: 250 });
  release();

  await atTwo.delete(id);
  expect(await refusalOf(atOne.retrieve(id))).toBe(404);
  expect((await atOne.list()).data.map((batch) => batch.id)).toEqual([other.id]);
  expect(s3.keys().some((key) => key.endsWith(`rows/${id}`))).toBe(false);
});
