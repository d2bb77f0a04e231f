// The log of requests on disk: what is written comes back whole, within its bounds, and trouble with the disk concerns no
// request.

import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { beginStory, endStory, type RequestEnd } from "../../test/support/request-records.ts";
import { waitFor } from "../../test/support/wait-for.ts";
import { storyView } from "../admin/request-view.ts";
import { silentLogger } from "../logging/logger.ts";
import { OUTCOMES } from "../stats/outcome.ts";
import type { RequestRecord, ToldRecord } from "../stats/request-record.ts";
import { Stories } from "../stats/stories.ts";
import { RequestLog, type RequestLogSettings } from "./log.ts";
import { createRequestSearch } from "./search.ts";

const START = Date.UTC(2026, 4, 1, 12);
const HOUR = 3_600_000;
const folder = mkdtempSync(join(tmpdir(), "request-log-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

function setUp(changes: Partial<RequestLogSettings> = {}) {
  const settings: RequestLogSettings = {
    path: join(folder, `${files++}`, "requests.db"),
    retention: 7 * 24 * HOUR,
    max_bytes: 1024 ** 3,
    ...changes,
  };
  const time = { ms: 1000 };
  const clock = { now: () => time.ms, wallTime: () => START + time.ms };
  const lost = { count: 0 };
  const open = () => {
    const log = new RequestLog({
      ...{ settings, clock, log: silentLogger() },
      startedAt: (story) => stories.startedAt(story),
      lost(count) {
        lost.count += count;
      },
    });
    const stories: Stories = new Stories({
      clock,
      happenings: { requestEnded: (story) => log.add(story) },
      maxEntries: 2,
    });
    const search = createRequestSearch({ stories, log, clock });
    return { log, stories, search };
  };
  let count = 0;
  const add = (stories: Stories, end: Partial<RequestEnd> = {}, requestId = "r"): RequestRecord => {
    const id = `own-${++count}`;
    const story = beginStory(stories, { id, requestId, operation: "chat", model: "m" }, () => time.ms);
    endStory(stories, story, { status: 200, outcome: "succeeded", durationMs: 5, ...end });
    return story;
  };
  const total = async ({ search }: ReturnType<typeof open>) => (await search.groups({ conditions: [] }, [], 1))?.total;
  return { settings, time, lost, open, add, total };
}

describe("a request on disk", () => {
  const text = fc.string({ maxLength: 20, unit: "grapheme" });
  const some = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
  /** Exact to a microsecond. */
  const ms = fc.nat(10_000_000).map((us) => us / 1000);
  const told: fc.Arbitrary<ToldRecord> = fc.record({
    ...{ id: fc.nat().map((number) => `own-${number}`), requestId: text, operation: text, model: text },
    ...{
      isKept: fc.constant(true),
      stream: fc.boolean(),
      startedAtMs: fc.nat(1e9).map((us) => START + us / 1000),
      keyId: some(text),
    },
    ...{
      status: fc.integer({ min: 200, max: 599 }),
      durationMs: ms,
      failure: some(text),
      code: some(text),
      endedBy: some(text),
    },
    outcome: fc.constantFrom(...OUTCOMES),
    ...{ userId: some(text), organizationId: some(text), clientAddress: some(text), target: some(text) },
    ...{ backend: some(text), answeredBy: some(text), firstByteMs: some(ms), backendMs: some(ms) },
    ...{ promptTokens: some(fc.nat()), completionTokens: some(fc.nat()), droppedSteps: fc.nat(3) },
    ...{ cache: some(fc.constantFrom("HIT", "MISS", "BYPASS")), cacheReason: some(text) },
    steps: fc.array(
      fc.oneof(
        fc.record({
          ...{ kind: fc.constant("attempt"), atMs: ms, backend: text, model: text, strategy: some(text) },
          ...{ scoreMeans: some(text), firstByteMs: some(ms), durationMs: some(ms), status: some(fc.nat(599)) },
          ...{ failure: some(text), candidates: some(fc.array(fc.record({ backend: text, score: fc.nat() }))) },
        }),
        fc.record({ kind: fc.constant("wait"), atMs: ms, durationMs: ms, reason: text }),
        fc.record({ kind: fc.constant("fallback"), atMs: ms, from: text, to: text, reason: text }),
      ),
      { maxLength: 5 },
    ),
  }) as fc.Arbitrary<ToldRecord>;

  test("comes back as it was, after a restart", async () => {
    const compared = async (all: ToldRecord[]) => {
      const { open } = setUp();
      const before = open();
      const offset = before.stories.startedAt({ startedAtMs: 0 } as RequestRecord);
      // JSON has no undefined, and neither says more than the other.
      const factsOf = (record: RequestRecord) => {
        const told = Object.entries(record.tell(offset)).filter(
          ([name]) => name in (all[0] ?? {}) && name !== "isKept",
        );
        return JSON.parse(JSON.stringify(Object.fromEntries(told)));
      };
      const shown = all.map((each) => {
        const record = before.stories.follow(undefined, each);
        before.stories.end(record);
        return { id: each.id, facts: factsOf(record), view: storyView(before.stories, record, undefined, []) };
      });
      before.log.stop();
      const after = open();
      for (const { id, facts, view } of shown) {
        const record = (await after.search.find(id)) as RequestRecord;
        expect(factsOf(record)).toEqual(facts);
        expect(storyView(after.stories, record, undefined, [])).toEqual(view);
      }
      after.log.stop();
    };
    const several = fc.uniqueArray(told, { selector: ({ id }) => id, minLength: 1, maxLength: 40 });
    await fc.assert(fc.asyncProperty(several, compared), { numRuns: 12 });
  });

  test("is written within seconds by itself, and a busy second in several chunks", async () => {
    const bed = setUp();
    const { log, stories } = bed.open();
    for (let index = 0; index < 2_000; index++) bed.add(stories);
    await waitFor("the file is there", () => existsSync(bed.settings.path));
    const other = new Database(bed.settings.path, { readonly: true });
    // The table may not be there yet.
    const isThere = () => other.query("SELECT 1 FROM sqlite_schema WHERE name = 'chunks'").get() !== null;
    const rows = () => other.query<{ count: number }, []>("SELECT sum(count) AS count FROM chunks").get()?.count;
    await waitFor("all are written", () => isThere() && rows() === 2_000);
    expect(other.query("SELECT 1 FROM chunks").all().length).toBeGreaterThan(1);
    other.close();
    log.stop();
  });

  test("few requests share a chunk for a minute, of which each is there once", async () => {
    const bed = setUp();
    const opened = bed.open();
    for (let index = 0; index < 100; index++) {
      bed.add(opened.stories);
      opened.log.flush();
      bed.time.ms += 1000;
    }
    expect(await bed.total(opened)).toBe(100);
    expect(opened.log.store.entries(0, Number.MAX_SAFE_INTEGER)).toHaveLength(2);
    opened.log.stop();
    expect(await bed.total(bed.open())).toBe(100);
  });

  test("is for its owner only", () => {
    const { settings, open, add } = setUp();
    const { log, stories } = open();
    add(stories);
    log.flush();
    for (const name of readdirSync(dirname(settings.path))) {
      expect([name, (statSync(join(dirname(settings.path), name)).mode & 0o777).toString(8)]).toEqual([name, "600"]);
    }
    log.stop();
  });
});

/** The file is larger or smaller until SQLite has put its journal into it. */
function pagesOf(path: string): number {
  const database = new Database(path, { readonly: true });
  const pages = database.query<{ page_count: number }, []>("PRAGMA page_count").get()?.page_count;
  database.close();
  return pages as number;
}

describe("bounds", () => {
  test("what is older than the retention is forgotten, and its space is given back", async () => {
    const bed = setUp({ retention: 24 * HOUR });
    const opened = bed.open();
    for (let hour = 0; hour < 48; hour++) {
      for (let index = 0; index < 600; index++) bed.add(opened.stories, {}, crypto.randomUUID());
      opened.log.flush();
      bed.time.ms += HOUR;
    }
    expect(await bed.total(opened)).toBe(48 * 600);
    const pages = pagesOf(bed.settings.path);
    await opened.log.tend();
    expect(await bed.total(opened)).toBeLessThanOrEqual(25 * 600);
    expect(pagesOf(bed.settings.path)).toBeLessThan(pages * 0.7);
    opened.log.apply({ ...bed.settings, retention: 2 * HOUR });
    await waitFor("a shorter retention holds at once", async () => ((await bed.total(opened)) ?? 0) <= 3 * 600);
    opened.log.stop();
  });

  test("the file stays within its size: the oldest make room", async () => {
    const bed = setUp({ max_bytes: 1024 * 1024 });
    const opened = bed.open();
    for (let index = 0; index < 60_000; index++) {
      bed.add(opened.stories, {}, crypto.randomUUID());
      bed.time.ms += 1;
      if (index % 500 === 0) opened.log.flush();
    }
    opened.log.flush();
    expect([opened.log.problem, bed.lost.count]).toEqual([undefined, 0]);
    expect(statSync(bed.settings.path).size).toBeLessThanOrEqual(bed.settings.max_bytes);
    expect(await opened.search.find("own-1")).toBeUndefined();
    expect(await opened.search.find("own-59000")).toBeDefined();
    opened.log.stop();
  });

  test("while nothing can be written, so many wait and the rest is counted; they are written when it can be", async () => {
    const bed = setUp();
    const opened = bed.open();
    bed.add(opened.stories);
    opened.log.flush();
    const other = new Database(bed.settings.path);
    other.run("BEGIN IMMEDIATE");
    for (let index = 0; index < 30_000; index++) bed.add(opened.stories);
    opened.log.flush();
    expect(opened.log.problem).toBe(`${bed.settings.path} cannot be written: the file is locked by another process`);
    expect(bed.lost.count).toBeGreaterThan(10_000);
    other.run("ROLLBACK");
    other.close();
    opened.log.flush();
    expect(opened.log.problem).toBeUndefined();
    // Two of those that were lost are in memory still.
    expect(await bed.total(opened)).toBe(30_001 - bed.lost.count + 2);
    opened.log.stop();
  });
});

describe("trouble with the file", () => {
  test("a broken one is set aside, and the next requests are found in a new one", async () => {
    const bed = setUp();
    mkdirSync(dirname(bed.settings.path), { recursive: true });
    writeFileSync(bed.settings.path, "no database, but of some length ".repeat(100));
    const opened = bed.open();
    for (let index = 0; index < 5; index++) bed.add(opened.stories);
    opened.log.flush();
    opened.log.flush();
    expect(readdirSync(dirname(bed.settings.path))).toContain("requests.db.broken");
    expect([opened.log.problem, await bed.total(opened)]).toEqual([undefined, 5]);
    opened.log.stop();
  });

  test("one that is taken away is begun again; what is in memory is told meanwhile", async () => {
    const bed = setUp();
    const opened = bed.open();
    for (let index = 0; index < 5; index++) bed.add(opened.stories);
    opened.log.flush();
    for (const name of readdirSync(dirname(bed.settings.path))) rmSync(join(dirname(bed.settings.path), name));
    mkdirSync(bed.settings.path);
    bed.add(opened.stories);
    const page = await opened.search.page({ conditions: [], sort: "time", limit: 10 });
    expect(page?.stories.map(({ id }) => id)).toEqual(["own-6", "own-5"]);
    expect(page?.searchedSinceMs).toBeGreaterThan(START);
    expect(opened.log.problem).toContain("cannot be written");
    rmSync(bed.settings.path, { recursive: true });
    opened.log.flush();
    expect(opened.log.problem).toBeUndefined();
    expect(await opened.search.find("own-6")).toBeDefined();
    opened.log.stop();
  });

  test("one of something else is left alone", () => {
    const bed = setUp();
    mkdirSync(dirname(bed.settings.path), { recursive: true });
    const other = new Database(bed.settings.path);
    other.run("CREATE TABLE theirs (x)");
    other.close();
    const { log, stories } = bed.open();
    bed.add(stories);
    log.flush();
    expect(log.problem).toContain("it is a database of something else");
    log.stop();
    expect(bed.lost.count).toBe(1);
  });
});

test("a search on disk gives others their turn, ends in time, and goes on where it ended", async () => {
  const bed = setUp();
  const { log, stories } = bed.open();
  for (let index = 0; index < 4_000; index++) {
    bed.add(stories);
    bed.time.ms += 10;
    if (index % 100 === 0) log.flush();
  }
  log.flush();
  // Each look at this clock takes a moment: time passes while one searches.
  const clock = { now: () => (bed.time.ms += 3), wallTime: () => START + bed.time.ms };
  const search = createRequestSearch({ stories: new Stories({ clock, maxEntries: 2 }), log, clock });
  const conditions = [{ columns: ["id"] as const, test: (id: unknown) => (id as string).endsWith("7") }];
  let turns = 0;
  let isOver = false;
  const turn = () => {
    turns++;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const ids: string[] = [];
  let pages = 0;
  for (let behind: Parameters<typeof search.page>[0]["behind"]; ; pages++) {
    const page = await search.page({ conditions, sort: "time", limit: 30, behind });
    ids.push(...(page?.stories.map(({ id }) => id) ?? []));
    behind = page?.next;
    if (behind === undefined) break;
  }
  isOver = true;
  expect(ids).toEqual(Array.from({ length: 400 }, (_, index) => `own-${3997 - 10 * index}`));
  expect(pages).toBeGreaterThan(5);
  expect(turns).toBeGreaterThan(5);
  log.stop();
});
