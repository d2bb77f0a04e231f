// The circuit of one backend as a state machine without a clock: outcomes and times in, admissions out.
// docs/resilience.md describes its states.

import type { CircuitPolicy } from "../config/sections/circuit-breaker.ts";
import { isCredentialRefusal, type UpstreamFailure } from "../upstream/failure.ts";

export type CircuitState = "closed" | "open" | "half_open";

/**
 * The meaning of a request's end for its backend. `overload`: the backend is alive, but has more work than it can take.
 * `neutral`: none, because the client left or made a mistake of its own. Neither moves the circuit.
 */
export type CircuitOutcome = "success" | "failure" | "overload" | "neutral";

/** Failures are judged over this time. */
export const WINDOW_MS = 60_000;
/**
 * Requests that run when a backend breaks all fail within moments of each other, and say together what one of them
 * says. Longer than this they do not arrive together: requests to a host that swallows them time out one by one, and
 * each of these is news.
 */
export const INCIDENT_MS = 1_000;

const BUCKETS = 12;
const BUCKET_MS = WINDOW_MS / BUCKETS;
/** Counts in one bucket. */
const COUNTS = 3;

export function classifyOutcome(
  failure: UpstreamFailure | undefined,
  policy: Pick<CircuitPolicy, "failure_status_codes">,
): CircuitOutcome {
  if (failure === undefined) return "success";
  switch (failure.kind) {
    case "connect":
    case "reset":
    case "invalid-response":
      return "failure";
    case "told-in-stream":
      return failure.told === undefined ? "failure" : classifyOutcome(failure.told, policy);
    case "timeout":
      // The time of the whole request may have been spent on other backends, on waits, or by a client that reads slowly.
      return failure.phase === "request" ? "neutral" : "failure";
    case "status":
      if (failure.isSpent) return "neutral";
      if (isCredentialRefusal(failure)) return "failure";
      if (failure.status === 429 || (failure.status === 503 && failure.retryAfterMs !== undefined)) return "overload";
      return failure.status >= 500 && policy.failure_status_codes.includes(failure.status) ? "failure" : "neutral";
    case "aborted":
      return "neutral";
  }
}

/**
 * Every admitted request holds a ticket: the number of the last change it could know of. A change is a new state or
 * the first failure of an incident. From the ticket follows what its outcome may say:
 *
 * - An outcome counts only if its request was admitted in the present state, that is after the last change of state.
 *   So what was under way when the circuit opened neither opens it again nor prolongs it nor spoils the next trial.
 * - A failure belongs to the present incident if its request was admitted before the first failure of the incident was
 *   recorded and it arrives at most INCIDENT_MS later. An incident counts once towards failure_threshold. Any other
 *   failure begins a new incident.
 * - The failure rate counts every failure, but opens the circuit only if they are of two incidents or more: a backend
 *   that was restarted under full load, and is back, stays in service.
 */
export class CircuitBreaker {
  readonly policy: CircuitPolicy;
  #state: CircuitState = "closed";
  #changes = 0;
  /** Number of the change that led to the present state. */
  #enteredAt = 0;
  /** Number of the change that the present incident's first failure was. */
  #enteredMs = Number.NEGATIVE_INFINITY;
  #incidentAt = 0;
  #incidentSinceMs = Number.NEGATIVE_INFINITY;
  #incidentsInARow = 0;
  /** Only valid while the circuit is open. */
  #opensAtMs = 0;
  #probes = 0;
  #successes = 0;
  readonly #window = new OutcomeWindow();

  constructor(policy: CircuitPolicy) {
    this.policy = policy;
  }

  get isClosed(): boolean {
    return this.#state === "closed";
  }

  /** The state that was entered last; a timeout that has passed since then shows in state() only. */
  get entered(): CircuitState {
    return this.#state;
  }

  /** Failures in a row, those of one incident counted once. */
  get consecutiveFailures(): number {
    return this.#incidentsInARow;
  }

  /** Requests that try the backend now. */
  get probes(): number {
    return this.#probes;
  }

  /** An open circuit is half open as soon as its timeout has passed, even if no request has come yet. */
  state(nowMs: number): CircuitState {
    return this.#state === "open" && nowMs >= this.#opensAtMs ? "half_open" : this.#state;
  }

  /** True if admit would return a ticket; changes nothing. */
  allows(nowMs: number): boolean {
    if (this.#state === "closed") return true;
    if (this.#state === "open") return nowMs >= this.#opensAtMs;
    return this.#probes < this.policy.half_open_max_requests;
  }

  /**
   * True if admit would return a ticket to a request for which no other backend is left. With the policy's `panic` an open
   * circuit is then tried before its timeout has passed, by as many requests at a time as a half-open one.
   */
  allowsInPanic(nowMs: number): boolean {
    return this.allows(nowMs) || (this.#state === "open" && this.policy.panic);
  }

  /** Milliseconds until an open circuit lets requests through; 0 unless it is open. */
  opensInMs(nowMs: number): number {
    return this.#state === "open" ? Math.max(0, this.#opensAtMs - nowMs) : 0;
  }

  /**
   * The ticket of a request that may be sent, to be given to record exactly once; undefined = refused.
   * @param inPanic - see allowsInPanic; such a request is a trial of a half-open circuit like any other
   */
  admit(nowMs: number, inPanic = false): number | undefined {
    if (this.#state === "closed") return this.#changes;
    if (!(inPanic ? this.allowsInPanic(nowMs) : this.allows(nowMs))) return undefined;
    if (this.#state === "open") this.#enter("half_open", nowMs);
    this.#probes++;
    return this.#changes;
  }

  record(ticket: number, outcome: CircuitOutcome, nowMs: number): void {
    if (ticket < this.#enteredAt) return;
    if (this.#state === "half_open") this.#recordProbe(outcome, nowMs);
    else if (outcome === "success") this.#recordSuccess(nowMs);
    else if (outcome === "failure") this.#recordFailure(ticket, nowMs);
  }

  /**
   * The outcome of a request that another process has admitted, because it took the circuit for closed: instead of a ticket
   * the time of its admission tells what it could know of.
   */
  recordElsewhere(admittedMs: number, outcome: CircuitOutcome, endedMs: number): void {
    if (this.#state !== "closed" || admittedMs < this.#enteredMs) return;
    const isNews = admittedMs >= this.#incidentSinceMs;
    this.record(isNews ? this.#changes : this.#enteredAt, outcome, endedMs);
  }

  /** Successes of before the failures that are being counted: they do not end the row of these. */
  recordEarlier(successes: number, nowMs: number): void {
    if (this.#state !== "closed") return;
    for (let count = 0; count < successes; count++) this.#window.add(nowMs, false, false);
  }

  /** The backend has proven otherwise that it is back: an open circuit tries it without waiting any longer. */
  endTimeout(nowMs: number): void {
    if (this.#state === "open") this.#opensAtMs = Math.min(this.#opensAtMs, nowMs);
  }

  #recordProbe(outcome: CircuitOutcome, nowMs: number): void {
    this.#probes--;
    if (outcome === "failure") this.#open(nowMs);
    else if (outcome === "success" && ++this.#successes >= this.policy.success_threshold) this.#enter("closed", nowMs);
  }

  #recordSuccess(nowMs: number): void {
    this.#incidentsInARow = 0;
    this.#window.add(nowMs, false, false);
  }

  #recordFailure(ticket: number, nowMs: number): void {
    const isNews = ticket >= this.#incidentAt || nowMs - this.#incidentSinceMs > INCIDENT_MS;
    if (isNews) {
      this.#incidentAt = ++this.#changes;
      this.#incidentSinceMs = nowMs;
      this.#incidentsInARow++;
    }
    this.#window.add(nowMs, true, isNews);
    if (this.#incidentsInARow >= this.policy.failure_threshold || this.#exceedsRate()) this.#open(nowMs);
  }

  #exceedsRate(): boolean {
    const { requests, failures, incidents } = this.#window.totals();
    if (incidents < 2 || requests < this.policy.minimum_requests) return false;
    return failures / requests >= this.policy.failure_rate_threshold;
  }

  #open(nowMs: number): void {
    this.#opensAtMs = nowMs + this.policy.timeout;
    this.#enter("open", nowMs);
  }

  /** Every state begins with nothing counted. */
  #enter(state: CircuitState, nowMs: number): void {
    this.#state = state;
    this.#enteredMs = nowMs;
    this.#incidentSinceMs = nowMs;
    this.#enteredAt = ++this.#changes;
    this.#incidentAt = this.#changes; // every request of this state is younger, so that its first failure is news
    this.#incidentsInARow = 0;
    this.#probes = 0;
    this.#successes = 0;
    this.#window.clear();
  }
}

/** Counts of the last minute in a fixed number of buckets; a whole bucket leaves at a time. */
class OutcomeWindow {
  /** Requests, failures and incidents of each bucket. */
  readonly #counts = new Uint32Array(BUCKETS * COUNTS);
  /** Number of the newest bucket since time zero. */
  #newest = Number.NEGATIVE_INFINITY;

  add(nowMs: number, isFailure: boolean, isIncident: boolean): void {
    this.#advance(Math.floor(nowMs / BUCKET_MS));
    const base = baseOf(this.#newest);
    this.#counts[base]!++;
    if (isFailure) this.#counts[base + 1]!++;
    if (isIncident) this.#counts[base + 2]!++;
  }

  totals(): { requests: number; failures: number; incidents: number } {
    const totals = { requests: 0, failures: 0, incidents: 0 };
    for (let base = 0; base < this.#counts.length; base += COUNTS) {
      totals.requests += this.#counts[base]!;
      totals.failures += this.#counts[base + 1]!;
      totals.incidents += this.#counts[base + 2]!;
    }
    return totals;
  }

  clear(): void {
    this.#newest = Number.NEGATIVE_INFINITY;
    this.#counts.fill(0);
  }

  #advance(bucket: number): void {
    if (bucket - this.#newest >= BUCKETS) this.clear();
    if (this.#newest === Number.NEGATIVE_INFINITY) this.#newest = bucket;
    while (this.#newest < bucket) {
      const base = baseOf(++this.#newest);
      this.#counts.fill(0, base, base + COUNTS);
    }
  }
}

/** Never negative, though clocks may start below zero. */
function baseOf(bucket: number): number {
  return (((bucket % BUCKETS) + BUCKETS) % BUCKETS) * COUNTS;
}
