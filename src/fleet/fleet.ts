// The life of the backends: which there are, how each is doing, what it is and serves. Everything that is known of them goes
// onto the board that requests are routed by.

import { type BackendCounters, toBackend } from "../backends/backend.ts";
import type { BackendBoard } from "../backends/board.ts";
import { detectKind, isDetectable } from "../backends/detect.ts";
import { createDrains, type Drains } from "../backends/drains.ts";
import { type BackendChanges, type BackendRegistry, createRegistry } from "../backends/registry.ts";
import type { Transport } from "../backends/transport.ts";
import type { Settings } from "../config/sections/registry.ts";
import { type CheckReport, createHealthChecker, type HealthChecker } from "../health/checker.ts";
import type { Clock } from "../lib/clock.ts";
import { createDeadlines } from "../lib/deadlines.ts";
import type { Logger } from "../logging/logger.ts";
import { createModelCatalog, type ModelCatalog } from "../models/catalog.ts";
import type { ModelRecord } from "../models/list.ts";
import { type CircuitChange, type Circuits, createCircuits } from "../routing/circuits.ts";
import type { Absence } from "../routing/no-backend.ts";
import type { HealthChange } from "../stats/happenings.ts";
import { createFirstLooks, type FirstLooks } from "./first-looks.ts";
import { createModelDirectory, type ModelDirectory } from "./model-directory.ts";
import { type BackendStates, statesOf, whyAway } from "./status.ts";

interface FleetParts {
  settings: Settings;
  transport: Transport;
  clock: Clock;
  log: Logger;
  random?: () => number;
  /** Called when a circuit changes its state. */
  circuitChanged?: (change: CircuitChange) => void;
  /** Called when a check finds that a backend's state has changed. */
  healthChanged?: (change: HealthChange) => void;
}

/** The part of a fleet that the pipeline uses. */
export type ServingFleet = Pick<Fleet, "board" | "firstChecks" | "refreshModels" | "suspect" | "absenceOf"> & {
  circuits: Circuits;
  models: Pick<ModelDirectory, "list" | "find">;
};

export class Fleet {
  readonly circuits: ReturnType<typeof createCircuits>;
  readonly models: ModelDirectory;
  readonly #options: FleetParts;
  readonly #drains: Drains;
  readonly #registry: BackendRegistry;
  readonly #catalog: ModelCatalog;
  readonly #checker: HealthChecker;
  readonly #firstLooks: FirstLooks;
  /** Names of the backends that are enabled. */
  readonly #watched = new Set<string>();
  #settings: Settings;
  #isStopped = false;

  constructor(options: FleetParts) {
    const { settings, clock, log, random = Math.random } = options;
    this.#options = options;
    this.#settings = settings;
    this.#drains = createDrains({
      deadlines: createDeadlines(clock.now),
      now: clock.now,
      finished({ name }, cut) {
        if (cut === 0) log.info({ backend: name }, `backend ${name} has finished what it had`);
        else log.warn({ backend: name, cut }, `backend ${name} did not finish in time, ${cut} requests were cut`);
      },
    });
    // Everything begins empty: the settings of the start are the first update.
    this.#registry = createRegistry([], { checksEnabled: settings.health_checks.enabled, drains: this.#drains });
    const common = { ...options, backend: this.#registry.backend };
    this.#catalog = createModelCatalog({
      ...common,
      onAnswer: (...answer) => this.#listAnswered(...answer),
      onIntakes: (name, intakes) => this.#registry.setIntakes(name, intakes),
    });
    this.#checker = createHealthChecker({
      ...common,
      settings: settings.health_checks,
      random,
      onCheck: (report) => this.#checked(report),
    });
    this.circuits = createCircuits({
      settings: settings.circuit_breaker,
      now: clock.now,
      changed: (change) => this.#circuitChanged(change),
    });
    this.#firstLooks = createFirstLooks(clock.now, () => this.board.entries.some((entry) => entry.available));
    this.models = createModelDirectory(this.#registry, this.#catalog, this.#firstLooks, clock);
    this.update(settings);
  }

  /** The newest published board. */
  get board(): BackendBoard {
    return this.#registry.current;
  }

  /**
   * Resolves when every enabled backend that came with the start or with an update has been checked once and asked for
   * its models; never rejects.
   */
  get firstChecks(): Promise<void> {
    return this.#firstLooks.done;
  }

  /**
   * The backends, and how they are watched, from now on: valid settings, applied as a whole. Requests in flight at
   * backends that are gone or disabled end in peace.
   */
  update(next: Settings): void {
    if (this.#isStopped) return;
    const { enabled: isChecked, timeout } = next.health_checks;
    const isSwitched = isChecked !== this.#settings.health_checks.enabled;
    const hasOtherPatience =
      !Bun.deepEquals(next.timeouts, this.#settings.timeouts) || !Bun.deepEquals(next.retry, this.#settings.retry);
    this.#settings = next;
    this.#catalog.apply(next);
    this.#checker.apply(next.health_checks);
    const changes = this.#registry.replace(next.backends.map(toBackend), isChecked);
    this.circuits.apply(next.circuit_breaker);
    const gone = new Set(changes.removed);
    const kept = next.backends.filter(({ name, enabled }) => enabled && !gone.has(name));
    this.circuits.retain(kept.map(({ name }) => name));
    this.#relist(changes);

    const starting = new Set<string>();
    for (const { after } of changes.changed) {
      if (after.enabled) starting.add(after.name);
      // Failures under other settings say nothing of these.
      this.circuits.recovered(after.name);
    }
    if (hasOtherPatience) for (const { name } of next.backends) this.circuits.recovered(name);
    for (const { name, enabled } of next.backends) {
      if (!enabled || isSwitched) this.#unwatch(name);
      if (isSwitched) this.#registry.setHealth(name, "unknown");
      if (!enabled || this.#watched.has(name)) continue;
      this.#watched.add(name);
      starting.add(name);
      // A loading llama.cpp server lists its models already: what it is must be known before its health can be judged.
      this.#registry.setHeld(name, isChecked && isDetectable(this.#registry.backend(name)));
    }
    const looks = [...starting].map((name) => this.#look(name));
    if (looks.length > 0) this.#firstLooks.begin(looks, timeout);
  }

  /** A live request could not connect or was reset: the backend is checked at once. */
  suspect(name: string): void {
    this.#checker.suspect(name);
  }

  /** Why a backend that is not available gets no requests. */
  absenceOf(name: string): Absence {
    if (!this.#registry.backend(name).enabled) return { why: "disabled", nextLookMs: undefined };
    const view = this.#checker.view(name);
    const nextLookMs = view && Math.max(0, view.nextCheckMs - this.#options.clock.now());
    return { why: whyAway(view), nextLookMs };
  }

  /** A model was not found: lists that may be cold or old are renewed; resolves when done, never rejects. */
  refreshModels(): Promise<void> {
    return this.models.refresh();
  }

  /** All that is known of each backend, for a process that has a board of its own. */
  facts() {
    return this.#registry.facts().map((facts) => {
      const absence = facts.entry.available ? undefined : this.absenceOf(facts.backend.name);
      return { ...facts, absence };
    });
  }

  /** More requests became known that another process has sent. */
  foundInFlight(counters: BackendCounters): void {
    this.#drains.found(counters);
  }

  /** Those that still have requests: the counters of what was removed. */
  get draining(): readonly BackendCounters[] {
    return this.#drains.list().map(({ counters }) => counters);
  }

  states(): BackendStates {
    return statesOf(this.board, {
      drains: this.#drains.list(),
      checker: this.#checker,
      catalog: this.#catalog,
      circuits: this.circuits,
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#firstLooks.stop();
    this.#drains.stop();
    await Promise.all([this.#checker.stop(), this.#catalog.stop()]);
  }

  /** The model lists of a removed backend go, and those of a backend with other configured models begin again. */
  #relist({ removed, added, changed }: BackendChanges): void {
    for (const name of removed) {
      this.#unwatch(name);
      this.#catalog.remove(name);
    }
    const relisted = changed.filter(
      ({ before, after }) => !Bun.deepEquals(before.configuredModels, after.configuredModels),
    );
    for (const { after } of relisted) this.#catalog.remove(after.name);
    for (const name of [...added, ...relisted.map(({ after }) => after.name)]) {
      this.#catalog.add(name);
      this.#registry.setModels(name, this.#modelIds(name));
    }
  }

  #unwatch(name: string): void {
    this.#watched.delete(name);
    this.#checker.unwatch(name);
  }

  #modelIds(name: string): string[] {
    return this.#catalog.list(name).map((model) => model.id);
  }

  /** True if the backend's list is needed: for its models, for their intakes, or to recognise its kind. */
  #isAsked(name: string): boolean {
    const backend = this.#registry.backend(name);
    const { configuredModels, kind } = backend;
    return configuredModels === undefined || kind.intake !== undefined || isDetectable(backend);
  }

  /** The first look at a backend, or another one because its facts have changed. */
  async #look(name: string): Promise<void> {
    if (this.#settings.health_checks.enabled) {
      await this.#checker.watch(name);
      if (this.#checker.view(name)?.record.state !== "ready") return;
    }
    if (this.#watched.has(name) && this.#isAsked(name)) await this.#catalog.renew(name);
  }

  #checked({ name, previousState, record, outcome }: CheckReport): void {
    this.#registry.setHealth(name, record.state);
    if (record.state !== previousState) {
      this.#options.healthChanged?.({ backend: name, from: previousState, to: record.state, reason: outcome.reason });
    }
    // The reason for the open circuit is gone: the backend is tried again without waiting for the circuit's own time.
    const hasRecovered = previousState !== "ready" || record.consecutiveSuccesses === 1;
    if (record.state === "ready" && hasRecovered) this.circuits.recovered(name);
    if (record.state !== "ready" || !this.#isAsked(name)) return;
    const isRefreshed = outcome.verdict === "healthy" && this.#catalog.freshness(name) !== "fresh";
    if (previousState !== "ready" || isRefreshed) void this.#catalog.renew(name);
  }

  /** Asked for its models, a backend has answered or failed to: the answer tells what a generic one is. */
  async #listAnswered(name: string, answer: readonly ModelRecord[] | undefined, removed: AbortSignal): Promise<void> {
    const known = this.#registry.backend(name);
    const kind = answer && isDetectable(known) ? detectKind(answer.map((model) => model.ownedBy)) : undefined;
    if (kind !== undefined && kind !== known.kind) {
      this.#registry.setKind(name, kind);
      const { log } = this.#options;
      log.info({ backend: name, kind: kind.name }, `backend ${name} was recognised as ${kind.name}`);
      await this.#checker.check(name);
      if (removed.aborted) return;
    }
    this.#registry.setModels(name, this.#modelIds(name));
    this.#registry.setHeld(name, false);
  }

  #circuitChanged(change: CircuitChange): void {
    const { backend, from, to } = change;
    const { log, circuitChanged } = this.#options;
    log.warn({ backend, from, to }, `the circuit of backend ${backend} is ${to}`);
    circuitChanged?.(change);
    // An extra check tells soon if the backend still lives, instead of at the next turn of the checks.
    if (to === "open") this.suspect(backend);
  }
}
