// The KV cache index: which backend has which prefix of a prompt in its cache, learnt from the gateway's own requests and
// from what engines tell of their caches.

import type { Settings } from "../config/sections/registry.ts";
import type { CacheEvent } from "./cache-event.ts";
import { type Claim, type ClaimTrust, drew, judge, mayDraw, newTrust, passed } from "./claim-trust.ts";
import { LatestOutcomes } from "./latest-outcomes.ts";
import type { PrefixChain } from "./prefix-hash.ts";
import { BYTES_PER_ENTRY, MAX_SLOTS, type Overlap, PrefixTable, type TableImage } from "./prefix-table.ts";

export type KvIndexSettings = Settings["kv_cache_index"];

interface KvIndexParts {
  settings: KvIndexSettings;
  /** Clock milliseconds. */
  now(): number;
  random(): number;
}

/** A backend as the index knows it: another server under its name has another cache. */
interface IndexedBackend {
  name: string;
  server: string;
}

interface KnownBlocks {
  slot: number;
  server: string;
  outcomes: LatestOutcomes;
  trust: ClaimTrust;
}

export interface KvIndexStats {
  entries: number;
  maxEntries: number;
  bytes: number;
  maxBytes: number;
  hits: number;
  lookups: number;
  /** From 0 to 1. */
  hitRate: number;
  backends: { backend: string; entries: number; distrusted: boolean }[];
}

/** All that is known, as another process can take it over. */
export interface KvIndexImage {
  table: TableImage;
  known: { name: string; server: string; slot: number; trust: ClaimTrust }[];
  freeSlots: number[];
  /** The clock of the entries. */
  seconds: number;
}

export class KvIndex {
  readonly #parts: KvIndexParts;
  #startMs: number;
  readonly #known = new Map<string, KnownBlocks>();
  readonly #freeSlots: number[] = [];
  #settings: KvIndexSettings;
  #table: PrefixTable;
  #overlap = newOverlap(0);
  #blocks = 0;
  #hits = 0;
  #lookups = 0;

  constructor(parts: KvIndexParts) {
    this.#parts = parts;
    this.#settings = parts.settings;
    this.#startMs = parts.now();
    this.#table = new PrefixTable(parts.settings.max_entries, parts.random);
  }

  get settings(): KvIndexSettings {
    return this.#settings;
  }

  /** Entries stay as far as there is room for them and their backend is the same. */
  apply(settings: KvIndexSettings, backends: readonly IndexedBackend[]): void {
    const { max_entries } = this.#settings;
    this.#settings = settings;
    const servers = new Map(backends.map(({ name, server }) => [name, server]));
    for (const [name, { slot, server }] of this.#known) {
      if (servers.get(name) === server) continue;
      this.#table.clear(slot);
      this.#known.delete(name);
      this.#freeSlots.push(slot);
    }
    for (const { name, server } of backends) {
      if (this.#known.has(name)) continue;
      const slot = this.#freeSlots.pop() ?? this.#known.size;
      if (slot < MAX_SLOTS) this.#known.set(name, newKnown(slot, server));
    }
    this.#overlap = newOverlap(this.#known.size + this.#freeSlots.length);
    if (settings.max_entries === max_entries) return;
    const table = new PrefixTable(settings.max_entries, this.#parts.random);
    this.#table.copyTo(table);
    this.#table = table;
  }

  /** A backend has begun to answer a prompt: it holds its blocks. */
  learn(backendName: string, { words }: Pick<PrefixChain, "words">): void {
    const slot = this.#believed(backendName)?.slot;
    if (slot === undefined) return;
    this.#table.expire(this.#oldestSeconds());
    this.#table.learn(words, slot, this.#seconds());
  }

  /** Takes an event of a backend's cache. */
  told(backendName: string, { action, hash, isWarm }: CacheEvent): void {
    const slot = this.#believed(backendName)?.slot;
    if (slot === undefined) return;
    const { enabled: offloads, treat_eviction_as_offload } = this.#settings.storage_offloading;
    const table = this.#table;
    if (hash === undefined) {
      table.clear(slot);
      return;
    }
    const { low, high } = hash;
    switch (action) {
      case "created":
      case "reloaded":
        // A block in a storage that is not taken into account counts as gone.
        if (isWarm && !offloads) table.release(low, high, slot, false);
        else table.confirm(low, high, slot, this.#seconds(), isWarm === true && action === "created");
        return;
      case "offloaded":
        table.release(low, high, slot, offloads);
        return;
      case "evicted": {
        const isFromStorage = isWarm ?? table.isWarm(low, high, slot);
        table.release(low, high, slot, offloads && treat_eviction_as_offload && !isFromStorage);
        return;
      }
      case "purged":
        table.release(low, high, slot, false);
    }
  }

  /** Looks a prompt up; what was found is read by matched() and tier() until the next look. */
  look(chain: PrefixChain): void {
    this.#blocks = chain.blocks;
    this.#table.look(chain.words, this.#oldestSeconds(), this.#settings.storage_offloading.enabled, this.#overlap);
  }

  /** Which share of the prompt's blocks the backend holds; what it only claims counts while its claims may draw. */
  rawOverlap(backendName: string): number {
    const known = this.#known.get(backendName);
    if (known === undefined) return 0;
    const { matched, learnt } = this.#overlap;
    const counted = this.#table.hasClaims && !mayDraw(known.trust) ? learnt : matched;
    return (counted[known.slot] as number) / this.#blocks;
  }

  /** The backend's claim about a prompt, whatever it has answered; undefined for none. */
  claimOf(backendName: string, { words, blocks }: PrefixChain): Claim | undefined {
    const slot = this.#table.hasClaims ? this.#known.get(backendName)?.slot : undefined;
    const told = slot === undefined ? 0 : this.#table.toldOf(words, slot, this.#oldestSeconds());
    return told === 0 ? undefined : { told, blocks };
  }

  /** True if a part of the share that rawOverlap() returns is only claimed. */
  isClaimed(backendName: string): boolean {
    if (!this.#table.hasClaims) return false;
    const known = this.#known.get(backendName);
    if (known === undefined || !mayDraw(known.trust)) return false;
    return (this.#overlap.matched[known.slot] as number) > (this.#overlap.learnt[known.slot] as number);
  }

  /** One of so many candidates was chosen; `isDrawn`: this one, because of what it claims. */
  passed(backendName: string, candidates: number, isDrawn: boolean): void {
    const known = this.#table.hasClaims ? this.#known.get(backendName) : undefined;
    if (known === undefined) return;
    passed(known.trust, candidates);
    if (isDrawn) drew(known.trust);
  }

  /** The weight of the backend's blocks by the places where they are. */
  tierMultiplier(backendName: string): number {
    const slot = this.#known.get(backendName)?.slot;
    const matched = slot === undefined ? 0 : (this.#overlap.matched[slot] as number);
    if (slot === undefined || matched === 0) return 0;
    const { gpu_tier_weight, storage_tier_weight } = this.#settings.scoring;
    const warm = (this.#overlap.warm[slot] as number) / matched;
    return gpu_tier_weight * (1 - warm) + storage_tier_weight * warm;
  }

  /** Prompts were looked up for choices that were made. */
  counted(hits: number, lookups: number): void {
    this.#lookups += lookups;
    this.#hits += hits;
  }

  /**
   * A request has ended.
   * @param isConfirmed - whether the answer confirms what the backend had claimed; undefined where it says nothing of it
   * @returns whether the backend is distrusted from now on: for as long as its entries would count
   */
  ended(backendName: string, hasFailed: boolean, isConfirmed?: boolean): boolean {
    const known = this.#known.get(backendName);
    if (known === undefined) return false;
    known.outcomes.add(hasFailed);
    if (isConfirmed === undefined) return false;
    const isDistrusted = judge(known.trust, isConfirmed, this.#seconds(), this.#settings.entry_ttl_seconds);
    if (isDistrusted) this.#table.clear(known.slot);
    return isDistrusted;
  }

  /** 1 minus the share of failures among the latest requests. */
  health(backendName: string): number {
    return this.#known.get(backendName)?.outcomes.health ?? 1;
  }

  /** How many entries went: all, or those of one backend. */
  clear(backendName?: string): number {
    const before = this.#table.size;
    for (const [name, known] of this.#known) {
      if (backendName !== undefined && backendName !== name) continue;
      this.#table.clear(known.slot);
      known.trust = newTrust();
    }
    return before - this.#table.size;
  }

  stats(): KvIndexStats {
    this.#table.expire(this.#oldestSeconds());
    const { max_entries: maxEntries } = this.#settings;
    return {
      entries: this.#table.size,
      maxEntries,
      bytes: this.#table.bytes,
      maxBytes: (maxEntries + 1) * BYTES_PER_ENTRY,
      hits: this.#hits,
      lookups: this.#lookups,
      hitRate: this.#lookups === 0 ? 0 : this.#hits / this.#lookups,
      backends: [...this.#known].map(([backend, { slot }]) => ({
        backend,
        entries: this.#table.entriesOf(slot),
        distrusted: this.#believed(backend) === undefined,
      })),
    };
  }

  image(): KvIndexImage {
    return {
      table: this.#table.image(),
      known: [...this.#known].map(([name, { server, slot, trust }]) => ({ name, server, slot, trust: { ...trust } })),
      freeSlots: [...this.#freeSlots],
      seconds: this.#seconds(),
    };
  }

  /** Takes over the entries of an index with the same settings. */
  restore({ table, known, freeSlots, seconds }: KvIndexImage): void {
    this.#table = new PrefixTable(this.#settings.max_entries, this.#parts.random);
    this.#table.restore(table);
    this.#startMs = this.#parts.now() - (seconds - OLDEST_SECONDS) * 1000;
    this.#known.clear();
    for (const { name, server, slot, trust } of known) this.#known.set(name, newKnown(slot, server, trust));
    this.#freeSlots.splice(0, this.#freeSlots.length, ...freeSlots);
    this.#overlap = newOverlap(this.#known.size + this.#freeSlots.length);
  }

  /** Undefined for a backend that is not known, or distrusted. */
  #believed(backendName: string): KnownBlocks | undefined {
    const known = this.#known.get(backendName);
    return known === undefined || this.#seconds() < known.trust.distrustedUntil ? undefined : known;
  }

  /** Begins at one time to live, so that nothing is older than 0. */
  #seconds(): number {
    return Math.floor((this.#parts.now() - this.#startMs) / 1000) + OLDEST_SECONDS;
  }

  #oldestSeconds(): number {
    return Math.max(0, this.#seconds() - this.#settings.entry_ttl_seconds);
  }
}

/** The longest time to live: what is put in at the start is not older than that. */
const OLDEST_SECONDS = 31_536_000;

function newKnown(slot: number, server: string, trust = newTrust()): KnownBlocks {
  return { slot, server, outcomes: new LatestOutcomes(), trust };
}

function newOverlap(slots: number): Overlap {
  return { matched: new Int32Array(slots), learnt: new Int32Array(slots), warm: new Int32Array(slots) };
}
