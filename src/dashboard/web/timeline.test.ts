// One request as rows on a line of time.

import { describe, expect, test } from "bun:test";
import type { AttemptRow, RequestStep, RequestStory } from "../../admin/request-schemas.ts";
import { ticksOf, timelineOf } from "./timeline.ts";

function story(
  totalMs: number,
  steps: RequestStep[],
  more: Partial<RequestStory> = {},
): Parameters<typeof timelineOf>[0] {
  const timings = {
    total_ms: totalMs,
    gateway_ms: null,
    backend_ms: null,
    first_token_ms: null,
    first_byte_ms: null,
    until_first_attempt_ms: null,
    tokens_per_second: null,
    waiting_ms: 0,
  };
  return { timings, steps, cache: null, finished: true, outcome: "succeeded", ...more };
}

function attempt(row: Pick<AttemptRow, "at_ms" | "backend" | "outcome" | "duration_ms" | "first_byte_ms">): AttemptRow {
  const none = { strategy: null, score_means: null, failure: null, detail: null, retry_after_ms: null, status: null };
  return { kind: "attempt", text: null, model: "m", candidates: [], in_panic: false, ...none, ...row };
}

const failed = attempt({ at_ms: 10, backend: "a", outcome: "failed", duration_ms: 90, first_byte_ms: null });
const answered = attempt({ at_ms: 150, backend: "b", outcome: "succeeded", duration_ms: 50, first_byte_ms: 20 });

test("attempts, waits and moments lie where they were", () => {
  const wait: RequestStep = { kind: "wait", text: null, at_ms: 100, duration_ms: 50, reason: "retry", class: null };
  const { rows } = timelineOf(story(200, [failed, wait, answered]));
  expect(rows.map(({ label, tone, from, length, time }) => [label, tone, from, length, time])).toEqual([
    ["a", "bad", 0.05, 0.45, "90 ms"],
    ["wait: retry", "wait", 0.5, 0.25, "50 ms"],
    ["b", "good", 0.75, 0.25, "50 ms"],
    ["end", "good", 1, 0, "at 200 ms"],
  ]);
  expect(rows.map(({ untilFirstByte }) => untilFirstByte)).toEqual([undefined, undefined, 0.4, undefined]);
  expect(rows.map(({ step }) => step)).toEqual([0, 1, 2, undefined]);
});

test("the cache, a stand-in, a takeover and a refusal are moments", () => {
  const { rows } = timelineOf(
    story(
      100,
      [
        { kind: "fallback", text: null, at_ms: 10, from: "m", to: "n", reason: "x" },
        { kind: "takeover", text: null, at_ms: 50, from: "a", to: "b", reason: "reset" },
        { kind: "refused", text: null, at_ms: 100, reason: "x" },
      ],
      { cache: { decision: "MISS", reason: null }, outcome: "failed" },
    ),
  );
  expect(rows.map(({ label, tone, length }) => [label, tone, length])).toEqual([
    ["cache miss", "note", 0],
    ["fallback to n", "note", 0],
    ["takeover to b", "note", 0],
    ["refused", "bad", 0],
    ["end", "bad", 0],
  ]);
});

test("what goes on ends at the present, and has no end", () => {
  const running = attempt({
    at_ms: 40,
    backend: "a",
    outcome: "running",
    duration_ms: null,
    first_byte_ms: null,
  });
  const { rows } = timelineOf(story(100, [running], { finished: false, outcome: "running" }));
  expect(rows).toMatchObject([{ tone: "wait", from: 0.4, length: 0.6 }]);
});

test("nothing leaves the line, whatever the numbers are", () => {
  const odd = { ...answered, at_ms: 500, duration_ms: 9_000, first_byte_ms: 20_000 };
  const { rows } = timelineOf(story(0, [odd]));
  for (const { from, length, untilFirstByte = 0 } of rows) {
    expect(from).toBeWithin(0, 1.000_001);
    expect(from + length).toBeLessThanOrEqual(1.000_001);
    expect(untilFirstByte).toBeLessThanOrEqual(1);
  }
});

describe("ticks", () => {
  test.each([
    [102, ["0", "50 ms", "100 ms"]],
    [4_000, ["0", "1 s", "2 s", "3 s", "4 s"]],
    [0.4, ["0", "0.1 ms", "0.2 ms", "0.3 ms", "0.4 ms"]],
    [180_000, ["0", "50 s", "1.67 min", "2.5 min"]],
  ])("of %d ms", (totalMs, labels) => expect(ticksOf(totalMs).map(({ label }) => label)).toEqual(labels));

  test("are few, and on the line", () => {
    for (let totalMs = 0.1; totalMs < 1e7; totalMs *= 1.37) {
      const ticks = ticksOf(totalMs);
      expect(ticks.length).toBeWithin(2, 6);
      expect(ticks.every(({ at }) => at >= 0 && at <= 1.000_001)).toBe(true);
    }
  });
});
