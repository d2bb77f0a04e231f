// Merges facts about models into those that are there, and says what has changed, a line each.

import type { FactEntry, ModelMetadata } from "../config/sections/metadata-entry.ts";
import { factKey } from "./price-list.ts";

interface MergedFacts {
  entries: readonly FactEntry[];
  added: number;
  changed: number;
  unchanged: number;
  /** Of entries that were added or changed. */
  lines: readonly string[];
}

/**
 * An entry takes the place of the one of the same model and vendor; entries that the update does not have stay.
 * @param builtin - what stood for a model that is not there yet; its capabilities stay, because lists of prices know fewer
 */
export function mergeFacts(
  present: readonly FactEntry[],
  update: readonly FactEntry[],
  builtin: readonly FactEntry[],
): MergedFacts {
  const before = new Map(present.map((entry) => [factKey(entry), entry]));
  const builtinBefore = new Map(builtin.map((entry) => [factKey(entry), entry]));
  const merged = new Map(before);
  const lines: string[] = [];
  let added = 0;
  let changed = 0;
  for (const entry of update) {
    const key = factKey(entry);
    const base = builtinBefore.get(key);
    const next = { ...entry, metadata: withCapabilities(entry.metadata, base?.metadata.capabilities) };
    const earlier = before.get(key);
    const differences = differencesOf((earlier ?? base)?.metadata ?? {}, next.metadata);
    const name = entry.vendor === undefined ? entry.id : `${entry.vendor}: ${entry.id}`;
    if (earlier === undefined) added++;
    else if (differences.length > 0) changed++;
    if (differences.length > 0) {
      lines.push(`${earlier === undefined && base === undefined ? "+" : "~"} ${name}: ${differences.join(", ")}`);
    }
    merged.set(key, next);
  }
  const unchanged = update.length - added - changed;
  return { entries: [...merged.values()], added, changed, unchanged, lines };
}

function withCapabilities(metadata: ModelMetadata, others: readonly string[] | undefined): ModelMetadata {
  const capabilities = new Set([...(others ?? []), ...(metadata.capabilities ?? [])]);
  return capabilities.size === 0 ? metadata : { ...metadata, capabilities: [...capabilities] };
}

/** "input_tokens 0.0025 -> 0.003", by the names of metadata. */
function differencesOf(before: ModelMetadata, after: ModelMetadata): string[] {
  const differences: string[] = [];
  const compare = (name: string, from: unknown, to: unknown): void => {
    if (to === undefined || Bun.deepEquals(from, to)) return;
    differences.push(from === undefined ? `${name} ${show(to)}` : `${name} ${show(from)} -> ${show(to)}`);
  };
  const prices = { ...before.pricing, ...after.pricing };
  for (const name of Object.keys(prices) as (keyof typeof prices)[]) {
    // Prices stay together: one that is no longer named is that of other tokens again.
    if (after.pricing !== undefined) compare(name, before.pricing?.[name], after.pricing[name] ?? null);
  }
  for (const name of ["context_window", "max_output"] as const) {
    compare(name, before.limits?.[name], after.limits?.[name]);
  }
  compare("capabilities", before.capabilities, after.capabilities);
  compare("available_until", before.available_until, after.available_until);
  return differences;
}

function show(value: unknown): string {
  if (value === null) return "none";
  return Array.isArray(value) ? `[${value.join(" ")}]` : String(value);
}
