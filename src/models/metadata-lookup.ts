// Finds the metadata of a model id in five steps (docs/configuration.md), and shows it to clients.

import type { MetadataEntry, ModelMetadata } from "../config/sections/metadata-entry.ts";
import { compileGlob, type GlobMatcher, isGlob } from "../lib/glob.ts";
import { features, supportedMethods } from "./capabilities.ts";

export type MetadataLookup = (modelId: string) => ModelMetadata | undefined;

/** Results kept; more than the models of a large installation. */
const CACHE_ENTRIES = 1_000;
/** Ids come from requests, so a long one is answered but not kept: the cache is bounded in bytes too. */
const LONGEST_CACHED_ID = 256;

/**
 * Sources in priority order. What a source says of a model by any step wins over every later source, so that what an
 * operator writes, even as a pattern, is never overruled by what is built in; of what it leaves out, later ones are asked.
 */
export function createMetadataLookup(sources: readonly (readonly MetadataEntry[])[]): MetadataLookup {
  const compiled = sources.map(compileSource);
  const cache = new Map<string, ModelMetadata | undefined>();

  function resolve(modelId: string): ModelMetadata | undefined {
    let known: ModelMetadata | undefined;
    for (const source of compiled) {
      const further = resolveIn(source, modelId);
      known = known === undefined || further === undefined ? (known ?? further) : withFurther(known, further);
    }
    return known;
  }

  return (modelId) => {
    if (modelId.length > LONGEST_CACHED_ID) return resolve(modelId);
    const known = cache.get(modelId);
    if (known !== undefined) return known;
    if (cache.has(modelId)) return undefined;
    // The oldest goes, used or not: to put an entry back with every request costs more than to find one again.
    if (cache.size >= CACHE_ENTRIES) cache.delete(cache.keys().next().value as string);
    const metadata = resolve(modelId);
    cache.set(modelId, metadata);
    return metadata;
  };
}

/** Field by field. Prices stay together: half of them may be in another currency. */
function withFurther(known: ModelMetadata, further: ModelMetadata): ModelMetadata {
  const limits = { ...further.limits, ...known.limits };
  return { ...further, ...known, ...(Object.keys(limits).length > 0 && { limits }) };
}

interface CompiledSource {
  ids: ReadonlyMap<string, ModelMetadata>;
  aliases: ReadonlyMap<string, ModelMetadata>;
  /** Most specific first: more literal characters, then the order of the source. */
  wildcards: readonly { matches: GlobMatcher; metadata: ModelMetadata }[];
}

function compileSource(entries: readonly MetadataEntry[]): CompiledSource {
  const ids = new Map<string, ModelMetadata>();
  const aliases = new Map<string, ModelMetadata>();
  const wildcards: { matches: GlobMatcher; metadata: ModelMetadata; literalLength: number }[] = [];
  for (const { id, aliases: entryAliases, metadata } of entries) {
    if (!ids.has(id)) ids.set(id, metadata);
    for (const alias of entryAliases) {
      if (isGlob(alias)) {
        wildcards.push({ matches: compileGlob(alias), metadata, literalLength: alias.replaceAll("*", "").length });
      } else if (!aliases.has(alias)) aliases.set(alias, metadata);
    }
  }
  wildcards.sort((one, other) => other.literalLength - one.literalLength);
  return { ids, aliases, wildcards };
}

function resolveIn(source: CompiledSource, modelId: string): ModelMetadata | undefined {
  const found = resolveName(source, modelId);
  if (found !== undefined) return found;
  const baseName = modelId.slice(modelId.lastIndexOf("/") + 1);
  return baseName === modelId || baseName === "" ? undefined : resolveName(source, baseName);
}

/** Steps one to four; step five is the same for the base name. */
function resolveName(source: CompiledSource, name: string): ModelMetadata | undefined {
  return (
    resolveExact(source, name) ??
    resolveExact(source, withoutDateSuffix(name)) ??
    source.wildcards.find((wildcard) => wildcard.matches(name))?.metadata
  );
}

function resolveExact(source: CompiledSource, name: string): ModelMetadata | undefined {
  return source.ids.get(name) ?? source.aliases.get(name);
}

const YEAR = "(?:19|20)\\d\\d";
const MONTH = "(?:0[1-9]|1[0-2])";
const DAY = "(?:0[1-9]|[12]\\d|3[01])";

/**
 * -YYYYMMDD, -YYYY-MM-DD, -YYMM and @YYYYMMDD. Only digits that can be a date count, so that a size such as -8192
 * stays. Four digits are also read as -MMDD, as in the older snapshots of OpenAI (gpt-4-0613).
 */
const DATE_SUFFIX = new RegExp(
  `(?:[-@]${YEAR}${MONTH}${DAY}|-${YEAR}-${MONTH}-${DAY}|-(?:\\d\\d${MONTH}|${MONTH}${DAY}))$`,
);

/** "gpt-4o-2024-08-06" is "gpt-4o"; a name without a date suffix is unchanged. */
export function withoutDateSuffix(name: string): string {
  return name.replace(DATE_SUFFIX, "");
}

/** The optional fields of a single model (GET /v1/models/{model}). */
export interface ModelFields {
  supported_methods?: string[];
  features?: string[];
  max_tokens?: number;
  metadata?: PublicMetadata;
}

const PUBLIC_FIELDS = [
  "display_name",
  "developer",
  "summary",
  "knowledge_cutoff",
  "available_until",
  "relative_speed",
  "pricing",
  "limits",
] as const satisfies readonly (keyof ModelMetadata)[];

export type PublicMetadata = Pick<ModelMetadata, (typeof PUBLIC_FIELDS)[number]>;

/** Absent and empty fields are left out. */
export function toModelFields(metadata: ModelMetadata): ModelFields {
  const capabilities = metadata.capabilities ?? [];
  const methods = supportedMethods(capabilities);
  const shown = toPublicMetadata(metadata);
  return {
    ...(methods.length > 0 && { supported_methods: methods }),
    ...(capabilities.length > 0 && { features: features(capabilities) }),
    ...(metadata.limits?.max_output !== undefined && { max_tokens: metadata.limits.max_output }),
    ...(Object.keys(shown).length > 0 && { metadata: shown }),
  };
}

/** The `metadata` object of the model list and of a single model. */
export function toPublicMetadata(metadata: ModelMetadata): PublicMetadata {
  return Object.fromEntries(
    PUBLIC_FIELDS.filter((field) => metadata[field] !== undefined).map((field) => [field, metadata[field]]),
  );
}
