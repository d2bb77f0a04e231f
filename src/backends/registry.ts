// The registry of backends: takes facts from health checks and model lists, and publishes them as boards.

import type { Backend, BackendCounters } from "./backend.ts";
import { newCounters } from "./backend.ts";
import type { BackendBoard, BackendEntry, BoardSource, HealthState } from "./board.ts";
import type { BackendKind } from "./kinds.ts";

export interface BackendRegistry extends BoardSource {
  /** The backend with the kind known now; throws for a name that is not configured. */
  backend(name: string): Backend;
  setHealth(name: string, health: HealthState): void;
  setModels(name: string, ids: readonly string[]): void;
  setKind(name: string, kind: BackendKind): void;
  /** A held backend gets no requests whatever its health. */
  setHeld(name: string, held: boolean): void;
}

export interface RegistryOptions {
  /** false: every enabled backend is available. */
  checksEnabled: boolean;
}

interface Slot {
  backend: Backend;
  health: HealthState;
  held: boolean;
  models: readonly string[];
  /** Every name under which a request may ask for one of the models. */
  names: ReadonlySet<string>;
  counters: BackendCounters;
  /** Built from the fields above; kept while none of them changes. */
  entry: BackendEntry;
}

const NO_ENTRIES: readonly BackendEntry[] = Object.freeze([]);

export function createRegistry(backends: readonly Backend[], options: RegistryOptions): BackendRegistry {
  const slots = new Map<string, Slot>();
  for (const backend of backends) {
    const facts = { backend, health: "unknown" as const, held: false, counters: newCounters() };
    const none = { models: [], names: new Set<string>() };
    slots.set(backend.name, { ...facts, ...none, entry: toEntry(facts, options.checksEnabled) });
  }
  let board = toBoard(1, [...slots.values()]);
  let changed = false;

  function slotOf(name: string): Slot {
    const slot = slots.get(name);
    if (slot === undefined) throw new Error(`no backend is named ${name}`);
    return slot;
  }

  function change(slot: Slot, facts: Partial<Slot>): void {
    Object.assign(slot, facts);
    slot.entry = toEntry(slot, options.checksEnabled);
    changed = true;
  }

  return {
    // Built when it is read: a thousand backends that answer at the same time cost one board, not a thousand.
    get current() {
      if (changed) {
        board = toBoard(board.version + 1, [...slots.values()]);
        changed = false;
      }
      return board;
    },
    backend: (name) => slotOf(name).backend,
    setHealth(name, health) {
      const slot = slotOf(name);
      if (slot.health !== health) change(slot, { health });
    },
    setModels(name, models) {
      const slot = slotOf(name);
      if (!sameItems(slot.models, models)) change(slot, { models, names: requestNames(slot.backend, models) });
    },
    setKind(name, kind) {
      const slot = slotOf(name);
      if (slot.backend.kind === kind) return;
      const backend = { ...slot.backend, kind };
      change(slot, { backend, names: requestNames(backend, slot.models) });
    },
    setHeld(name, held) {
      const slot = slotOf(name);
      if (slot.held !== held) change(slot, { held });
    },
  };
}

function toEntry(slot: Pick<Slot, "backend" | "health" | "held" | "counters">, checksEnabled: boolean): BackendEntry {
  const { backend, health, held, counters } = slot;
  const isFit = !checksEnabled || (health === "ready" && !held);
  return { backend, health, available: backend.enabled && isFit, counters };
}

function toBoard(version: number, slots: readonly Slot[]): BackendBoard {
  const rows = slots.map(({ entry, names }) => ({ entry, names }));
  const entries = rows.map((row) => row.entry);
  // Found entries are kept per model; the names of unknown models are not, because anyone can make up more of them.
  const servingCache = new Map<string, readonly BackendEntry[]>();
  const candidatesCache = new Map<string, readonly BackendEntry[]>();

  function serving(model: string): readonly BackendEntry[] {
    const known = servingCache.get(model);
    if (known) return known;
    const found = rows.filter((row) => row.names.has(model)).map((row) => row.entry);
    if (found.length === 0) return NO_ENTRIES;
    servingCache.set(model, found);
    return found;
  }

  return {
    version,
    entries,
    serving,
    candidates(model) {
      const known = candidatesCache.get(model);
      if (known) return known;
      const found = serving(model);
      if (found.length === 0) return NO_ENTRIES;
      const available = found.every((entry) => entry.available) ? found : found.filter((entry) => entry.available);
      candidatesCache.set(model, available);
      return available;
    },
  };
}

const DEFAULT_TAG = ":latest";

/** An Ollama model without a tag means the one tagged `latest`, in requests, in lists and in configuration alike. */
function requestNames(backend: Backend, models: readonly string[]): ReadonlySet<string> {
  const names = new Set(models);
  if (backend.kind.name !== "ollama") return names;
  for (const model of models) {
    const hasTag = model.lastIndexOf(":") > model.lastIndexOf("/");
    if (!hasTag) names.add(model + DEFAULT_TAG);
    else if (model.endsWith(DEFAULT_TAG)) names.add(model.slice(0, -DEFAULT_TAG.length));
  }
  return names;
}

function sameItems(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((item, index) => item === right[index]);
}
