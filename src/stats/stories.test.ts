import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { beginStory, endStory } from "../../test/support/request-records.ts";
import { explainRequest, listRequests } from "../../test/support/request-search.ts";
import type { RequestRecord } from "./request-record.ts";
import { Stories } from "./stories.ts";

const START = Date.UTC(2026, 4, 1, 12);

function setUp(maxEntries?: number, maxBytes?: number) {
  const time = { ms: 1000 };
  const stories = new Stories({
    clock: { now: () => time.ms, wallTime: () => START + time.ms },
    ...(maxEntries !== undefined && { maxEntries }),
    ...(maxBytes !== undefined && { maxBytes }),
  });
  let count = 0;
  const begin = (requestId: string, model = "m", keyId?: string) =>
    beginStory(
      stories,
      { id: `own-${++count}`, requestId, operation: "chat", model, stream: true, keyId },
      () => time.ms,
    );
  return { time, stories, begin };
}

test("what another process tells of a request as JSON replaces all that it told before", () => {
  const { time, begin } = setUp();
  const told = begin("r1", "m", "k");
  const tell = () => JSON.parse(JSON.stringify(told.tell(START))) as ReturnType<typeof told.tell>;
  told.attempt("a", "m", "round_robin");
  Object.assign(told, {
    lastFailure: "status_502",
    answeredBy: "m2",
    usage: { input: { total: 3 }, output: { total: 1 } },
  });
  const elsewhere = setUp().stories;
  const known = elsewhere.follow(undefined, tell());
  expect(known).toMatchObject({ model: "m", keyId: "k", lastFailure: "status_502", answeredBy: "m2", attempts: 1 });
  Object.assign(told, { lastFailure: undefined, answeredBy: undefined, usage: undefined });
  time.ms += 5;
  told.finish(200, "succeeded", 5);
  const bytes = known.weighedBytes;
  elsewhere.follow(known, tell());
  expect(known).toMatchObject({ lastFailure: undefined, answeredBy: undefined, usage: undefined, status: 200 });
  expect(known.steps).toEqual(told.steps);
  expect(known.weighedBytes).toBe(bytes);
});

describe("explain one request", () => {
  test("tells every step with its time", async () => {
    const { time, stories, begin } = setUp();
    const story = begin("r1", "m", "k");
    story.cache = "MISS";
    time.ms += 1;
    const candidates = [
      { backend: "a", score: 12, inFlight: 1 },
      { backend: "b", excluded: "circuit_open" },
    ];
    const first = story.attempt("a", "m", "least_latency", candidates, "milliseconds");
    time.ms += 20;
    Object.assign(first, { durationMs: 20, failure: "status_503", status: 503 });
    story.add({ kind: "wait", atMs: story.sinceStartMs, durationMs: 50, reason: "retry" });
    time.ms += 50;
    story.add({ kind: "fallback", atMs: story.sinceStartMs, from: "m", to: "m2", reason: "error_code_503" });
    const second = story.attempt("b", "m2");
    expect(await explainRequest(stories, "r1")).toMatchObject({
      finished: false,
      status: null,
      timings: { total_ms: 71 },
    });
    time.ms += 30;
    second.firstByteMs = 30;
    time.ms += 100;
    Object.assign(second, { durationMs: 130, status: 200 });
    const end = { status: 200, durationMs: 201, backend: "b", answeredBy: "m2", firstByteMs: 102, backendMs: 150 };
    endStory(stories, story, { ...end, outcome: "succeeded" });
    time.ms += 5000;
    expect(await explainRequest(stories, "r1")).toEqual({
      id: "own-1",
      request_id: "r1",
      started_at: new Date(START + 1000).toISOString(),
      finished: true,
      outcome: "succeeded",
      operation: "chat",
      model: "m",
      answered_by: "m2",
      route: null,
      arm: null,
      route_reason: null,
      route_lot: null,
      stream: true,
      key_id: "k",
      user_id: null,
      organization_id: null,
      client: null,
      target: null,
      backend: "b",
      vendor_batch: null,
      status: 200,
      failure: null,
      code: null,
      attempts: 2,
      duration_ms: 201,
      first_byte_ms: 102,
      prompt_tokens: null,
      completion_tokens: null,
      summary: "a was overloaded or not ready (status 503); b answered after 30 ms.",
      explanation: [
        "The response cache did not have the answer.",
        "a was overloaded or not ready (status 503); b was passed over: its circuit is open.",
        "The request waited 50 ms before another attempt.",
        "m could not answer (error_code_503), so m2 was asked instead.",
        "b answered after 30 ms (asked for m2).",
        "The answer was complete after 201 ms.",
      ],
      ended_by: null,
      error: null,
      cache: { decision: "MISS", reason: null },
      timings: {
        total_ms: 201,
        gateway_ms: 51,
        backend_ms: 150,
        first_token_ms: 102,
        first_byte_ms: 102,
        until_first_attempt_ms: 1,
        tokens_per_second: null,
        waiting_ms: 50,
      },
      steps: [
        {
          kind: "attempt",
          at_ms: 1,
          backend: "a",
          model: "m",
          strategy: "least_latency",
          score_means: "milliseconds",
          candidates: [
            { backend: "a", score: 12, in_flight: 1, chosen: true, why: "chosen by least_latency: 12" },
            { backend: "b", excluded: "circuit_open", chosen: false, why: "not chosen: its circuit is open" },
          ],
          text: "a was overloaded or not ready (status 503); b was passed over: its circuit is open.",
          outcome: "failed",
          failure: "status_503",
          detail: null,
          retry_after_ms: null,
          in_panic: false,
          status: 503,
          duration_ms: 20,
          first_byte_ms: null,
        },
        {
          kind: "wait",
          at_ms: 21,
          duration_ms: 50,
          reason: "retry",
          class: null,
          text: "The request waited 50 ms before another attempt.",
        },
        {
          kind: "fallback",
          at_ms: 71,
          from: "m",
          to: "m2",
          reason: "error_code_503",
          text: "m could not answer (error_code_503), so m2 was asked instead.",
        },
        {
          kind: "attempt",
          at_ms: 71,
          backend: "b",
          model: "m2",
          strategy: null,
          score_means: null,
          candidates: [],
          text: "b answered after 30 ms (asked for m2).",
          outcome: "succeeded",
          failure: null,
          detail: null,
          retry_after_ms: null,
          in_panic: false,
          status: 200,
          duration_ms: 130,
          first_byte_ms: 30,
        },
      ],
      steps_dropped: 0,
      others: [],
    });
  });

  test("an unknown request is 404", async () => {
    const { stories } = setUp();
    await expect(explainRequest(stories, "r1")).rejects.toThrow("X-Request-ID");
  });

  test("of several with one id of a client the newest is told, and the others are named", async () => {
    const { stories, begin } = setUp();
    begin("r1", "old");
    begin("r1", "new");
    begin("own-1", "whoever takes the gateway's id of another request"); // must not stand before it
    expect(await explainRequest(stories, "r1")).toMatchObject({ id: "own-2", model: "new", others: ["own-1"] });
    expect(await explainRequest(stories, "own-1")).toMatchObject({ model: "old", others: ["own-2"] });
  });

  test("never holds more than it may, in whatever order requests end", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ steps: fc.nat(100), endsAfter: fc.nat(20) }), { maxLength: 200 }),
        fc.integer({ min: 1, max: 30 }),
        fc.integer({ min: 1000, max: 50_000 }),
        (requests, maxEntries, maxBytes) => {
          const { stories, begin } = setUp(maxEntries, maxBytes);
          const running: (() => void)[][] = [];
          requests.forEach(({ steps, endsAfter }, index) => {
            const story = begin(`r${index}`);
            const end = () => {
              for (let step = 0; step < steps; step++) story.attempt("a", "m", "random", [{ backend: "a" }]);
              endStory(stories, story, { status: 200, outcome: "succeeded", durationMs: 1 });
            };
            const sameTime = running[index + endsAfter] ?? [];
            running[index + endsAfter] = [...sameTime, end];
            for (const finish of running[index] ?? []) finish();
            expect(stories.size).toBeLessThanOrEqual(maxEntries);
            expect(stories.size === 1 || stories.bytes <= maxBytes).toBe(true);
          });
          for (const ends of running.slice(requests.length)) for (const finish of ends ?? []) finish();
          expect(stories.size === 1 || stories.bytes <= maxBytes).toBe(true);
          expect(stories.bytes).toBeGreaterThanOrEqual(0);
          const kept = requests.map((_, index) => stories.find(`r${index}`)).filter((story) => story !== undefined);
          expect(kept.length).toBe(stories.size);
          expect(kept.reduce((sum, { weighedBytes }) => sum + weighedBytes, 0)).toBe(stories.bytes);
        },
      ),
    );
  });

  test("where memory is short, steps go before the requests do, and both are told", async () => {
    const { stories, begin } = setUp(10_000);
    const ask = (index: number) => {
      const story = begin(`request-${index}`);
      const candidates = Array.from({ length: 16 }, (_, number) => ({ backend: `gpu-${number}`, score: number }));
      for (let attempt = 0; attempt < 2; attempt++) story.attempt(`gpu-${attempt}`, "m", "Random", candidates);
      endStory(stories, story, { status: 200, outcome: "succeeded", durationMs: index, backend: "gpu-1" });
    };
    for (let index = 0; index < 12_000; index++) ask(index);
    expect(stories.size).toBe(10_000);
    expect(stories.bytes).toBeLessThanOrEqual(8 * 1024 * 1024);
    const oldest = await explainRequest(stories, "request-2000");
    expect(oldest).toMatchObject({ attempts: 2, steps: [], steps_dropped: 2 });
    expect(oldest).toMatchObject({
      explanation: expect.arrayContaining([expect.stringContaining("not kept any more")]),
    });
    expect(await explainRequest(stories, "request-11999")).toMatchObject({ attempts: 2, steps: { length: 2 } });
    // The attempts of all of them are found.
    for (const query of ["backend=gpu-0", "model=m&status=2xx&min_duration_ms=2000", "id=request-", "limit=1000"]) {
      expect(await listRequests(stories, query)).toMatchObject({ total: 10_000 });
    }
  });

  test("a request with endless steps is cut, and says so", async () => {
    const { stories, begin } = setUp();
    const story = begin("r1");
    for (let step = 0; step < 100; step++) story.add({ kind: "refused", atMs: 0, reason: "x" });
    expect(await explainRequest(stories, "r1")).toMatchObject({ steps: { length: 64 }, steps_dropped: 36 });
  });
});

describe("refused requests", () => {
  const end = { status: 429, durationMs: 1, failure: "rate_limit_exceeded", code: "rate_limit_exceeded" };
  const refused = { ...end, outcome: "refused" } as const;
  const answered = { status: 200, durationMs: 1, outcome: "succeeded" } as const;
  const ids = (stories: Stories) => [...stories.newestFirst()].map(({ requestId }) => requestId);

  function setUpWith(maxEntries: number) {
    const { time, stories } = setUp(maxEntries);
    let count = 0;
    const begin = (requestId: string, caller: { keyId?: string; clientAddress?: string } = {}) => {
      const start = { id: `own-${++count}`, requestId, operation: "chat", model: "m", stream: false };
      return beginStory(stories, { ...start, ...caller }, () => time.ms);
    };
    return { time, stories, begin };
  }

  test("a flood of one client's removes none of others, whether they run, were answered or were refused", () => {
    const { time, stories, begin } = setUpWith(10);
    const [done, , denied] = ["answered", "running", "refused"].map((name) => begin(name, { keyId: "other" }));
    endStory(stories, done as RequestRecord, answered);
    endStory(stories, denied as RequestRecord, refused);
    const strange = begin("strange", { clientAddress: "198.51.100.1" });
    endStory(stories, strange, refused);
    time.ms++;
    for (let each = 0; each < 5_000; each++) {
      endStory(stories, begin(`flood-${each}`, { keyId: "k" }), refused);
      endStory(stories, begin(`flood-of-stranger-${each}`, { clientAddress: "192.0.2.1" }), refused);
    }
    const kept = ids(stories).filter((id) => !id.startsWith("flood"));
    expect(kept.sort()).toEqual(["answered", "refused", "running", "strange"]);
    expect(stories.size).toBeLessThanOrEqual(2 + 2 * 1_000);
    expect(stories.find("flood-4999")).toMatchObject({ outcome: "refused", keyId: "k" });
  });

  test("strangers remove none of known keys, whatever their number; nor do scanners of clients with a wrong key", () => {
    const { stories, begin } = setUpWith(10);
    endStory(stories, begin("known", { keyId: "k" }), refused);
    for (let each = 0; each < 3_000; each++) {
      endStory(stories, begin("one", { clientAddress: `10.0.${each >> 8}.${each & 255}` }), refused);
    }
    expect(stories.find("known")).toMatchObject({ keyId: "k" });
    endStory(stories, begin("wrong key", { clientAddress: "192.0.2.1" }), refused);
    for (let each = 0; each < 3_000; each++) {
      const scanner = begin("scanner", { clientAddress: `10.1.${each >> 8}.${each & 255}` });
      endStory(stories, scanner, { ...refused, status: 404, failure: "not_found", code: "not_found" });
    }
    expect(stories.find("wrong key")).toMatchObject({ clientAddress: "192.0.2.1" });
  });

  test("are told among the others, the newest first, and take nothing of their place", () => {
    const ends = fc.array(fc.constantFrom("answered", "refused", "running"), { maxLength: 60 });
    fc.assert(
      fc.property(ends, fc.integer({ min: 2, max: 20 }), (outcomes, most) => {
        const { time, stories, begin } = setUpWith(most);
        for (const [index, wanted] of outcomes.entries()) {
          time.ms++;
          const story = begin(`${index}`, { keyId: "k" });
          if (wanted !== "running") endStory(stories, story, wanted === "refused" ? refused : answered);
        }
        const told = ids(stories).map(Number);
        expect(told).toEqual([...told].sort((a, b) => b - a));
        const places = [...outcomes.keys()];
        const refusals = places.filter((place) => outcomes[place] === "refused");
        expect(told).toEqual(expect.arrayContaining(refusals));
        const others = places.filter((place) => outcomes[place] !== "refused");
        const kept = told.filter((place) => outcomes[place] !== "refused").reverse();
        expect(kept).toEqual(others.slice(others.length - kept.length));
        // A story that begins may need a place, which its refusal then gives back.
        expect(kept.length).toBeGreaterThanOrEqual(Math.min(others.length, most - 1));
      }),
    );
  });

  test("of a request that no format of its backends can say counts as the gateway's own", () => {
    const { stories, begin } = setUpWith(2);
    const one = begin("one", { keyId: "k" });
    one.attempt("a", "m").failure = "not_sent";
    endStory(stories, one, { ...refused, status: 400 });
    for (let each = 0; each < 5; each++) endStory(stories, begin("later", { keyId: "k" }), answered);
    expect(stories.find("one")).toMatchObject({ requestId: "one" });
  });
});

test("what another process tells keeps its steps until it is counted, however little memory is left", () => {
  const { stories } = setUp(100, 50_000);
  const steps = [1, 2].map((atMs) => {
    const attempt = {
      kind: "attempt",
      atMs,
      backend: `gpu-${atMs}`,
      model: "m",
      strategy: "x",
      scoreMeans: "y",
    } as const;
    const candidates = Array.from({ length: 32 }, (_, index) => ({ backend: `gpu-${index}` }));
    return { ...attempt, candidates, firstByteMs: 1, durationMs: 2, status: 503, failure: "status_503" };
  });
  const begun = (each: number) => {
    return { id: `own-${each}`, requestId: "r", startedAtMs: START, isKept: true, droppedSteps: 0, steps: [] };
  };
  const running = Array.from({ length: 100 }, (_, each) => stories.follow(undefined, begun(each)));
  for (const [each, record] of running.entries()) {
    stories.follow(record, { ...begun(each), status: 502, outcome: "failed", durationMs: 3, steps });
    expect(record.steps).toHaveLength(2);
    stories.end(record);
  }
  expect(stories.bytes).toBeLessThanOrEqual(50_000);
});
