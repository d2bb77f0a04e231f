// A wait ends with its time or with its signal, and leaves nothing behind.

import { expect, test } from "bun:test";
import { getEventListeners } from "node:events";
import { within } from "../../test/support/wait-for.ts";
import { abortableDelay } from "./abortable-delay.ts";

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
    import { abortableDelay } from ${JSON.stringify(`${import.meta.dir}/abortable-delay.ts`)};
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
