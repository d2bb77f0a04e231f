import { heapStats } from "bun:jsc";
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type AdmissionSettings, admissionSection } from "../config/sections/admission.ts";
import type { Deadline, Deadlines } from "../lib/deadlines.ts";
import type { BackendSlot, Granted, QueuePlace, SlotEnd, SlotQuery } from "./admission.ts";
import { AdmissionQueue } from "./queue.ts";

/** A queue in virtual time. */
function newQueue(settings: object = {}, backends = ["a", "b"]) {
  const clock = { nowMs: 0 };
  const entries = new Set<Deadline>();
  const deadlines: Deadlines = {
    add: (entry) => void entries.add(entry),
    remove: (entry) => void entries.delete(entry),
    get size() {
      return entries.size;
    },
  };
  const full = new Map<string, boolean>();
  const queue = new AdmissionQueue({
    settings: parse(settings),
    now: () => clock.nowMs,
    deadlines,
    roomChanged: (backend, isFull) => void full.set(backend, isFull),
  });
  queue.follow(parse(settings), backends);
  function pass(durationMs: number): void {
    clock.nowMs += durationMs;
    for (const entry of [...entries]) {
      if (!entries.has(entry) || entry.deadlineMs > clock.nowMs) continue;
      entries.delete(entry);
      entry.expire();
    }
  }
  return { queue, clock, deadlines, full, pass };
}

function parse(settings: object): AdmissionSettings {
  return admissionSection.schema.parse({ enabled: true, ...settings });
}

function slots(max_concurrent: number, max_tokens_in_flight?: number) {
  return { max_concurrent, ...(max_tokens_in_flight === undefined ? {} : { max_tokens_in_flight }) };
}

const ask = (tenant: string, more: Partial<SlotQuery> = {}): SlotQuery => ({
  ...{ group: "a\nb", model: "m", class: "default", tenant: ["org", tenant] },
  ...{ inputTokens: 10, outputTokens: 10, ageMs: 0, patienceMs: 1e9, goesFirst: false },
  ...more,
});

const END: SlotEnd = { durationMs: 1, stream: false, isOverload: false };

/** What became of a request that waits, as soon as that is known. */
function watched(waiting: QueuePlace): { granted: Granted | undefined } & Pick<QueuePlace, "leave" | "mayUse"> {
  const seen = { granted: undefined as Granted | undefined, leave: waiting.leave, mayUse: waiting.mayUse };
  void waiting.granted.then((granted) => {
    seen.granted = granted;
  });
  return seen;
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("slots", () => {
  test("are as many as configured, and one that ends goes to the request that waits", async () => {
    const { queue } = newQueue({ per_backend: slots(2) });
    const first = queue.take("a", ask("x"));
    expect(queue.take("a", ask("x"))).toBeDefined();
    expect(queue.hasRoom("a", 20)).toBe(false);
    expect(queue.take("a", ask("x"))).toBeUndefined();
    const waiting = watched(queue.wait(ask("x"), ["a"]));
    await settled();
    expect(waiting.granted).toBeUndefined();
    first?.ended(END);
    first?.ended(END);
    await settled();
    expect(waiting.granted?.slot?.backend).toBe("a");
    expect(queue.take("a", ask("x"))).toBeUndefined();
  });

  test("single backends have numbers of their own, and each of several gateways has its part", () => {
    const { queue } = newQueue({ per_backend: slots(8), backends: { b: slots(2) }, gateways: 4 });
    const taken = (backend: string) => {
      let count = 0;
      while (queue.take(backend, ask("x")) !== undefined) count++;
      return count;
    };
    expect([taken("a"), taken("b")]).toEqual([2, 1]);
  });

  test("a request that waits takes the first that is free at any of its backends, and no other", async () => {
    const { queue } = newQueue({ per_backend: slots(1) }, ["a", "b", "c"]);
    const [, b, c] = ["a", "b", "c"].map((backend) => queue.take(backend, ask("x")));
    const waiting = watched(queue.wait(ask("x"), ["a", "b"]));
    c?.ended(END);
    await settled();
    expect(waiting.granted).toBeUndefined();
    b?.ended(END);
    await settled();
    expect(waiting.granted?.slot?.backend).toBe("b");
  });

  test("a backend that becomes usable while a request waits is used at once", async () => {
    const { queue } = newQueue({ per_backend: slots(1) });
    queue.take("a", ask("x"));
    const waiting = watched(queue.wait(ask("x"), ["a"]));
    waiting.mayUse(["a", "b"]);
    await settled();
    expect(waiting.granted?.slot?.backend).toBe("b");
  });

  test("more of them by a new configuration go to those that wait, and fewer hold as the running ones end", async () => {
    const { queue } = newQueue({ per_backend: slots(1) });
    const held = [queue.take("a", ask("x"))];
    const waiting = [1, 2, 3].map(() => watched(queue.wait(ask("x"), ["a"])));
    queue.follow(parse({ per_backend: slots(3) }), ["a", "b"]);
    await settled();
    expect(waiting.filter(({ granted }) => granted?.slot).length).toBe(2);
    queue.follow(parse({ per_backend: slots(1) }), ["a", "b"]);
    held[0]?.ended(END);
    await settled();
    expect(waiting[2]?.granted).toBeUndefined();
    for (const one of waiting.slice(0, 2)) one.granted?.slot?.ended(END);
    await settled();
    expect(waiting[2]?.granted?.slot?.backend).toBe("a");
  });

  test("switching the queue off lets all go on, but those that have no backend wait on", async () => {
    const { queue } = newQueue({ per_backend: slots(1) });
    queue.take("a", ask("x"));
    const [waiting, without] = [queue.wait(ask("x"), ["a"]), queue.wait(ask("x"), [])].map(watched);
    queue.follow(parse({ enabled: false }), ["a", "b"]);
    await settled();
    expect(waiting?.granted?.slot?.backend).toBe("a");
    expect(without?.granted).toBeUndefined();
    without?.mayUse(["b"]);
    await settled();
    expect(without?.granted?.slot?.backend).toBe("b");
  });

  test("a backend that was removed while it answered is forgotten when its last request ended", () => {
    const { queue } = newQueue({ per_backend: slots(1) });
    const slot = queue.take("a", ask("x"));
    queue.follow(parse({ per_backend: slots(1) }), ["b"]);
    expect(queue.view().backends.map(({ backend }) => backend)).toContain("a");
    slot?.ended(END);
    expect(queue.view().backends.map(({ backend }) => backend)).not.toContain("a");
  });
});

describe("tokens in flight", () => {
  const settings = { per_backend: slots(10, 100) };

  test("are bounded for each backend, and a request that is larger than the bound is served alone", async () => {
    const { queue } = newQueue(settings);
    const first = queue.take("a", ask("x", { inputTokens: 60 }));
    expect(queue.take("a", ask("x", { inputTokens: 60 }))).toBeUndefined();
    const large = watched(queue.wait(ask("x", { inputTokens: 500 }), ["a"]));
    first?.ended(END);
    await settled();
    expect(large.granted?.slot).toBeDefined();
    expect(queue.hasRoom("a", 0)).toBe(false);
  });

  test("a large request is not overtaken by small ones for ever", async () => {
    const { queue } = newQueue(settings);
    const running = Array.from({ length: 5 }, () => queue.take("a", ask("small")) as BackendSlot);
    const large = watched(queue.wait(ask("large", { inputTokens: 80 }), ["a"]));
    running.pop()?.ended(END);
    // There is room for a small one, which the large one that is next keeps free.
    expect(queue.take("a", ask("small"))).toBeUndefined();
    const small = watched(queue.wait(ask("small"), ["a"]));
    for (const slot of running) slot.ended(END);
    await settled();
    expect(large.granted?.slot).toBeDefined();
    expect(small.granted).toBeUndefined();
  });

  test.each([
    ["leaves", (large: QueuePlace) => large.leave()],
    ["may use another backend only", (large: QueuePlace) => large.mayUse(["b"])],
  ])("room kept for a large request is given to others when that one %s", async (_, change) => {
    const { queue } = newQueue(settings);
    queue.take("a", ask("small", { inputTokens: 40 }));
    queue.take("b", ask("small", { inputTokens: 90 }));
    const large = queue.wait(ask("large", { inputTokens: 80 }), ["a"]);
    const small = watched(queue.wait(ask("small"), ["a"]));
    await settled();
    expect(small.granted).toBeUndefined();
    change(large);
    await settled();
    expect(small.granted?.slot?.backend).toBe("a");
  });
});

describe("who is next", () => {
  test("a takeover goes before all others, of every tenant", async () => {
    const { queue } = newQueue({ per_backend: slots(1) });
    const slot = queue.take("a", ask("x"));
    const waiting = watched(queue.wait(ask("y", { ageMs: 60_000 }), ["a"]));
    const takeover = watched(queue.wait(ask("x", { goesFirst: true }), ["a"]));
    slot?.ended(END);
    await settled();
    expect(takeover.granted?.slot).toBeDefined();
    expect(waiting.granted).toBeUndefined();
  });

  test("an attempt more goes before the younger requests of its tenant", async () => {
    const { queue, pass } = newQueue({ per_backend: slots(1) });
    const slot = queue.take("a", ask("x"));
    pass(1000);
    const younger = watched(queue.wait(ask("x"), ["a"]));
    pass(1000);
    const attempt = watched(queue.wait(ask("x", { ageMs: 2000 }), ["a"]));
    slot?.ended(END);
    await settled();
    expect(attempt.granted?.slot).toBeDefined();
    expect(younger.granted).toBeUndefined();
  });

  test("what a running stream has got counts before it ends", async () => {
    const { queue, pass } = newQueue({ per_backend: slots(2) });
    const slot = queue.take("a", ask("x")) as BackendSlot;
    const other = queue.take("a", ask("y", { inputTokens: 100 })) as BackendSlot;
    slot.watch({ tokens: 1000 });
    const [own, others] = [queue.wait(ask("x"), ["a"]), queue.wait(ask("y"), ["a"])].map(watched);
    pass(200);
    other.ended({ ...END, outputTokens: 0 });
    await settled();
    expect(others?.granted?.slot).toBeDefined();
    expect(own?.granted).toBeUndefined();
  });

  test("cached tokens cost less, and a slot that nothing was sent for costs nothing", async () => {
    const { queue } = newQueue({ per_backend: slots(1) });
    const finish = (tenant: string, end: SlotEnd | undefined) =>
      (queue.take("a", ask(tenant, { inputTokens: 100 })) as BackendSlot).ended(end);
    finish("whole", { ...END, inputTokens: 100, outputTokens: 0 });
    finish("cached", { ...END, inputTokens: 100, cachedTokens: 100, outputTokens: 0 });
    finish("unsent", undefined);
    // The counters of tenants that begin to wait are lifted to the least of those that wait: the cheapest first.
    const slot = queue.take("a", ask("none"));
    const waiting = ["unsent", "cached", "whole"].map((tenant) => watched(queue.wait(ask(tenant), ["a"])));
    slot?.ended(undefined);
    for (const one of waiting) {
      await settled();
      expect(waiting.filter(({ granted }) => granted !== undefined).at(-1)).toBe(one);
      one.granted?.slot?.ended(undefined);
    }
  });

  test("models that share a backend take turns there, and a queue of old requests does not hold up another model's", async () => {
    const { queue, pass } = newQueue({ per_backend: slots(1) });
    let slot = queue.take("a", ask("x"));
    const old = Array.from({ length: 20 }, () => watched(queue.wait(ask("x", { group: "a" }), ["a"])));
    pass(60_000);
    const young = Array.from({ length: 5 }, () => watched(queue.wait(ask("y", { group: "a\nb" }), ["a"])));
    for (let turn = 0; turn < 10; turn++) {
      slot?.ended({ ...END, inputTokens: 10, outputTokens: 10 });
      await settled();
      slot = [...old, ...young].find(({ granted }) => granted?.slot && isRunning(granted.slot))?.granted?.slot;
    }
    expect(young.filter(({ granted }) => granted?.slot).length).toBe(5);
    expect(old.filter(({ granted }) => granted?.slot).length).toBe(5);
  });
});

/** Its end was not told yet. */
const ended = new WeakSet<BackendSlot>();
function isRunning(slot: BackendSlot): boolean {
  if (ended.has(slot)) return false;
  ended.add(slot);
  return true;
}

describe("what does not get in", () => {
  test("a request that waited as long as it may is refused, with the time that others would wait", async () => {
    const { queue, pass, deadlines } = newQueue({ per_backend: slots(1) });
    queue.take("a", ask("x"));
    const waiting = watched(queue.wait(ask("x", { patienceMs: 500 }), ["a"]));
    pass(499);
    await settled();
    expect(waiting.granted).toBeUndefined();
    pass(1);
    await settled();
    expect(waiting.granted?.shed).toEqual({ reason: "waited_too_long", retryAfterMs: 1000, waiting: 1 });
    expect(deadlines.size).toBe(0);
  });

  test("who cannot be served in time is told at once, and when it is worth another try", async () => {
    const { queue, pass } = newQueue({ per_backend: slots(1) });
    // A request a second, each of 10 tokens of input and 10 of output, which weigh 30.
    let slot = queue.take("a", ask("x"));
    const waiting = Array.from({ length: 20 }, () => watched(queue.wait(ask("x"), ["a"])));
    for (let turn = 0; turn < 10; turn++) {
      pass(1000);
      slot?.ended(END);
      await settled();
      slot = waiting[turn]?.granted?.slot;
    }
    expect(queue.view().groups[0]?.perSecond).toBeCloseTo(1, 1);
    const late = watched(queue.wait(ask("x", { patienceMs: 4000 }), ["a"]));
    await settled();
    expect(late.granted?.shed?.reason).toBe("too_late");
    expect(late.granted?.shed?.retryAfterMs).toBeWithin(5500, 6500);
    // A tenant without requests that wait is not judged by the queue of another one.
    const other = watched(queue.wait(ask("y", { patienceMs: 4000 }), ["a"]));
    await settled();
    expect(other.granted).toBeUndefined();
  });

  test("a full queue gives up the youngest request of the tenant with the most", async () => {
    const { queue } = newQueue({ per_backend: slots(1), queue: { max_waiting: 4 } });
    queue.take("a", ask("x"));
    const heavy = Array.from({ length: 4 }, () => watched(queue.wait(ask("heavy"), ["a"])));
    const more = watched(queue.wait(ask("heavy"), ["a"]));
    const small = watched(queue.wait(ask("small"), ["a"]));
    await settled();
    expect(more.granted?.shed?.reason).toBe("queue_full");
    expect(small.granted).toBeUndefined();
    expect(heavy.map(({ granted }) => granted?.shed?.reason)).toEqual([undefined, undefined, undefined, "queue_full"]);
  });

  test("a client that leaves frees its place, and its slot if it was granted one meanwhile", async () => {
    const { queue, deadlines } = newQueue({ per_backend: slots(1) });
    const slot = queue.take("a", ask("x"));
    const [left, granted] = [queue.wait(ask("x"), ["a"]), queue.wait(ask("x"), ["a"])];
    left.leave();
    slot?.ended(END);
    granted.leave();
    granted.leave();
    await settled();
    expect(deadlines.size).toBe(0);
    expect(queue.view().waiting).toEqual([]);
    expect(queue.hasRoom("a", 20)).toBe(true);
  });
});

test("the view names who waits, the longest first", () => {
  const { queue, pass } = newQueue({ per_backend: slots(1, 100) });
  queue.take("a", ask("x"));
  queue.wait(ask("x", { class: "batch" }), ["a"]);
  pass(100);
  queue.wait(ask("y", { ageMs: 5000, goesFirst: true }), ["a"]);
  pass(100);
  const { waiting, groups, classes, backends } = queue.view();
  expect(waiting).toEqual([
    { model: "m", class: "default", tenant: ["org", "y"], waitedMs: 5100 },
    { model: "m", class: "batch", tenant: ["org", "x"], waitedMs: 200 },
  ]);
  expect(groups).toEqual([{ models: ["m"], backends: ["a", "b"], waiting: 2, perSecond: undefined }]);
  expect(classes.map(({ class: name, waiting: count }) => [name, count])).toEqual([
    ["interactive", 0],
    ["default", 1],
    ["batch", 1],
  ]);
  expect(backends).toEqual([{ backend: "a", inFlight: 1, limit: 1, tokens: 20, maxTokens: 100 }]);
});

test("models that are asked for once are forgotten beyond a number of groups", () => {
  const { queue } = newQueue({ per_backend: slots(1) });
  queue.take("a", ask("x"));
  Bun.gc(true);
  const before = heapStats().objectTypeCounts.Map as number;
  for (let index = 0; index < 2000; index++)
    queue.wait(ask("x", { group: `g${index}`, model: `m${index}` }), ["a"]).leave();
  queue.wait(ask("x", { group: "last", model: "last" }), ["a"]);
  expect(queue.view().groups.map(({ models }) => models)).toEqual([["last"]]);
  Bun.gc(true);
  expect((heapStats().objectTypeCounts.Map as number) - before).toBeLessThan(3000);
});

type Step =
  | {
      does: "enter";
      tenant: number;
      input: number;
      class: string;
      group: number;
      patienceMs: number;
      goesFirst: boolean;
    }
  | { does: "leave"; at: number }
  | { does: "end"; at: number }
  | { does: "mayUse"; at: number; backends: string[] }
  | { does: "pass"; durationMs: number }
  | { does: "follow"; slots: number; tokens: number; enabled: boolean };

const at = fc.nat(1000);
const names = fc.subarray(["a", "b", "c"]);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        does: fc.constant("enter" as const),
        tenant: fc.nat(4),
        input: fc.integer({ min: 1, max: 90 }),
        class: fc.constantFrom("default", "batch"),
        group: fc.nat(2),
        patienceMs: fc.constantFrom(100, 5000, Number.POSITIVE_INFINITY),
        goesFirst: fc.integer({ min: 0, max: 9 }).map((one) => one === 0),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({ does: fc.constantFrom("leave" as const, "end" as const, "end" as const), at }),
    },
    { weight: 1, arbitrary: fc.record({ does: fc.constant("mayUse" as const), at, backends: names }) },
    { weight: 1, arbitrary: fc.record({ does: fc.constant("pass" as const), durationMs: fc.nat(300) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        does: fc.constant("follow" as const),
        slots: fc.integer({ min: 1, max: 4 }),
        tokens: fc.integer({ min: 50, max: 300 }),
        enabled: fc.integer({ min: 0, max: 9 }).map((one) => one > 0),
      }),
    },
  ),
  { maxLength: 120, size: "max" },
);

const GROUPS = [["a", "b"], ["b", "c"], ["a"]];

/** A request of a random sequence. */
interface Case {
  ask: SlotQuery;
  waiting: QueuePlace;
  backends: readonly string[];
  settled: number;
  slot: BackendSlot | undefined;
}

test("slots are never lost or given twice, and no room is left while a request waits that may use it", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      let limits = { slots: 2, tokens: 200, enabled: true };
      const { queue, deadlines, pass } = newQueue({ per_backend: slots(2, 200), queue: { max_waiting: 12 } }, [
        "a",
        "b",
        "c",
      ]);
      const [waiting, running] = [new Set<Case>(), new Set<Case>()];
      const enter = (step: Extract<Step, { does: "enter" }>) => {
        const backends = GROUPS[step.group] as string[];
        const more = { class: step.class, patienceMs: step.patienceMs, goesFirst: step.goesFirst };
        const wanted = ask(`t${step.tenant}`, { ...more, inputTokens: step.input, group: backends.join("\n") });
        const one: Case = { ask: wanted, waiting: queue.wait(wanted, backends), backends, settled: 0, slot: undefined };
        waiting.add(one);
        void one.waiting.granted.then(({ slot }) => {
          one.settled++;
          one.slot = slot;
          if (waiting.delete(one) && slot !== undefined) running.add(one);
        });
      };
      const finish = (one: Case | undefined) => {
        if (one === undefined) return;
        running.delete(one);
        one.slot?.ended({ ...END, outputTokens: one.ask.inputTokens % 7 });
      };
      const apply = (step: Step) => {
        const pick = (from: Set<Case>) => ("at" in step && from.size > 0 ? [...from][step.at % from.size] : undefined);
        if (step.does === "enter") enter(step);
        else if (step.does === "end") finish(pick(running));
        else if (step.does === "pass") pass(step.durationMs);
        else if (step.does === "leave") {
          const one = pick(new Set([...waiting, ...running]));
          one?.waiting.leave();
          if (one !== undefined) for (const set of [waiting, running]) set.delete(one);
        } else if (step.does === "mayUse") {
          const one = pick(waiting);
          if (one !== undefined) one.backends = step.backends;
          one?.waiting.mayUse(step.backends);
        } else {
          limits = { slots: step.slots, tokens: step.tokens, enabled: step.enabled };
          const settings = {
            enabled: step.enabled,
            per_backend: slots(step.slots, step.tokens),
            queue: { max_waiting: 12 },
          };
          queue.follow(parse(settings), ["a", "b", "c"]);
        }
      };
      const tokensOf = (one: Case) => one.ask.inputTokens + one.ask.outputTokens;
      let wasOver = new Set<string>();
      for (const step of sequence) {
        apply(step);
        await settled();
        const over = new Set<string>();
        for (const backend of ["a", "b", "c"]) {
          const there = [...running].filter(({ slot }) => slot?.backend === backend);
          const tokens = there.reduce((sum, one) => sum + tokensOf(one), 0);
          const shown = queue.view().backends.find((one) => one.backend === backend);
          expect([shown?.inFlight ?? 0, shown?.tokens ?? 0]).toEqual([there.length, tokens]);
          const isOver = there.length > limits.slots || (there.length > 1 && tokens > limits.tokens);
          // Only a new configuration can leave more at a backend than it may have.
          if (isOver && step.does !== "follow") expect(wasOver.has(backend)).toBe(true);
          if (isOver) over.add(backend);
          const mayUse = [...waiting].filter(({ backends }) => backends.includes(backend));
          const fits = (one: Case) =>
            there.length < limits.slots && (there.length === 0 || tokens + tokensOf(one) <= limits.tokens);
          // Room is kept only for a request that is too large for it.
          if (mayUse.some(fits)) expect(mayUse.some((one) => !fits(one))).toBe(true);
          if (mayUse.length > 0) expect(there.length).toBeGreaterThan(0);
        }
        wasOver = over;
        expect([...waiting].every((one) => one.settled === 0)).toBe(true);
        expect([...running].every((one) => one.settled === 1)).toBe(true);
      }
      for (const one of waiting) one.waiting.leave();
      await settled();
      for (const one of running) finish(one);
      await settled();
      expect(queue.view().backends.every(({ inFlight, tokens }) => inFlight === 0 && tokens === 0)).toBe(true);
      expect(queue.view().waiting).toEqual([]);
      expect(deadlines.size).toBe(0);
    }),
    { numRuns: 300 },
  );
});

test("the bound of the paper holds for streams at several backends, while tenants always wait", async () => {
  const lengths = fc.record({ input: fc.integer({ min: 1, max: 50 }), output: fc.integer({ min: 1, max: 50 }) });
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.array(lengths, { minLength: 4, maxLength: 20 }),
      async (each, drawn) => {
        const { queue, pass } = newQueue({ per_backend: slots(each) });
        const served = new Map([
          ["x", 0],
          ["y", 0],
          ["z", 0],
        ]);
        const running = new Set<{ tenant: string; slot: BackendSlot; seen: { tokens: number }; output: number }>();
        let count = 0;
        const enter = (tenant: string) => {
          const { input, output } = drawn[(count++ * 7 + tenant.charCodeAt(0)) % drawn.length] as {
            input: number;
            output: number;
          };
          void queue
            .wait(ask(tenant, { inputTokens: input, outputTokens: 25 }), ["a", "b"])
            .granted.then(({ slot }) => {
              const seen = { tokens: 0 };
              slot?.watch(seen);
              running.add({ tenant, slot: slot as BackendSlot, seen, output });
              served.set(tenant, (served.get(tenant) as number) + input);
              enter(tenant);
            });
        };
        // More wait than there are slots, so that each tenant has requests that wait at every choice.
        for (const tenant of served.keys()) for (let place = 0; place <= 2 * each; place++) enter(tenant);
        const [least, most] = [new Map<string, number>(), new Map<string, number>()];
        const bound = 2 * Math.max(50, 2 * 2 * each * 100);
        for (let step = 0; step < 200; step++) {
          await settled();
          for (const one of [...running]) {
            one.seen.tokens++;
            served.set(one.tenant, (served.get(one.tenant) as number) + 2);
          }
          pass(100);
          for (const one of [...running]) {
            if (one.seen.tokens < one.output) continue;
            running.delete(one);
            one.slot.ended({ ...END, stream: true, outputTokens: one.seen.tokens });
          }
          for (const [one, other] of [
            ["x", "y"],
            ["y", "z"],
            ["x", "z"],
          ] as const) {
            const difference = (served.get(one) as number) - (served.get(other) as number);
            least.set(one + other, Math.min(least.get(one + other) ?? 0, difference));
            most.set(one + other, Math.max(most.get(one + other) ?? 0, difference));
            expect((most.get(one + other) as number) - (least.get(one + other) as number)).toBeLessThanOrEqual(bound);
          }
        }
      },
    ),
    { numRuns: 30 },
  );
});

/** What an operator may change while requests wait. */
const changes = fc.record({
  enabled: fc.integer({ min: 0, max: 9 }).map((lot) => lot > 0),
  per_backend: fc.constantFrom<object[]>({ max_concurrent: "auto" }, slots(1), slots(3), slots(8, 100), slots(2, 1)),
  queue: fc.record({
    max_waiting: fc.constantFrom(1, 50, 5_000),
    fair_by: fc.constantFrom<string[][]>(
      [],
      ["key"],
      ["organization"],
      ["organization", "key"],
      ["key", "organization"],
    ),
    classes: fc.constantFrom<object[]>(
      { default: { weight: 1 } },
      { default: { weight: 5 }, interactive: { weight: 10 }, batch: { weight: 1 } },
    ),
  }),
});

test("however the settings change while thousands wait, each request is answered once, and no slot is lost", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(changes, { minLength: 3, maxLength: 12 }), fc.nat(), async (reloads, seed) => {
      const { queue, pass } = newQueue({ per_backend: slots(2) });
      const running = new Set<BackendSlot>();
      const waiting = new Set<QueuePlace>();
      const counts = { asked: 0, granted: 0, shed: 0, left: 0, ended: 0 };
      let lot = seed;
      const draw = (below: number) => {
        lot = (lot * 1_103_515_245 + 12_345) % 2 ** 31;
        return Math.floor((lot / 2 ** 31) * below);
      };
      let levels: readonly string[] = ["organization", "key"];
      const enter = () => {
        const names: Record<string, string> = { organization: `t${draw(3)}`, key: `t${draw(9)}` };
        const className = ["default", "interactive", "batch"][draw(3)] as string;
        const more = { tenant: levels.map((level) => names[level] as string), class: className };
        const place = queue.wait(ask("", { ...more, goesFirst: draw(20) === 0 }), draw(2) === 0 ? ["a", "b"] : ["a"]);
        waiting.add(place);
        counts.asked++;
        void place.granted.then(({ slot, shed }) => {
          if (shed !== undefined) counts.shed++;
          if (waiting.delete(place) && slot !== undefined) {
            counts.granted++;
            running.add(slot);
          }
        });
      };
      const leave = (place: QueuePlace) => {
        // Perhaps in the very tick in which it was admitted.
        waiting.delete(place);
        counts.left++;
        place.leave();
      };
      for (const settings of reloads) {
        for (let count = 0; count < 200; count++) enter();
        for (const slot of [...running].slice(0, draw(4))) {
          running.delete(slot);
          counts.ended++;
          slot.ended(END);
          const [place] = waiting;
          if (place !== undefined && draw(2) === 0) leave(place);
        }
        queue.follow(parse(settings), draw(5) === 0 ? ["a"] : ["a", "b"]);
        levels = settings.queue.fair_by;
        const [place] = waiting;
        if (place !== undefined) leave(place);
        pass(100);
        await settled();
        for (const slot of running) expect(["a", "b"]).toContain(slot.backend);
      }
      queue.follow(parse({ per_backend: slots(4) }), ["a", "b"]);
      while (waiting.size > 0 || running.size > 0) {
        await settled();
        for (const slot of running) slot.ended(END);
        counts.ended += running.size;
        running.clear();
      }
      await settled();
      expect(counts.ended).toBe(counts.granted);
      expect(queue.view()).toMatchObject({ waiting: [], groups: [] });
      for (const { inFlight, tokens } of queue.view().backends) expect([inFlight, tokens]).toEqual([0, 0]);
    }),
    { numRuns: 12 },
  );
});
