// One simulation: the real decision code, wired to virtual time, a simulated network and watchful invariants.

import { type BackendCounters, toBackend } from "../../src/backends/backend.ts";
import type { BackendBoard } from "../../src/backends/board.ts";
import { createDrains } from "../../src/backends/drains.ts";
import { createRegistry } from "../../src/backends/registry.ts";
import { GatewayError } from "../../src/errors/gateway-error.ts";
import { DEADLINE_RESOLUTION_MS } from "../../src/lib/deadlines.ts";
import { JsonBody } from "../../src/lib/request-body.ts";
import { silentLogger } from "../../src/logging/logger.ts";
import { createFallbackChains, type FallbackChains } from "../../src/pipeline/fallback.ts";
import { createForwarder, type Forwarder } from "../../src/pipeline/forward.ts";
import { takeoverFor } from "../../src/pipeline/mid-stream.ts";
import { ASKING_BODY, type ModelRequest } from "../../src/pipeline/model-request.ts";
import { createLimiter, type MemoryLimiter } from "../../src/rate-limit/limiter.ts";
import { type Circuits, createCircuits } from "../../src/routing/circuits.ts";
import { createStrategy } from "../../src/routing/strategies/registry.ts";
import type { SelectionStrategy } from "../../src/routing/strategy.ts";
import { CLIENT_LOOK_MS } from "../../src/upstream/exchange.ts";
import type { UpstreamFailure } from "../../src/upstream/failure.ts";
import { relayInto } from "../../src/upstream/relay.ts";
import type { Sender } from "../../src/upstream/send.ts";
import { passThrough } from "../support/pass-through.ts";
import { contextOf, recordOf } from "../support/request-records.ts";
import { Invariants } from "./invariants.ts";
import { type Condition, createNetwork, type SimulatedBody, wholeText } from "./network.ts";
import { startProber } from "./prober.ts";
import type { Scenario } from "./scenario.ts";
import { VirtualTime } from "./virtual-time.ts";

/** Who has left, and when that must have been seen. */
interface Leaver {
  client: Client;
  untilMs: number;
}

/** Parts that a test replaces by broken ones, to see that the invariants notice. */
export interface Sabotage {
  board?(): (real: BackendBoard) => BackendBoard;
  strategy?(real: SelectionStrategy): SelectionStrategy;
  limiter?(real: MemoryLimiter): MemoryLimiter;
  circuits?(real: Circuits): Circuits;
  sender?(real: Sender): Sender;
  forwarder?(real: Forwarder): Forwarder;
  chains?(real: FallbackChains): FallbackChains;
  delay?(time: VirtualTime): (durationMs: number, signal: AbortSignal) => Promise<void>;
}

export interface Summary {
  seed: number;
  violations: readonly string[];
  /** The last things that happened before the first violation, or before the end. */
  events: readonly string[];
  /** Equal for equal courses of events. */
  digest: number;
  requests: number;
  attempts: number;
  retries: number;
  fallbacks: number;
  /** Streams that another backend took over. */
  switches: number;
  answered: number;
  failed: number;
  /** Of these: streams that broke where nobody may take over: without a chain, or behind the finish_reason. */
  lost: number;
  /** Why each of the failed ones failed. */
  endings: readonly string[];
  /** By the limits of clients, keys and all. */
  refused: number;
  left: number;
  /** Failures for which somebody steadfast was looked for. */
  judged: number;
  virtualMs: number;
  simulatedEvents: number;
}

interface Client {
  id: string;
  controller: AbortController;
  isOver: boolean;
}

const SETTLING_MS = 2_000_000;
const KEPT_EVENTS = 60;
const decoder = new TextDecoder();

export async function simulate(scenario: Scenario, sabotage: Sabotage = {}): Promise<Summary> {
  const { settings, models, survivors } = scenario;
  const time = new VirtualTime();
  const chance = {
    load: scenario.random.fork(),
    faults: scenario.random.fork(),
    network: scenario.random.fork(),
    prober: scenario.random.fork(),
    gateway: scenario.random.fork(),
    removals: scenario.random.fork(),
  };
  const names = settings.backends.map(({ name }) => name);
  const counts = { fallbacks: 0, switches: 0, answered: 0, failed: 0, lost: 0, refused: 0, left: 0 };
  const events: string[] = [];
  let digest = scenario.seed;

  function trace(line: string): void {
    const text = `${time.nowMs.toFixed(3)} ${line}`;
    digest = Bun.hash.xxHash32(text, digest);
    if (invariants.violations.length > 1) return;
    events.push(text);
    if (events.length > KEPT_EVENTS) events.shift();
  }

  const log = silentLogger();
  const network = createNetwork(names, {
    time,
    random: chance.network,
    firstByteMs: settings.timeouts.first_byte,
    onChange: ({ name, condition }) => trace(`${name} is ${condition}`),
  });
  const drains = createDrains({ deadlines: network.deadlines, now: time.now });
  const registry = createRegistry(settings.backends.map(toBackend), { checksEnabled: true, drains });
  for (const { name, models: served } of settings.backends) registry.setModels(name, served ?? []);
  const realCircuits = createCircuits({
    settings: settings.circuit_breaker,
    now: time.now,
    changed({ backend, from, to }) {
      invariants.circuitChanged(backend);
      trace(`circuit ${backend} ${from} -> ${to}`);
    },
  });
  const realLimiter = createLimiter({
    settings: settings.rate_limiting,
    now: time.now,
    wallTime: () => 1_800_000_000_000 + time.nowMs,
    maxEntries: scenario.maxEntries,
    seed: scenario.seed,
  });
  const invariants = new Invariants({
    scenario,
    time,
    network,
    registry,
    circuits: realCircuits,
    limiter: realLimiter,
    trace,
  });
  const circuits = invariants.watchCircuits(sabotage.circuits?.(realCircuits) ?? realCircuits);
  const limiter = invariants.watchLimiter(sabotage.limiter?.(realLimiter) ?? realLimiter);
  const prober = startProber({
    time,
    random: chance.prober,
    network,
    registry,
    circuits,
    policy: settings.health_checks,
    onChange(name, { state }) {
      invariants.boardChanged(name, state === "ready");
      trace(`${name} counts as ${state}`);
    },
  });
  const strategy = createStrategy(settings.routing);
  const seenBoard = sabotage.board?.() ?? ((board: BackendBoard) => board);
  const realForwarder = createForwarder({
    watch: {
      get board() {
        return seenBoard(registry.current);
      },
      firstChecks: prober.firstChecks,
      refreshModels: async () => {},
      suspect: prober.suspect,
      absenceOf: () => ({ why: "away", nextLookMs: undefined }),
    },
    strategy: sabotage.strategy?.(strategy) ?? strategy,
    circuits,
    limits: limiter,
    bridge: passThrough,
    attempted() {},
    sender: invariants.watchSender(sabotage.sender?.(network) ?? network),
    log,
    now: time.now,
    random: chance.gateway.next,
    delay: sabotage.delay?.(time) ?? ((durationMs, signal) => time.delay(durationMs, signal)),
  });
  const forwarder = invariants.watchForwarder(sabotage.forwarder?.(realForwarder) ?? realForwarder);
  const realChains = createFallbackChains(forwarder);
  const chains = sabotage.chains?.(realChains) ?? realChains;

  // --- clients ---

  const clients = new Set<Client>();
  let arrived = 0;
  const endings: string[] = [];
  let isFirstRoundOver = false;
  void prober.firstChecks.then(() => {
    isFirstRoundOver = true;
  });

  async function request(client: Client, settled: (failure: string | undefined) => void): Promise<void> {
    const { id } = client;
    const load = chance.load;
    const startedAtMs = time.nowMs;
    const words = load.between(1, 12);
    const mistaken = load.chance(scenario.mistaken);
    const model = load.pick(models);
    const content: SimulatedBody = {
      model,
      messages: [{ role: "user", content: id }],
      max_tokens: words,
      mistaken,
    };
    const stream = load.chance(0.5);
    const context = contextOf(recordOf({ id, requestId: id, startedAtMs, model, stream }), {
      trace: { id, traceparent: undefined, tracestate: undefined },
      settings,
      client: client.controller,
      caller: undefined,
      clientHeaders: new Headers(),
      peerAddress: () => undefined,
    });
    const session = `session ${load.between(0, scenario.clients)}`;
    const modelRequest: ModelRequest = {
      operation: "chat",
      model,
      stream,
      choices: 1,
      affinity: () => session,
      body: JsonBody.written({ ...content }),
      askedModel: model,
      asking: ASKING_BODY,
      patience: 1,
      avoid: new Set(),
    };
    const chain = chains.chainOf(context, model);

    /** A client sees a failure: nobody who would have answered may have been there all the time. */
    function judge(reason: string, promised: readonly string[]): void {
      const isLate = time.nowMs + settings.retry.max_delay >= startedAtMs + settings.timeouts.request;
      if (client.controller.signal.aborted || mistaken || isLate || scenario.conditions.includes("erring")) return;
      const steadfast = invariants.steadfast(promised, startedAtMs);
      if (steadfast !== undefined)
        invariants.fail(`${id} failed (${reason}) although ${steadfast} would have answered`);
    }

    const result = await chains.forward(context, modelRequest).catch((error: unknown) => {
      const reason = error instanceof GatewayError ? error.type : `${error}`;
      if (!(error instanceof GatewayError)) invariants.fail(`${id} ended with ${reason}`);
      judge(reason, [model, ...chain]);
      settled(reason);
    });
    if (result === undefined) return;
    if (result.model !== model) counts.fallbacks++;
    if (result.kind === "failed") {
      const { failure } = result;
      if (mistaken && failure.kind === "status" && failure.status === 400 && result.model !== model) {
        trace(`${id} mistake seen by a stand-in`);
      }
      judge(failure.kind, [model, ...chain]);
      return settled(failure.kind);
    }
    if (result.kind === "plain") return settled(undefined);

    const takeover = takeoverFor({ forwarder, chains, log }, context, modelRequest, result);
    const sent: string[] = [];
    let ending: UpstreamFailure | undefined;
    let finishes = 0;
    let switches = 0;
    const relay = relayInto(
      result.live,
      {
        write(bytes) {
          if (client.isOver) invariants.fail(`${id} was sent something after its end`);
          sent.push(decoder.decode(bytes));
          return bytes.length;
        },
        close() {},
        fail() {},
      },
      {
        takeover: takeover && {
          get hasHappened() {
            return takeover.hasHappened;
          },
          async continueAfter(failure, events) {
            const next = await takeover.continueAfter(failure, events);
            if (next !== undefined) switches++;
            return next;
          },
        },
        tap: undefined,
        finished(failure) {
          finishes++;
          ending = failure;
        },
      },
    );
    client.controller.signal.addEventListener("abort", () => relay.cancel());
    if (client.controller.signal.aborted) relay.cancel();
    // `done` of a cancelled relay comes when its reader has noticed, in the same event.
    await relay.done;
    counts.switches += switches;
    if (finishes !== 1) invariants.fail(`${id} ended ${finishes} times`);
    if (ending === undefined) judgeText(id, words, sent.join(""));
    else if (!client.controller.signal.aborted) {
      const isToldAtEnd = ending.kind === "told-in-stream" && sent.join("").includes('"finish_reason":"stop"');
      if (chain.length === 0 || isToldAtEnd) counts.lost++;
      // Only the last model of the chain is still ahead of every stream.
      else if (switches < settings.fallback.fallback_policy.max_fallback_attempts) {
        judge(`${ending.kind} in its stream`, chain.slice(-1));
      }
    }
    settled(ending?.kind);
  }

  function judgeText(id: string, words: number, events: string): void {
    let text = "";
    let roles = 0;
    const ids = new Set<unknown>();
    for (const line of events.split("\n\n")) {
      if (!line.startsWith("data: {")) continue;
      const chunk = JSON.parse(line.slice("data: ".length)) as {
        id: unknown;
        choices: { delta: { role?: string; content?: string } }[];
      };
      ids.add(chunk.id);
      const delta = chunk.choices[0]?.delta;
      text += delta?.content ?? "";
      if (delta?.role !== undefined) roles++;
    }
    if (text !== wholeText(words)) invariants.fail(`${id} got the text "${text}"`);
    if (roles !== 1 || ids.size !== 1) invariants.fail(`${id} got ${roles} roles and ${ids.size} ids`);
    if (!events.endsWith("data: [DONE]\n\n")) invariants.fail(`${id} got no end marker`);
  }

  function arrive(number: number, ends?: (failure: string | undefined) => void): void {
    arrived++;
    const load = chance.load;
    const client: Client = { id: `r${number}`, controller: new AbortController(), isOver: false };
    if (ends === undefined) {
      const address = load.between(1, scenario.clients);
      const keyId = load.chance(0.5) ? `key${load.between(0, 4)}` : undefined;
      const query = {
        clientAddress: `10.0.${address >> 8}.${address & 255}`,
        keyId,
        perMinute: scenario.keyLimits.get(keyId ?? ""),
        key: undefined,
      };
      if (limiter.take(query)?.allowed === false) {
        counts.refused++;
        return;
      }
    }
    clients.add(client);
    const isLeaving = ends === undefined && load.chance(scenario.leaving);
    const leaving = isLeaving
      ? time.schedule(load.exponential(load.pick([100, 1_000, 10_000])), () => {
          if (client.isOver) return;
          trace(`${client.id} leaves`);
          client.controller.abort();
          leavers.push({ client, untilMs: time.nowMs + CLIENT_LOOK_MS + 2 * DEADLINE_RESOLUTION_MS });
        })
      : undefined;
    const over = (failure: string | undefined) => {
      if (client.isOver) invariants.fail(`${client.id} ended twice`);
      client.isOver = true;
      time.cancel(leaving);
      clients.delete(client);
      trace(`${client.id} ${failure ?? "answered"}`);
      if (client.controller.signal.aborted) counts.left++;
      else if (failure === undefined) counts.answered++;
      else {
        counts.failed++;
        endings.push(failure);
      }
      ends?.(failure);
    };
    request(client, over).catch((error: unknown) => {
      invariants.fail(`${client.id} threw ${error}`);
      over("threw");
    });
  }

  // --- after each event ---

  const leavers: Leaver[] = [];
  const sizeBound = 4 * scenario.maxEntries;

  /** Of every backend that ever had the name. */
  const countersOf = new Map<string, BackendCounters[]>();

  function rememberCounters(): void {
    for (const { backend, counters } of registry.current.entries) {
      const known = countersOf.get(backend.name) ?? [];
      if (!known.includes(counters)) countersOf.set(backend.name, [...known, counters]);
    }
  }
  rememberCounters();

  function checkEach(): void {
    while (leavers[0] !== undefined && leavers[0].untilMs <= time.nowMs) {
      const { client } = leavers.shift() as Leaver;
      // Before the first round of checks a request waits for that round, client or not.
      if (!client.isOver && isFirstRoundOver) invariants.fail(`${client.id} goes on although its client has left`);
    }
    if (limiter.size > sizeBound) invariants.fail(`the limiter keeps ${limiter.size} buckets`);
    if (invariants.size > clients.size + 2 * names.length) invariants.fail("requests are remembered after their end");
    if (invariants.touched.size === 0) return;
    for (const name of invariants.touched) {
      const open = network.backends.get(name)!.calls.size;
      const inFlight = countersOf.get(name)!.reduce((sum, counters) => sum + counters.inFlight, 0);
      if (inFlight !== open) invariants.fail(`${name} counts ${inFlight} requests in flight, ${open} are`);
      if (open === 0) invariants.touched.delete(name);
    }
  }

  // --- faults ---

  let faultsAreOver = false;

  function trouble(name: string, condition: Condition, durationMs: number, next?: [Condition, number]): void {
    if (survivors.has(name) || faultsAreOver) return;
    network.setCondition(name, condition);
    time.schedule(durationMs, () => {
      if (network.backends.get(name)!.condition !== condition) return;
      if (next !== undefined) trouble(name, next[0], next[1]);
      else network.setCondition(name, "fine");
    });
  }

  function fault(): void {
    if (faultsAreOver) return;
    const { faults } = chance;
    const { pattern, conditions, meanFaultMs } = scenario;
    const everyone = pattern === "mass-restart" || pattern === "overload-storm";
    if (everyone && faults.chance(0.2)) {
      const condition = pattern === "mass-restart" ? "refusing" : "overloaded";
      for (const name of names) {
        const durationMs = faults.exponential(meanFaultMs);
        time.schedule(faults.between(0, 200), () =>
          trouble(name, condition, durationMs, pattern === "mass-restart" ? ["loading", durationMs / 2] : undefined),
        );
      }
    } else {
      trouble(faults.pick(names), faults.pick(conditions), faults.exponential(meanFaultMs));
    }
    time.schedule(faults.exponential(scenario.meanFaultGapMs), fault);
  }

  // --- removals ---

  const removed = new Set<string>();

  function configure(): void {
    const configured = settings.backends.filter(({ name }) => !removed.has(name));
    const changes = registry.replace(configured.map(toBackend), true);
    realCircuits.retain(configured.map(({ name }) => name));
    for (const name of changes.removed) {
      trace(`${name} is removed`);
      invariants.boardChanged(name, false);
      prober.unwatch(name);
    }
    for (const name of changes.added) {
      trace(`${name} is added`);
      invariants.circuitChanged(name);
      registry.setModels(name, settings.backends.find((each) => each.name === name)?.models ?? []);
      prober.watch(name);
    }
    if (changes.added.length > 0) rememberCounters();
  }

  function removal(): void {
    const { removals } = chance;
    if (faultsAreOver || scenario.meanRemovalGapMs === undefined) return;
    const name = removals.pick(names);
    if (!survivors.has(name) && !removed.has(name)) {
      removed.add(name);
      configure();
      time.schedule(removals.exponential(removals.pick([20, 1_000, 10_000])), () => {
        if (removed.delete(name)) configure();
      });
    }
    time.schedule(removals.exponential(scenario.meanRemovalGapMs), removal);
  }

  // --- the course of events ---

  if (scenario.pattern === "last-survivor") {
    for (const name of names)
      time.schedule(chance.faults.between(3_000, 4_000), () =>
        trouble(name, chance.faults.pick(scenario.conditions), chance.faults.exponential(scenario.meanFaultMs)),
      );
  }
  time.schedule(1_000, fault);
  if (scenario.meanRemovalGapMs !== undefined) time.schedule(1_000, removal);
  let number = 0;
  function next(): void {
    arrive(number++);
    if (number < scenario.requests) time.schedule(chance.load.exponential(scenario.meanGapMs), next);
  }
  time.schedule(chance.load.chance(0.3) ? 0 : 3_000, next);
  const isViolated = () => invariants.violations.length > 0;
  await time.run(() => isViolated() || (number >= scenario.requests && clients.size === 0), SETTLING_MS, checkEach);
  if (!isViolated()) await finish();

  /** Everything is well again: nobody waits, nothing is counted, and every backend answers. */
  async function finish(): Promise<void> {
    for (const client of clients) invariants.fail(`${client.id} never ended`);
    faultsAreOver = true;
    for (const name of names) network.setCondition(name, "fine");
    removed.clear();
    configure();
    const { timeout } = settings.circuit_breaker;
    const restMs = 20_000 + 2 * settings.health_checks.interval + timeout;
    await time.run(isViolated, time.nowMs + restMs, checkEach);
    if (invariants.permitsOut !== 0) invariants.fail(`${invariants.permitsOut} permits were never settled`);
    if (drains.list().length !== 0) invariants.fail(`${drains.list().length} backends drain without a request`);
    if (network.openDeadlines !== 0) invariants.fail(`${network.openDeadlines} deadlines are still watched`);
    for (const { backend, counters, available } of registry.current.entries) {
      const { name } = backend;
      if (counters.inFlight !== 0) invariants.fail(`${name} still counts ${counters.inFlight} requests in flight`);
      if (network.backends.get(name)!.calls.size !== 0) invariants.fail(`${name} still has a call`);
      if (!available) invariants.fail(`${name} is well and not available`);
      judgeCircuitAtRest(name);
      if (settings.rate_limiting.enabled) judgeBucketAtRest(name);
    }
    await time.run(isViolated, time.nowMs + 60_000, checkEach);
    for (let count = 0; count < 8 && !isViolated(); count++) {
      let isOver = false;
      time.schedule(0, () =>
        arrive(number++, () => {
          isOver = true;
        }),
      );
      const failedBefore = counts.failed;
      const seen = invariants.attempts;
      await time.run(() => isOver || isViolated(), time.nowMs + 500_000, checkEach);
      // A request with a mistake of its own fails, as it should.
      if (counts.failed > failedBefore && invariants.attempts === seen)
        invariants.fail("all is well and nobody was asked");
      await time.run(isViolated, time.nowMs + 2_000, checkEach);
    }
    prober.stop();
    await time.run(isViolated, time.nowMs + SETTLING_MS, checkEach);
    if (time.pending !== 0 && !isViolated()) invariants.fail(`${time.pending} events are left over`);
  }

  /** A circuit that nobody tries has all its places free. */
  function judgeCircuitAtRest(name: string): void {
    const state = circuits.state(name);
    if (state === "open") invariants.fail(`the circuit of ${name} is open after its timeout`);
    if (state !== "half_open") return;
    for (let count = 0; count < settings.circuit_breaker.half_open_max_requests; count++) {
      if (!circuits.allows(name)) invariants.fail(`only ${count} requests may try ${name}: places were not given back`);
      const permit = circuits.acquire(name);
      time.schedule(1, () => permit?.settle("neutral"));
    }
  }

  /** A bucket that nobody took from is full, and no fuller. */
  function judgeBucketAtRest(name: string): void {
    const { burst_capacity } = settings.rate_limiting.limits.per_backend;
    let taken = 0;
    while (taken <= burst_capacity && limiter.takeBackend(name)) taken++;
    if (taken !== burst_capacity)
      invariants.fail(`the rested bucket of ${name} held ${taken} of ${burst_capacity} tokens`);
  }

  return {
    seed: scenario.seed,
    violations: invariants.violations,
    events,
    digest,
    requests: arrived,
    attempts: invariants.attempts,
    retries: invariants.retries,
    ...counts,
    endings,
    judged: invariants.judged,
    virtualMs: time.nowMs,
    simulatedEvents: time.count,
  };
}
