import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { finishedRecord, type RequestEnd } from "../../test/support/request-records.ts";
import { costsView } from "../admin/costs-view.ts";
import { readWindow, STATS_WINDOW_NAMES } from "../admin/query.ts";
import { statsView } from "../admin/stats-view.ts";
import { createObserver } from "../metrics/observer.ts";
import { StatsCollector } from "./collector.ts";
import { SnapshotFile } from "./snapshot-file.ts";
import { requestSnapshot } from "./snapshot-request.ts";

const folder = mkdtempSync(join(tmpdir(), "stats-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const NO_QUERY = new URLSearchParams();
const DAY = 86_400_000;
const START = Date.UTC(2026, 4, 1, 12);
let files = 0;

type CollectorParts = ConstructorParameters<typeof StatsCollector>[0];

function setUp(
  path = join(folder, `${files++}`, "stats.json"),
  startMs = START,
  maxAgeMs = 7 * DAY,
  bounds: Partial<CollectorParts> = {},
) {
  const time = { ms: startMs };
  const clock = { now: () => time.ms, wallTime: () => time.ms };
  const collector = new StatsCollector({
    settings: { enabled: true, retention_window: 7 * DAY, token_tracking: true, currency: "USD" },
    clock,
    ...bounds,
  });
  const warnings: unknown[] = [];
  const file = new SnapshotFile({
    settings: { enabled: true, path, snapshot_interval: 300_000, max_age: maxAgeMs },
    collector,
    log: { info() {}, warn: (fields: object | string) => warnings.push(fields) },
    wallTime: () => time.ms,
  });
  const observer = createObserver(collector, undefined);
  function count(model = "m", other: Partial<RequestEnd> = {}) {
    const usage = { input: { total: 10 }, output: { total: 5 } };
    const facts = { operation: "chat", model, backend: "b", usage, attempts: 1, keyId: "k" };
    observer.finished(finishedRecord({ ...facts, status: 200, outcome: "succeeded", durationMs: 42, ...other }));
  }
  const all = () => ({
    ...statsView(collector, readWindow(new URLSearchParams(), STATS_WINDOW_NAMES, 0)),
    uptime_seconds: 0,
  });
  const day = () =>
    statsView(collector, readWindow(new URLSearchParams({ window: "24h" }), STATS_WINDOW_NAMES, 0)).overall
      .total_requests;
  return { path, collector, file, count, all, day, warnings };
}

describe("statistics file", () => {
  test("counters and windows survive a restart, uptime does not", async () => {
    const before = setUp();
    before.count();
    before.count("m2");
    await before.file.stop();
    expect(readdirSync(join(before.path, ".."))).toEqual(["stats.json"]); // no temporary file is left
    const after = setUp(before.path, START + DAY / 2);
    expect(await after.file.restore()).toBe("restored");
    expect(after.all()).toEqual(before.all());
    expect(costsView(after.collector, NO_QUERY)).toEqual(costsView(before.collector, NO_QUERY));
    expect(after.day()).toBe(2);
    after.count();
    expect(after.day()).toBe(3);
    const later = setUp(before.path, START + 3 * DAY);
    expect(await later.file.restore()).toBe("restored");
    expect(later.day()).toBe(0);
    expect(later.all().overall.total_requests).toBe(2);
  });

  test("a file of an earlier version is taken up", async () => {
    const { file, path, all, collector } = setUp();
    const sums = [[-1, -1, 4, 1, 400, 40, 20, 400]];
    const earlier = {
      format: 1,
      saved_at: START,
      stats: {
        overall: sums,
        latencies: [[-1, -1, 300, 4]],
        models: [{ name: "m", last_used: START, sums }],
        backends: [{ name: "b", last_used: START, sums }],
        costs: [{ key_id: "k", model_id: "m", requests: 4, prompt_tokens: 40, completion_tokens: 20, cost: 2 }],
      },
    };
    await Bun.write(path, JSON.stringify(earlier));
    expect(await file.restore()).toBe("restored");
    const counts = { total_requests: 4, successful_requests: 3, failed_requests: 1, avg_latency_ms: 100 };
    expect(all()).toMatchObject({
      overall: counts,
      models: [counts],
      backends: [{ ...counts, p50_first_token_ms: null }],
    });
    expect(costsView(collector, NO_QUERY)).toMatchObject({ total_cost: 2, keys: earlier.stats.costs });
  });

  test("an old file keeps its totals and costs; windows of before max_age begin again", async () => {
    const { file, path, count, all, collector } = setUp();
    expect(await file.restore()).toBe("missing");
    count();
    await file.save();
    const costs = costsView(collector, NO_QUERY);
    for (const [days, maxAgeMs] of [
      [8, 7 * DAY],
      [800, 0],
      [0.5, DAY / 4],
    ] as const) {
      const old = setUp(path, START + days * DAY, maxAgeMs);
      expect(await old.file.restore()).toBe("restored");
      expect({ ...old.all(), models: [] }).toEqual({ ...all(), models: [] });
      expect(costsView(old.collector, NO_QUERY)).toEqual(costs);
      expect(old.day()).toBe(0);
    }
  });

  test("a file that cannot be read is set aside, and the next start reads what was counted since", async () => {
    const written = setUp();
    written.count();
    await written.file.save();
    const good = readFileSync(written.path, "utf8");
    for (const bad of [
      "",
      "{",
      "null",
      "\uFEFF",
      good.slice(0, -20),
      good.replace('"format":1', '"format":2'),
      good.replace(/"overall":\[\[-?\d+/, '"overall":[["x"'),
      "\u0000".repeat(100),
    ]) {
      const { path, file, count, warnings } = setUp();
      mkdirSync(join(path, ".."));
      writeFileSync(path, bad);
      expect(await file.restore()).toBe("unreadable");
      expect(readdirSync(join(path, ".."))).toEqual(["stats.json.unreadable-1"]);
      expect(readFileSync(`${path}.unreadable-1`, "utf8")).toBe(bad);
      expect(warnings).toEqual([
        { path, reason: expect.any(String) },
        { path, kept_as: `${path}.unreadable-1` },
      ]);
      count();
      expect(await file.save()).toBe(true);
      const next = setUp(path);
      expect(await next.file.restore()).toBe("restored");
      expect(next.all().overall.total_requests).toBe(1);
    }
  });

  test("a good file that an editor has formatted, or marked with a BOM, is read and written again", async () => {
    const before = setUp();
    before.count();
    await before.file.save();
    const text = JSON.stringify(JSON.parse(readFileSync(before.path, "utf8")), null, 2);
    for (const formatted of [text, `\uFEFF${text}`]) {
      writeFileSync(before.path, formatted);
      const after = setUp(before.path);
      expect(await after.file.restore()).toBe("restored");
      expect(after.all()).toEqual(before.all());
      expect(await after.file.save()).toBe(true);
    }
  });

  test("five unreadable files are kept, the largest", async () => {
    const { path } = setUp();
    mkdirSync(join(path, ".."));
    for (let round = 1; round <= 8; round++) {
      writeFileSync(path, "x".repeat(round === 1 ? 1_000 : round));
      expect(await setUp(path).file.restore()).toBe("unreadable");
    }
    const sizes = readdirSync(join(path, "..")).map((name) => statSync(join(path, "..", name)).size);
    expect(sizes.toSorted((a, b) => a - b)).toEqual([5, 6, 7, 8, 1_000]);
  });

  test("what is no file is left alone, and told", async () => {
    const { path, file } = setUp();
    mkdirSync(path, { recursive: true });
    expect(await file.restore()).toBe("unreadable");
    expect(await file.save()).toBe(false);
    expect(file.problem).toContain(path);
    expect(readdirSync(join(path, ".."))).toEqual(["stats.json"]);
  });

  test("whatever was counted can be read again, with the same totals and costs", async () => {
    const name = fc.string({ minLength: 1, maxLength: 300 });
    const tokens = fc.oneof(fc.nat(100_000), fc.constantFrom(0.5, 1e15, 1e308, Number.MAX_VALUE));
    const request = fc.record({ model: name, backend: name, keyId: name, input: tokens, output: tokens });
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 12 }), async (requests) => {
        const prices = { inputTokens: 1_000_000, outputTokens: 0.01 };
        const before = setUp(undefined, START, 7 * DAY, { maxModels: 3, maxBackends: 2, priceOf: () => prices });
        for (const { model, backend, keyId, input, output } of requests) {
          before.count(model, { backend, keyId, usage: { input: { total: input }, output: { total: output } } });
        }
        await before.file.save();
        const after = setUp(before.path, START + 9 * DAY, 7 * DAY, { maxModels: 3, maxBackends: 2 });
        expect(await after.file.restore()).toBe("restored");
        expect(after.all()).toEqual(before.all());
        const rows = ({ collector }: typeof after) => [...collector.costs()].map(({ row }) => row);
        expect(rows(after)).toEqual(rows(before));
      }),
      { numRuns: 60 },
    );
  });

  test("a folder that cannot be written is no trouble, and heals", async () => {
    const { path, file, count } = setUp();
    const blocked = join(path, "..");
    writeFileSync(blocked, ""); // a file where the folder should be; permissions do not stop root
    count();
    expect(await file.save()).toBe(false);
    rmSync(blocked);
    expect(await file.save()).toBe(true);
    chmodSync(path, 0o600);
  });

  test("another process asks for a fresh file; without a gateway it waits no longer than it says", async () => {
    const { path, file, count } = setUp();
    await file.save();
    expect(await requestSnapshot(path, 0)).toBe(false);
    file.start();
    count();
    expect(await requestSnapshot(path, 20_000)).toBe(true);
    await using _ = { [Symbol.asyncDispose]: () => file.stop() };
    const read = setUp(path);
    expect(await read.file.restore()).toBe("restored");
    expect(read.all().overall.total_requests).toBe(1);
    expect(readdirSync(join(path, ".."))).toEqual(["stats.json"]);
  });

  test("writes that overlap leave a whole file", async () => {
    const { path, file, count } = setUp();
    const saves = Array.from({ length: 20 }, () => {
      count();
      return file.save();
    });
    expect(await Promise.all(saves)).toEqual(saves.map(() => true));
    expect(await setUp(path).file.restore()).toBe("restored");
  });
});
