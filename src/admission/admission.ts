// What the pipeline asks before a backend is sent a request: a slot at it, at once or after a wait. All of it is plain data, because
// another process may own the slots and the order.

import type { Eventually } from "../lib/eventually.ts";

/** A request that asks for a slot. Times are durations, because processes have clocks of their own. */
export interface SlotQuery {
  /** Requests with the same text wait in one queue: the backends that serve the model. */
  group: string;
  model: string;
  class: string;
  /** Whose request it is, at every level of `admission.queue.fair_by`. */
  tenant: readonly string[];
  /** Expected, unweighted. */
  inputTokens: number;
  outputTokens: number;
  /** Since the request was asked for the first time: an attempt more keeps its place. */
  ageMs: number;
  /** The longest wait from now on. */
  patienceMs: number;
  /** It takes over a stream that broke off: it is served before all others. */
  goesFirst: boolean;
}

/** The same request when so much time has passed. */
export function laterBy(ask: SlotQuery, passedMs: number): SlotQuery {
  return { ...ask, ageMs: ask.ageMs + passedMs, patienceMs: Math.max(0, ask.patienceMs - passedMs) };
}

export type ShedReason = "queue_full" | "too_late" | "waited_too_long" | "owner_gone";

/** Why a request does not get a slot. */
export interface Shed {
  reason: ShedReason;
  /** When it is worth another try. */
  retryAfterMs: number;
  /** What waited at that time. */
  waiting: number;
}

/** What became of a request that had a slot. */
export interface SlotEnd {
  /** Undefined: unknown, what was expected counts. */
  inputTokens?: number | undefined;
  cachedTokens?: number | undefined;
  outputTokens?: number | undefined;
  /** Until the backend began to answer; undefined where it did not. */
  firstByteMs?: number | undefined;
  durationMs: number;
  stream: boolean;
  /** The backend said or showed that it has too much to do: 429, 503, a time limit. */
  isOverload: boolean;
}

/** The right to have one request at a backend. */
export interface BackendSlot {
  readonly backend: string;
  /** Where the tokens of a streamed answer are counted while it runs. */
  watch(seen: { readonly tokens: number } | undefined): void;
  /** Only the first call counts. Undefined: nothing was sent. */
  ended(end: SlotEnd | undefined): void;
}

export type Granted = { slot: BackendSlot; shed?: undefined } | { slot?: undefined; shed: Shed };

/** A request in the queue. */
export interface QueuePlace {
  readonly granted: Promise<Granted>;
  /** The backends that could be asked now, which change while it waits. */
  mayUse(backends: readonly string[]): void;
  /** The client left, or needs no slot any more; one that is granted all the same is given back. */
  leave(): void;
}

export interface Admission {
  /** True where another process has the slots: then `take` is a promise, and hasRoom is what was heard last. */
  readonly takesLater: boolean;
  /** Whether a request with so many tokens in all would get a slot now. */
  hasRoom(backend: string, tokens: number): boolean;
  /** A slot without a wait; undefined where there is none. */
  take(backend: string, ask: SlotQuery): Eventually<BackendSlot | undefined>;
  wait(ask: SlotQuery, backends: readonly string[]): QueuePlace;
}

/** One request that waits, as it is shown. */
interface ShownWaiting {
  model: string;
  class: string;
  tenant: readonly string[];
  /** How long it has waited, in milliseconds. */
  waitedMs: number;
}

export interface AdmissionView {
  /** The longest waits first; no more than SHOWN_WAITING. */
  waiting: readonly ShownWaiting[];
  groups: readonly {
    models: readonly string[];
    backends: readonly string[];
    waiting: number;
    perSecond: number | undefined;
  }[];
  models: readonly { model: string; class: string; waiting: number }[];
  classes: readonly { class: string; weight: number; waiting: number }[];
  backends: readonly {
    backend: string;
    inFlight: number;
    limit: number | undefined;
    tokens: number;
    maxTokens: number | undefined;
  }[];
}
