// A wait ends with its work, its time or its signal, whichever is first, and leaves nothing behind.

import { expect, test } from "bun:test";
import { getEventListeners } from "node:events";
import fc from "fast-check";
import { within } from "../../test/support/wait-for.ts";
import { abortableDelay, inTime, orAborted, unlessAborted } from "./abortable-delay.ts";

const AN_HOUR_MS = 3_600_000;
const REASON = new Error("the reason");
const FAILURE = new Error("the failure");

type Step = "resolve" | "reject" | "abort";

/** What a wait came to, in a form that can be compared. */
async function outcome(wait: Promise<unknown>): Promise<unknown> {
  return await wait.then(
    (value) => ({ value }),
    (error) => ({ error }),
  );
}

const EXPECTED = {
  or: { resolve: { value: "result" }, reject: { error: FAILURE }, abort: { value: undefined } },
  unless: { resolve: { value: "result" }, reject: { error: FAILURE }, abort: { error: REASON } },
};

test("the first of result, failure and abort decides, whatever comes later, and no listener stays", async () => {
  const steps = fc.shuffledSubarray<Step>(["resolve", "reject", "abort"], { minLength: 1 });
  const property = fc.asyncProperty(steps, fc.boolean(), async (order, isBefore) => {
    const controller = new AbortController();
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const act: Record<Step, () => void> = {
      resolve: () => resolve("result"),
      reject: () => reject(FAILURE),
      abort: () => controller.abort(REASON),
    };
    const [first, ...rest] = order as [Step, ...Step[]];
    if (isBefore) act[first]();
    const waits = [outcome(orAborted(promise, controller.signal)), outcome(unlessAborted(promise, controller.signal))];
    if (!isBefore) act[first]();
    const ended = await Promise.all(waits);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    for (const step of rest) act[step]();
    expect(ended).toEqual([EXPECTED.or[first], EXPECTED.unless[first]]);
    promise.catch(() => {}); // only what the waits leave behind is looked at
  });
  await fc.assert(property);
});

test("a time limit gives the result or the failure of the work, or undefined when it is over", async () => {
  expect(await within("the time is over", inTime(new Promise(() => {}), 5))).toBeUndefined();
  expect(await within("the work is done", inTime(Promise.resolve(1), AN_HOUR_MS))).toBe(1);
  await expect(inTime(Promise.reject(FAILURE), AN_HOUR_MS)).rejects.toBe(FAILURE);
});

test("a delay lasts its time, or until the signal aborts", async () => {
  const controller = new AbortController();
  const startedMs = performance.now();
  await within("the delay ends", abortableDelay(30, controller.signal));
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(29);
  const waiting = abortableDelay(AN_HOUR_MS, controller.signal);
  expect(getEventListeners(controller.signal, "abort")).toHaveLength(1);
  controller.abort();
  await within("the delay ends", waiting);
  expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  await within("the delay ends", abortableDelay(AN_HOUR_MS, controller.signal));
});

test("ended waits keep no timer that keeps a process alive, and late failures do not end it", async () => {
  const script = `
    import { abortableDelay, inTime, orAborted, unlessAborted } from ${JSON.stringify(`${import.meta.dir}/abortable-delay.ts`)};
    const signal = AbortSignal.abort();
    const controller = new AbortController();
    const late = () => Promise.withResolvers();
    const works = [late(), late(), late(), late(), late()];
    const waits = [
      abortableDelay(${AN_HOUR_MS}, controller.signal),
      orAborted(works[0].promise, controller.signal),
      unlessAborted(works[1].promise, controller.signal).catch(() => {}),
      inTime(works[2].promise, 1),
      inTime(Promise.resolve(), ${AN_HOUR_MS}),
      inTime(Promise.reject(new Error("at once")), ${AN_HOUR_MS}).catch(() => {}),
      orAborted(works[3].promise, signal),
      unlessAborted(works[4].promise, signal).catch(() => {}),
    ];
    controller.abort();
    await Promise.all(waits);
    for (const { reject } of works) reject(new Error("late"));`;
  const child = Bun.spawn([process.execPath, "-e", script], { stderr: "inherit" });
  try {
    expect(await within("the process ends by itself", child.exited)).toBe(0);
  } finally {
    child.kill();
  }
});
