// The control plane of the backends: health checks, model lists and the board that requests are routed by.

import { toBackend } from "../backends/backend.ts";
import type { BackendBoard } from "../backends/board.ts";
import { detectKind, isDetectable } from "../backends/detect.ts";
import { createDrains } from "../backends/drains.ts";
import { timerMs } from "../backends/exchange.ts";
import { createRegistry } from "../backends/registry.ts";
import type { Transport } from "../backends/transport.ts";
import type { Settings } from "../config/sections/registry.ts";
import { type CheckReport, createHealthChecker, type HealthView } from "../health/checker.ts";
import { withoutPaths } from "../health/probe.ts";
import type { Clock } from "../lib/clock.ts";
import { createDeadlines } from "../lib/deadlines.ts";
import { singleflight } from "../lib/singleflight.ts";
import type { Logger } from "../logging/logger.ts";
import { createModelCatalog } from "../models/catalog.ts";
import {
  aggregateModels,
  type FoundModel,
  findRecord,
  type ModelListEntry,
  type ModelRecord,
  ownerOf,
} from "../models/list.ts";
import type { ServedModels } from "../pipeline/fallback-checks.ts";
import type { Circuits } from "../routing/circuits.ts";
import type { Absence } from "../routing/no-backend.ts";
import { type BackendStatusList, toStatusList } from "./backend-status.ts";

export interface ControlPlane {
  /** The newest published board. */
  readonly board: BackendBoard;
  /**
   * Resolves when every enabled backend that came with the start or with an update has been checked once and asked for
   * its models; never rejects.
   */
  readonly firstChecks: Promise<void>;
  /**
   * The backends, and how they are watched, from now on: valid settings, applied as a whole. Requests in flight at
   * backends that are gone or disabled end in peace.
   */
  update(settings: Settings): void;
  /** A live request could not connect or was reset: the backend is checked at once. */
  suspect(backendName: string): void;
  /** Why a backend that is not available gets no requests. */
  absenceOf(backendName: string): Absence;
  /** What the enabled backends serve; undefined while one of them has never said it. */
  servedModels(): ServedModels | undefined;
  /** A model was not found: lists that may be cold or old are renewed; resolves when done, never rejects. */
  refreshModels(): Promise<void>;
  /** The list of GET /v1/models. */
  listModels(): Promise<readonly ModelListEntry[]>;
  findModel(id: string): Promise<FoundModel | undefined>;
  status(): BackendStatusList;
  stop(): Promise<void>;
}

export interface ControlPlaneOptions {
  settings: Settings;
  transport: Transport;
  circuits: Circuits;
  clock: Clock;
  log: Logger;
  random?: () => number;
}

/** The first look at the backends that came together. */
interface FirstRound {
  readonly done: Promise<void>;
  isOver: boolean;
  readonly startedMs: number;
  /** Keeps nobody waiting any longer. */
  cancel(): void;
}

/** Sweeps for models that nobody seems to serve begin at least this far apart. */
const SWEEP_SPACING_MS = 2_000;
/** Once a backend is available, nobody waits longer than this for the first answers of the others. */
const COLD_WAIT_MS = 2_000;

/** In words for clients. */
function whyAway(view: HealthView | undefined): string {
  const state = view?.record.state ?? "unknown";
  if (state === "unknown") return "not checked yet";
  if (state === "warming_up") return "still loading";
  const reason = view?.lastOutcome?.reason;
  if (reason !== undefined) return withoutPaths(reason);
  return state === "ready" ? "not recognised yet" : "answers again, but not for long enough yet";
}

export function startControlPlane(options: ControlPlaneOptions): ControlPlane {
  const { transport, circuits, clock, log } = options;
  let { settings } = options;
  let isStopped = false;
  const drains = createDrains({
    deadlines: createDeadlines(clock.now),
    now: clock.now,
    finished({ name }, cut) {
      if (cut === 0) log.info({ backend: name }, `backend ${name} has finished what it had`);
      else log.warn({ backend: name, cut }, `backend ${name} did not finish in time, ${cut} requests were cut`);
    },
  });
  // Everything begins empty: the settings of the start are the first update.
  const registry = createRegistry([], { checksEnabled: settings.health_checks.enabled, drains });
  const backend = (name: string) => registry.backend(name);
  const common = { backend, transport, clock, log };
  const catalog = createModelCatalog({ ...common, settings, onAnswer });
  const checker = createHealthChecker({
    ...common,
    settings: settings.health_checks,
    random: options.random ?? Math.random,
    onCheck,
  });
  /** Names of the backends that are enabled. */
  const watched = new Set<string>();
  let round: FirstRound = { done: Promise.resolve(), isOver: true, startedMs: clock.now(), cancel() {} };
  update(settings);

  function update(next: Settings): void {
    if (isStopped) return;
    const isSwitched = next.health_checks.enabled !== settings.health_checks.enabled;
    settings = next;
    catalog.apply(next);
    checker.apply(next.health_checks);
    const { removed, added, changed } = registry.replace(next.backends.map(toBackend), next.health_checks.enabled);
    circuits.apply(next.circuit_breaker);
    const gone = new Set(removed);
    const kept = next.backends.filter(({ name, enabled }) => enabled && !gone.has(name));
    circuits.retain(kept.map(({ name }) => name));

    for (const name of removed) {
      unwatch(name);
      catalog.remove(name);
    }
    const relisted = changed.filter(
      ({ before, after }) => !Bun.deepEquals(before.configuredModels, after.configuredModels),
    );
    for (const { after } of relisted) catalog.remove(after.name);
    for (const name of [...added, ...relisted.map(({ after }) => after.name)]) {
      catalog.add(name);
      registry.setModels(name, modelIds(name));
    }

    const starting = new Set<string>();
    for (const { before, after } of changed) {
      if (after.enabled) starting.add(after.name);
      // What a wrong key did to the circuit is over with another one.
      if (after.apiKey !== before.apiKey) circuits.recovered(after.name);
    }
    for (const { name, enabled } of next.backends) {
      if (!enabled || isSwitched) unwatch(name);
      if (isSwitched) registry.setHealth(name, "unknown");
      if (!enabled || watched.has(name)) continue;
      watched.add(name);
      starting.add(name);
      // A loading llama.cpp server lists its models already: what it is must be known before its health can be judged.
      registry.setHeld(name, next.health_checks.enabled && isDetectable(backend(name)));
    }
    if (starting.size > 0) round = startRound([...starting]);
  }

  function unwatch(name: string): void {
    watched.delete(name);
    checker.unwatch(name);
  }

  function modelIds(name: string): string[] {
    return catalog.list(name).map((model) => model.id);
  }

  function isAsked(name: string): boolean {
    return backend(name).configuredModels === undefined || isDetectable(backend(name));
  }

  function onCheck({ name, previousState, record, outcome }: CheckReport): void {
    registry.setHealth(name, record.state);
    // What made the circuit open is over: the backend is tried again without waiting for the circuit's own time.
    const hasRecovered = previousState !== "ready" || record.consecutiveSuccesses === 1;
    if (record.state === "ready" && hasRecovered) circuits.recovered(name);
    if (record.state !== "ready" || !isAsked(name)) return;
    const isRefreshed = outcome.verdict === "healthy" && catalog.freshness(name) !== "fresh";
    if (previousState !== "ready" || isRefreshed) void catalog.renew(name);
  }

  async function onAnswer(
    name: string,
    answer: readonly ModelRecord[] | undefined,
    removed: AbortSignal,
  ): Promise<void> {
    const known = backend(name);
    const kind = answer && isDetectable(known) ? detectKind(answer.map((model) => model.ownedBy)) : undefined;
    if (kind !== undefined && kind !== known.kind) {
      registry.setKind(name, kind);
      log.info({ backend: name, kind: kind.name }, `backend ${name} was recognised as ${kind.name}`);
      await checker.check(name);
      if (removed.aborted) return;
    }
    registry.setModels(name, modelIds(name));
    registry.setHeld(name, false);
  }

  /** The first look at backends, or another one at those whose facts have changed. */
  async function look(name: string): Promise<void> {
    if (settings.health_checks.enabled) {
      await checker.watch(name);
      if (checker.view(name)?.record.state !== "ready") return;
    }
    if (watched.has(name) && isAsked(name)) await catalog.renew(name);
  }

  function startRound(names: readonly string[]): FirstRound {
    const previous = round.isOver ? undefined : round;
    const { promise: overdue, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, timerMs(settings.health_checks.timeout));
    const looked = Promise.all(names.map(look));
    const done = Promise.race([looked, overdue])
      .finally(() => clearTimeout(timer))
      .then(() => previous?.done)
      .then(() => {
        started.isOver = true;
      });
    const started: FirstRound = {
      done,
      isOver: false,
      startedMs: clock.now(),
      cancel() {
        resolve();
        previous?.cancel();
      },
    };
    return started;
  }

  function hasAvailable(): boolean {
    return registry.current.entries.some((entry) => entry.available);
  }

  async function firstAnswers(): Promise<void> {
    const { isOver, startedMs, done } = round;
    if (isOver) return;
    const restMs = startedMs + COLD_WAIT_MS - clock.now();
    if (restMs <= 0 && hasAvailable()) return;
    let timer: Timer | undefined;
    const waited = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, timerMs(restMs));
    });
    await Promise.race([done, waited]);
    clearTimeout(timer);
    if (!hasAvailable()) await done;
  }

  function absenceOf(name: string): Absence {
    if (!backend(name).enabled) return { why: "disabled", nextLookMs: undefined };
    const view = checker.view(name);
    const nextLookMs = view === undefined ? undefined : Math.max(0, view.nextCheckMs - clock.now());
    return { why: whyAway(view), nextLookMs };
  }

  function servedModels(): ServedModels | undefined {
    const { entries, serving } = registry.current;
    const lists = entries.filter(({ backend: { enabled } }) => enabled).map(({ backend: { name } }) => modelIds(name));
    if (lists.some((ids) => ids.length === 0)) return undefined;
    return {
      ids: [...new Set(lists.flat())],
      serves: (model) => serving(model).some((entry) => entry.backend.enabled),
    };
  }

  function availableNames(): string[] {
    return registry.current.entries.filter((entry) => entry.available).map((entry) => entry.backend.name);
  }

  function renewAll(names: readonly string[]): Promise<unknown> {
    return Promise.all(names.map((name) => catalog.renew(name)));
  }

  const sweep = singleflight<void>();
  let isSweeping = false;
  let sweptMs = Number.NEGATIVE_INFINITY;

  async function refreshModels(): Promise<void> {
    if (!isSweeping && clock.now() - sweptMs < SWEEP_SPACING_MS) {
      // A backend that came up since then has been asked already; its first answer is worth waiting for.
      await renewAll(availableNames().filter((name) => catalog.isCold(name)));
      return;
    }
    await sweep.run(async () => {
      isSweeping = true;
      await firstAnswers();
      await renewAll(availableNames().filter((name) => catalog.isOlderThan(name, SWEEP_SPACING_MS)));
      sweptMs = clock.now();
      isSweeping = false;
    });
  }

  let aggregated: { board: BackendBoard; revision: number; models: readonly ModelListEntry[] } | undefined;

  async function listModels(): Promise<readonly ModelListEntry[]> {
    await firstAnswers();
    const expired: string[] = [];
    for (const name of availableNames()) {
      const freshness = catalog.freshness(name);
      if (freshness === "expired") expired.push(name);
      else if (freshness === "stale") void catalog.renew(name);
    }
    if (expired.length > 0) await renewAll(expired);
    const board = registry.current;
    if (aggregated?.board !== board || aggregated.revision !== catalog.revision) {
      const available = board.entries.filter((entry) => entry.available);
      const lists = available.map((entry) => ({ backend: entry.backend, models: catalog.list(entry.backend.name) }));
      aggregated = { board, revision: catalog.revision, models: aggregateModels(lists) };
    }
    return aggregated.models;
  }

  async function findModel(id: string): Promise<FoundModel | undefined> {
    if (!registry.current.candidates(id).length) await firstAnswers();
    if (!registry.current.serving(id).length) await refreshModels();
    const serving = registry.current.serving(id);
    const entry = serving.find((each) => each.available) ?? serving[0];
    if (entry === undefined) return undefined;
    const model = findRecord(catalog.list(entry.backend.name), id);
    const created = model?.created ?? Math.floor(clock.wallTime() / 1000);
    const backends = serving.map((each) => each.backend.name);
    return { id, created, owned_by: ownerOf(entry.backend, model), available: entry.available, backends };
  }

  return {
    get board() {
      return registry.current;
    },
    get firstChecks() {
      return round.done;
    },
    update,
    suspect: (name) => checker.suspect(name),
    absenceOf,
    servedModels,
    refreshModels,
    listModels,
    findModel,
    status: () =>
      toStatusList(registry.current, { drains: drains.list(), checker, modelIds, circuitState: circuits.state }),
    async stop() {
      isStopped = true;
      round.cancel();
      drains.stop();
      await Promise.all([checker.stop(), catalog.stop()]);
    },
  };
}
