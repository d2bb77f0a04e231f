// The circuits of all backends: who may be asked, and what became of those that were.

import { type CircuitBreakerSettings, circuitPolicyFor } from "../config/sections/circuit-breaker.ts";
import { getOrMake } from "../lib/get-or-make.ts";
import type { UpstreamFailure } from "../upstream/failure.ts";
import { CircuitBreaker, type CircuitOutcome, type CircuitState, classifyOutcome } from "./circuit-breaker.ts";

/** The right to send one request. Its holder must settle it, whatever happens to the request. */
export interface Permit {
  /** The request tries a backend that failed before: others wait for its place until it is settled. */
  readonly isProbe: boolean;
  /** Where the circuit belongs to another process: whether it admits the request after all. False: nothing to settle. */
  readonly confirmed?: Promise<boolean>;
  /** Only the first call counts, so that it may stand in a `finally` behind a better one. */
  settle(outcome: CircuitOutcome): void;
}

export interface CircuitChange {
  backend: string;
  from: CircuitState;
  to: CircuitState;
}

interface CircuitsParts {
  settings: CircuitBreakerSettings;
  /** Clock milliseconds. */
  now(): number;
  /** Called after each change of state. */
  changed?(change: CircuitChange): void;
}

type OwnedCircuits = ReturnType<typeof createCircuits>;

/** The part that requests use, in whichever process they run. */
export type Circuits = Omit<OwnedCircuits, "view" | "report" | "reportEarlier" | "reset">;

const FREE_PERMIT: Permit = Object.freeze({ isProbe: false, settle() {} });

export function createCircuits({ settings: first, now, changed }: CircuitsParts) {
  let settings = first;
  let isOff = isOffEverywhere(settings);
  const circuits = new Map<string, Circuit>();

  function newCircuit(name: string): Circuit {
    const circuit = new Circuit(new CircuitBreaker(circuitPolicyFor(name, settings)), now, (from, to) => {
      // Requests of a circuit that was forgotten may still be under way; what it does now no longer matters.
      if (circuits.get(name) === circuit) changed?.({ backend: name, from, to });
    });
    return circuit;
  }

  return {
    /** True if acquire would give a permit now. Changes nothing, so that it can be asked of every candidate. */
    allows(name: string): boolean {
      if (isOff) return true;
      const breaker = circuits.get(name)?.breaker;
      return breaker === undefined || breaker.isClosed || breaker.allows(now());
    },
    /** True if some requests reach the backend: its circuit is not open, or the panic rule opens it to some. */
    letsThrough: (name: string): boolean => {
      const breaker = circuits.get(name)?.breaker;
      return isOff || breaker === undefined || breaker.state(now()) !== "open" || breaker.policy.panic;
    },
    /** True if acquire would give a permit to a request for which no other backend is left. */
    allowsInPanic(name: string): boolean {
      return isOff || (circuits.get(name)?.breaker.allowsInPanic(now()) ?? true);
    },
    /**
     * Undefined: the circuit is open, or enough requests are trying the backend already.
     * @param inPanic - no backend could be asked otherwise
     */
    acquire(name: string, inPanic = false): Permit | undefined {
      return isOff ? FREE_PERMIT : getOrMake(circuits, name, newCircuit).acquire(inPanic);
    },
    /**
     * Resolves when a request that tries the backend has ended, or sooner; undefined unless the circuit is half open and
     * all places for such requests are taken.
     */
    trialEnd: (name: string) => circuits.get(name)?.trialEnd(),
    /** The meaning of an attempt's end for this backend's circuit; undefined = it succeeded. */
    outcomeOf(name: string, failure: UpstreamFailure | undefined): CircuitOutcome {
      // Without a failure there is nothing to look up.
      return failure === undefined
        ? "success"
        : classifyOutcome(failure, circuits.get(name)?.breaker.policy ?? settings);
    },
    state: (name: string): CircuitState => circuits.get(name)?.breaker.state(now()) ?? "closed",
    /** Milliseconds since the circuit was closed last; undefined while it is, and in processes that do not own it. */
    troubledForMs: (name: string): number | undefined => {
      const sinceMs = circuits.get(name)?.troubledSinceMs;
      return sinceMs === undefined ? undefined : now() - sinceMs;
    },
    /** Milliseconds until an open circuit lets requests through; 0 unless it is open. */
    retryAfterMs: (name: string) => circuits.get(name)?.breaker.opensInMs(now()) ?? 0,
    /** Health checks saw the backend come back: an open circuit tries it without waiting any longer. */
    recovered: (name: string) => circuits.get(name)?.breaker.endTimeout(now()),
    /** Closes the circuit and forgets what was counted; returns the state before. */
    reset(name: string): CircuitState {
      const from = circuits.get(name)?.breaker.state(now()) ?? "closed";
      circuits.delete(name);
      if (from !== "closed") changed?.({ backend: name, from, to: "closed" });
      return from;
    },
    /** The state of a circuit for the workers. */
    view(name: string) {
      const { breaker } = getOrMake(circuits, name, newCircuit);
      const nowMs = now();
      return {
        isEnabled: !isOff && breaker.policy.enabled,
        // A worker begins to count down when it hears of the opening, and so ends later.
        state: breaker.state(nowMs),
        opensInMs: breaker.opensInMs(nowMs),
        isCounting: breaker.consecutiveFailures > 0,
        hasRoom: breaker.probes < breaker.policy.half_open_max_requests,
      };
    },
    /** The end of a request that another process has admitted, in milliseconds of this one's clock. */
    report(name: string, admittedMs: number, outcome: CircuitOutcome, endedMs: number): void {
      if (!isOff) circuits.get(name)?.report(admittedMs, outcome, endedMs);
    },
    /** Successes of another process, of a moment ago. */
    reportEarlier(name: string, successes: number): void {
      if (!isOff) circuits.get(name)?.breaker.recordEarlier(successes, now());
    },
    /** Forgets every backend but these. */
    retain(names: Iterable<string>): void {
      const known = new Set(names);
      for (const name of circuits.keys()) {
        if (!known.has(name)) circuits.delete(name);
      }
    },
    /** New settings; a circuit whose own settings stay the same keeps its state. */
    apply(next: CircuitBreakerSettings): void {
      settings = next;
      isOff = isOffEverywhere(next);
      for (const [name, { breaker }] of circuits) {
        if (!Bun.deepEquals(circuitPolicyFor(name, next), breaker.policy)) circuits.delete(name);
      }
    },
  };
}

function isOffEverywhere({ enabled, backends }: CircuitBreakerSettings): boolean {
  return !enabled && !Object.values(backends).some((own) => own.enabled === true);
}

class Circuit {
  readonly breaker: CircuitBreaker;
  /** When it left the closed state; undefined while it is closed. */
  troubledSinceMs: number | undefined;
  readonly #now: () => number;
  readonly #changed: (from: CircuitState, to: CircuitState) => void;
  /** Set while a wait for it is under way. */
  #trialEnd: PromiseWithResolvers<void> | undefined;

  constructor(breaker: CircuitBreaker, now: () => number, changed: (from: CircuitState, to: CircuitState) => void) {
    this.breaker = breaker;
    this.#now = now;
    this.#changed = changed;
  }

  acquire(inPanic: boolean): Permit | undefined {
    const { breaker } = this;
    if (!breaker.policy.enabled) return FREE_PERMIT;
    // A closed circuit admits at any time, so that the usual case need not look at the clock.
    if (breaker.isClosed) return new CircuitPermit(this, breaker.admit(0) as number, false);
    const nowMs = this.#now();
    const from = breaker.entered;
    const ticket = breaker.admit(nowMs, inPanic);
    if (ticket === undefined) return undefined;
    this.#reportChange(from);
    return new CircuitPermit(this, ticket, true);
  }

  settle(ticket: number, outcome: CircuitOutcome): void {
    const from = this.breaker.entered;
    this.breaker.record(ticket, outcome, this.#now());
    this.#reportChange(from);
    const ended = this.#trialEnd;
    this.#trialEnd = undefined;
    ended?.resolve();
  }

  report(admittedMs: number, outcome: CircuitOutcome, endedMs: number): void {
    if (!this.breaker.policy.enabled) return;
    const from = this.breaker.entered;
    this.breaker.recordElsewhere(admittedMs, outcome, endedMs);
    this.#reportChange(from);
  }

  trialEnd(): Promise<void> | undefined {
    // A half-open circuit admits by the number of trials, whatever the time.
    if (this.breaker.entered !== "half_open" || this.breaker.allows(0)) return undefined;
    this.#trialEnd ??= Promise.withResolvers<void>();
    return this.#trialEnd.promise;
  }

  #reportChange(from: CircuitState): void {
    const to = this.breaker.entered;
    if (to === from) return;
    if (from === "closed") this.troubledSinceMs = this.#now();
    else if (to === "closed") this.troubledSinceMs = undefined;
    this.#changed(from, to);
  }
}

class CircuitPermit implements Permit {
  readonly isProbe: boolean;
  /** Undefined once settled. */
  #circuit: Circuit | undefined;
  readonly #ticket: number;

  constructor(circuit: Circuit, ticket: number, isProbe: boolean) {
    this.#circuit = circuit;
    this.#ticket = ticket;
    this.isProbe = isProbe;
  }

  settle(outcome: CircuitOutcome): void {
    const circuit = this.#circuit;
    this.#circuit = undefined;
    circuit?.settle(this.#ticket, outcome);
  }
}
