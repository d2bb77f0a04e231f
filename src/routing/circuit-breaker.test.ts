// Every transition of a circuit, what counts and what does not, and arbitrary histories against a model of lists.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type CircuitPolicy, circuitBreakerSection, circuitPolicyFor } from "../config/sections/circuit-breaker.ts";
import type { StatusFailure, UpstreamFailure } from "../upstream/failure.ts";
import {
  CircuitBreaker,
  type CircuitOutcome,
  type CircuitState,
  classifyOutcome,
  INCIDENT_MS,
  WINDOW_MS,
} from "./circuit-breaker.ts";

function policyOf(more: Partial<CircuitPolicy> = {}): CircuitPolicy {
  return { ...circuitPolicyFor("b", circuitBreakerSection.schema.parse({})), ...more };
}

/** A breaker with a clock that stands until it is moved. */
function bench(more: Partial<CircuitPolicy> = {}) {
  const breaker = new CircuitBreaker(policyOf(more));
  let nowMs = 1_000_000;
  const bed = {
    breaker,
    state: () => breaker.state(nowMs),
    allows: () => breaker.allows(nowMs),
    opensInMs: () => breaker.opensInMs(nowMs),
    wait(durationMs: number): void {
      nowMs += durationMs;
    },
    admit: () => breaker.admit(nowMs),
    admitted(count: number): number[] {
      return Array.from({ length: count }, () => {
        const ticket = breaker.admit(nowMs);
        if (ticket === undefined) throw new Error("refused");
        return ticket;
      });
    },
    record: (ticket: number, outcome: CircuitOutcome) => breaker.record(ticket, outcome, nowMs),
    /** Requests one after another. */
    run(outcome: CircuitOutcome, count = 1): void {
      for (let index = 0; index < count; index++) bed.record(bed.admitted(1)[0]!, outcome);
    },
    /** Opened, and the timeout is over. */
    halfOpen(): void {
      bed.run("failure", breaker.policy.failure_threshold);
      bed.wait(breaker.policy.timeout);
      expect(bed.state()).toBe("half_open");
    },
  };
  return bed;
}

function status(code: number, retryAfterMs?: number): StatusFailure {
  return { kind: "status", status: code, body: new Uint8Array(), retryAfterMs, headers: {} };
}

describe("what the end of an attempt says about its backend", () => {
  const cases: [title: string, failure: UpstreamFailure | undefined, outcome: CircuitOutcome][] = [
    ["a good answer", undefined, "success"],
    ["no connection", { kind: "connect", message: "" }, "failure"],
    ["a broken connection", { kind: "reset", message: "" }, "failure"],
    ["an answer that is none", { kind: "invalid-response", message: "" }, "failure"],
    ["an error told in the stream", { kind: "told-in-stream" }, "failure"],
    ["a mistake of the client told in the stream", { kind: "told-in-stream", told: status(400) }, "neutral"],
    ["a rate limit told in the stream", { kind: "told-in-stream", told: status(429) }, "overload"],
    ["a timeout of connecting", { kind: "timeout", phase: "connect", message: "" }, "failure"],
    ["a timeout of the first byte", { kind: "timeout", phase: "first_byte", message: "" }, "failure"],
    ["a timeout between chunks", { kind: "timeout", phase: "between_chunks", message: "" }, "failure"],
    ["the timeout of the whole request", { kind: "timeout", phase: "request", message: "" }, "neutral"],
    ["a client that left", { kind: "aborted" }, "neutral"],
    ["400", status(400), "neutral"],
    ["401, of the gateway's own credential", status(401), "failure"],
    ["403, likewise", status(403), "failure"],
    ["404", status(404), "neutral"],
    ["408", status(408), "neutral"],
    ["429", status(429), "overload"],
    ["429 with Retry-After", status(429, 1_000), "overload"],
    ["500", status(500), "failure"],
    ["500 with Retry-After", status(500, 1_000), "failure"],
    ["501, which is not listed", status(501), "neutral"],
    ["502", status(502), "failure"],
    ["503", status(503), "failure"],
    ["503 with Retry-After", status(503, 1_000), "overload"],
    ["503 with Retry-After: 0", status(503, 0), "overload"],
    ["504", status(504), "failure"],
    ["529, which is not listed", status(529), "neutral"],
  ];
  test.each(cases)("%s", (_title, failure, outcome) => {
    expect(classifyOutcome(failure, policyOf())).toBe(outcome);
  });

  test("the list decides about server errors, and about nothing else", () => {
    const policy = { failure_status_codes: [400, 429, 501] };
    const outcomes = [400, 429, 500, 501].map((code) => classifyOutcome(status(code), policy));
    expect(outcomes).toEqual(["neutral", "overload", "neutral", "failure"]);
  });
});

describe("closed", () => {
  test("opens at the threshold of failures in a row", () => {
    const bed = bench();
    bed.run("failure", 4);
    expect(bed.state()).toBe("closed");
    bed.run("failure");
    expect(bed.state()).toBe("open");
    expect(bed.allows()).toBe(false);
    expect(bed.admit()).toBeUndefined();
  });

  test("a success begins the row anew", () => {
    const bed = bench({ minimum_requests: 100 });
    bed.run("failure", 4);
    bed.run("success");
    expect(bed.breaker.consecutiveFailures).toBe(0);
    bed.run("failure", 4);
    expect(bed.state()).toBe("closed");
  });

  test.each<CircuitOutcome>(["neutral", "overload"])("%s neither counts nor begins the row anew", (outcome) => {
    const bed = bench();
    bed.run(outcome, 100);
    expect(bed.breaker.consecutiveFailures).toBe(0);
    bed.run("failure", 4);
    bed.run(outcome, 100);
    expect(bed.state()).toBe("closed");
    bed.run("failure");
    expect(bed.state()).toBe("open");
  });

  test("admits any number at one time", () => {
    expect(bench().admitted(10_000)).toHaveLength(10_000);
  });
});

describe("the failure rate", () => {
  const patient = { failure_threshold: 1_000 };

  test("opens at its threshold once there are enough requests", () => {
    const bed = bench(patient);
    for (let round = 0; round < 4; round++) {
      bed.run("success");
      bed.run("failure");
    }
    bed.run("success");
    expect(bed.state()).toBe("closed");
    bed.run("failure");
    expect(bed.state()).toBe("open");
  });

  test("stays closed below it", () => {
    const bed = bench(patient);
    for (let round = 0; round < 100; round++) {
      bed.run("success", 2);
      bed.run("failure");
    }
    expect(bed.state()).toBe("closed");
  });

  test("is judged over the last minute only", () => {
    const bed = bench(patient);
    bed.run("failure", 9);
    bed.wait(WINDOW_MS);
    bed.run("failure", 9);
    expect(bed.state()).toBe("closed");
    bed.run("failure");
    expect(bed.state()).toBe("open");
  });

  test("old requests leave little by little", () => {
    const bed = bench(patient);
    for (let minute = 0; minute < 5; minute++) {
      bed.run("success", 60);
      for (let second = 0; second < 60; second += 1) {
        bed.wait(1_000);
        if (second % 2 === 0) bed.run("failure");
      }
    }
    expect(bed.state()).toBe("closed");
  });

  test("neutral outcomes and overload are no requests", () => {
    const bed = bench(patient);
    bed.run("neutral", 50);
    bed.run("overload", 50);
    bed.run("failure", 9);
    expect(bed.state()).toBe("closed");
    bed.run("failure");
    expect(bed.state()).toBe("open");
  });
});

describe("failures that arrive together", () => {
  test("count once, however many, and do not open the circuit", () => {
    const bed = bench();
    for (const ticket of bed.admitted(1_000)) bed.record(ticket, "failure");
    expect(bed.breaker.consecutiveFailures).toBe(1);
    expect(bed.state()).toBe("closed");
  });

  test("a failure of a request that began after them is news, and shows that the backend is not back", () => {
    const bed = bench();
    for (const ticket of bed.admitted(1_000)) bed.record(ticket, "failure");
    bed.run("failure");
    expect(bed.state()).toBe("open");
  });

  test("without the rate each wave counts once", () => {
    const bed = bench({ minimum_requests: 100_000 });
    for (let wave = 1; wave <= 5; wave++) {
      expect(bed.state()).toBe("closed");
      for (const ticket of bed.admitted(50)) bed.record(ticket, "failure");
    }
    expect(bed.state()).toBe("open");
  });

  test("failures that trickle in are news each, although their requests began before the first of them", () => {
    const bed = bench({ minimum_requests: 100_000 });
    for (const [index, ticket] of bed.admitted(5).entries()) {
      expect(bed.state()).toBe("closed");
      expect(bed.breaker.consecutiveFailures).toBe(index);
      bed.record(ticket, "failure");
      bed.wait(INCIDENT_MS + 1);
    }
    expect(bed.state()).toBe("open");
  });

  test("what was under way when the circuit opened says nothing more", () => {
    const bed = bench({ timeout: 10_000 });
    const underWay = bed.admitted(100);
    bed.run("failure", 5);
    bed.wait(4_000);
    for (const ticket of underWay.splice(0, 30)) bed.record(ticket, "failure");
    for (const ticket of underWay.splice(0, 30)) bed.record(ticket, "success");
    expect(bed.state()).toBe("open");
    expect(bed.opensInMs()).toBe(6_000);
    bed.wait(6_000);
    const [probe] = bed.admitted(1);
    for (const ticket of underWay.splice(0, 20)) bed.record(ticket, "failure");
    expect([bed.state(), bed.breaker.probes]).toEqual(["half_open", 1]);
    bed.record(probe!, "success");
    bed.run("success");
    expect(bed.state()).toBe("closed");
    for (const ticket of underWay) bed.record(ticket, "failure");
    expect([bed.state(), bed.breaker.consecutiveFailures]).toEqual(["closed", 0]);
  });
});

describe("open", () => {
  test("becomes half open when the timeout has passed, not before", () => {
    const bed = bench({ timeout: 10_000 });
    bed.run("failure", 5);
    expect(bed.opensInMs()).toBe(10_000);
    bed.wait(9_999);
    expect([bed.state(), bed.allows(), bed.admit()]).toEqual(["open", false, undefined]);
    bed.wait(1);
    expect([bed.state(), bed.allows(), bed.opensInMs()]).toEqual(["half_open", true, 0]);
    expect(bed.admit()).toBeDefined();
  });

  test("the panic rule lets trials in before the timeout, as many as half open, and where the policy has it", () => {
    for (const panic of [true, false]) {
      const breaker = new CircuitBreaker(policyOf({ failure_threshold: 1, half_open_max_requests: 2, panic }));
      breaker.record(breaker.admit(0) as number, "failure", 0);
      expect([breaker.allows(1), breaker.allowsInPanic(1)]).toEqual([false, panic]);
      const tickets = [1, 2, 3].map((nowMs) => breaker.admit(nowMs, true));
      expect(tickets.map((ticket) => ticket !== undefined)).toEqual(
        panic ? [true, true, false] : [false, false, false],
      );
      if (!panic) continue;
      breaker.record(tickets[0] as number, "failure", 4);
      expect(breaker.state(5)).toBe("open");
      breaker.record(tickets[1] as number, "success", 6); // of before the circuit opened again
      expect(breaker.state(7)).toBe("open");
    }
  });

  test("asking changes nothing", () => {
    const bed = bench();
    bed.halfOpen();
    for (let index = 0; index < 10; index++) bed.allows();
    expect(bed.breaker.entered).toBe("open");
    expect(bed.breaker.probes).toBe(0);
  });

  test("its timeout can be ended early, which closes nothing", () => {
    const bed = bench();
    bed.run("failure", 5);
    bed.breaker.endTimeout(1_000_000);
    expect(bed.state()).toBe("half_open");
  });

  test.each(["closed", "half_open"] as const)("ending the timeout does nothing while %s", (state) => {
    const bed = bench();
    if (state === "half_open") {
      bed.halfOpen();
      bed.admitted(1);
    }
    bed.breaker.endTimeout(0);
    expect([bed.state(), bed.breaker.entered]).toEqual([state, state]);
  });
});

describe("half open", () => {
  test("admits so many at one time, and one more for each that has ended", () => {
    const bed = bench({ success_threshold: 10 });
    bed.halfOpen();
    const tickets = bed.admitted(3);
    expect([bed.allows(), bed.admit()]).toEqual([false, undefined]);
    bed.record(tickets[0]!, "success");
    bed.admitted(1);
    expect([bed.allows(), bed.admit()]).toEqual([false, undefined]);
  });

  test("closes after enough successes", () => {
    const bed = bench();
    bed.halfOpen();
    bed.run("success");
    expect(bed.state()).toBe("half_open");
    bed.run("success");
    expect(bed.state()).toBe("closed");
  });

  test("closes one after another where only one is admitted at one time", () => {
    const bed = bench({ half_open_max_requests: 1, success_threshold: 4 });
    bed.halfOpen();
    bed.run("success", 4);
    expect(bed.state()).toBe("closed");
  });

  test("one failure opens again for the whole timeout, successes before it are forgotten", () => {
    const bed = bench({ timeout: 10_000 });
    bed.halfOpen();
    bed.run("success");
    bed.run("failure");
    expect([bed.state(), bed.opensInMs()]).toEqual(["open", 10_000]);
    bed.wait(10_000);
    bed.run("success");
    expect(bed.state()).toBe("half_open");
  });

  test.each<CircuitOutcome>(["neutral", "overload"])("%s gives the place back without a verdict", (outcome) => {
    const bed = bench();
    bed.halfOpen();
    bed.run(outcome, 100);
    expect([bed.state(), bed.breaker.probes]).toEqual(["half_open", 0]);
    bed.run("success", 2);
    expect(bed.state()).toBe("closed");
  });

  test("trials that fail together open once, and say nothing in the next trial", () => {
    const bed = bench({ timeout: 10_000 });
    bed.halfOpen();
    const [first, second, third] = bed.admitted(3);
    bed.record(first!, "failure");
    bed.wait(5_000);
    bed.record(second!, "failure");
    expect(bed.opensInMs()).toBe(5_000);
    bed.wait(5_000);
    bed.admitted(1);
    bed.record(third!, "failure");
    expect([bed.state(), bed.breaker.probes]).toEqual(["half_open", 1]);
  });

  test("begins with a clean slate when it closes", () => {
    const bed = bench();
    bed.halfOpen();
    bed.run("success", 2);
    bed.run("failure", 4);
    expect(bed.state()).toBe("closed");
    bed.run("failure");
    expect(bed.state()).toBe("open");
  });
});

/** The same rules over plain lists: everything is derived anew from what happened in the present state. */
class Model {
  state: CircuitState = "closed";
  stateNumber = 0;
  openUntilMs = 0;
  granted = 0;
  ended: { outcome: CircuitOutcome; atMs: number; startedStep: number; step: number }[] = [];
  readonly policy: CircuitPolicy;

  constructor(policy: CircuitPolicy) {
    this.policy = policy;
  }

  enter(state: CircuitState): void {
    this.state = state;
    this.stateNumber++;
    this.granted = 0;
    this.ended = [];
  }

  get out(): number {
    return this.granted - this.ended.length;
  }

  advance(nowMs: number): void {
    if (this.state === "open" && nowMs >= this.openUntilMs) this.enter("half_open");
  }

  admits(): boolean {
    if (this.state === "half_open") return this.out < this.policy.half_open_max_requests;
    return this.state === "closed";
  }

  end(stateNumber: number, startedStep: number, outcome: CircuitOutcome, atMs: number, step: number): void {
    if (stateNumber !== this.stateNumber) return;
    this.ended.push({ outcome, atMs, startedStep, step });
    if (this.state === "half_open") {
      if (outcome === "failure") this.open(atMs);
      else if (this.count("success") >= this.policy.success_threshold) this.enter("closed");
    } else if (outcome === "failure" && this.isFailing(atMs)) this.open(atMs);
  }

  open(atMs: number): void {
    this.enter("open");
    this.openUntilMs = atMs + this.policy.timeout;
  }

  count(outcome: CircuitOutcome): number {
    return this.ended.filter((end) => end.outcome === outcome).length;
  }

  /** The first failures of incidents. */
  incidents(): Model["ended"] {
    const firsts: Model["ended"] = [];
    for (const end of this.ended) {
      if (end.outcome !== "failure") continue;
      const present = firsts.at(-1);
      const isPart = present && end.startedStep < present.step && end.atMs - present.atMs <= INCIDENT_MS;
      if (!isPart) firsts.push(end);
    }
    return firsts;
  }

  consecutive(): number {
    const lastSuccess = this.ended.findLast((end) => end.outcome === "success")?.step ?? -1;
    return this.incidents().filter((first) => first.step > lastSuccess).length;
  }

  isFailing(nowMs: number): boolean {
    if (this.consecutive() >= this.policy.failure_threshold) return true;
    const bucketMs = WINDOW_MS / 12;
    const isRecent = (end: { atMs: number }) => Math.floor(nowMs / bucketMs) - Math.floor(end.atMs / bucketMs) < 12;
    const recent = this.ended.filter((end) => isRecent(end) && ["success", "failure"].includes(end.outcome));
    const failures = recent.filter((end) => end.outcome === "failure").length;
    return (
      this.incidents().filter(isRecent).length >= 2 &&
      recent.length >= this.policy.minimum_requests &&
      failures / recent.length >= this.policy.failure_rate_threshold
    );
  }
}

describe("any history", () => {
  const policy = fc.record({
    failure_threshold: fc.integer({ min: 1, max: 6 }),
    failure_rate_threshold: fc.constantFrom(0.2, 0.5, 0.9, 1),
    minimum_requests: fc.integer({ min: 1, max: 12 }),
    timeout: fc.constantFrom(1, 500, 5_000, 60_000),
    half_open_max_requests: fc.integer({ min: 1, max: 4 }),
    success_threshold: fc.integer({ min: 1, max: 6 }),
  });
  const outcome = fc.constantFrom<CircuitOutcome>("success", "failure", "failure", "overload", "neutral");
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant("admit" as const), count: fc.integer({ min: 1, max: 5 }) }) },
    { weight: 5, arbitrary: fc.record({ kind: fc.constant("end" as const), which: fc.nat(), outcome }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant("wait" as const),
        durationMs: fc.oneof(fc.constantFrom(1, 500, 1_000, 1_001, 5_000, 60_000), fc.nat({ max: 70_000 })),
      }),
    },
  );

  test("agrees with the model, and makes only the transitions of the specification", () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(
        policy,
        fc.array(step, { maxLength: 120, size: "max" }),
        fc.integer({ min: -1e5, max: 1e9 }),
        (own, steps, atMs) => {
          const settings = policyOf(own);
          const breaker = new CircuitBreaker(settings);
          const model = new Model(settings);
          const open: { ticket: number; stateNumber: number; startedStep: number }[] = [];
          let nowMs = atMs;
          let stepNumber = 0;
          let entered = breaker.entered;
          const check = () => {
            model.advance(nowMs);
            expect(breaker.state(nowMs)).toBe(model.state);
            expect(breaker.allows(nowMs)).toBe(model.admits());
            expect(breaker.opensInMs(nowMs)).toBe(model.state === "open" ? model.openUntilMs - nowMs : 0);
            if (model.state === "closed") expect(breaker.consecutiveFailures).toBe(model.consecutive());
            const probes = open.filter(({ stateNumber }) => stateNumber === model.stateNumber).length;
            if (model.state === "half_open") expect(breaker.probes).toBe(probes);
            expect(breaker.probes).toBeLessThanOrEqual(settings.half_open_max_requests);
            if (breaker.entered !== entered) {
              seen.add(`${entered} -> ${breaker.entered}`);
              entered = breaker.entered;
            }
          };
          for (const each of steps) {
            if (each.kind === "wait") nowMs += each.durationMs;
            for (let count = each.kind === "admit" ? each.count : 0; count > 0; count--) {
              stepNumber++;
              const ticket = breaker.admit(nowMs);
              expect(ticket !== undefined).toBe(model.admits());
              if (ticket === undefined) continue;
              model.granted++;
              open.push({ ticket, stateNumber: model.stateNumber, startedStep: stepNumber });
            }
            if (each.kind === "end" && open.length > 0) {
              stepNumber++;
              const [ended] = open.splice(-1 - (each.which % Math.min(open.length, 8)), 1);
              breaker.record(ended!.ticket, each.outcome, nowMs);
              model.end(ended!.stateNumber, ended!.startedStep, each.outcome, nowMs, stepNumber);
            }
            check();
          }
        },
      ),
      { numRuns: 1_000 },
    );
    expect([...seen].sort()).toEqual([
      "closed -> open",
      "half_open -> closed",
      "half_open -> open",
      "open -> half_open",
    ]);
  });

  test("a storm of failures opens at most once, and never prolongs", () => {
    fc.assert(
      fc.property(
        policy,
        fc.integer({ min: 1, max: 200 }),
        fc.array(fc.nat({ max: 200 }), { size: "max", maxLength: 200 }),
        (own, size, waits) => {
          const bed = bench({ ...own, timeout: 60_000 });
          const tickets = bed.admitted(size);
          let openings = 0;
          let openUntilMs = 0;
          let spentMs = 0;
          for (const [index, ticket] of tickets.entries()) {
            const waitMs = waits[index] ?? 0;
            if (spentMs + waitMs < 60_000) {
              bed.wait(waitMs);
              spentMs += waitMs;
            }
            const before = bed.state();
            bed.record(ticket, "failure");
            if (before === "closed" && bed.state() === "open") {
              openings++;
              openUntilMs = spentMs + 60_000;
            }
            if (bed.state() === "open") expect(bed.opensInMs()).toBe(openUntilMs - spentMs);
          }
          expect(openings).toBeLessThanOrEqual(1);
          if (own.failure_threshold === 1) expect(openings).toBe(1);
          if (own.failure_threshold > 1 && spentMs <= INCIDENT_MS) expect(openings).toBe(0);
        },
      ),
    );
  });
});
