// The registry of backends: takes facts from health checks and model lists, and publishes them as boards.

import type { Intake, Intakes, Offer } from "../generation/intake.ts";
import { spellingsOfModel } from "../names.ts";
import type { Backend, BackendCounters } from "./backend.ts";
import { newCounters, ofKind } from "./backend.ts";
import type { BackendBoard, BackendEntry, HealthState } from "./board.ts";
import { isDetectable } from "./detect.ts";
import type { Drains } from "./drains.ts";
import { type BackendKind, kindFor } from "./kind.ts";

export type BackendRegistry = ReturnType<typeof createRegistry>;

/** The difference between two lists of backends, for owners of something per name. */
export interface BackendChanges {
  /** Names whose backend is gone; where the name went on to another server, it is among the added ones too. */
  removed: string[];
  /** Names of backends of which nothing is known yet. */
  added: string[];
  /** Backends that stay, with other facts. */
  changed: { before: Backend; after: Backend }[];
}

interface Slot {
  backend: Backend;
  health: HealthState;
  held: boolean;
  models: readonly string[];
  /** Every name under which a request may ask for one of the models, and that under which the backend lists it. */
  names: ReadonlyMap<string, string>;
  /** By the names under which the backend lists its models. */
  intakes: Intakes;
  offer: Offer;
  counters: BackendCounters;
  /** Built from the fields above; kept while none of them changes. */
  entry: BackendEntry;
}

const NO_ENTRIES: readonly BackendEntry[] = Object.freeze([]);

/** `checksEnabled` is false: every enabled backend is available. */
export function createRegistry(backends: readonly Backend[], first: { checksEnabled: boolean; drains: Drains }) {
  const { drains } = first;
  let { checksEnabled } = first;
  let slots = new Map(backends.map((backend) => [backend.name, newSlot(backend)]));
  let board = toBoard(1, [...slots.values()]);
  let changed = false;

  function newSlot(backend: Backend): Slot {
    const facts = { backend, health: "unknown" as const, held: false, counters: newCounters() };
    const known = { ...facts, models: [], names: new Map(), intakes: NO_INTAKES, offer: NO_OFFER };
    return { ...known, entry: toEntry(known, checksEnabled) };
  }

  function slotOf(name: string): Slot {
    const slot = slots.get(name);
    if (slot === undefined) throw new Error(`no backend is named ${name}`);
    return slot;
  }

  function change(slot: Slot, facts: Partial<Slot>): void {
    Object.assign(slot, facts);
    slot.entry = toEntry(slot, checksEnabled);
    changed = true;
  }

  /** Takes over new facts of the same server under the same name. */
  function adjust(slot: Slot, backend: Backend): void {
    const { kind, enabled, apiKey } = slot.backend;
    if (backend.apiKey !== apiKey || backend.hasCredential) slot.counters.credentialError = undefined;
    if (enabled && !backend.enabled) drains.begin(backend, slot.counters);
    if (!enabled && backend.enabled) drains.end(slot.counters);
    // The recognised kind stays. A disabled backend is not checked, so its health is unknown.
    change(slot, {
      backend: isDetectable(backend) ? { ...backend, kind } : backend,
      health: backend.enabled ? slot.health : "unknown",
    });
  }

  return {
    /**
     * A whole new list. Backends are told apart by name, and by the server that they point at: one that stays keeps what
     * is known of it, and its counters. One that is gone, disabled or at another server drains. Models are set again by
     * the keeper of the lists.
     */
    replace(list: readonly Backend[], isChecked: boolean): BackendChanges {
      const changes: BackendChanges = { removed: [], added: [], changed: [] };
      const next = new Map<string, Slot>();
      for (const backend of list) {
        const known = slots.get(backend.name);
        if (known === undefined || !isSameServer(known.backend, backend)) {
          next.set(backend.name, newSlot(backend));
          changes.added.push(backend.name);
          continue;
        }
        next.set(backend.name, known);
        const before = known.backend;
        if (Bun.deepEquals(before.settings, backend.settings)) continue;
        adjust(known, backend);
        changes.changed.push({ before, after: known.backend });
      }
      for (const [name, slot] of slots) {
        if (next.get(name) === slot) continue;
        drains.begin(slot.backend, slot.counters);
        changes.removed.push(name);
      }
      changed ||= !sameItems([...slots.values()], [...next.values()]);
      slots = next;
      if (isChecked !== checksEnabled) {
        checksEnabled = isChecked;
        for (const slot of slots.values()) change(slot, {});
      }
      return changes;
    },
    // Built when it is read: a thousand backends that answer at the same time cost one board, not a thousand.
    get current(): BackendBoard {
      if (changed) {
        board = toBoard(board.version + 1, [...slots.values()]);
        changed = false;
      }
      return board;
    },
    /** Sets the intakes of the backend's models, as far as they are known. */
    setIntakes(name: string, intakes: Intakes): void {
      const slot = slotOf(name);
      if (Bun.deepEquals(slot.intakes, intakes)) return;
      change(slot, { intakes, offer: offerOf(slot.names, intakes) });
    },
    /** All that is known of each, for another process that makes a board of its own. */
    facts: () =>
      [...slots.values()].map(({ entry, backend, health, held, models, intakes, counters }) => {
        return { entry, backend, health, held, models, intakes, counters };
      }),
    /** The backend with the kind known now; throws for a name that is not configured. */
    backend: (name: string) => slotOf(name).backend,
    setHealth(name: string, health: HealthState): void {
      const slot = slotOf(name);
      if (slot.health !== health) change(slot, { health });
    },
    setModels(name: string, models: readonly string[]): void {
      const slot = slotOf(name);
      if (sameItems(slot.models, models)) return;
      const names = requestNames(slot.backend, models);
      change(slot, { models, names, offer: offerOf(names, slot.intakes) });
    },
    setKind(name: string, kind: BackendKind): void {
      const slot = slotOf(name);
      if (slot.backend.kind === kind) return;
      const backend = ofKind(slot.backend, kind);
      const names = requestNames(backend, slot.models);
      change(slot, { backend, names, offer: offerOf(names, slot.intakes) });
    },
    /** A held backend gets no requests whatever its health. */
    setHeld(name: string, held: boolean): void {
      const slot = slotOf(name);
      if (slot.held !== held) change(slot, { held });
    },
  };
}

const NO_INTAKES: ReadonlyMap<string, Intake> = new Map();
const NO_OFFER: Offer = { intakes: NO_INTAKES };

function offerOf(names: Slot["names"], intakes: Intakes): Offer {
  if (intakes.size === 0) return { intakes };
  const known = [...names].flatMap(([name, listed]) => {
    const intake = intakes.get(listed);
    return intake === undefined ? [] : [[name, intake] as const];
  });
  return { intakes: new Map(known) };
}

function toEntry(
  slot: Pick<Slot, "backend" | "health" | "held" | "offer" | "counters">,
  checksEnabled: boolean,
): BackendEntry {
  const { backend, health, held, offer, counters } = slot;
  const isFit = !checksEnabled || (health === "ready" && !held);
  return { backend, health, available: backend.enabled && isFit, offer, counters };
}

function toBoard(version: number, slots: readonly Slot[]): BackendBoard {
  const rows = slots.map(({ entry, names, models }) => ({ entry, names, models }));
  const entries = rows.map((row) => row.entry);
  // Found entries are kept per model; the names of unknown models are not, because anyone can make up more of them.
  const servingCache = new Map<string, readonly BackendEntry[]>();
  const candidatesCache = new Map<string, readonly BackendEntry[]>();

  function serving(model: string): readonly BackendEntry[] {
    const known = servingCache.get(model);
    if (known) return known;
    const found = rows.filter((row) => row.names.has(model)).map((row) => asAskedFor(row.entry, model));
    if (found.length === 0) return NO_ENTRIES;
    servingCache.set(model, found);
    return found;
  }

  return {
    version,
    entries,
    serving,
    listedAs: (backendName, model) => rows.find(({ entry }) => entry.backend.name === backendName)?.names.get(model),
    models: () => rows.flatMap(({ entry, models }) => (entry.available ? models : [])),
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

/** A backend whose kind asks some models otherwise stands in the list of such a model as one of that kind. */
function asAskedFor(entry: BackendEntry, model: string): BackendEntry {
  const { backend } = entry;
  const kind = kindFor(backend.kind, model);
  return kind === backend.kind ? entry : { ...entry, backend: ofKind(backend, kind) };
}

/** The models, and their other names: of image models, and where a kind knows a tag that need not be said. */
export function requestNames({ kind }: Pick<Backend, "kind">, models: readonly string[]): Slot["names"] {
  const names = new Map<string, string>();
  for (const model of models) {
    for (const spelling of spellingsOfModel(model)) if (!names.has(spelling)) names.set(spelling, model);
    if (kind.impliedTag === undefined) continue;
    const tag = `:${kind.impliedTag}`;
    const hasTag = model.lastIndexOf(":") > model.lastIndexOf("/");
    if (!hasTag) names.set(model + tag, model);
    else if (model.endsWith(tag)) names.set(model.slice(0, -tag.length), model);
  }
  // Names that the backend lists itself win over spellings derived from others.
  for (const model of models) names.set(model, model);
  return names;
}

/** Everything else, credentials included, may change while requests run there. */
function isSameServer(left: Backend, right: Backend): boolean {
  const isSameAddress = left.rootUrl === right.rootUrl && left.socketPath === right.socketPath;
  return isSameAddress && left.settings.type === right.settings.type;
}

function sameItems<Item>(left: readonly Item[], right: readonly Item[]): boolean {
  return left.length === right.length && left.every((item, index) => item === right[index]);
}
