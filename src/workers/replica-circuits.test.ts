import { afterEach, expect, test } from "bun:test";
import { documentSchema } from "../config/sections/registry.ts";
import type { CircuitOutcome } from "../routing/circuit-breaker.ts";
import { createCircuits } from "../routing/circuits.ts";
import type { Channel } from "./channel.ts";
import type { CircuitView, PrimaryDesk } from "./messages.ts";
import { createReplicaCircuits } from "./replica-circuits.ts";

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

const FAILED = { kind: "connect", message: "refused" } as never;

/** Circuits with replicas in two workers; a message arrives when it is sent. */
function setup(more: object = {}) {
  let nowMs = 0;
  let isLate = false;
  const now = () => nowMs;
  const circuit_breaker = {
    failure_threshold: 3,
    timeout: "10s",
    half_open_max_requests: 1,
    success_threshold: 1,
    ...more,
  };
  const settings = documentSchema.parse({ circuit_breaker }).circuit_breaker;
  const owner = createCircuits({ settings, now });
  const view = (): CircuitView[] => [{ name: "a", ...owner.view("a") }];
  const tell = () => {
    for (const replica of replicas) replica.follow(view());
  };
  function channelOf(): Channel<PrimaryDesk> {
    const leases = new Map<number, ReturnType<typeof owner.acquire>>();
    return {
      tell(name: string, ...given: unknown[]) {
        if (name === "outcome") {
          const report = given[0] as Parameters<PrimaryDesk["outcome"]>[0];
          owner.report(report.name, report.admittedMs, report.outcome, report.endedMs);
        } else if (name === "successes") owner.reportEarlier(...(given as [string, number]));
        else if (name === "settle") leases.get(given[0] as number)?.settle(given[1] as CircuitOutcome);
        tell();
      },
      async call(_: string, [name, lease]: [string, number]) {
        const permit = owner.acquire(name);
        if (permit !== undefined) leases.set(lease, permit);
        return isLate ? undefined : permit !== undefined;
      },
      flush() {},
    } as unknown as Channel<PrimaryDesk>;
  }
  const replicas = [1, 2].map(() =>
    createReplicaCircuits({ settings, channel: channelOf(), now, toPrimary: (atMs) => atMs }),
  );
  for (const replica of replicas) stops.push(replica.stop);
  const [one, two] = replicas as [(typeof replicas)[0], (typeof replicas)[0]];
  tell();
  const fail = (replica: typeof one) => replica.acquire("a")?.settle(replica.outcomeOf("a", FAILED));
  return {
    owner,
    one,
    two,
    fail,
    tell,
    /** Whether the owner answers too late from now on. */
    late(next: boolean) {
      isLate = next;
    },
    pass(ms: number) {
      nowMs += ms;
      tell();
    },
  };
}

test("failures of all workers count together, and all of them leave the backend alone", () => {
  const { owner, one, two, fail, pass } = setup();
  for (const replica of [one, two, one]) {
    expect(replica.allows("a")).toBeTrue();
    fail(replica);
    pass(1);
  }
  expect(owner.state("a")).toBe("open");
  expect([one.allows("a"), two.allows("a")]).toEqual([false, false]);
  expect(two.acquire("a")).toBeUndefined();
  expect(two.retryAfterMs("a")).toBe(9_999);
});

test("a success of another worker ends the row of failures", () => {
  const { owner, one, two, fail, pass } = setup({ minimum_requests: 100 });
  for (let round = 0; round < 4; round++) {
    fail(one);
    pass(1);
    fail(two);
    pass(1);
    two.acquire("a")?.settle("success");
    pass(1);
  }
  expect(owner.state("a")).toBe("closed");
});

test("requests that run when a backend breaks count once, wherever they run", () => {
  const { owner, one, two, pass } = setup();
  const permits = [one, two, one, two, one].map((replica) => replica.acquire("a"));
  pass(1);
  for (const permit of permits) permit?.settle("failure");
  expect(owner.state("a")).toBe("closed");
});

test("of all workers as many try a half-open circuit as it admits, and what they find is known to all", async () => {
  const { owner, one, two, fail, pass } = setup();
  for (let count = 0; count < 3; count++) {
    fail(one);
    pass(1);
  }
  pass(10_000);
  expect([one.state("a"), two.state("a")]).toEqual(["half_open", "half_open"]);
  const [first, second] = [one.acquire("a"), two.acquire("a")];
  expect(await Promise.all([first?.confirmed, second?.confirmed])).toEqual([true, false]);
  expect(two.allows("a")).toBeFalse();
  const news = two.trialEnd("a");
  first?.settle("success");
  await news;
  expect(owner.state("a")).toBe("closed");
  expect(two.allows("a")).toBeTrue();
  first?.settle("failure");
  expect(owner.state("a")).toBe("closed");
});

test("a trial that is granted too late is given back", async () => {
  const { owner, one, two, fail, late, pass } = setup();
  for (let count = 0; count < 3; count++) {
    fail(one);
    pass(1);
  }
  pass(10_000);
  late(true);
  expect(await one.acquire("a")?.confirmed).toBeFalse();
  late(false);
  const next = two.acquire("a");
  expect(await next?.confirmed).toBeTrue();
  next?.settle("success");
  expect(owner.state("a")).toBe("closed");
});
