// The bucket behind the memory: what counts as an answer, who waits, what is written, and that a clear holds.

import { describe, expect, test } from "bun:test";
import { waitFor } from "../../test/support/wait-for.ts";
import { silentLogger } from "../logging/logger.ts";
import { BucketTrouble } from "../object-storage/bucket.ts";
import type { SmallObjects } from "../object-storage/small-objects.ts";
import { type CachedAnswer, ClearedHereOnly, type RequestKey } from "./cache.ts";
import { createFarTier } from "./far-tier.ts";
import { digestOf } from "./stored-answer.ts";
import { MAX_QUEUED } from "./write-queue.ts";

const encoder = new TextEncoder();

function keyOf(question: string, form: RequestKey["form"] = "plain"): RequestKey {
  return { question, form, otherForm: form === "plain" ? "stream+usage" : "plain", sketch: () => 0 };
}

function answerOf(text: string, model = "m"): CachedAnswer {
  return { form: "plain", model, contentType: "application/json", body: encoder.encode(text) };
}

/** A bucket, and gateways in front of it. */
function bucket() {
  const objects = new Map<string, Uint8Array>();
  const state = { nowMs: 1_000, mode: "well" as "well" | "away" | "silent", asked: 0, lines: [] as string[] };

  async function meet(signal: AbortSignal): Promise<void> {
    state.asked++;
    if (state.mode === "away") throw new BucketTrouble("HTTP 503");
    if (state.mode === "well") return;
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  }
  const store: Pick<SmallObjects, "get" | "put"> = {
    async get(name, { maxBytes, signal, onChunk }) {
      await meet(signal);
      const object = objects.get(name);
      if (object === undefined) return undefined;
      onChunk?.(object.length, object);
      return object.length > maxBytes ? "too-large" : object;
    },
    async put(name, body, signal) {
      await meet(signal);
      objects.set(name, body);
    },
  };
  const note = (_fields: unknown, message?: string) => void state.lines.push(String(message));
  const log = { ...silentLogger(), info: note, warn: note };

  function gateway() {
    const cleared: (string | undefined)[] = [];
    const tier = createFarTier({
      objects: store,
      prefix: "p/",
      bounds: { maxAnswerBytes: 1_000, maxReadBytes: 100_000 },
      clock: { now: () => state.nowMs, wallTime: () => state.nowMs },
      log,
      cleared: (model) => void cleared.push(model),
    });
    async function keep(question: string, text: string, model = "m", ttlMs = 60_000): Promise<void> {
      const before = tier.stats().written;
      tier.put(keyOf(question), answerOf(text, model), ttlMs, 100);
      await waitFor("the answer is written", () => tier.stats().written > before);
    }
    async function find(question: string, form?: RequestKey["form"], model = "m"): Promise<string | undefined> {
      const found = await tier.get(keyOf(question, form), model);
      return found && new TextDecoder().decode(found.answer.body);
    }
    return { tier, keep, find, cleared };
  }
  const answers = () => [...objects.keys()].filter((name) => name.startsWith("p/answers/"));
  return { objects, state, gateway, answers };
}

describe("what is found", () => {
  test("by this gateway and by another one, in either form, until it is too old", async () => {
    const { state, gateway } = bucket();
    const [one, other] = [gateway(), gateway()];
    expect(await one.find("q")).toBeUndefined();
    await one.keep("q", "answer");
    expect([await one.find("q"), await other.find("q"), await other.find("q", "stream+usage")]).toEqual(
      Array(3).fill("answer"),
    );
    expect([await other.find("q", "stream"), await other.find("other")]).toEqual(["answer", undefined]);
    expect((await other.tier.get(keyOf("q"), "m"))?.leftMs).toBe(60_000);
    state.nowMs += 60_000;
    expect(await other.find("q")).toBeUndefined();
    expect(other.tier.stats()).toMatchObject({ hits: 4, misses: 2, unusable: 1 });
  });

  test("garbage, halves, and what belongs to another question, form or model are misses", async () => {
    const { objects, gateway, answers } = bucket();
    const one = gateway();
    await one.keep("q", "answer");
    const [name] = answers() as [string];
    const whole = objects.get(name) as Uint8Array;
    const swapped = name.replace(digestOf("q"), digestOf("other"));
    objects.set(swapped, whole);
    expect(await one.find("other")).toBeUndefined();
    for (const object of [whole.subarray(0, -1), encoder.encode("<html>"), new Uint8Array(20_000), new Uint8Array()]) {
      objects.set(name, object);
      expect(await one.find("q")).toBeUndefined();
    }
    objects.set(name, whole);
    expect(await one.find("q", undefined, "another")).toBeUndefined();
    expect(await one.find("q")).toBe("answer");
    expect(one.tier.stats().connected).toBe(true);
  });
});

describe("trouble", () => {
  test("after a failure nobody asks for a while, then one tries in the background", async () => {
    const { state, gateway } = bucket();
    const one = gateway();
    await one.keep("q", "answer");
    state.mode = "away";
    expect(await one.find("q")).toBeUndefined();
    const { asked } = state;
    expect(one.tier.get(keyOf("q"), "m")).toBeUndefined();
    expect([state.asked, one.tier.stats().connected]).toEqual([asked, false]);
    state.nowMs += 1_000;
    expect([one.tier.get(keyOf("q"), "m"), one.tier.get(keyOf("q"), "m")]).toEqual([undefined, undefined]);
    await waitFor("somebody has tried", () => state.asked > asked);
    state.mode = "well";
    state.nowMs += 2_000;
    expect(one.tier.get(keyOf("q"), "m")).toBeUndefined();
    await waitFor("it works again", () => one.tier.stats().connected);
    expect(await one.find("q")).toBe("answer");
    expect(state.lines).toEqual([
      "the bucket of the response cache cannot be read; requests go on without it",
      "the bucket of the response cache can be read again",
    ]);
  });

  test("markers that nobody can read mean that it is not known what counts", async () => {
    const { objects, gateway } = bucket();
    const one = gateway();
    await one.keep("q", "answer");
    objects.set("p/cleared/all", encoder.encode("garbage"));
    expect(await gateway().find("q")).toBeUndefined();
  });

  test("of too many writes that wait, the oldest are dropped and counted; the others are written later", async () => {
    const { state, gateway, answers } = bucket();
    const one = gateway();
    state.mode = "away";
    for (let index = 0; index < MAX_QUEUED + 10; index++) {
      one.tier.put(keyOf(`q${index}`), answerOf("x"), 60_000, 100);
    }
    expect(one.tier.stats()).toMatchObject({ queued: MAX_QUEUED, queuedBytes: MAX_QUEUED * 100, dropped: 10 });
    await waitFor("it was tried", () => !one.tier.stats().connected);
    state.mode = "well";
    state.nowMs += 1_000;
    one.tier.put(keyOf("new"), answerOf("x"), 60_000, 100);
    await waitFor("all are written", () => one.tier.stats().queued === 0 && one.tier.stats().connected);
    await waitFor("all are there", () => answers().length >= MAX_QUEUED);
    const big = 40 * 1024 * 1024;
    one.tier.put(keyOf("a"), answerOf("x"), 60_000, big);
    one.tier.put(keyOf("b"), answerOf("x"), 60_000, big);
    one.tier.put(keyOf("c"), answerOf("x"), 60_000, 2 * big);
    expect(one.tier.stats().queued).toBe(1);
  });
});

describe("a clear", () => {
  test("holds after a restart and on other gateways, by model or for all", async () => {
    const { state, gateway } = bucket();
    const [one, other] = [gateway(), gateway()];
    await one.keep("q", "answer");
    await one.keep("q", "another", "n");
    expect([await other.find("q"), await other.find("q", undefined, "n")]).toEqual([undefined, "another"]);
    await one.keep("r", "answer");
    expect(await other.find("r")).toBe("answer");
    await one.tier.clear("m");
    expect([await one.find("r"), await gateway().find("r"), await one.find("q", undefined, "n")]).toEqual([
      ...[undefined, undefined, "another"],
    ]);
    state.nowMs += 10_001;
    expect([await other.find("r"), await other.find("q", undefined, "n")]).toEqual([undefined, "another"]);
    expect(other.cleared).toEqual(["m"]);
    await one.tier.clear(undefined);
    expect([await one.find("q", undefined, "n"), await gateway().find("q", undefined, "n")]).toEqual([
      undefined,
      undefined,
    ]);
    await one.keep("r", "new");
    expect([await one.find("r"), await gateway().find("r")]).toEqual(["new", "new"]);
  });

  test("is noticed while only the memory is asked", async () => {
    const { state, gateway } = bucket();
    const [one, other] = [gateway(), gateway()];
    await one.find("q");
    await other.tier.clear(undefined);
    state.nowMs += 5_001;
    one.tier.passedBy("m");
    await waitFor("it was noticed", () => one.cleared.length > 0);
    expect(one.cleared).toEqual([undefined]);
  });

  test("holds here although the bucket is away, which is told, and there as soon as it is back", async () => {
    const { state, gateway } = bucket();
    const one = gateway();
    await one.keep("q", "answer");
    expect(await one.find("q")).toBe("answer");
    state.mode = "away";
    const refusal = await one.tier.clear("m").catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ClearedHereOnly);
    state.mode = "well";
    expect(await gateway().find("q")).toBe("answer");
    expect(await one.find("q")).toBeUndefined();
    expect(await gateway().find("q")).toBeUndefined();
  });

  test("forgets what still waits to be written", async () => {
    const { gateway, answers } = bucket();
    const one = gateway();
    one.tier.put(keyOf("q"), answerOf("x"), 60_000, 100);
    one.tier.put(keyOf("r"), answerOf("x", "n"), 60_000, 100);
    await one.tier.clear("m");
    await waitFor("the other one is written", () => answers().length === 1);
    expect(one.tier.stats().queued).toBe(0);
  });
});
