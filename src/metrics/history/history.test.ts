import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { queryHistory } from "../../admin/history-view.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import { StorageError } from "../../lib/resilient-database.ts";
import { silentLogger } from "../../logging/logger.ts";
import type { MetricSample } from "../registry.ts";
import { HistorySampler, type HistorySettings } from "./sampler.ts";
import { DAY_MS, HistoryStore } from "./store.ts";

const folder = mkdtempSync(join(tmpdir(), "history-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const START = Date.UTC(2026, 4, 1, 12);
const MINUTE = 60_000;
let files = 0;

interface Answer {
  metric: string;
  from_ms: number;
  to_ms: number;
  row_count: number;
  limit: number;
  samples: { ts_ms: number; labels: Record<string, string>; value: number; kind: string }[];
}

function setUp(changes: Partial<HistorySettings> = {}, maxBytes?: number) {
  const settings: HistorySettings = {
    enabled: true,
    path: join(folder, `${files++}`, "deep", "metrics.db"),
    snapshot_interval_seconds: 60,
    retention_days: 15,
    compaction: { enabled: true, schedule: "0 3 * * *" },
    ...changes,
  };
  const time = { ms: START };
  const timers: { dueMs: number; callback: () => void }[] = [];
  const store = new HistoryStore({
    path: settings.path,
    log: silentLogger(),
    ...(maxBytes !== undefined && { maxBytes }),
  });
  let samples: MetricSample[] = [
    { metric: "up", labels: '{"backend":"a"}', value: 1, kind: "gauge" },
    { metric: "requests_total", labels: "{}", value: 5, kind: "counter" },
  ];
  const writes: boolean[] = [];
  const sampler = new HistorySampler({
    settings,
    store,
    read: () => samples,
    log: silentLogger(),
    wallTime: () => time.ms,
    written: (isOk) => writes.push(isOk),
    after(durationMs, callback) {
      const timer = { dueMs: time.ms + durationMs, callback };
      timers.push(timer);
      return () => {
        if (timers.includes(timer)) timers.splice(timers.indexOf(timer), 1);
      };
    },
  });
  return {
    settings,
    time,
    timers,
    store,
    sampler,
    writes,
    set(next: MetricSample[]) {
      samples = next;
    },
    /** Lets time pass; timers that fall due are called in order. */
    async pass(durationMs: number) {
      const untilMs = time.ms + durationMs;
      for (;;) {
        const next = timers.filter(({ dueMs }) => dueMs <= untilMs).sort((a, b) => a.dueMs - b.dueMs)[0];
        if (next === undefined) break;
        timers.splice(timers.indexOf(next), 1);
        time.ms = next.dueMs;
        next.callback();
        for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      }
      time.ms = untilMs;
    },
    async query(parameters: Record<string, string>): Promise<Answer> {
      return JSON.parse(await queryHistory(store, new URLSearchParams(parameters), time.ms));
    },
  };
}

async function refusal(attempt: Promise<unknown>): Promise<GatewayError> {
  const error = await attempt.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(GatewayError);
  return error as GatewayError;
}

describe("metrics history: query", () => {
  test("answers what was sampled, with the defaults of the specification", async () => {
    const { sampler, time, query } = setUp();
    await sampler.sample();
    time.ms += MINUTE;
    expect(await query({ metric: "up" })).toEqual({
      metric: "up",
      from_ms: START + MINUTE - DAY_MS,
      to_ms: START + MINUTE,
      row_count: 1,
      limit: 10_000,
      samples: [{ ts_ms: START, labels: { backend: "a" }, value: 1, kind: "gauge" }],
    });
    expect(await query({ metric: "never_heard_of" })).toMatchObject({ row_count: 0, samples: [] });
  });

  test("the lower bound is inclusive, the upper one is not; times in both spellings", async () => {
    const { sampler, time, query } = setUp();
    for (let index = 0; index < 5; index++) {
      await sampler.sample();
      time.ms += MINUTE;
    }
    const range = (from: number | string, to: number | string) =>
      query({ metric: "up", from: String(from), to: String(to) });
    expect((await range(START, START + 2 * MINUTE)).samples.map(({ ts_ms }) => ts_ms)).toEqual([START, START + MINUTE]);
    expect((await range("2026-05-01T12:01:00Z", "2026-05-01T14:04:00+02:00")).row_count).toBe(3);
    expect((await range("2026-05-01T14:01:00 02:00", "2026-05-01T12:04:00.000z")).row_count).toBe(3);
    const limited = await query({ metric: "up", limit: "2" });
    expect([limited.row_count, limited.limit, limited.samples[1]?.ts_ms]).toEqual([2, 2, START + MINUTE]);
  });

  test("long answers come whole, in order, up to the ceiling", async () => {
    const { sampler, set, time, query } = setUp();
    set(
      Array.from({ length: 1500 }, (_, index) => ({
        metric: "up",
        labels: `{"backend":"b${index}"}`,
        value: index,
        kind: "gauge" as const,
      })),
    );
    for (let index = 0; index < 4; index++) {
      await sampler.sample();
      time.ms += MINUTE;
    }
    const { row_count, samples, limit } = await query({ metric: "up", limit: "999999999" });
    expect([row_count, samples.length, limit]).toEqual([6000, 6000, 100_000]);
    const places = samples.map(({ ts_ms, labels }) => `${ts_ms} ${labels.backend}`);
    expect(new Set(places).size).toBe(6000);
    expect(samples.map(({ ts_ms }) => ts_ms)).toEqual(samples.map(({ ts_ms }) => ts_ms).toSorted((a, b) => a - b));
    expect((await query({ metric: "up", limit: "3001" })).row_count).toBe(3001);
  });

  test("bad parameters are refused with the name of the parameter", async () => {
    const { store, time } = setUp();
    const cases: [Record<string, string>, string][] = [
      [{}, "metric"],
      [{ metric: "" }, "metric"],
      [{ metric: "x".repeat(257) }, "metric"],
      [{ metric: "up", from: "2", to: "1" }, "from"],
      [{ metric: "up", from: "1", to: "1" }, "from"],
      [{ metric: "up", from: "yesterday" }, "from"],
      [{ metric: "up", from: "2026-13-01T00:00:00Z" }, "from"],
      [{ metric: "up", to: "1e9" }, "to"],
      [{ metric: "up", to: "99999999999999999999" }, "to"],
      [{ metric: "up", limit: "0" }, "limit"],
      [{ metric: "up", limit: "-1" }, "limit"],
      [{ metric: "up", limit: "1.5" }, "limit"],
      [{ metric: "up", limit: "all" }, "limit"],
    ];
    for (const [parameters, param] of cases) {
      const error = await refusal(queryHistory(store, new URLSearchParams(parameters), time.ms));
      expect([error.status, error.param]).toEqual([400, param]);
    }
  });

  test("404 while persistence is off, 500 when the storage does not answer", async () => {
    const parameters = new URLSearchParams({ metric: "up" });
    expect((await refusal(queryHistory(undefined, parameters, START))).status).toBe(404);
    const { settings, store } = setUp();
    mkdirSync(settings.path, { recursive: true }); // a folder where the file should be
    const error = await refusal(queryHistory(store, parameters, START));
    expect(error.status).toBe(500);
    expect(error.message).not.toContain(folder);
  });

  test("is found through the primary key, without sorting", async () => {
    const { sampler, settings } = setUp();
    await sampler.sample();
    const plan = new Database(settings.path, { readonly: true })
      .query<{ detail: string }, []>(
        `EXPLAIN QUERY PLAN SELECT points.ts, points.series, series.labels FROM points JOIN series ON series.id = points.series
         WHERE points.family = 1 AND points.ts < 9 AND (points.ts, points.series) > (1, 0)
         ORDER BY points.ts, points.series LIMIT 5`,
      )
      .all()
      .map(({ detail }) => detail);
    expect(plan[0]).toContain("SEARCH points USING PRIMARY KEY");
    expect(plan.join()).not.toContain("TEMP B-TREE");
  });
});

describe("metrics history: sampling", () => {
  test("every interval, and at the end; a new interval holds at once", async () => {
    const { sampler, pass, query, settings } = setUp();
    sampler.start();
    await pass(3 * MINUTE);
    expect((await query({ metric: "up", to: "2100-01-01T00:00:00Z" })).row_count).toBe(3);
    sampler.apply({ ...settings, snapshot_interval_seconds: 1 });
    await pass(10_000);
    expect((await query({ metric: "up", to: "2100-01-01T00:00:00Z" })).row_count).toBe(13);
    await pass(500);
    await sampler.stop();
    const rows = new Database(settings.path, { readonly: true })
      .query("SELECT * FROM samples WHERE metric = 'up'")
      .all();
    expect(rows.length).toBe(14);
    expect(rows[0]).toEqual({ ts: START + MINUTE, metric: "up", labels: '{"backend":"a"}', value: 1, kind: "gauge" });
  });

  test("samples older than the retention go, at the next hour or when it is shortened", async () => {
    const { sampler, time, query, settings, store } = setUp();
    await sampler.sample();
    time.ms += 3 * DAY_MS;
    await sampler.sample();
    const count = async () => (await query({ metric: "up", from: "0", to: String(time.ms + 1) })).row_count;
    expect(await count()).toBe(2);
    sampler.apply({ ...settings, retention_days: 2 });
    await sampler.compact();
    expect(await count()).toBe(1);
    time.ms += 3 * DAY_MS;
    await sampler.sample();
    expect(await count()).toBe(1);
    store.close();
  });

  test("compaction runs at its time of day, gives space back and keeps what is in use", async () => {
    const { sampler, set, time, timers, settings, query, pass, store } = setUp({ retention_days: 1 });
    set(
      Array.from({ length: 20_000 }, (_, index) => ({
        metric: `m${index % 40}`,
        labels: `{"number":"${index}"}`,
        value: index,
        kind: "gauge" as const,
      })),
    );
    await sampler.sample();
    set([{ metric: "up", labels: "{}", value: 1, kind: "gauge" }]);
    const database = () => new Database(settings.path, { readonly: true });
    const pages = () => (database().query("PRAGMA page_count").get() as { page_count: number }).page_count;
    const before = pages();
    for (let day = 0; day < 5; day++) {
      time.ms += DAY_MS;
      await sampler.sample();
    }
    sampler.start();
    await pass(MINUTE);
    const three = new Date(time.ms);
    three.setHours(3, 0, 0, 0);
    if (three.getTime() <= time.ms) three.setDate(three.getDate() + 1);
    expect(timers.map(({ dueMs }) => dueMs)).toContain(three.getTime());
    sampler.apply({ ...settings, snapshot_interval_seconds: 86_400 });
    await pass(three.getTime() - time.ms);
    await sampler.compact();
    expect(pages()).toBeLessThan(before / 5);
    expect(database().query("SELECT COUNT(*) AS n FROM series").get()).toEqual({ n: 1 });
    expect((await query({ metric: "up", from: "0" })).row_count).toBeGreaterThan(0);
    sampler.apply({ ...settings, compaction: { enabled: false, schedule: "0 3 * * *" } });
    expect(timers.map(({ dueMs }) => dueMs)).not.toContain(three.getTime() + DAY_MS);
    store.close();
  });
});

describe("metrics history: trouble", () => {
  test("a locked file is not waited for, and tried again within the interval", async () => {
    const { sampler, settings, pass, query, writes, store } = setUp();
    await sampler.sample();
    const other = new Database(settings.path);
    other.run("BEGIN IMMEDIATE");
    sampler.start();
    const startMs = performance.now();
    await pass(MINUTE);
    expect(performance.now() - startMs).toBeLessThan(1000);
    expect(writes).toEqual([true, false]);
    other.run("ROLLBACK");
    other.close();
    await pass(6_000);
    expect(writes).toEqual([true, false, true]);
    expect((await query({ metric: "up", to: "2100-01-01T00:00:00Z" })).row_count).toBe(2);
    store.close();
  });

  test("a file that is removed, with or without its folder, is begun anew", async () => {
    const { sampler, settings, query } = setUp();
    await sampler.sample();
    for (const path of [settings.path, dirname(settings.path)]) {
      rmSync(path, { recursive: true });
      expect(await sampler.sample()).toBe(true);
      expect(existsSync(settings.path)).toBe(true);
      expect((await query({ metric: "up", to: "2100-01-01T00:00:00Z" })).row_count).toBe(1);
    }
  });

  test("a file that is none, or was broken, is set aside", async () => {
    const { sampler, settings, query, store } = setUp();
    mkdirSync(dirname(settings.path), { recursive: true });
    writeFileSync(settings.path, "this is no database ".repeat(500));
    expect(await sampler.sample()).toBe(false);
    expect(await sampler.sample()).toBe(true);
    expect((await query({ metric: "up", to: "2100-01-01T00:00:00Z" })).row_count).toBe(1);
    expect(readdirSync(dirname(settings.path))).toContain("metrics.db.broken");
    store.close();
    const bytes = new Uint8Array(await Bun.file(settings.path).arrayBuffer());
    bytes.fill(0xff, 100);
    writeFileSync(settings.path, bytes);
    for (let attempt = 0; attempt < 3 && !(await sampler.sample()); attempt++);
    expect(await sampler.sample()).toBe(true);
  });

  test("the database of another program is left as it is", () => {
    const { store, settings } = setUp();
    mkdirSync(dirname(settings.path), { recursive: true });
    const foreign = new Database(settings.path, { create: true });
    foreign.run("CREATE TABLE mine (text TEXT)");
    const tables = () => foreign.query("SELECT name FROM sqlite_schema").values();
    expect(() => store.write(START, [{ metric: "up", labels: "{}", value: 1, kind: "gauge" }])).toThrow(StorageError);
    expect(tables()).toEqual([["mine"]]);
    foreign.close();
  });

  test("a place that cannot be written costs samples only, and heals", async () => {
    const { sampler, settings } = setUp();
    const parent = dirname(dirname(settings.path));
    writeFileSync(parent, ""); // a file where the folder should be; permissions do not stop root
    expect(await sampler.sample()).toBe(false);
    rmSync(parent);
    expect(await sampler.sample()).toBe(true);
  });

  test("a file at its largest size forgets the oldest samples", async () => {
    const { sampler, set, time, query, settings } = setUp({}, 64 * 4096);
    const labels = (index: number) => `{"backend":"${"b".repeat(20)}${index}"}`;
    set(
      Array.from({ length: 100 }, (_, index) => ({ metric: "up", labels: labels(index), value: index, kind: "gauge" })),
    );
    for (let index = 0; index < 300; index++) {
      expect(await sampler.sample()).toBe(true);
      time.ms += MINUTE;
    }
    const { samples, row_count } = await query({ metric: "up", limit: "100000" });
    expect(row_count).toBeLessThan(30_000);
    expect(row_count).toBeGreaterThan(1_000);
    expect(samples.at(-1)?.ts_ms).toBe(START + 299 * MINUTE);
    expect(Bun.file(settings.path).size).toBeLessThanOrEqual(64 * 4096);
  });

  test("a disk that is full for others' reasons costs no old samples", () => {
    const { settings, store } = setUp();
    const sample = (index: number): MetricSample => ({
      metric: "up",
      labels: `{"text":"${"x".repeat(3000)}${index}"}`,
      value: 1,
      kind: "gauge",
    });
    store.write(START, [sample(0)]);
    // The limit of the file is far away, yet no page can be had: what SQLite says of a full disk.
    const prototype = Database.prototype as unknown as { transaction: unknown };
    const original = prototype.transaction;
    prototype.transaction = () => {
      const full = () => {
        throw Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
      };
      return Object.assign(full, { immediate: full });
    };
    try {
      expect(() => store.write(START + 1, [sample(1)])).toThrow(StorageError);
    } finally {
      prototype.transaction = original;
    }
    store.write(START + 2, [sample(2)]);
    const rows = new Database(settings.path, { readonly: true }).query("SELECT ts FROM samples ORDER BY ts").all();
    expect(rows).toEqual([{ ts: START }, { ts: START + 2 }]);
  });

  test("what failed half way is not remembered as written", async () => {
    const { sampler, set, settings, writes } = setUp();
    await sampler.sample();
    const other = new Database(settings.path);
    other.run("BEGIN IMMEDIATE");
    set([{ metric: "new_family", labels: '{"a":"b"}', value: 1, kind: "counter" }]);
    expect(await sampler.sample()).toBe(false);
    other.run("ROLLBACK");
    expect(await sampler.sample()).toBe(true);
    expect(writes).toEqual([true, false, true]);
    expect(other.query("SELECT metric, labels, kind FROM samples WHERE metric = 'new_family'").all()).toEqual([
      { metric: "new_family", labels: '{"a":"b"}', kind: "counter" },
    ]);
  });

  test("metrics that cannot be read are no trouble for the caller", async () => {
    const { sampler, set } = setUp();
    set(null as unknown as MetricSample[]);
    expect(await sampler.sample()).toBe(false);
  });
});
