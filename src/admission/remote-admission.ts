// The queue where another process has the slots and the order: what this one asks of it, and the desk that answers there. Both
// speak in messages of plain data, so that a worker and its primary, or two gateways with one Redis, say the same.

import {
  type Admission,
  type BackendSlot,
  type Granted,
  laterBy,
  type QueuePlace,
  type Shed,
  type SlotEnd,
  type SlotQuery,
} from "./admission.ts";

/** `id` is the asking process's own number for a request. */
export type ToOwner =
  | { kind: "take"; id: number; backend: string; ask: SlotQuery }
  | { kind: "wait"; id: number; backends: readonly string[]; ask: SlotQuery }
  | { kind: "mayUse"; id: number; backends: readonly string[] }
  | { kind: "leave"; id: number }
  | { kind: "streamed"; tokens: readonly (readonly [id: number, tokens: number])[] }
  | { kind: "ended"; id: number; end: SlotEnd | undefined }
  /** It has a slot that another owner gave it. */
  | { kind: "holds"; id: number; backend: string; ask: SlotQuery };

export type FromOwner =
  /** `backend` is undefined where a slot was to be taken, and there is none. */
  | { kind: "granted"; id: number; backend: string | undefined }
  | { kind: "shed"; id: number; shed: Shed }
  | { kind: "room"; backend: string; isFull: boolean };

/** How often the owner hears how far running streams are. */
const STREAMS_INTERVAL_MS = 250;

/** So long a backend that refused a request counts as full. */
const REFUSED_MS = 100;

interface Asked {
  ask: SlotQuery;
  sinceMs: number;
  /** Undefined: it waits. */
  backend: string | undefined;
  backends: readonly string[];
  resolve(granted: Granted): void;
}

interface HeldSlot {
  slot: RemoteSlot;
  ask: SlotQuery;
}

/** @param tell - sends a message to the owner, in order with the others */
export function createRemoteAdmission(tell: (message: ToOwner) => void, now: () => number) {
  const asked = new Map<number, Asked>();
  const held = new Map<number, HeldSlot>();
  /** Until when a backend counts as full, in clock milliseconds. */
  const fullUntilMs = new Map<string, number>();
  let lastId = 0;
  let timer: Timer | undefined;

  function tellStreams(): void {
    const tokens = [...held].flatMap(([id, { slot }]) => {
      const count = slot.newTokens();
      return count === undefined ? [] : [[id, count] as const];
    });
    if (tokens.length > 0) tell({ kind: "streamed", tokens });
    if (held.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  function give(id: number, backend: string, ask: SlotQuery): BackendSlot {
    const slot = new RemoteSlot(backend, (end) => {
      held.delete(id);
      tell({ kind: "ended", id, end });
    });
    held.set(id, { slot, ask });
    timer ??= setInterval(tellStreams, STREAMS_INTERVAL_MS);
    return slot;
  }

  /** The ask as it is now, for an owner that has not heard of it. */
  const aged = ({ ask, sinceMs }: Asked): SlotQuery => laterBy(ask, now() - sinceMs);

  const admission: Admission = {
    takesLater: true,
    hasRoom: (backend) => (fullUntilMs.get(backend) ?? 0) <= now(),
    take(backend, ask) {
      const id = ++lastId;
      return new Promise((resolve) => {
        asked.set(id, { ask, sinceMs: now(), backend, backends: [], resolve: ({ slot }) => resolve(slot) });
        tell({ kind: "take", id, backend, ask });
      });
    },
    wait(ask, backends): QueuePlace {
      const id = ++lastId;
      const { promise, resolve } = Promise.withResolvers<Granted>();
      asked.set(id, { ask, sinceMs: now(), backend: undefined, backends, resolve });
      tell({ kind: "wait", id, backends, ask });
      return {
        granted: promise,
        mayUse(names) {
          const waiting = asked.get(id);
          if (waiting === undefined) return;
          waiting.backends = names;
          tell({ kind: "mayUse", id, backends: names });
        },
        leave() {
          if (asked.delete(id)) tell({ kind: "leave", id });
          else void promise.then(({ slot }) => slot?.ended(undefined));
        },
      };
    },
  };

  return {
    admission,
    heard(message: FromOwner): void {
      if (message.kind === "room") {
        if (message.isFull) fullUntilMs.set(message.backend, Number.POSITIVE_INFINITY);
        else fullUntilMs.delete(message.backend);
        return;
      }
      const { id } = message;
      const waiting = asked.get(id);
      asked.delete(id);
      if (message.kind === "shed") waiting?.resolve({ shed: message.shed });
      else if (message.backend === undefined) {
        // There may be room for a smaller request, of which the owner says nothing.
        const backend = waiting?.backend;
        if (backend !== undefined && !fullUntilMs.has(backend)) fullUntilMs.set(backend, now() + REFUSED_MS);
        waiting?.resolve({ shed: NO_SLOT });
      }
      // Its client left while the answer was under way.
      else if (waiting === undefined) tell({ kind: "ended", id, end: undefined });
      else waiting.resolve({ slot: give(id, message.backend, waiting.ask) });
    },
    /** Another owner, which knows nothing of this process: it hears of all that waits and of all slots. */
    tellAgain(): void {
      fullUntilMs.clear();
      for (const [id, { slot, ask }] of held) tell({ kind: "holds", id, backend: slot.backend, ask });
      for (const [id, one] of asked) {
        const { backend, backends } = one;
        if (backend !== undefined) tell({ kind: "take", id, backend, ask: aged(one) });
        else tell({ kind: "wait", id, backends, ask: aged(one) });
      }
    },
    stop(): void {
      clearInterval(timer);
    },
  };
}

/** Where a slot was to be taken without a wait. */
const NO_SLOT: Shed = { reason: "queue_full", retryAfterMs: 0, waiting: 0 };

class RemoteSlot implements BackendSlot {
  readonly backend: string;
  readonly #over: (end: SlotEnd | undefined) => void;
  #isOver = false;
  #seen: { readonly tokens: number } | undefined;
  #told = 0;

  constructor(backend: string, over: (end: SlotEnd | undefined) => void) {
    this.backend = backend;
    this.#over = over;
  }

  watch(seen: { readonly tokens: number } | undefined): void {
    this.#seen = seen;
  }

  /** Undefined where there are none since the last look. */
  newTokens(): number | undefined {
    const tokens = this.#seen?.tokens ?? 0;
    if (tokens === this.#told) return undefined;
    this.#told = tokens;
    return tokens;
  }

  ended(end: SlotEnd | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#over(end && { ...end, outputTokens: end.outputTokens ?? this.#seen?.tokens });
  }
}

/**
 * Answers one other process; `answer` sends it a message.
 * @param owner - undefined while it is not in use
 * @param hold - a slot whether there is room or not, for processes that had one from an owner before
 */
export function createAdmissionDesk(
  owner: () => Admission | undefined,
  answer: (message: FromOwner) => void,
  hold?: (backend: string, ask: SlotQuery) => BackendSlot,
) {
  const slots = new Map<number, { slot: BackendSlot; counter: { tokens: number } }>();
  const waiting = new Map<number, QueuePlace>();
  let isGone = false;

  function give(id: number, slot: BackendSlot | undefined): void {
    if (isGone) {
      slot?.ended(undefined);
      return;
    }
    if (slot === undefined) return;
    const counter = { tokens: 0 };
    slot.watch(counter);
    slots.set(id, { slot, counter });
  }

  function taken(id: number, slot: BackendSlot | undefined): void {
    give(id, slot);
    answer({ kind: "granted", id, backend: slot?.backend });
  }

  function wait(id: number, backends: readonly string[], ask: SlotQuery): void {
    const own = owner();
    if (own === undefined) {
      answer({ kind: "shed", id, shed: { reason: "owner_gone", retryAfterMs: 1_000, waiting: 0 } });
      return;
    }
    const one = own.wait(ask, backends);
    waiting.set(id, one);
    void one.granted.then((granted) => {
      if (!waiting.delete(id)) {
        granted.slot?.ended(undefined); // it has left
        return;
      }
      if (granted.shed !== undefined) {
        answer({ kind: "shed", id, shed: granted.shed });
        return;
      }
      give(id, granted.slot);
      answer({ kind: "granted", id, backend: granted.slot.backend });
    });
  }

  return {
    heard(message: ToOwner): void {
      switch (message.kind) {
        case "take": {
          const { id, backend, ask } = message;
          const taking = owner()?.take(backend, ask);
          if (taking instanceof Promise) void taking.then((slot) => taken(id, slot));
          else taken(id, taking);
          break;
        }
        case "wait":
          wait(message.id, message.backends, message.ask);
          break;
        case "mayUse":
          waiting.get(message.id)?.mayUse(message.backends);
          break;
        case "leave":
          waiting.get(message.id)?.leave();
          waiting.delete(message.id);
          break;
        case "streamed":
          for (const [id, tokens] of message.tokens) {
            const held = slots.get(id);
            if (held !== undefined) held.counter.tokens = tokens;
          }
          break;
        case "ended":
          slots.get(message.id)?.slot.ended(message.end);
          slots.delete(message.id);
          break;
        case "holds":
          give(message.id, hold?.(message.backend, message.ask));
      }
    },
    /** The process is gone: what it had is free. */
    gone(): void {
      isGone = true;
      for (const { slot } of slots.values()) slot.ended(undefined);
      slots.clear();
      for (const one of waiting.values()) one.leave();
      waiting.clear();
    },
  };
}
