// The queue of one receiver: attempts, their end, and the bound.

import { expect, test } from "bun:test";
import { waitFor } from "../../test/support/wait-for.ts";
import { notificationsSection } from "../config/sections/notifications.ts";
import type { DeliveryOutcome } from "./deliver.ts";
import type { Notice } from "./notice.ts";
import { type Counted, createTarget } from "./target.ts";

const [SETTINGS] = notificationsSection.schema.parse([{ name: "ops", url: "https://x.example" }]);

function notice(id: string): Notice {
  return { id, type: "budget", subject: id, atMs: 0, data: {}, text: id };
}

function targetOf(deliver: (notice: Notice) => Promise<DeliveryOutcome>, maxWaiting?: number) {
  const counted: Counted[] = [];
  const warned: string[] = [];
  const target = createTarget(SETTINGS as NonNullable<typeof SETTINGS>, {
    deliver: (_, each) => deliver(each),
    wallTime: () => 0,
    random: () => 0,
    log: { info() {}, warn: (_, message) => warned.push(message) },
    counted: (_, outcome) => counted.push(outcome),
    baseDelayMs: 1,
    ...(maxWaiting !== undefined && { maxWaiting }),
  });
  return { target, counted, warned };
}

test("drops the oldest waiting notice when the queue is full, and says so once", async () => {
  const released = Promise.withResolvers<void>();
  const delivered: string[] = [];
  const { target, counted, warned } = targetOf(async ({ id }) => {
    await released.promise;
    delivered.push(id);
    return { isDelivered: true };
  }, 2);
  for (const id of ["a", "b", "c", "d", "e"]) target.add(notice(id));
  expect(target.state()).toMatchObject({ waiting: 2, dropped: 2 });
  released.resolve();
  await waitFor("the deliveries", () => delivered.length === 3);
  expect(delivered).toEqual(["a", "d", "e"]);
  expect(counted.filter((outcome) => outcome === "dropped")).toHaveLength(2);
  expect(warned).toHaveLength(1);
});

test("gives a notice up after six attempts, and goes on with the next one", async () => {
  const attempts: string[] = [];
  const { target, counted } = targetOf(async ({ id }) => {
    attempts.push(id);
    return id === "a" ? { isDelivered: false, error: "x", mayRetry: true } : { isDelivered: true };
  });
  // 121 ms of pauses, with the shortest jitter.
  target.add(notice("a"));
  target.add(notice("b"));
  await waitFor("the deliveries", () => counted.length === 2);
  expect(attempts).toEqual([..."aaaaaa", "b"]);
  expect(counted).toEqual(["failed", "delivered"]);
});

test("does not try again what the receiver refuses", async () => {
  const { target, counted } = targetOf(async () => ({ isDelivered: false, status: 404, error: "x", mayRetry: false }));
  target.add(notice("a"));
  await waitFor("the deliveries", () => counted.length === 1);
  expect(counted).toEqual(["failed"]);
});

test("ends within the time that it is given, with one more attempt at what waits", async () => {
  const never = new Promise<DeliveryOutcome>(() => {});
  const { target, counted } = targetOf(() => never);
  target.add(notice("a"));
  target.add(notice("b"));
  await target.stop(5);
  expect(counted).toEqual(["dropped"]);
});
