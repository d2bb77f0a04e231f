// What is known of a model on a backend: the backend's own model_configs, then the metadata file, then the facts of the data
// folder, then what is built in; each field from the first that has it.

import type { FactEntry, MetadataEntry, ModelMetadata } from "../config/sections/metadata-entry.ts";
import { getOrMake } from "../lib/get-or-make.ts";
import { lazily } from "../lib/lazily.ts";
import type { BackendKindName } from "../names.ts";
import { builtinFacts } from "./facts.ts";
import type { ModelListEntry } from "./list.ts";
import { createMetadataLookup, type MetadataLookup, type PublicMetadata, toPublicMetadata } from "./metadata-lookup.ts";

export interface ModelMetadataSource {
  /** The metadata for one backend. */
  of(modelId: string, backendName: string): ModelMetadata | undefined;
  /** The metadata in the backend's own configuration. */
  configuredOf(modelId: string, backendName: string): ModelMetadata | undefined;
  /** As the first of the backends that says something of its own has it. */
  ofAny(modelId: string, backendNames: readonly string[]): ModelMetadata | undefined;
}

interface MetadataSources {
  backends: readonly { name: string; type: BackendKindName; model_configs: readonly MetadataEntry[] }[];
  /** Entries of the metadata file. */
  external: readonly MetadataEntry[];
  /** Those of the data folder. */
  facts: readonly FactEntry[];
}

export function createModelMetadata({ backends, external, facts }: MetadataSources): ModelMetadataSource {
  // The built-in facts are read when the first model is looked up, not while the gateway starts.
  const lookupBehind = (own: readonly MetadataEntry[], type: BackendKindName | undefined) =>
    lazily(() => createMetadataLookup([own, external, ...at(type, facts), ...at(type, builtinFacts().entries)]));
  const shared = new Map<BackendKindName | undefined, () => MetadataLookup>();
  const sharedAt = (type: BackendKindName | undefined) => getOrMake(shared, type, () => lookupBehind([], type))();
  const types = new Map(backends.map(({ name, type }) => [name, type]));
  const own = new Map<string, { says: MetadataLookup; lookup(): MetadataLookup }>();
  for (const { name, type, model_configs: entries } of backends) {
    if (entries.length > 0)
      own.set(name, { says: createMetadataLookup([entries]), lookup: lookupBehind(entries, type) });
  }

  function of(modelId: string, backendName: string): ModelMetadata | undefined {
    const lookup = own.get(backendName)?.lookup() ?? sharedAt(types.get(backendName));
    return lookup(modelId);
  }

  return {
    of,
    configuredOf: (modelId, backendName) => own.get(backendName)?.says(modelId),
    ofAny(modelId, backendNames) {
      for (const name of own.size === 0 ? [] : backendNames) {
        if (own.get(name)?.says(modelId) !== undefined) return of(modelId, name);
      }
      const [first] = backendNames;
      return sharedAt(first === undefined ? undefined : types.get(first))(modelId);
    },
  };
}

/** What holds for a type of backend, and before it what holds for that type alone. */
function at(type: BackendKindName | undefined, entries: readonly FactEntry[]): readonly (readonly FactEntry[])[] {
  const general = entries.filter(({ vendor }) => vendor === undefined);
  return type === undefined ? [general] : [entries.filter(({ vendor }) => vendor === type), general];
}

/** An entry of the model list while metadata enrichment is on. */
type EnrichedEntry = ModelListEntry & { metadata?: PublicMetadata };

/** An entry while metadata is off. */
type PlainEntry = Omit<ModelListEntry, "backends">;

/** The list as clients get it. Made once per list, however often it is asked for. */
export function createListEnricher(
  metadata: ModelMetadataSource,
  isEnabled: boolean,
): (entries: readonly ModelListEntry[]) => readonly (EnrichedEntry | PlainEntry)[] {
  const shown = new WeakMap<readonly ModelListEntry[], readonly (EnrichedEntry | PlainEntry)[]>();
  return (entries) => {
    let list = shown.get(entries);
    if (list === undefined) {
      list = entries.map((entry) => (isEnabled ? enriched(entry, metadata) : plain(entry)));
      shown.set(entries, list);
    }
    return list;
  };
}

function enriched(entry: ModelListEntry, metadata: ModelMetadataSource): EnrichedEntry {
  const known = metadata.ofAny(entry.id, entry.backends);
  const visible = known === undefined ? {} : toPublicMetadata(known);
  return Object.keys(visible).length === 0 ? entry : { ...entry, metadata: visible };
}

function plain({ backends: _, ...entry }: ModelListEntry): PlainEntry {
  return entry;
}
