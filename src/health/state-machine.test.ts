import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { HealthState } from "../backends/board.ts";
import {
  applyVerdict,
  type HealthPolicy,
  type HealthRecord,
  initialHealth,
  type ProbeVerdict,
} from "./state-machine.ts";

const POLICY: HealthPolicy = {
  interval: 30_000,
  warmup_check_interval: 1_000,
  max_warmup_duration: 300_000,
  unhealthy_threshold: 3,
  healthy_threshold: 2,
};

function inState(state: HealthState, more: Partial<HealthRecord> = {}): HealthRecord {
  return { ...initialHealth(0), state, ...more };
}

/** Applies one verdict a second. */
function run(verdicts: readonly ProbeVerdict[], policy = POLICY): HealthRecord {
  let record = initialHealth(0);
  verdicts.forEach((verdict, index) => {
    record = applyVerdict(record, verdict, policy, index * 1_000).record;
  });
  return record;
}

describe("the specification's table", () => {
  const rows: [from: HealthState, ProbeVerdict, to: HealthState, nextCheckInMs: number][] = [
    ["unknown", "healthy", "ready", 30_000],
    ["unknown", "warming", "warming_up", 1_000],
    ["unknown", "failed", "down", 1_000],
    ["ready", "healthy", "ready", 30_000],
    ["ready", "warming", "warming_up", 1_000],
    ["ready", "failed", "ready", 1_000],
    ["warming_up", "healthy", "ready", 30_000],
    ["warming_up", "warming", "warming_up", 1_000],
    ["warming_up", "failed", "warming_up", 1_000],
    ["down", "healthy", "ready", 30_000],
    ["down", "warming", "warming_up", 1_000],
    ["down", "failed", "down", 1_000],
    ["unhealthy", "healthy", "unhealthy", 250],
    ["unhealthy", "warming", "unhealthy", 1_000],
    ["unhealthy", "failed", "unhealthy", 1_000],
  ];
  test.each(rows)("%s, a check is %s: %s, next check in %d ms", (from, verdict, to, nextCheckInMs) => {
    const next = applyVerdict(inState(from), verdict, POLICY, 5_000);
    expect(next.record.state).toBe(to);
    expect(next.nextCheckInMs).toBe(nextCheckInMs);
  });

  test.each(["unknown", "ready", "warming_up", "down", "unhealthy"] as const)(
    "%s becomes unhealthy with the last failure of the threshold",
    (state) => {
      const { record } = applyVerdict(inState(state, { consecutiveFailures: 2 }), "failed", POLICY, 0);
      expect(record.state).toBe("unhealthy");
    },
  );

  test("unhealthy becomes ready with the last success of the threshold", () => {
    const { record } = applyVerdict(inState("unhealthy", { consecutiveSuccesses: 1 }), "healthy", POLICY, 0);
    expect(record.state).toBe("ready");
  });

  test("a warm-up that exceeds its duration is unhealthy, whether the backend still answers or not", () => {
    for (const verdict of ["warming", "failed"] as const) {
      expect(applyVerdict(inState("warming_up"), verdict, POLICY, 299_999).record.state).toBe("warming_up");
      expect(applyVerdict(inState("warming_up"), verdict, POLICY, 300_000).record.state).toBe("unhealthy");
    }
    expect(applyVerdict(inState("warming_up"), "healthy", POLICY, 400_000).record.state).toBe("ready");
  });
});

describe("sequences", () => {
  test("a threshold of one lets the first failure decide", () => {
    expect(run(["failed"], { ...POLICY, unhealthy_threshold: 1 }).state).toBe("unhealthy");
  });

  test("failures that are not in a row never make a ready backend unhealthy", () => {
    expect(run(["healthy", "failed", "failed", "healthy", "failed", "failed"]).state).toBe("ready");
  });

  test("an engine that is refused, loads and comes up", () => {
    expect(run(["failed", "warming"]).state).toBe("warming_up");
    expect(run(["failed", "warming", "healthy"]).state).toBe("ready");
  });

  test("a single success does not heal an unhealthy backend, and a failure begins the count anew", () => {
    const dead = ["failed", "failed", "failed"] as const;
    expect(run([...dead, "healthy"]).state).toBe("unhealthy");
    expect(run([...dead, "healthy", "failed", "healthy"]).state).toBe("unhealthy");
    expect(run([...dead, "healthy", "healthy"]).state).toBe("ready");
  });

  test("frequent checks of an unhealthy backend end after the longest warm-up and return when it loads again", () => {
    const dead = inState("unhealthy", { consecutiveFailures: 9, lastVerdict: "failed" });
    expect(applyVerdict(dead, "failed", POLICY, 299_999).nextCheckInMs).toBe(1_000);
    const late = applyVerdict(dead, "failed", POLICY, 300_000);
    expect(late.nextCheckInMs).toBe(30_000);
    const loading = applyVerdict(late.record, "warming", POLICY, 330_000);
    expect(loading.record.state).toBe("unhealthy");
    expect(loading.nextCheckInMs).toBe(1_000);
  });

  test("the check that ends a warm-up is not later than its longest duration", () => {
    const policy = { ...POLICY, max_warmup_duration: 1_500 };
    const first = applyVerdict(initialHealth(0), "warming", policy, 0);
    const second = applyVerdict(first.record, "warming", policy, 1_000);
    expect(second.nextCheckInMs).toBe(500);
    expect(applyVerdict(second.record, "warming", policy, 1_500).record.state).toBe("unhealthy");
  });

  test("a short interval is not lengthened by the interval of warm-ups", () => {
    expect(applyVerdict(initialHealth(0), "failed", { ...POLICY, interval: 100 }, 0).nextCheckInMs).toBe(100);
  });
});

describe("properties", () => {
  const policies = fc.record({
    interval: fc.integer({ min: 1, max: 100_000 }),
    warmup_check_interval: fc.integer({ min: 1, max: 100_000 }),
    max_warmup_duration: fc.integer({ min: 1, max: 1_000_000 }),
    unhealthy_threshold: fc.integer({ min: 1, max: 6 }),
    healthy_threshold: fc.integer({ min: 1, max: 6 }),
  });
  const steps = fc.array(
    fc.record({
      verdict: fc.constantFrom<ProbeVerdict>("healthy", "warming", "failed"),
      waitMs: fc.integer({ min: 0, max: 500_000 }),
    }),
    { maxLength: 60 },
  );

  test("thresholds, counters and intervals hold in every sequence", () => {
    fc.assert(
      fc.property(policies, steps, (policy, sequence) => {
        let record = initialHealth(0);
        let nowMs = 0;
        let failures = 0;
        let successes = 0;
        for (const { verdict, waitMs } of sequence) {
          nowMs += waitMs;
          const before = record;
          const next = applyVerdict(before, verdict, policy, nowMs);
          record = next.record;
          failures = verdict === "failed" ? failures + 1 : 0;
          successes = verdict === "healthy" ? successes + 1 : 0;
          expect(record.consecutiveFailures).toBe(failures);
          expect(record.consecutiveSuccesses).toBe(successes);
          expect(record.state).not.toBe("unknown");
          if (failures >= policy.unhealthy_threshold) expect(record.state).toBe("unhealthy");
          if (successes >= policy.healthy_threshold) expect(record.state).toBe("ready");
          if (verdict === "warming") expect(record.state).not.toBe("ready");
          if (before.state === "unhealthy" && record.state !== "unhealthy") {
            expect(successes).toBeGreaterThanOrEqual(policy.healthy_threshold);
          }
          if (record.state === "down") expect(["unknown", "down"]).toContain(before.state);
          expect(next.nextCheckInMs).toBeGreaterThanOrEqual(1);
          expect(next.nextCheckInMs).toBeLessThanOrEqual(policy.interval);
        }
      }),
      { seed: 20261121 },
    );
  });
});
