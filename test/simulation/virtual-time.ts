// Virtual time: an ordered queue of events. Between two events every promise that can go on does so.

import { drainMicrotasks } from "bun:jsc";
import { DEADLINE_RESOLUTION_MS, type Deadline, type Deadlines } from "../../src/lib/deadlines.ts";

export interface PlannedEvent {
  atMs: number;
  sequence: number;
  action: (() => void) | undefined;
  /** Wakes no promise, so that there is nothing to wait for behind it. */
  isQuiet: boolean;
}

/** What engines and clients need of time, virtual or real. */
export interface Clock {
  readonly nowMs: number;
  schedule(delayMs: number, action: () => void, isQuiet?: boolean): void;
}

export class VirtualTime implements Clock {
  nowMs = 0;
  /** Events that were run. */
  count = 0;
  #sequence = 0;
  readonly #heap: PlannedEvent[] = [];

  readonly now = (): number => this.nowMs;

  schedule(delayMs: number, action: () => void, isQuiet = false): PlannedEvent {
    const event = { atMs: this.nowMs + Math.max(0, delayMs), sequence: this.#sequence++, action, isQuiet };
    this.#heap.push(event);
    this.#siftUp(this.#heap.length - 1);
    return event;
  }

  cancel(event: PlannedEvent | undefined): void {
    if (event !== undefined) event.action = undefined;
  }

  get pending(): number {
    return this.#heap.length;
  }

  /** Runs events until `stop` says so after one, or until none is left before `untilMs`. */
  async run(stop: () => boolean, untilMs: number, afterEach: () => void): Promise<void> {
    while (!stop()) {
      const event = this.#heap[0];
      if (event === undefined || event.atMs > untilMs) return;
      this.#pop();
      const { action } = event;
      if (action === undefined) continue;
      this.nowMs = Math.max(this.nowMs, event.atMs);
      this.count++;
      action();
      if (!event.isQuiet) drainMicrotasks(); // a turn of the event loop does the same for eight times the CPU time
      afterEach();
    }
  }

  /** Waits, or returns at once when the signal aborts, and forgets the event then. */
  delay(durationMs: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (signal.aborted) return Promise.resolve();
    const end = () => {
      this.cancel(event);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const event = this.schedule(durationMs, end);
    signal.addEventListener("abort", end);
    return promise;
  }

  #siftUp(start: number): void {
    const heap = this.#heap;
    let index = start;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(heap[index]!, heap[parent]!)) return;
      [heap[index], heap[parent]] = [heap[parent]!, heap[index]!];
      index = parent;
    }
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    heap[0] = last;
    let index = 0;
    for (;;) {
      let least = index;
      for (const child of [2 * index + 1, 2 * index + 2]) {
        if (child < heap.length && isBefore(heap[child]!, heap[least]!)) least = child;
      }
      if (least === index) return;
      [heap[index], heap[least]] = [heap[least]!, heap[index]!];
      index = least;
    }
  }
}

function isBefore(left: PlannedEvent, right: PlannedEvent): boolean {
  return left.atMs < right.atMs || (left.atMs === right.atMs && left.sequence < right.sequence);
}

/** Deadlines in virtual time, as coarse as the real ones; each expiry is an event of its own. */
export function virtualDeadlines(time: VirtualTime): Deadlines {
  const entries = new Set<Deadline>();
  let isSweeping = false;

  function sweep(): void {
    isSweeping = false;
    for (const entry of entries) {
      if (entry.deadlineMs > time.nowMs) continue;
      time.schedule(0, () => {
        if (!entries.has(entry) || entry.deadlineMs > time.nowMs) return; // removed or moved meanwhile
        entries.delete(entry);
        entry.expire();
      });
    }
    start();
  }

  function start(): void {
    if (isSweeping || entries.size === 0) return;
    isSweeping = true;
    time.schedule(DEADLINE_RESOLUTION_MS, sweep, true);
  }

  return {
    add(entry) {
      entries.add(entry);
      start();
    },
    remove: (entry) => void entries.delete(entry),
    get size() {
      return entries.size;
    },
  };
}
