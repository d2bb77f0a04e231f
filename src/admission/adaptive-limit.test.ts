import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { BatchingEngine } from "../../test/simulation/batching-engine.ts";
import { seededRandom } from "../../test/simulation/seeded-random.ts";
import { VirtualTime } from "../../test/simulation/virtual-time.ts";
import { AdaptiveLimit } from "./adaptive-limit.ts";
import type { SlotEnd } from "./admission.ts";

interface Load {
  /** Part of the requests that are streams. */
  streams: number;
  input: number;
  output: number;
  /** All requests are of one length. */
  isUniform?: boolean;
}

const CHAT: Load = { streams: 1, input: 1000, output: 200 };
const PLAIN: Load = { ...CHAT, streams: 0 };
const MINUTE = 60_000;

/**
 * An engine with requests that wait in front of it at any time. Gives the limits of each minute, the tokens of the second half, and
 * the part of its requests that found the engine full.
 */
async function load(
  slots: number,
  { streams, input, output, isUniform = false }: Load,
  minutes: number,
  more: { fixed?: number; slotsLater?: number; load?: number; networkMs?: number } = {},
) {
  const time = new VirtualTime();
  const random = seededRandom(slots);
  const sequenceMs = 13 / slots;
  const engine = new BatchingEngine(time, { slots, stepMs: 20, sequenceMs, inputTokenMs: 0.05, chunkTokens: 2048 });
  const adaptive = new AdaptiveLimit();
  const seen: { limit: number; tokens: number }[] = [];
  let inFlight = 0;
  const later = { sent: 0, foundFull: 0 };
  function fill(): void {
    const bound = more.fixed ?? adaptive.limit;
    while (inFlight < Math.min(bound, more.load ?? bound)) send();
  }
  function send(): void {
    const sent = adaptive.begin(++inFlight, time.nowMs);
    const length = (mean: number) => (isUniform ? mean : Math.ceil(random.exponential(mean)));
    const begunMs = time.nowMs;
    const stream = random.chance(streams);
    let firstByteMs: number | undefined;
    const request = {
      ...{ inputTokens: length(input), outputTokens: length(output), tokens: 0 },
      firstToken() {
        if (stream) firstByteMs = time.nowMs - begunMs;
      },
      done() {
        const durationMs = time.nowMs - begunMs;
        const { inputTokens, outputTokens } = request;
        const bytes = { firstByteMs: firstByteMs ?? durationMs, durationMs };
        const end = { inputTokens, outputTokens, ...bytes, stream, isOverload: false };
        adaptive.ended(sent, end, inFlight, time.nowMs);
        inFlight--;
        fill();
      },
    };
    const arrive = () => {
      if (time.nowMs >= (minutes * MINUTE) / 2) {
        later.sent++;
        if (engine.inFlight >= engine.shape.slots) later.foundFull++;
      }
      engine.submit(request);
    };
    // What is sent together arrives in any order.
    if (more.networkMs !== undefined) time.schedule(random.exponential(more.networkMs), arrive, true);
    else arrive();
  }
  time.schedule(0, fill, true);
  for (let minute = 1; minute <= minutes; minute++) {
    time.schedule(minute * MINUTE, () => seen.push({ limit: adaptive.limit, tokens: engine.outputTokens }), true);
  }
  time.schedule(
    (minutes * MINUTE) / 2,
    () => {
      engine.shape = { ...engine.shape, slots: more.slotsLater ?? slots };
    },
    true,
  );
  await time.run(
    () => false,
    minutes * MINUTE,
    () => {},
  );
  const foundFull = later.foundFull / later.sent;
  return { limits: seen.map(({ limit }) => limit), rate: tokensOf(seen, minutes >> 1), foundFull };
}

/** In the minutes from this one to the last one. */
function tokensOf(seen: readonly { tokens: number }[], from: number): number {
  return (seen.at(-1)?.tokens ?? 0) - (seen[from]?.tokens ?? 0);
}

function median(limits: readonly number[]): number {
  return limits.toSorted((one, other) => one - other)[limits.length >> 1] as number;
}

describe("against engines whose batches are of some size", () => {
  const mixes: [string, Load][] = [
    ["streams", CHAT],
    ["plain answers", PLAIN],
    ["both", { ...CHAT, streams: 0.5 }],
    ["plain answers of one length", { ...PLAIN, isUniform: true }],
  ];
  const cases = [8, 32, 256].flatMap((slots) => mixes.map(([name, mix]) => [slots, name, mix] as const));
  test.each(cases)("%d places, %s: the limit is near that, and little throughput is lost", async (slots, _, mix) => {
    const minutes = 40;
    const { limits, rate } = await load(slots, mix, minutes);
    const { rate: best } = await load(slots, mix, minutes, { fixed: Math.ceil(slots * 1.5) });
    expect(rate / best).toBeGreaterThanOrEqual(0.97);
    const found = median(limits.slice(minutes >> 1));
    expect(found).toBeWithin(0.8 * slots, 1.6 * slots + 1);
  });

  test.each([8, 12, 64])(
    "%d places, streams: all of them are used, and hardly a request waits in the engine",
    async (slots) => {
      const { limits, foundFull } = await load(slots, CHAT, 40, { networkMs: 1 });
      expect(median(limits.slice(10))).toBe(slots);
      expect(foundFull).toBeLessThan(0.02);
    },
  );

  test.each([
    [64, 58],
    [64, 32],
    [32, 64],
    [12, 24],
    [24, 12],
    [256, 32],
  ])("from %d places to %d, streams: the limit is there within ten minutes", async (slots, slotsLater) => {
    const { limits } = await load(slots, CHAT, 40, { slotsLater, networkMs: 1 });
    expect(median(limits.slice(10, 20))).toBeWithin(0.95 * slots, 1.01 * slots + 0.5);
    expect(median(limits.slice(30))).toBeWithin(0.95 * slotsLater, 1.01 * slotsLater + 0.5);
  });

  test("a small engine and one that reads long inputs keep their throughput as well", async () => {
    for (const [slots, mix] of [
      [2, CHAT],
      [32, { ...CHAT, input: 6000, output: 60 }],
    ] as const) {
      const { rate } = await load(slots, mix, 40);
      const { rate: best } = await load(slots, mix, 40, { fixed: Math.ceil(slots * 1.5) });
      expect(rate / best).toBeGreaterThanOrEqual(0.97);
    }
  });

  test.each([
    [256, 32, "streams", CHAT],
    [32, 256, "streams", CHAT],
    [64, 32, "plain answers", PLAIN],
    [32, 64, "plain answers", PLAIN],
    [256, 32, "plain answers", PLAIN],
    [32, 256, "plain answers", PLAIN],
  ] as const)("from %d places to %d, %s: the limit follows", async (slots, slotsLater, _, mix) => {
    const { limits } = await load(slots, mix, 40, { slotsLater });
    expect(median(limits.slice(12, 20))).toBeWithin(0.8 * slots, 1.6 * slots);
    expect(median(limits.slice(32))).toBeWithin(0.8 * slotsLater, 1.6 * slotsLater);
  });

  test("the limit does not grow while it is not used", async () => {
    const { limits } = await load(256, CHAT, 20, { load: 4 });
    expect(Math.max(...limits)).toBe(8);
  });
});

const END: SlotEnd = {
  durationMs: 1000,
  firstByteMs: 10,
  inputTokens: 100,
  outputTokens: 50,
  stream: true,
  isOverload: false,
};

/** Of a request that was sent as the last one. */
function answer(adaptive: AdaptiveLimit, end: SlotEnd, inFlight: number, nowMs = 0): void {
  adaptive.ended(adaptive.begin(inFlight, nowMs), end, inFlight, nowMs);
}

test("an answer that says overload lowers the limit once for all that are under way", () => {
  const adaptive = new AdaptiveLimit();
  for (let end = 0; end < 8; end++) answer(adaptive, { ...END, isOverload: true }, 8 - end);
  expect(adaptive.limit).toBe(7);
  for (let end = 0; end < 1000; end++) answer(adaptive, { ...END, isOverload: true }, adaptive.limit);
  expect(adaptive.limit).toBe(1);
});

test("is a whole number from 1 to 1024, whatever backends do", () => {
  const number = fc.oneof(fc.constant(0), fc.nat(10), fc.double({ min: 0, max: 1e9, noNaN: true }));
  const maybe = fc.option(number, { nil: undefined });
  const ends = fc.record({
    ...{ inputTokens: maybe, cachedTokens: maybe, outputTokens: maybe, firstByteMs: maybe, durationMs: number },
    ...{ stream: fc.boolean(), isOverload: fc.integer({ min: 0, max: 20 }).map((one) => one === 0) },
  });
  fc.assert(
    fc.property(fc.array(ends, { minLength: 1, maxLength: 40 }), fc.integer({ min: 1, max: 2 }), (some, part) => {
      const adaptive = new AdaptiveLimit();
      for (let turn = 0; turn < 50; turn++) {
        for (const end of some) {
          answer(adaptive, end, Math.ceil(adaptive.limit / part), turn);
          expect(Number.isInteger(adaptive.limit)).toBe(true);
          expect(adaptive.limit).toBeWithin(1, 1025);
        }
      }
    }),
  );
});

test("requests that were not answered say nothing", () => {
  const adaptive = new AdaptiveLimit();
  for (let end = 0; end < 3000; end++)
    answer(adaptive, { ...END, durationMs: 1, firstByteMs: undefined }, adaptive.limit);
  expect(adaptive.limit).toBe(8);
});

test("backends that tell of no tokens have a limit as well", () => {
  const adaptive = new AdaptiveLimit();
  const end = { ...END, inputTokens: undefined, outputTokens: undefined, stream: false };
  // As an engine that answers four at once.
  for (let turn = 0; turn < 20_000; turn++) {
    const durationMs = 1000 * Math.max(1, adaptive.limit / 4);
    answer(adaptive, { ...end, durationMs, firstByteMs: durationMs }, adaptive.limit);
  }
  expect(adaptive.limit).toBeWithin(3, 8);
});
