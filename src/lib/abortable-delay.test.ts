// A wait ends with its time or with its signal, and leaves nothing behind.

import { expect, test } from "bun:test";
import { getEventListeners } from "node:events";
import { within } from "../../test/support/wait-for.ts";
import { abortableDelay, orAborted } from "./abortable-delay.ts";

const AN_HOUR_MS = 3_600_000;

test("the time ends it, not before", async () => {
  const { signal } = new AbortController();
  const startedMs = performance.now();
  await within("the delay ends", abortableDelay(30, signal));
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(29);
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("the signal ends it at once", async () => {
  const controller = new AbortController();
  const waiting = abortableDelay(AN_HOUR_MS, controller.signal);
  expect(getEventListeners(controller.signal, "abort").length).toBe(1);
  controller.abort();
  await within("the delay ends", waiting);
  expect(getEventListeners(controller.signal, "abort")).toEqual([]);
});

test("with a signal that has aborted already nothing is waited for", async () => {
  await within("the delay ends", abortableDelay(AN_HOUR_MS, AbortSignal.abort()));
});

test("an ended wait keeps no timer that would keep a process alive", async () => {
  const script = `
    import { abortableDelay, orAborted } from ${JSON.stringify(`${import.meta.dir}/abortable-delay.ts`)};
    const controller = new AbortController();
    const waiting = abortableDelay(${AN_HOUR_MS}, controller.signal);
    controller.abort();
    await waiting;`;
  const child = Bun.spawn([process.execPath, "-e", script], { stderr: "inherit" });
  try {
    expect(await within("the process ends by itself", child.exited, 10_000)).toBe(0);
  } finally {
    child.kill();
  }
});

test("waiting for work again and again under one signal leaves no listener behind", async () => {
  const { signal } = new AbortController();
  for (let time = 0; time < 100; time++) await orAborted(Promise.resolve(), signal);
  expect(getEventListeners(signal, "abort")).toEqual([]);
  await expect(orAborted(Promise.reject(new Error("no")), signal)).rejects.toThrow("no");
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("work that never ends is waited for until the signal aborts", async () => {
  const controller = new AbortController();
  const waiting = orAborted(new Promise(() => {}), controller.signal);
  expect(getEventListeners(controller.signal, "abort")).toHaveLength(1);
  controller.abort();
  await within("the wait ends", waiting);
  expect(getEventListeners(controller.signal, "abort")).toEqual([]);
});
