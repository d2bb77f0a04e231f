// The circuits of several backends: permits that are settled once, overrides, and what is forgotten.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { circuitBreakerSection } from "../config/sections/circuit-breaker.ts";
import type { CircuitOutcome } from "./circuit-breaker.ts";
import { createCircuits, type Permit } from "./circuits.ts";

type Input = Parameters<typeof circuitBreakerSection.schema.parse>[0];

function bench(input: Input = {}) {
  let nowMs = 5_000;
  let looks = 0;
  const changes: string[] = [];
  const circuits = createCircuits({
    settings: circuitBreakerSection.schema.parse(input),
    now: () => {
      looks++;
      return nowMs;
    },
    changed: ({ backend, from, to }) => void changes.push(`${backend}: ${from} -> ${to}`),
  });
  return {
    circuits,
    changes,
    looks: () => looks,
    wait(durationMs: number): void {
      nowMs += durationMs;
    },
    run(name: string, outcome: CircuitOutcome, count = 1): void {
      for (let index = 0; index < count; index++) circuits.acquire(name)?.settle(outcome);
    },
  };
}

describe("circuits", () => {
  test("what workers are told is the state now: that the wait of an open circuit is over is news to them", () => {
    const { circuits, run, wait } = bench({ failure_threshold: 1, timeout: "30s" });
    run("a", "failure");
    expect(circuits.view("a")).toMatchObject({ state: "open", opensInMs: 30_000 });
    wait(30_000);
    expect(circuits.state("a")).toBe("half_open");
    expect(circuits.view("a")).toMatchObject({ state: "half_open", opensInMs: 0 });
  });

  test("a backend has its own", () => {
    const { circuits, run } = bench();
    run("a", "failure", 5);
    expect(["a", "b"].map((name) => circuits.state(name))).toEqual(["open", "closed"]);
    expect(["a", "b"].map((name) => circuits.allows(name))).toEqual([false, true]);
    expect(circuits.acquire("a")).toBeUndefined();
    expect(circuits.acquire("b")).toBeDefined();
  });

  test("one life, with every change told", () => {
    const { circuits, changes, run, wait } = bench({ timeout: "10s" });
    run("a", "failure", 5);
    expect(circuits.retryAfterMs("a")).toBe(10_000);
    expect([circuits.troubledForMs("a"), circuits.troubledForMs("b")]).toEqual([0, undefined]);
    wait(10_000);
    expect(circuits.troubledForMs("a")).toBe(10_000);
    expect([circuits.state("a"), circuits.allows("a"), circuits.retryAfterMs("a")]).toEqual(["half_open", true, 0]);
    run("a", "failure");
    wait(10_000);
    run("a", "success", 2);
    expect(circuits.state("a")).toBe("closed");
    expect(changes).toEqual([
      "a: closed -> open",
      "a: open -> half_open",
      "a: half_open -> open",
      "a: open -> half_open",
      "a: half_open -> closed",
    ]);
  });

  test("only the first settlement of a permit counts", () => {
    const { circuits, run, wait } = bench({ half_open_max_requests: 2 });
    run("a", "failure", 5);
    wait(60_000);
    const permits = [circuits.acquire("a"), circuits.acquire("a")] as Permit[];
    expect(circuits.allows("a")).toBe(false);
    permits[0]?.settle("success");
    permits[0]?.settle("success");
    permits[0]?.settle("failure");
    expect(circuits.state("a")).toBe("half_open");
    expect(circuits.acquire("a")).toBeDefined();
    expect(circuits.acquire("a")).toBeUndefined();
  });

  test("a permit says whether it tries the backend", () => {
    const { circuits, run, wait } = bench();
    expect(circuits.acquire("a")?.isProbe).toBe(false);
    run("a", "failure", 5);
    wait(60_000);
    expect(circuits.acquire("a")?.isProbe).toBe(true);
  });

  test("a client that leaves gives the place back", () => {
    const { circuits, run, wait } = bench({ half_open_max_requests: 1 });
    run("a", "failure", 5);
    wait(60_000);
    for (let index = 0; index < 10; index++) {
      const permit = circuits.acquire("a");
      expect(circuits.allows("a")).toBe(false);
      permit?.settle(circuits.outcomeOf("a", { kind: "aborted" }));
      expect([circuits.state("a"), circuits.allows("a")]).toEqual(["half_open", true]);
    }
  });

  test("the end of a trial can be waited for, as long as all places are taken", async () => {
    const { circuits, run, wait } = bench({ half_open_max_requests: 1, success_threshold: 2 });
    expect(circuits.trialEnd("a")).toBeUndefined();
    run("a", "failure", 5);
    expect(circuits.trialEnd("a")).toBeUndefined();
    wait(60_000);
    expect(circuits.trialEnd("a")).toBeUndefined();
    const trial = circuits.acquire("a");
    let ends = 0;
    for (let index = 0; index < 2; index++) void circuits.trialEnd("a")?.then(() => ends++);
    await Bun.sleep(0);
    expect(ends).toBe(0);
    trial?.settle("success");
    await Bun.sleep(0);
    expect(ends).toBe(2);
    expect(circuits.trialEnd("a")).toBeUndefined(); // there is a place
  });

  test("a backend that came back is tried at once", () => {
    const { circuits, run } = bench();
    circuits.recovered("a");
    run("a", "failure", 5);
    circuits.recovered("a");
    expect([circuits.state("a"), circuits.allows("a")]).toEqual(["half_open", true]);
  });

  test("overrides of a backend", () => {
    const { circuits, run } = bench({ backends: { a: { failure_threshold: 1, failure_status_codes: [501] } } });
    run("a", "failure");
    run("b", "failure");
    expect(["a", "b"].map((name) => circuits.state(name))).toEqual(["open", "closed"]);
    const failure = {
      kind: "status",
      status: 501,
      body: new Uint8Array(),
      retryAfterMs: undefined,
      headers: {},
    } as const;
    expect(["a", "b"].map((name) => circuits.outcomeOf(name, failure))).toEqual(["failure", "neutral"]);
  });

  test("a closed circuit is asked and gives permits without a look at the clock", () => {
    const { circuits, looks } = bench();
    circuits.acquire("a");
    circuits.allows("a");
    expect(looks()).toBe(0);
  });
});

describe("switched off", () => {
  test("everyone shares one permit that does nothing", () => {
    const { circuits, looks, run } = bench({ enabled: false });
    const permit = circuits.acquire("a");
    expect(circuits.acquire("b")).toBe(permit!);
    run("a", "failure", 1_000);
    expect([circuits.allows("a"), circuits.state("a"), circuits.retryAfterMs("a")]).toEqual([true, "closed", 0]);
    expect(permit?.isProbe).toBe(false);
    circuits.acquire("a");
    expect(looks()).toBeLessThanOrEqual(1); // only to say when it opens
  });

  test("for one backend", () => {
    const { circuits, run } = bench({ backends: { a: { enabled: false } } });
    run("a", "failure", 100);
    run("b", "failure", 100);
    expect(["a", "b"].map((name) => circuits.state(name))).toEqual(["closed", "open"]);
    expect(circuits.acquire("a")).toBe(circuits.acquire("a")!);
  });

  test("for all but one", () => {
    const { circuits, run } = bench({ enabled: false, backends: { a: { enabled: true } } });
    run("a", "failure", 100);
    run("b", "failure", 100);
    expect(["a", "b"].map((name) => circuits.state(name))).toEqual(["open", "closed"]);
  });
});

describe("changes while running", () => {
  test("only the backends that are retained are remembered", () => {
    const { circuits, changes, run } = bench({ backends: { c: { failure_threshold: 1 } } });
    run("a", "failure", 5);
    run("b", "failure", 5);
    const late = circuits.acquire("c");
    circuits.retain(["b", "d"]);
    expect(["a", "b"].map((name) => circuits.state(name))).toEqual(["closed", "open"]);
    late?.settle("failure");
    expect(circuits.state("c")).toBe("closed");
    expect(changes).toEqual(["a: closed -> open", "b: closed -> open"]);
  });

  test("new settings keep the state of the circuits that they do not concern", () => {
    const { circuits, run } = bench();
    run("a", "failure", 5);
    run("b", "failure", 5);
    circuits.apply(circuitBreakerSection.schema.parse({ backends: { a: { timeout: "1s" } } }));
    expect(["a", "b"].map((name) => circuits.state(name))).toEqual(["closed", "open"]);
  });

  test("switched off and on again, nothing is left of the past", () => {
    const { circuits, run } = bench();
    run("a", "failure", 5);
    circuits.apply(circuitBreakerSection.schema.parse({ enabled: false }));
    expect([circuits.allows("a"), circuits.state("a")]).toEqual([true, "closed"]);
    circuits.apply(circuitBreakerSection.schema.parse({}));
    expect([circuits.allows("a"), circuits.state("a")]).toEqual([true, "closed"]);
  });
});

test("whatever happens: allows foretells acquire, and no more permits are out than may try a backend", () => {
  const names = ["a", "b", "c"];
  const outcome = fc.constantFrom<CircuitOutcome>("success", "failure", "failure", "overload", "neutral");
  const step = fc.tuple(fc.constantFrom("acquire", "settle", "wait"), fc.nat({ max: 1_000 }), outcome);
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: "max" }), (steps) => {
      const { circuits, changes, wait } = bench({ timeout: "1s", failure_threshold: 2, half_open_max_requests: 2 });
      const permits: { name: string; permit: Permit; changes: number }[] = [];
      const changesOf = (name: string) => changes.filter((change) => change.startsWith(name)).length;
      for (const [kind, number, result] of steps) {
        const name = names[number % names.length] as string;
        if (kind === "wait") wait(number);
        if (kind === "settle" && permits.length > 0) {
          const { permit } = permits[number % permits.length] as { permit: Permit };
          permit.settle(result);
          permit.settle("failure");
          permits.splice(number % permits.length, 1);
        }
        if (kind !== "acquire") continue;
        const isAllowed = circuits.allows(name);
        expect(circuits.allows(name)).toBe(isAllowed);
        const permit = circuits.acquire(name);
        expect(permit !== undefined).toBe(isAllowed);
        if (permit !== undefined) permits.push({ name, permit, changes: changesOf(name) });
        if (circuits.state(name) !== "half_open") continue;
        const trying = permits.filter((each) => each.name === name && each.changes === changesOf(name));
        expect(trying.every((each) => each.permit.isProbe)).toBe(true);
        expect(trying.length).toBeLessThanOrEqual(2);
      }
      expect(changes.some((change) => change.endsWith("closed -> half_open"))).toBe(false);
    }),
    { numRuns: 500 },
  );
});
