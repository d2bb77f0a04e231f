// The models of all backends: listed, found, and asked for again when a request names an unknown one.

import type { BackendBoard } from "../backends/board.ts";
import type { BackendRegistry } from "../backends/registry.ts";
import type { Clock } from "../lib/clock.ts";
import type { ModelCatalog } from "../models/catalog.ts";
import { aggregateModels, type FoundModel, findRecord, type ModelListEntry, ownerOf } from "../models/list.ts";
import type { FirstLooks } from "./first-looks.ts";
import type { ServedModels } from "./unserved-models.ts";

export type ModelDirectory = ReturnType<typeof createModelDirectory>;

/** Sweeps for models that no backend seems to serve begin at least this far apart. */
const SWEEP_SPACING_MS = 2_000;

export function createModelDirectory(
  registry: BackendRegistry,
  catalog: ModelCatalog,
  firstLooks: FirstLooks,
  clock: Clock,
) {
  let sweeping: Promise<void> | undefined;
  let sweptMs = Number.NEGATIVE_INFINITY;
  let aggregated: { board: BackendBoard; revision: number; models: readonly ModelListEntry[] } | undefined;

  const available = () => registry.current.entries.filter((entry) => entry.available);
  const availableNames = () => available().map(({ backend }) => backend.name);
  const renew = (names: readonly string[]) => Promise.all(names.map((name) => catalog.renew(name)));

  /** A model was not found: lists that may be cold or old are renewed; resolves when done, never rejects. */
  async function refresh(): Promise<void> {
    if (sweeping === undefined && clock.now() - sweptMs < SWEEP_SPACING_MS) {
      // A backend that came up since then has been asked already; its first answer is worth waiting for.
      await renew(availableNames().filter((name) => catalog.isCold(name)));
      return;
    }
    sweeping ??= sweep().finally(() => {
      sweeping = undefined;
    });
    await sweeping;
  }

  async function sweep(): Promise<void> {
    await firstLooks.answers();
    await renew(availableNames().filter((name) => catalog.isOlderThan(name, SWEEP_SPACING_MS)));
    sweptMs = clock.now();
  }

  return {
    /** The models of the enabled backends; undefined until each of them has listed its models. */
    served(): ServedModels | undefined {
      const { entries, serving } = registry.current;
      const enabled = entries.filter(({ backend }) => backend.enabled);
      const lists = enabled.map(({ backend }) => catalog.list(backend.name).map(({ id }) => id));
      if (lists.some((ids) => ids.length === 0)) return undefined;
      return {
        ids: [...new Set(lists.flat())],
        serves: (model) => serving(model).some((entry) => entry.backend.enabled),
      };
    },
    refresh,
    /** Answers GET /v1/models. */
    async list(): Promise<readonly ModelListEntry[]> {
      await firstLooks.answers();
      const expired: string[] = [];
      for (const name of availableNames()) {
        const freshness = catalog.freshness(name);
        if (freshness === "expired") expired.push(name);
        else if (freshness === "stale") void catalog.renew(name);
      }
      if (expired.length > 0) await renew(expired);
      const board = registry.current;
      if (aggregated?.board !== board || aggregated.revision !== catalog.revision) {
        const lists = available().map(({ backend }) => ({ backend, models: catalog.list(backend.name) }));
        aggregated = { board, revision: catalog.revision, models: aggregateModels(lists) };
      }
      return aggregated.models;
    },
    async find(id: string): Promise<FoundModel | undefined> {
      if (!registry.current.candidates(id).length) await firstLooks.answers();
      if (!registry.current.serving(id).length) await refresh();
      const serving = registry.current.serving(id);
      const entry = serving.find((each) => each.available) ?? serving[0];
      if (entry === undefined) return undefined;
      const model = findRecord(catalog.list(entry.backend.name), id);
      const created = model?.created ?? Math.floor(clock.wallTime() / 1000);
      const backends = serving.map((each) => each.backend.name);
      return { id, created, owned_by: ownerOf(entry.backend, model), available: entry.available, backends };
    },
  };
}
