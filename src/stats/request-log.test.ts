import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { explainRequest, RequestLog } from "./request-log.ts";

const START = Date.UTC(2026, 4, 1, 12);

function setUp(maxEntries?: number, maxBytes?: number) {
  const time = { ms: 1000 };
  const log = new RequestLog({
    clock: { now: () => time.ms, wallTime: () => START + time.ms },
    ...(maxEntries !== undefined && { maxEntries }),
    ...(maxBytes !== undefined && { maxBytes }),
  });
  const begin = (requestId: string, model = "m") =>
    log.begin({ requestId, operation: "chat", model, stream: true, startedAtMs: time.ms });
  return { time, log, begin };
}

describe("explain one request", () => {
  test("tells every step with its time", () => {
    const { time, log, begin } = setUp();
    const story = begin("r1");
    story.cache = "MISS";
    time.ms += 1;
    const first = story.attempt("a", "m", "least_latency", [
      { backend: "a", score: 12, in_flight: 1 },
      { backend: "b", excluded: "circuit_open" },
    ]);
    time.ms += 20;
    story.attemptEnded(first, "status_503", 503);
    story.add({ kind: "wait", atMs: story.sinceStartMs, durationMs: 50, reason: "retry" });
    time.ms += 50;
    story.add({ kind: "fallback", atMs: story.sinceStartMs, from: "m", to: "m2", reason: "error_code_503" });
    const second = story.attempt("b", "m2");
    expect(explainRequest(log, "r1")).toMatchObject({ finished: false, status: null, timings: { total_ms: 71 } });
    time.ms += 30;
    second.firstByteMs = 30;
    time.ms += 100;
    story.attemptEnded(second, undefined, 200);
    const end = { status: 200, durationMs: 201, backend: "b", answeredBy: "m2", keyId: "k", firstByteMs: 102 };
    log.finish(story, end);
    time.ms += 5000;
    expect(explainRequest(log, "r1")).toEqual({
      request_id: "r1",
      started_at: new Date(START + 1000).toISOString(),
      finished: true,
      operation: "chat",
      model: "m",
      answered_by: "m2",
      stream: true,
      key_id: "k",
      backend: "b",
      status: 200,
      failure: null,
      cache: { decision: "MISS", reason: null },
      attempts: 2,
      timings: { total_ms: 201, first_byte_ms: 102, waiting_ms: 50 },
      steps: [
        {
          kind: "attempt",
          at_ms: 1,
          backend: "a",
          model: "m",
          strategy: "least_latency",
          candidates: [
            { backend: "a", score: 12, in_flight: 1 },
            { backend: "b", excluded: "circuit_open" },
          ],
          outcome: "failed",
          failure: "status_503",
          status: 503,
          duration_ms: 20,
          first_byte_ms: null,
        },
        { kind: "wait", at_ms: 21, duration_ms: 50, reason: "retry" },
        { kind: "fallback", at_ms: 71, from: "m", to: "m2", reason: "error_code_503" },
        {
          kind: "attempt",
          at_ms: 71,
          backend: "b",
          model: "m2",
          strategy: null,
          candidates: [],
          outcome: "succeeded",
          failure: null,
          status: 200,
          duration_ms: 130,
          first_byte_ms: 30,
        },
      ],
      steps_dropped: 0,
    });
  });

  test("an unknown request is 404", () => {
    const { log } = setUp();
    expect(() => explainRequest(log, "r1")).toThrow("X-Request-ID");
  });

  test("of several with one id the newest is told", () => {
    const { log, begin } = setUp();
    begin("r1", "old");
    begin("r1", "new");
    expect(explainRequest(log, "r1")).toMatchObject({ model: "new" });
  });

  test("never holds more than it may, in whatever order requests end", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ steps: fc.nat(100), endsAfter: fc.nat(20) }), { maxLength: 200 }),
        fc.integer({ min: 1, max: 30 }),
        fc.integer({ min: 1000, max: 50_000 }),
        (requests, maxEntries, maxBytes) => {
          const { log, begin } = setUp(maxEntries, maxBytes);
          const running: (() => void)[][] = [];
          requests.forEach(({ steps, endsAfter }, index) => {
            const story = begin(`r${index}`);
            const end = () => {
              for (let step = 0; step < steps; step++) story.attempt("a", "m", "random", [{ backend: "a" }]);
              log.finish(story, { status: 200, durationMs: 1 });
            };
            const sameTime = running[index + endsAfter] ?? [];
            running[index + endsAfter] = [...sameTime, end];
            for (const finish of running[index] ?? []) finish();
            expect(log.size).toBeLessThanOrEqual(maxEntries);
            expect(log.size === 1 || log.bytes <= maxBytes).toBe(true);
          });
          for (const ends of running.slice(requests.length)) for (const finish of ends ?? []) finish();
          expect(log.size === 1 || log.bytes <= maxBytes).toBe(true);
          expect(log.bytes).toBeGreaterThanOrEqual(0);
          const kept = requests.map((_, index) => log.find(`r${index}`)).filter((story) => story !== undefined);
          expect(kept.length).toBe(log.size);
          expect(kept.reduce((sum, { weighedBytes }) => sum + weighedBytes, 0)).toBe(log.bytes);
        },
      ),
    );
  });

  test("a request with endless steps is cut, and says so", () => {
    const { log, begin } = setUp();
    const story = begin("r1");
    for (let step = 0; step < 100; step++) story.add({ kind: "refused", atMs: 0, reason: "x" });
    expect(explainRequest(log, "r1")).toMatchObject({ steps: { length: 64 }, steps_dropped: 36 });
  });
});
