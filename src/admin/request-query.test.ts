// Requests are found by the same rules whether they are in memory or on disk.

import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beginStory, endStory, type RequestEnd } from "../../test/support/request-records.ts";
import { silentLogger } from "../logging/logger.ts";
import { RequestLog } from "../request-log/log.ts";
import { createRequestSearch } from "../request-log/search.ts";
import type { RequestRecord } from "../stats/request-record.ts";
import { Stories } from "../stats/stories.ts";
import { explainRequest, groupRequests, listRequests } from "./request-query.ts";

const START = Date.UTC(2026, 4, 1, 12);
const folder = mkdtempSync(join(tmpdir(), "requests-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

type Place = "in memory" | "on disk";
const PLACES: readonly Place[] = ["in memory", "on disk"];

/** On disk: memory has place for one story. */
function setUp(place: Place) {
  const time = { ms: 1000 };
  const clock = { now: () => time.ms, wallTime: () => START + time.ms };
  const log =
    place === "in memory"
      ? undefined
      : new RequestLog({
          settings: { path: join(folder, `${files++}.db`), retention: 7 * 86_400_000, max_bytes: 1024 ** 3 },
          ...{ clock, log: silentLogger(), startedAt: (story) => stories.startedAt(story) },
          lost() {},
        });
  const stories: Stories = new Stories({
    clock,
    ...(log !== undefined && { maxEntries: 1 }),
    happenings: { requestEnded: (story) => log?.add(story) },
  });
  const search = createRequestSearch({ stories, log, clock });
  const caller = () => ({ signal: new AbortController().signal, nowMs: clock.wallTime() });
  let count = 0;
  const begin = (requestId: string, model = "m", keyId?: string) =>
    beginStory(
      stories,
      { id: `own-${++count}`, requestId, operation: "chat", model, stream: true, keyId },
      () => time.ms,
    );
  return {
    time,
    begin,
    add(end: Partial<RequestEnd> = {}, requestId = "r", model?: string, keyId?: string) {
      const story = begin(requestId, model, keyId);
      if (end.backend !== undefined) story.attempt(end.backend, story.model);
      endStory(stories, story, { status: 200, outcome: "succeeded", durationMs: 20, ...end });
      return story;
    },
    finish: (story: RequestRecord, end: RequestEnd) => endStory(stories, story, end),
    list: async (query = "") => {
      return (await listRequests(search, stories, new URLSearchParams(query), caller())) as {
        requests: { id: string }[];
        total: number;
        next_cursor: string | null;
        searched_since: string | null;
      };
    },
    groups: (query: string) => groupRequests(search, new URLSearchParams(query), caller()),
    explain: (id: string) => explainRequest(search, stories, id),
    stop: () => log?.stop(),
  };
}

const ids = ({ requests }: { requests: { id: string }[] }) => requests.map(({ id }) => id);

describe.each(PLACES)("requests %s", (place) => {
  function three() {
    const bed = setUp(place);
    const first = bed.begin("client-1", "m1", "team");
    first.attempt("gpu-1", "m1");
    first.attempt("gpu-2", "m1");
    bed.finish(first, {
      status: 200,
      outcome: "succeeded",
      durationMs: 20,
      backend: "gpu-2",
      usage: { input: { total: 3 }, output: { total: 2 } },
    });
    bed.time.ms += 1000;
    const broken = {
      status: 502,
      outcome: "stream_broken",
      failure: "reset",
      answeredBy: "m1",
      durationMs: 500,
    } as const;
    bed.add(broken, "client-2", "m2");
    bed.time.ms += 1000;
    bed.begin("client-3", "m3");
    return bed;
  }

  test("the newest goes first, with what became of each", async () => {
    const { requests, total, next_cursor, searched_since } = await three().list();
    expect([total, next_cursor, searched_since]).toEqual([3, null, null]);
    expect(requests).toMatchObject([
      { id: "own-3", outcome: "running", status: null },
      { id: "own-2", outcome: "stream_broken", status: 502, failure: "reset", answered_by: "m1" },
      { id: "own-1", outcome: "succeeded", attempts: 2, prompt_tokens: 3, completion_tokens: 2, duration_ms: 20 },
    ]);
    expect(requests[0]).not.toHaveProperty("steps");
  });

  test.each([
    ["model=m1", ["own-2", "own-1"]], // asked for, or answering
    ["backend=gpu-1", ["own-1"]], // of any attempt
    ["backend=gpu-2", ["own-1"]],
    ["status=502", ["own-2"]],
    ["status=5xx", ["own-2"]],
    ["status=2xx", ["own-1"]],
    ["key=team", ["own-1"]],
    ["outcome=stream_broken", ["own-2"]],
    ["outcome=running", ["own-3"]],
    ["min_duration_ms=500", ["own-2"]],
    [`since=${START + 2000}`, ["own-3", "own-2"]],
    [`until=${new Date(START + 2000).toISOString()}`, ["own-1"]],
    [`since=${START + 2000}&until=${START + 3000}`, ["own-2"]],
    ["window=1h&outcome=succeeded", ["own-1"]],
    ["id=client-2", ["own-2"]],
    ["id=wn-1", ["own-1"]],
    ["model=m1&status=200", ["own-1"]],
    ["sort=duration&min_duration_ms=1", ["own-2", "own-1"]],
    ["model=nobody", []],
  ])("%s", async (query, wanted) => {
    expect(ids(await three().list(query))).toEqual(wanted);
  });

  test.each(["time", "duration"])("come in pages by %s, to which new requests change nothing", async (sort) => {
    const { add, list } = setUp(place);
    for (let index = 0; index < 11; index++) add({ durationMs: 100 + index });
    const pages: string[][] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page = await list(`sort=${sort}&limit=4${cursor && `&cursor=${cursor}`}`);
      pages.push(ids(page));
      add({ durationMs: 1000 });
      expect(page.total).toBeGreaterThanOrEqual(11);
      cursor = page.next_cursor;
    }
    const all = Array.from({ length: 11 }, (_, index) => `own-${11 - index}`);
    expect(pages).toEqual([all.slice(0, 4), all.slice(4, 8), all.slice(8)]);
  });

  test.each([
    ...["status=600", "status=ok", "min_duration_ms=-1", "since=yesterday", "until=", "limit=0", "limit=x"],
    ...["sort=size", "cursor=forgotten", "window=1y", "window=1h&since=5"],
  ])("%s is refused with its name", async (query) => {
    const name = query.includes("cursor") ? "cursor" : query.split("=")[0];
    await expect(setUp(place).list(query)).rejects.toThrow(`'${name}' must be`);
  });

  test("those that are alike are counted together, the largest group first", async () => {
    const { add, groups, time } = setUp(place);
    const refused = { status: 403, outcome: "refused", failure: "forbidden", code: "model_not_allowed" } as const;
    for (let index = 0; index < 5; index++) {
      time.ms += 1000;
      add(refused, "r", "gpt-4o", "team-c");
    }
    add(refused, "r", "gpt-4o", "team-d");
    add({ backend: "gpu-1" });
    const found = await groups("by=status,code,key,model&status=4xx&limit=1");
    expect(found).toEqual({
      by: ["status", "code", "key", "model"],
      groups: [
        {
          ...{
            status: 403,
            code: "model_not_allowed",
            key_id: "team-c",
            model: "gpt-4o",
            count: 5,
            example_id: "own-5",
          },
          first_at: new Date(START + 2000).toISOString(),
          last_at: new Date(START + 6000).toISOString(),
        },
      ],
      omitted: 1,
      total: 6,
      searched_since: null,
    });
    expect((await groups("by=backend")).groups).toMatchObject([
      { backend: null, count: 6 },
      { backend: "gpu-1", count: 1 },
    ]);
    await expect(groups("by=color")).rejects.toThrow("'by' must be");
    await expect(groups("by=model,model")).rejects.toThrow("'by' must be");
  });

  test("one is explained with its steps, by either id", async () => {
    const { explain, begin } = three();
    begin("client-2");
    expect(await explain("own-1")).toMatchObject({ steps: [{ backend: "gpu-1" }, { backend: "gpu-2" }] });
    expect(await explain("client-1")).toMatchObject({ id: "own-1", steps: { length: 2 }, steps_dropped: 0 });
    expect(await explain("client-2")).toMatchObject({ id: "own-4", others: ["own-2"] });
    expect(await explain("own-2")).toMatchObject({ model: "m2", others: ["own-4"] });
    await expect(explain("nobody")).rejects.toThrow("X-Request-ID");
  });
});

test("what is in memory and on disk is told once", async () => {
  const bed = setUp("on disk");
  for (let index = 0; index < 3; index++) bed.add();
  bed.begin("runs");
  expect(await bed.list()).toMatchObject({ total: 4, requests: { length: 4 } });
  expect((await bed.groups("by=model")).groups).toMatchObject([{ model: "m", count: 4 }]);
});
