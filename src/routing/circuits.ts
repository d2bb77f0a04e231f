// The circuits of all backends: who may be asked, and what became of those that were.

import { type CircuitBreakerSettings, circuitPolicyFor } from "../config/sections/circuit-breaker.ts";
import type { UpstreamFailure } from "../upstream/failure.ts";
import { CircuitBreaker, type CircuitOutcome, type CircuitState, classifyOutcome } from "./circuit-breaker.ts";

/** The right to send one request. Whoever has it must settle it, whatever happens to the request. */
export interface Permit {
  /** The request tries a backend that failed before: others wait for its place until it is settled. */
  readonly isProbe: boolean;
  /** Only the first call counts, so that it may stand in a `finally` behind a better one. */
  settle(outcome: CircuitOutcome): void;
}

export interface CircuitChange {
  backend: string;
  from: CircuitState;
  to: CircuitState;
}

export interface Circuits {
  /** Whether acquire would give a permit now. Changes nothing, so that it can be asked of every candidate. */
  allows(backendName: string): boolean;
  /** Undefined: the circuit is open, or enough requests are trying the backend already. */
  acquire(backendName: string): Permit | undefined;
  /**
   * Resolves when a request that tries the backend has ended, or sooner; undefined unless the circuit is half open and
   * all places for such requests are taken.
   */
  trialEnd(backendName: string): Promise<void> | undefined;
  /** What the end of an attempt means for the circuit of this backend; undefined = it succeeded. */
  outcomeOf(backendName: string, failure: UpstreamFailure | undefined): CircuitOutcome;
  state(backendName: string): CircuitState;
  /** Milliseconds until an open circuit lets requests through; 0 unless it is open. */
  retryAfterMs(backendName: string): number;
  /** Health checks saw the backend come back: an open circuit tries it without waiting any longer. */
  recovered(backendName: string): void;
  /** Forgets every backend but these. */
  retain(backendNames: Iterable<string>): void;
  /** New settings; a circuit whose own settings stay the same keeps its state. */
  apply(settings: CircuitBreakerSettings): void;
}

export interface CircuitsParts {
  settings: CircuitBreakerSettings;
  /** Clock milliseconds. */
  now(): number;
  /** Called after each change of state. */
  changed?(change: CircuitChange): void;
}

const FREE_PERMIT: Permit = Object.freeze({ isProbe: false, settle() {} });

export function createCircuits(parts: CircuitsParts): Circuits {
  const { now } = parts;
  let { settings } = parts;
  let isOff = isOffEverywhere(settings);
  const circuits = new Map<string, Circuit>();

  function report(circuit: Circuit, from: CircuitState, to: CircuitState): void {
    // Requests of a circuit that was forgotten may still be under way; what it does now concerns nobody.
    if (circuits.get(circuit.name) === circuit) parts.changed?.({ backend: circuit.name, from, to });
  }

  /** The circuit of a backend, made when it is first asked for. */
  function circuitOf(name: string): Circuit {
    let circuit = circuits.get(name);
    if (circuit === undefined) {
      circuit = new Circuit(name, new CircuitBreaker(circuitPolicyFor(name, settings)), now, report);
      circuits.set(name, circuit);
    }
    return circuit;
  }

  return {
    allows(name) {
      if (isOff) return true;
      const breaker = circuits.get(name)?.breaker;
      return breaker === undefined || breaker.isClosed || breaker.allows(now());
    },
    acquire(name) {
      return isOff ? FREE_PERMIT : circuitOf(name).acquire();
    },
    trialEnd(name) {
      return circuits.get(name)?.trialEnd();
    },
    outcomeOf(name, failure) {
      // Without a failure there is nothing to look up.
      return failure === undefined
        ? "success"
        : classifyOutcome(failure, circuits.get(name)?.breaker.policy ?? settings);
    },
    state(name) {
      return circuits.get(name)?.breaker.state(now()) ?? "closed";
    },
    retryAfterMs(name) {
      return circuits.get(name)?.breaker.opensInMs(now()) ?? 0;
    },
    recovered(name) {
      circuits.get(name)?.breaker.endTimeout(now());
    },
    retain(names) {
      const known = new Set(names);
      for (const name of circuits.keys()) {
        if (!known.has(name)) circuits.delete(name);
      }
    },
    apply(next) {
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

type ChangeListener = (circuit: Circuit, from: CircuitState, to: CircuitState) => void;

class Circuit {
  readonly name: string;
  readonly breaker: CircuitBreaker;
  readonly #now: () => number;
  readonly #changed: ChangeListener;
  /** Set while somebody waits for it. */
  #trialEnd: PromiseWithResolvers<void> | undefined;

  constructor(name: string, breaker: CircuitBreaker, now: () => number, changed: ChangeListener) {
    this.name = name;
    this.breaker = breaker;
    this.#now = now;
    this.#changed = changed;
  }

  acquire(): Permit | undefined {
    const { breaker } = this;
    if (!breaker.policy.enabled) return FREE_PERMIT;
    // A closed circuit admits at any time, so that the usual case need not look at the clock.
    if (breaker.isClosed) return new CircuitPermit(this, breaker.admit(0) as number, false);
    const nowMs = this.#now();
    const from = breaker.entered;
    const ticket = breaker.admit(nowMs);
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

  trialEnd(): Promise<void> | undefined {
    // A half-open circuit admits by the number of trials, whatever the time.
    if (this.breaker.entered !== "half_open" || this.breaker.allows(0)) return undefined;
    this.#trialEnd ??= Promise.withResolvers<void>();
    return this.#trialEnd.promise;
  }

  #reportChange(from: CircuitState): void {
    const to = this.breaker.entered;
    if (to !== from) this.#changed(this, from, to);
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
