import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { costsView } from "../admin/costs-view.ts";
import { readWindow } from "../admin/query.ts";
import { statsView } from "../admin/stats-view.ts";
import { silentLogger } from "../logging/logger.ts";
import { createObserver } from "../metrics/observer.ts";
import { StatsCollector } from "./collector.ts";
import { SnapshotFile } from "./snapshot-file.ts";

const folder = mkdtempSync(join(tmpdir(), "stats-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const NO_QUERY = new URLSearchParams();
const DAY = 86_400_000;
const START = Date.UTC(2026, 4, 1, 12);
let files = 0;

function setUp(path = join(folder, `${files++}`, "stats.json"), startMs = START, maxAgeMs = 7 * DAY) {
  const time = { ms: startMs };
  const clock = { now: () => time.ms, wallTime: () => time.ms };
  const collector = new StatsCollector({
    settings: { enabled: true, retention_window: 7 * DAY, token_tracking: true },
    clock,
  });
  const file = new SnapshotFile({
    settings: { enabled: true, path, snapshot_interval: 300_000, max_age: maxAgeMs },
    collector,
    log: silentLogger(),
    wallTime: () => time.ms,
  });
  const observer = createObserver(collector, undefined);
  function count(model = "m") {
    observer.finished({
      operation: "chat",
      model,
      backend: "b",
      status: 200,
      outcome: "succeeded",
      durationMs: 42,
      stream: false,
      usage: { input: { total: 10 }, output: { total: 5 } },
      attempts: 1,
      keyId: "k",
    });
  }
  const all = () => ({ ...statsView(collector, readWindow(new URLSearchParams())), uptime_seconds: 0 });
  const day = () => statsView(collector, readWindow(new URLSearchParams({ window: "24h" }))).overall.total_requests;
  return { path, time, collector, file, count, all, day };
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
    expect(costsView(collector, NO_QUERY)).toEqual({ total_cost: 2, keys: earlier.stats.costs });
  });

  test("missing, stale and corrupt files mean fresh counters", async () => {
    const { file, path, count } = setUp();
    expect(await file.restore()).toBe("missing");
    count();
    await file.save();
    expect(await setUp(path, START + 8 * DAY).file.restore()).toBe("stale");
    expect(await setUp(path, START + 800 * DAY, 0).file.restore()).toBe("restored");
    const good = readFileSync(path, "utf8");
    for (const bad of [
      "",
      "{",
      "null",
      good.slice(0, -20),
      good.replace('"format":1', '"format":2'),
      good.replace(/"overall":\[\[-?\d+/, '"overall":[["x"'),
      good.replace('"models":', '"__proto__":1,"models":'),
      "\u0000".repeat(100),
    ]) {
      writeFileSync(path, bad);
      const fresh = setUp(path);
      const result = await fresh.file.restore();
      if (result === "restored") expect(bad).toContain("__proto__");
      else expect([result, fresh.all().overall.total_requests]).toEqual(["corrupt", 0]);
    }
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
