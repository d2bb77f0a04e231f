// The index of KV caches that the configuration asks for, and what reads it. Nothing of it is loaded before it is asked for.

import type { Transport } from "../backends/transport.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Fleet } from "../fleet/fleet.ts";
import type { EventSourceView } from "../kv-index/event-source.ts";
import type { EventSources } from "../kv-index/event-sources.ts";
import type { KvIndex, KvIndexStats } from "../kv-index/kv-index.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import type { PromptPrefixes } from "../pipeline/prefixes.ts";
import type { PromptSource } from "../prompts/resolve.ts";
import type { SelectionStrategy } from "../routing/strategy.ts";

interface KvIndexOwnerParts {
  settings: Settings;
  fleet: Pick<Fleet, "board">;
  transport: Transport;
  clock: Clock;
  random(): number;
  log: Logger;
}

/** What others may know and do. */
export interface KvIndexInUse {
  stats(): KvIndexStats & { event_sources: EventSourceView[] };
  clear(backendName?: string): number;
}

export type KvIndexOwner = ReturnType<typeof createKvIndexOwner>;

export function createKvIndexOwner({ settings, fleet, transport, clock, random, log }: KvIndexOwnerParts) {
  let current = settings;
  let index: KvIndex | undefined;
  let sources: EventSources | undefined;

  function apply(next: Settings): void {
    current = next;
    const { kv_cache_index: own, backends } = next;
    if (!own.enabled) {
      stop();
      return;
    }
    const servers = new Map(backends.map(({ name, url, type }) => [name, JSON.stringify([url, type])]));
    if (index === undefined) {
      const { KvIndex } = require("../kv-index/kv-index.ts") as typeof import("../kv-index/kv-index.ts");
      index = new KvIndex({ settings: own, now: clock.now, random });
    }
    index.apply(
      own,
      [...servers].map(([name, server]) => ({ name, server })),
    );
    if (sources === undefined && own.event_sources.length > 0) sources = openSources(index);
    sources?.apply(own.event_sources, (name) => servers.get(name) ?? "");
  }

  function openSources(told: KvIndex): EventSources {
    const { createEventSources } =
      require("../kv-index/event-sources.ts") as typeof import("../kv-index/event-sources.ts");
    return createEventSources({
      transport,
      backendOf: (name) => fleet.board.entries.find(({ backend }) => backend.name === name)?.backend,
      told: (backendName, event) => told.told(backendName, event),
      clock,
      random,
      log,
    });
  }

  function stop(): void {
    sources?.close();
    sources = undefined;
    index = undefined;
  }

  apply(settings);
  return {
    /** Undefined while it is off. */
    inUse(): KvIndexInUse | undefined {
      const now = index;
      if (now === undefined) return undefined;
      return {
        stats: () => ({ ...now.stats(), event_sources: sources?.views() ?? [] }),
        clear: (backendName) => now.clear(backendName),
      };
    },
    /** The strategy of the configuration with the index above it, where that is on. */
    strategyOver(configured: SelectionStrategy): SelectionStrategy {
      if (index === undefined) return configured;
      const { withPrefixIndex } =
        require("../routing/strategies/prefix-index.ts") as typeof import("../routing/strategies/prefix-index.ts");
      return withPrefixIndex(index, configured);
    },
    /** Undefined where nobody looks for prompts that begin alike. */
    prefixes(prompts: PromptSource): PromptPrefixes | undefined {
      if (index === undefined && current.routing.selection_strategy !== "PrefixAwareHash") return undefined;
      const { createPromptPrefixes } =
        require("../pipeline/prompt-prefixes.ts") as typeof import("../pipeline/prompt-prefixes.ts");
      return createPromptPrefixes(prompts, index);
    },
    apply,
    stop,
  };
}
