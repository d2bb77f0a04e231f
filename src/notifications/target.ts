// One receiver: its queue, the attempts at the first notice of it, and how they went.

import type { NotificationTarget } from "../config/sections/notifications.ts";
import { abortableDelay, inTime } from "../lib/abortable-delay.ts";
import { backoffDelayMs } from "../lib/backoff.ts";
import type { Deliver, DeliveryOutcome } from "./deliver.ts";
import type { Notice } from "./notice.ts";

export type Counted = "delivered" | "failed" | "dropped";

interface TargetParts {
  deliver: Deliver;
  wallTime(): number;
  random(): number;
  log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  counted(target: string, outcome: Counted): void;
  maxWaiting?: number;
  baseDelayMs?: number;
}

const MAX_ATTEMPTS = 6;
const MAX_WAITING = 1_000;
const BASE_DELAY_MS = 1_000;
const MAX_DELAY_MS = 60_000;

export type Receiver = ReturnType<typeof createTarget>;

export function createTarget(first: NotificationTarget, parts: TargetParts) {
  const { deliver, wallTime, random, log, counted, maxWaiting = MAX_WAITING, baseDelayMs = BASE_DELAY_MS } = parts;
  const { name } = first;
  const policy = { baseDelayMs, maxDelayMs: MAX_DELAY_MS, multiplier: 3, jitter: true };
  let settings = first;
  let queue: Notice[] = [];
  let working: Promise<void> | undefined;
  let isOverflowing = false;
  const ending = new AbortController();
  const ended = new AbortController();
  const counts: Record<Counted, number> = { delivered: 0, failed: 0, dropped: 0 };
  let lastDeliveryMs: number | undefined;
  let lastError: { atMs: number; message: string } | undefined;

  function count(outcome: Counted): void {
    counts[outcome]++;
    counted(name, outcome);
  }

  function remember({ isDelivered, error = "" }: DeliveryOutcome): void {
    if (isDelivered) lastDeliveryMs = wallTime();
    else lastError = { atMs: wallTime(), message: error };
  }

  async function attempt(notice: Notice): Promise<DeliveryOutcome> {
    const outcome = await deliver(settings, notice, ended.signal);
    remember(outcome);
    return outcome;
  }

  async function deliverOne(notice: Notice): Promise<void> {
    const { id, type } = notice;
    for (let attempts = 1; ; attempts++) {
      const { isDelivered, error, mayRetry, retryAfterMs = 0 } = await attempt(notice);
      if (isDelivered) return count("delivered");
      if (!mayRetry || attempts === MAX_ATTEMPTS || ending.signal.aborted) {
        count("failed");
        return log.warn({ target: name, id, type, attempts, reason: error }, "a notification was not delivered");
      }
      const delayMs = Math.max(backoffDelayMs(policy, attempts, random), Math.min(retryAfterMs, MAX_DELAY_MS));
      await abortableDelay(delayMs, ending.signal);
    }
  }

  async function work(): Promise<void> {
    for (;;) {
      const notice = queue.shift();
      if (notice === undefined) break;
      if (queue.length < maxWaiting / 2) isOverflowing = false;
      await deliverOne(notice);
    }
    working = undefined;
  }

  return {
    add(notice: Notice): void {
      if (!(settings.events as readonly string[]).includes(notice.type) || ending.signal.aborted) return;
      queue.push(notice);
      if (queue.length > maxWaiting) {
        queue.shift();
        count("dropped");
        if (!isOverflowing) {
          log.warn({ target: name, waiting: maxWaiting }, "the oldest notifications are dropped: too many wait");
        }
        isOverflowing = true;
      }
      working ??= work();
    },
    /** One attempt beside the queue, as the next ones are made. */
    async test(notice: Notice): Promise<DeliveryOutcome> {
      const outcome = await attempt(notice);
      count(outcome.isDelivered ? "delivered" : "failed");
      return outcome;
    },
    /** Waiting notices go to the new address. */
    follow(next: NotificationTarget): void {
      settings = next;
    },
    wants: (type: NotificationTarget["events"][number]) => settings.events.includes(type),
    state: () => ({ settings, waiting: queue.length, ...counts, lastDeliveryMs, lastError }),
    /** Each waiting notice gets one more attempt, as far as the time allows. */
    async stop(withinMs: number): Promise<void> {
      ending.abort();
      if (withinMs > 0 && working !== undefined) await inTime(working, withinMs);
      for (const _ of queue) count("dropped");
      queue = [];
      ended.abort();
    },
  };
}
