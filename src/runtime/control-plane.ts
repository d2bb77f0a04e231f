// The control plane of the backends: health checks, model lists and the board that requests are routed by.

import { toBackend } from "../backends/backend.ts";
import type { BackendBoard } from "../backends/board.ts";
import { detectKind, isDetectable } from "../backends/detect.ts";
import { timerMs } from "../backends/exchange.ts";
import { createRegistry } from "../backends/registry.ts";
import type { Transport } from "../backends/transport.ts";
import type { Settings } from "../config/sections/registry.ts";
import { type CheckReport, startHealthChecker } from "../health/checker.ts";
import type { Clock } from "../lib/clock.ts";
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
import type { Circuits } from "../routing/circuits.ts";
import { type BackendStatusList, toStatusList } from "./backend-status.ts";

export interface ControlPlane {
  /** The newest published board. */
  readonly board: BackendBoard;
  /** Resolves when every enabled backend has been checked once and asked for its models; never rejects. */
  readonly firstChecks: Promise<void>;
  /** A live request could not connect or was reset: the backend is checked at once. */
  suspect(backendName: string): void;
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

/** Sweeps for models that nobody seems to serve begin at least this far apart. */
const SWEEP_SPACING_MS = 2_000;
/** Once a backend is available, nobody waits longer than this for the first answers of the others. */
const COLD_WAIT_MS = 2_000;

export function startControlPlane(options: ControlPlaneOptions): ControlPlane {
  const { settings, transport, circuits, clock, log } = options;
  const checksEnabled = settings.health_checks.enabled;
  const backends = settings.backends.map(toBackend);
  const watched = backends.filter((backend) => backend.enabled).map((backend) => backend.name);
  const registry = createRegistry(backends, { checksEnabled });
  const backend = (name: string) => registry.backend(name);
  const common = { backend, transport, clock, log };

  const catalog = createModelCatalog({ ...common, names: backends.map(({ name }) => name), settings, onAnswer });
  for (const { name } of backends) registry.setModels(name, modelIds(name));

  // A loading llama.cpp server lists its models already: what it is must be known before its health can be judged.
  for (const name of watched) registry.setHeld(name, checksEnabled && isDetectable(backend(name)));

  const checker = checksEnabled
    ? startHealthChecker({
        ...common,
        names: watched,
        settings: settings.health_checks,
        random: options.random ?? Math.random,
        onCheck,
      })
    : undefined;
  const renewedOnReady = new Map<string, Promise<void>>();
  const startedMs = clock.now();
  const firstRound = startFirstRound();

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
    if (previousState !== "ready") renewedOnReady.set(name, catalog.renew(name));
    else if (outcome.verdict === "healthy" && catalog.freshness(name) !== "fresh") void catalog.renew(name);
  }

  async function onAnswer(name: string, answer: readonly ModelRecord[] | undefined): Promise<void> {
    const known = backend(name);
    const kind = answer && isDetectable(known) ? detectKind(answer.map((model) => model.ownedBy)) : undefined;
    if (kind !== undefined && kind !== known.kind) {
      registry.setKind(name, kind);
      log.info({ backend: name, kind: kind.name }, `backend ${name} was recognised as ${kind.name}`);
      await checker?.check(name);
    }
    registry.setModels(name, modelIds(name));
    registry.setHeld(name, false);
  }

  function startFirstRound(): { done: Promise<void>; cancel: () => void } {
    const { promise: overdue, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, timerMs(settings.health_checks.timeout));
    const answers = watched.map(async (name) => {
      if (checker === undefined) return isAsked(name) ? await catalog.renew(name) : undefined;
      await checker.check(name);
      return await renewedOnReady.get(name);
    });
    const done = Promise.race([Promise.all(answers).then(() => undefined), overdue]).finally(() => clearTimeout(timer));
    return { done, cancel: resolve };
  }

  function hasAvailable(): boolean {
    return registry.current.entries.some((entry) => entry.available);
  }

  let isFirstRoundOver = false;
  void firstRound.done.then(() => {
    isFirstRoundOver = true;
  });

  async function firstAnswers(): Promise<void> {
    if (isFirstRoundOver) return;
    const restMs = startedMs + COLD_WAIT_MS - clock.now();
    if (restMs <= 0 && hasAvailable()) return;
    let timer: Timer | undefined;
    const waited = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, timerMs(restMs));
    });
    await Promise.race([firstRound.done, waited]);
    clearTimeout(timer);
    if (!hasAvailable()) await firstRound.done;
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
    return { id, created, owned_by: ownerOf(entry.backend, model), available: entry.available };
  }

  return {
    get board() {
      return registry.current;
    },
    firstChecks: firstRound.done,
    suspect: (name) => checker?.suspect(name),
    refreshModels,
    listModels,
    findModel,
    status: () => toStatusList(registry.current, checker, modelIds, circuits.state),
    async stop() {
      firstRound.cancel();
      await Promise.all([checker?.stop(), catalog.stop()]);
    },
  };
}
