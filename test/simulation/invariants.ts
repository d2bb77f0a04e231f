// What must hold at every moment of a simulation, judged from outside of the code under test.
//
// Promised, and checked strictly:
// - Order: a request goes to an available backend before one that is not, to an untried one before a tried one, and to
//   a standby (weight 0) only when no other of its kind is left; only those count whose circuit and limit have room.
// - Giving up: a model is given up only for an answer that may not be retried, after max_attempts attempts that met a
//   backend, at the request's deadline, or when no backend of it is available with an allowing circuit and room.
// - Steadfast: a request does not fail while a backend of its model, or of a model of its chain, was fine, available,
//   with a closed circuit and with room, from the request's beginning to its end. What "would have answered" means:
//   max_attempts is at least the number of backends of that model (else others' failures may use the attempts up), no
//   answer came that may not be retried (a 4xx or 500), and the deadline was more than max_delay away.
//   A stream that has begun is promised this only with a chain and up to max_fallback_attempts switches; an error event
//   that a backend sends behind its finish_reason is handed on, as no other backend can go on from there. A storm of 429 on all backends leaves nobody steadfast:
//   then only Order and Giving up hold, and the client sees the 429 of its last attempt, or that every circuit is open.
// - Limits: each bucket admits at most burst + rate * time, over every span of time.
// - Circuits: no permit while open, and while half open never more than half_open_max_requests at a time.
// - Removal: a backend that was removed gets no new request, and what is in flight there does not fail for it: nothing
//   breaks at a backend that was fine from the request's beginning to its end.
// - Leaving: a client that leaves ends its request at once, whatever the request waits for.
// - Nothing is left over: see `finish` in simulation.ts.

import type { BackendEntry } from "../../src/backends/board.ts";
import type { BackendRegistry } from "../../src/backends/registry.ts";
import { GatewayError } from "../../src/errors/gateway-error.ts";
import type { RequestContext } from "../../src/pipeline/context.ts";
import type { Forwarder } from "../../src/pipeline/forward.ts";
import type { ModelRequest } from "../../src/pipeline/model-request.ts";
import type { LimitQuery } from "../../src/rate-limit/limit-rules.ts";
import type { MemoryLimiter } from "../../src/rate-limit/limiter.ts";
import type { Circuits, Permit } from "../../src/routing/circuits.ts";
import { isRetryable, type UpstreamFailure } from "../../src/upstream/failure.ts";
import type { Sender } from "../../src/upstream/send.ts";
import type { Network } from "./network.ts";
import type { Scenario } from "./scenario.ts";
import type { VirtualTime } from "./virtual-time.ts";

export class Violation extends Error {}

/** One request on one model. */
interface Walk {
  context: RequestContext;
  request: ModelRequest;
  deadlineMs: number;
  tried: Set<string>;
  counted: number;
  hadFinalFailure: boolean;
}

export interface InvariantsParts {
  scenario: Scenario;
  time: VirtualTime;
  network: Network;
  registry: BackendRegistry;
  /** Those of the real code, not the watched ones. */
  circuits: Circuits;
  limiter: MemoryLimiter;
  trace(line: string): void;
}

export class Invariants {
  readonly violations: string[] = [];
  readonly touched = new Set<string>();
  /** How often Steadfast was judged, and how often somebody was. */
  judged = 0;
  permitsOut = 0;
  attempts = 0;
  retries = 0;
  readonly #parts: InvariantsParts;
  readonly #walks = new Map<string, Walk>();
  readonly #unavailableUntilMs = new Map<string, number>();
  readonly #circuitChangedMs = new Map<string, number>();
  readonly #fullUntilMs = new Map<string, number>();
  readonly #circuitAge = new Map<string, number>();
  readonly #probes = new Map<string, { age: number; count: number }>();
  readonly #buckets = new Map<string, { tokens: number; atMs: number }>();

  constructor(parts: InvariantsParts) {
    this.#parts = parts;
  }

  fail(message: string): void {
    const line = `at ${this.#parts.time.nowMs.toFixed(3)} ms: ${message}`;
    this.violations.push(line);
    this.#parts.trace(`VIOLATION ${line}`);
  }

  /** Number of requests that are remembered. */
  get size(): number {
    return this.#walks.size + this.#probes.size + this.#circuitAge.size;
  }

  boardChanged(name: string, available: boolean): void {
    this.#unavailableUntilMs.set(name, available ? this.#parts.time.nowMs : Number.POSITIVE_INFINITY);
  }

  circuitChanged(name: string): void {
    this.#circuitChangedMs.set(name, this.#parts.time.nowMs);
    this.#circuitAge.set(name, (this.#circuitAge.get(name) ?? 0) + 1);
  }

  // --- what is watched ---

  watchCircuits(circuits: Circuits): Circuits {
    const { settings } = this.#parts.scenario;
    const acquire = (name: string, inPanic = false): Permit | undefined => {
      const before = circuits.state(name);
      const permit = circuits.acquire(name, inPanic);
      if (permit === undefined) return undefined;
      if (before === "open" && !inPanic) this.fail(`a permit of ${name} while its circuit is open`);
      if (before === "half_open" && !permit.isProbe) this.fail(`a permit of ${name} that is no trial, half open`);
      const age = this.#circuitAge.get(name) ?? 0;
      if (permit.isProbe) {
        const probes = this.#probes.get(name);
        const count = probes?.age === age ? probes.count + 1 : 1;
        this.#probes.set(name, { age, count });
        const most = settings.circuit_breaker.half_open_max_requests;
        if (count > most) this.fail(`${count} requests try ${name} at a time, ${most} may`);
      }
      this.permitsOut++;
      let isOut = true;
      return {
        isProbe: permit.isProbe,
        settle: (outcome) => {
          if (isOut) {
            isOut = false;
            this.permitsOut--;
            const probes = this.#probes.get(name);
            if (permit.isProbe && probes?.age === age) probes.count--;
          }
          permit.settle(outcome);
        },
      };
    };
    return { ...circuits, acquire };
  }

  /** Counts what is admitted in buckets of its own, which are never forgotten. */
  watchLimiter(limiter: MemoryLimiter): MemoryLimiter {
    const { settings } = this.#parts.scenario;
    const { enabled, limits } = settings.rate_limiting;
    const spend = (bucket: string, perSecond: number, burst: number) => {
      const { nowMs } = this.#parts.time;
      const { tokens, atMs } = this.#buckets.get(bucket) ?? { tokens: burst, atMs: nowMs };
      const left = Math.min(burst, tokens + ((nowMs - atMs) * perSecond) / 1000) - 1;
      this.#buckets.set(bucket, { tokens: left, atMs: nowMs });
      // The limiter rounds the time to whole microseconds.
      if (left < -0.000_01 * perSecond) this.fail(`${bucket} was given more than its limit and burst (${left})`);
    };
    const spendOf = (bucket: string, { requests_per_second, burst_capacity }: typeof limits.global) =>
      spend(bucket, requests_per_second, burst_capacity);
    return {
      limitsRequests: limiter.limitsRequests,
      hasBypassKeys: limiter.hasBypassKeys,
      limitsBackends: limiter.limitsBackends,
      takesLater: limiter.takesLater,
      buckets: limiter.buckets,
      putBack: limiter.putBack,
      takeForGuess: limiter.takeForGuess,
      guessRefusal: limiter.guessRefusal,
      backendHasRoom: limiter.backendHasRoom,
      backendRefusal: limiter.backendRefusal,
      get size() {
        return limiter.size;
      },
      take: (query: LimitQuery) => {
        const decision = limiter.take(query);
        if (decision !== undefined && !decision.allowed) return decision;
        const { keyId } = query;
        const own = query.perMinute;
        if (own !== undefined) spend(`key ${keyId}`, own / 60, own);
        if (!enabled) return decision;
        spendOf(`client ${query.clientAddress}`, limits.per_client);
        if (keyId !== undefined && own === undefined) spendOf(`key ${keyId}`, limits.per_api_key);
        spendOf("everyone", limits.global);
        return decision;
      },
      takeBackend: (name) => {
        const isTaken = limiter.takeBackend(name);
        if (!enabled) return isTaken;
        if (isTaken) spendOf(`backend ${name}`, limits.per_backend);
        if (!limiter.backendHasRoom(name)) {
          this.#fullUntilMs.set(name, this.#parts.time.nowMs + 1000 / limits.per_backend.requests_per_second + 1);
        }
        return isTaken;
      },
    };
  }

  watchSender(sender: Sender): Sender {
    return {
      send: async (entry, request, settings) => {
        const { name } = entry.backend;
        const walk = this.#walks.get(request.trace.id);
        if (walk === undefined) throw new Error(`nobody waits for request ${request.trace.id}`);
        this.touched.add(name);
        this.attempts++;
        if (walk.tried.size > 0) this.retries++;
        this.#parts.trace(`${request.trace.id} ${request.model} -> ${name}`);
        this.#judgeOrder(walk, entry);
        if (!this.#parts.registry.current.entries.some(({ counters }) => counters === entry.counters)) {
          this.fail(`${request.trace.id} was sent to ${name}, which was removed`);
        }
        const sinceMs = this.#parts.time.nowMs;
        if (walk.hadFinalFailure) this.fail(`${request.trace.id} was sent again after an answer that is final`);
        const outcome = await sender.send(entry, request, settings);
        this.touched.add(name);
        walk.tried.add(name);
        if (!outcome.ok) {
          const { failure } = outcome;
          this.#judgeBreak(walk.context.id, name, failure, sinceMs);
          const notConnected =
            failure.kind === "connect" || (failure.kind === "timeout" && failure.phase === "connect");
          const isUntriedLeft = this.#willing(walk.request.model).some((other) => this.#rank(walk, other) < 2);
          if (!notConnected || !isUntriedLeft) walk.counted++;
          if (!isRetryable(failure, settings.retry.status_codes)) walk.hadFinalFailure = true;
        }
        return outcome;
      },
    };
  }

  watchForwarder(forwarder: Forwarder): Forwarder {
    return {
      hasOther: forwarder.hasOther,
      hasPool: forwarder.hasPool,
      forward: async (context, request) => {
        const walk: Walk = {
          context,
          request,
          deadlineMs: context.record.startedAtMs + context.settings.timeouts.request * request.patience,
          tried: new Set(),
          counted: 0,
          hadFinalFailure: false,
        };
        this.#walks.set(context.id, walk);
        try {
          const result = await forwarder.forward(context, request);
          if (result.kind === "failed") this.#judgeGivingUp(walk, result.failure);
          if (result.kind === "stream") {
            const { live, entry } = result;
            const { finished } = live;
            const sinceMs = live.exchange.startedAtMs;
            live.finished = (failure) => {
              if (failure !== undefined) this.#judgeBreak(context.id, entry.backend.name, failure, sinceMs);
              finished(failure);
            };
          }
          return result;
        } catch (error) {
          if (!(error instanceof GatewayError)) this.fail(`${context.id} ended with ${error}`);
          const willing = this.#willing(request.model);
          const isLeft = context.client.signal.aborted;
          if (willing.length > 0 && !isLeft)
            this.fail(`${context.id} was refused (${error}) while ${listOf(willing)} had room`);
          throw error;
        } finally {
          this.#walks.delete(context.id);
        }
      },
    };
  }

  // --- what is judged ---

  /** A backend that was ready to answer throughout since then; only of models all of whose backends could be asked. */
  steadfast(models: readonly string[], sinceMs: number): string | undefined {
    this.judged++;
    const { registry, circuits, network, limiter, scenario } = this.#parts;
    const wasCalm = (untilMs: number | undefined) => (untilMs ?? Number.NEGATIVE_INFINITY) < sinceMs;
    for (const model of models) {
      const board = registry.current;
      // Those that are removed now may have used an attempt up before.
      const backends = scenario.settings.backends.filter(({ models }) => models?.includes(model));
      if (backends.length > scenario.settings.retry.max_attempts) continue;
      for (const { backend } of board.candidates(model)) {
        const { name } = backend;
        const isSteadfast =
          wasCalm(network.backends.get(name)?.troubledUntilMs) &&
          wasCalm(this.#unavailableUntilMs.get(name) ?? Number.POSITIVE_INFINITY) &&
          wasCalm(this.#circuitChangedMs.get(name)) &&
          wasCalm(this.#fullUntilMs.get(name)) &&
          circuits.state(name) === "closed" &&
          limiter.backendHasRoom(name);
        if (isSteadfast) return name;
      }
    }
    return undefined;
  }

  /** Backends of a model that could take a request now. */
  #willing(model: string): BackendEntry[] {
    const { registry, circuits, limiter } = this.#parts;
    return registry.current
      .candidates(model)
      .filter(({ backend }) => circuits.allows(backend.name) && limiter.backendHasRoom(backend.name));
  }

  /** 0 untried, 1 untried standby, 2 tried, 3 tried standby. */
  #rank(walk: Walk, { backend }: BackendEntry): number {
    const isTried = walk.tried.has(backend.name) || walk.request.avoid.has(backend.name);
    return (isTried ? 2 : 0) + (backend.weight > 0 ? 0 : 1);
  }

  #judgeOrder(walk: Walk, entry: BackendEntry): void {
    const { name } = entry.backend;
    const candidates = this.#parts.registry.current.candidates(walk.request.model);
    const isAvailable = candidates.some(({ backend }) => backend.name === name);
    const rank = isAvailable ? this.#rank(walk, entry) : 4;
    if (rank === 0) return;
    const better = this.#willing(walk.request.model).filter(
      (other) => other.backend.name !== name && this.#rank(walk, other) < rank,
    );
    if (better.length > 0) {
      const what = ["", "a standby", "a tried one", "a tried standby", "not available"][rank];
      this.fail(`${walk.context.id} was sent to ${name} (${what}) while ${listOf(better)} had room`);
    }
  }

  #judgeBreak(id: string, name: string, failure: UpstreamFailure, sinceMs: number): void {
    if (failure.kind !== "reset" && failure.kind !== "connect") return;
    const wasFine = (this.#parts.network.backends.get(name)?.troubledUntilMs ?? 0) < sinceMs;
    if (wasFine) this.fail(`${id} broke at ${name} (${failure.message}), which was fine`);
  }

  #judgeGivingUp(walk: Walk, failure: UpstreamFailure): void {
    const { context, request } = walk;
    if (failure.kind === "aborted") {
      if (!context.client.signal.aborted) this.fail(`${context.id} was ended, but its client is still there`);
      return;
    }
    if (context.client.signal.aborted || walk.hadFinalFailure) return;
    const { max_attempts, max_delay } = context.settings.retry;
    if (walk.counted >= max_attempts) return;
    const willing = this.#willing(request.model);
    const mayWait = willing.every((entry) => this.#rank(walk, entry) >= 2);
    if (this.#parts.time.nowMs + (mayWait ? max_delay : 0) >= walk.deadlineMs) return;
    if (willing.length > 0) {
      this.fail(
        `${context.id} gave ${request.model} up after ${walk.counted} attempts (${failure.kind}) while ${listOf(willing)} had room`,
      );
    }
  }
}

function listOf(entries: readonly BackendEntry[]): string {
  return entries
    .slice(0, 5)
    .map(({ backend }) => backend.name)
    .join(", ");
}
