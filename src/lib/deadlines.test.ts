// Deadlines under one timer: each expires once, when it has passed, and may be moved or taken back until then.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { waitFor, within } from "../../test/support/wait-for.ts";
import { createDeadlines, type Deadline, type Deadlines } from "./deadlines.ts";

/** Time stands until it is set. */
function bench() {
  let nowMs = 1_000;
  const expired: string[] = [];
  const deadlines = createDeadlines(() => nowMs);
  return {
    deadlines,
    expired,
    setTime(ms: number) {
      nowMs = ms;
    },
    add(name: string, deadlineMs: number): Deadline {
      const entry = { deadlineMs, expire: () => void expired.push(name) };
      deadlines.add(entry);
      return entry;
    },
  };
}

/** Resolves when the entries were looked at once more. */
function nextSweep(deadlines: Deadlines): Promise<void> {
  const swept = new Promise<void>((resolve) => deadlines.add({ deadlineMs: 0, expire: resolve }));
  return within("the deadlines are looked at", swept);
}

describe("deadlines", () => {
  test("expire when their time has come, each once, the others stay", async () => {
    const { deadlines, expired, setTime, add } = bench();
    add("early", 1_100);
    const late = add("late", 1_200);
    await nextSweep(deadlines);
    expect(expired).toEqual([]);
    setTime(1_100);
    await nextSweep(deadlines);
    await nextSweep(deadlines);
    expect(expired).toEqual(["early"]);
    expect(deadlines.size).toBe(1);
    deadlines.remove(late);
  });

  test("may be moved both ways", async () => {
    const { deadlines, expired, setTime, add } = bench();
    const entry = add("moved", 1_100);
    entry.deadlineMs = 2_000;
    setTime(1_500);
    await nextSweep(deadlines);
    expect(expired).toEqual([]);
    entry.deadlineMs = 1_400;
    await nextSweep(deadlines);
    expect(expired).toEqual(["moved"]);
  });

  test("taken back, one never expires", async () => {
    const { deadlines, expired, setTime, add } = bench();
    const entry = add("taken back", 1_100);
    deadlines.remove(entry);
    deadlines.remove(entry);
    setTime(5_000);
    await nextSweep(deadlines);
    expect(expired).toEqual([]);
    expect(deadlines.size).toBe(0);
  });

  test("infinity is no deadline", async () => {
    const { deadlines, expired, setTime, add } = bench();
    const entry = add("never", Number.POSITIVE_INFINITY);
    setTime(Number.MAX_SAFE_INTEGER);
    await nextSweep(deadlines);
    expect(expired).toEqual([]);
    deadlines.remove(entry);
  });

  test("an entry is gone when it expires, and may put itself in again", async () => {
    const { deadlines, setTime } = bench();
    const sizes: number[] = [];
    const entry: Deadline = {
      deadlineMs: 1_100,
      expire() {
        sizes.push(deadlines.size);
        if (sizes.length > 1) return;
        entry.deadlineMs = 1_300;
        deadlines.add(entry);
      },
    };
    deadlines.add(entry);
    setTime(1_200);
    await waitFor("the first expiry", () => sizes.length === 1);
    setTime(1_300);
    await waitFor("the second expiry", () => sizes.length === 2);
    expect(sizes).toEqual([0, 0]);
  });

  test("one expiry may take back or move another that has passed with it", async () => {
    const { deadlines, expired, setTime, add } = bench();
    deadlines.add({
      deadlineMs: 1_100,
      expire() {
        expired.push("first");
        deadlines.remove(removed);
        moved.deadlineMs = 9_000;
      },
    });
    const removed = add("removed", 1_100);
    const moved = add("moved", 1_100);
    setTime(1_200);
    await nextSweep(deadlines);
    expect(expired).toEqual(["first"]);
    expect(deadlines.size).toBe(1);
    deadlines.remove(moved);
  });

  test("any sequence of adding and removing leaves exactly those that were not removed", async () => {
    const { deadlines, expired, setTime } = bench();
    const entries = Array.from({ length: 40 }, (_, index): Deadline => {
      return { deadlineMs: index % 2 === 0 ? 1_100 : 9_000, expire: () => void expired.push(`${index}`) };
    });
    const inside = new Set<number>();
    const step = fc.tuple(fc.constantFrom("add", "remove"), fc.nat({ max: entries.length - 1 }));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        for (const [action, index] of steps) {
          if (action === "add") inside.add(index);
          else inside.delete(index);
          deadlines[action as "add"](entries[index] as Deadline);
          expect(deadlines.size).toBe(inside.size);
        }
      }),
    );
    setTime(1_200);
    await nextSweep(deadlines);
    const passed = [...inside].filter((index) => index % 2 === 0).map(String);
    expect(expired.sort()).toEqual(passed.sort());
    expect(deadlines.size).toBe(inside.size - passed.length);
    for (const entry of entries) deadlines.remove(entry);
    expect(deadlines.size).toBe(0);
  });

  test("without entries no timer keeps the process alive; the timer comes back with the next entry", async () => {
    const script = `
      import { createDeadlines } from ${JSON.stringify(`${import.meta.dir}/deadlines.ts`)};
      const deadlines = createDeadlines();
      const expiry = () => new Promise((resolve) => deadlines.add({ deadlineMs: 0, expire: resolve }));
      await expiry();
      await Bun.sleep(60);
      await expiry();
      const entry = { deadlineMs: Infinity, expire() {} };
      deadlines.add(entry);
      deadlines.remove(entry);
      console.log("expired twice");`;
    const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "inherit" });
    try {
      expect(await within("the process ends by itself", child.exited)).toBe(0);
      expect(await new Response(child.stdout).text()).toBe("expired twice\n");
    } finally {
      child.kill();
    }
  });

  test("expire nothing at the first look after a busy time: what was asked meanwhile leaves only then", async () => {
    let nowMs = 1_000;
    let looks = 0;
    let expiredAtLook = 0;
    const deadlines = createDeadlines(() => {
      looks++;
      return nowMs;
    });
    deadlines.add({
      deadlineMs: 1_150,
      expire() {
        expiredAtLook = looks;
      },
    });
    nowMs = 1_300;
    const before = looks;
    await waitFor("it expires", () => expiredAtLook > 0);
    expect(expiredAtLook - before).toBe(2);
  });
});
