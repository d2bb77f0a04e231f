// The index of KV caches that the configuration asks for, and what reads it. Nothing of it is loaded before it is asked for.

import type { Transport } from "../backends/transport.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { Fleet } from "../fleet/fleet.ts";
import type { EventSourceView } from "../kv-index/event-source.ts";
import type { EventSources } from "../kv-index/event-sources.ts";
import type { KvIndex, KvIndexImage, KvIndexStats } from "../kv-index/kv-index.ts";
import type { KvNews, KvTeller } from "../kv-index/kv-teller.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import type { PromptSource } from "../prompts/resolve.ts";
import type { SelectionStrategy } from "../routing/strategy.ts";
import type { PromptPrefixes } from "./prefixes.ts";

interface KvIndexPartOptions {
  fleet: Pick<Fleet, "board">;
  transport: Transport;
  clock: Clock;
  random(): number;
  log: Logger;
  /** Passes on to other processes what requests and engines say; undefined where there are none. */
  teller?: KvTeller | undefined;
  /** Another process follows the events of the engines and passes them on. */
  isToldOfEvents?: boolean | undefined;
}

/** What others may know and do. */
export interface KvIndexInUse {
  stats(): KvIndexStats & { eventSources: EventSourceView[] };
  clear(backendName?: string): number;
}

export type KvIndexPart = ReturnType<typeof createKvIndexPart>;

export function createKvIndexPart(snapshot: ConfigSnapshot, parts: KvIndexPartOptions) {
  const { fleet, transport, clock, random, log, teller, isToldOfEvents } = parts;
  let current = snapshot.settings;
  let index: KvIndex | undefined;
  let sources: EventSources | undefined;

  function follow({ settings: next }: Pick<ConfigSnapshot, "settings">): void {
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
    if (isToldOfEvents) return;
    if (sources === undefined && own.event_sources.length > 0) sources = openSources(index);
    // A backend that is enabled again is asked at once, not after the pause that has grown meanwhile.
    const enabled = new Set(backends.filter((backend) => backend.enabled).map(({ name }) => name));
    sources?.apply(own.event_sources, (name) => (enabled.has(name) && servers.get(name)) || "");
  }

  function openSources(told: KvIndex): EventSources {
    const { createEventSources } =
      require("../kv-index/event-sources.ts") as typeof import("../kv-index/event-sources.ts");
    return createEventSources({
      transport,
      backendOf: (name) => fleet.board.entries.find(({ backend }) => backend.name === name)?.backend,
      told(backendName, event) {
        told.told(backendName, event);
        teller?.told(backendName, event);
      },
      clock,
      random,
      log,
    });
  }

  /** The index as requests use it: what they do to it is passed on. */
  function inRequests(own: KvIndex) {
    return {
      get settings() {
        return own.settings;
      },
      look: own.look.bind(own),
      rawOverlap: own.rawOverlap.bind(own),
      claimOf: own.claimOf.bind(own),
      isClaimed: own.isClaimed.bind(own),
      passed: own.passed.bind(own),
      tierMultiplier: own.tierMultiplier.bind(own),
      health: own.health.bind(own),
      learn(name, chain) {
        own.learn(name, chain);
        teller?.learnt(name, chain.words);
      },
      ended(name, hasFailed, isConfirmed) {
        teller?.ended(name, hasFailed, isConfirmed);
        const isDistrusted = own.ended(name, hasFailed, isConfirmed);
        if (isDistrusted) log.warn({ backend: name }, `answers of ${name} contradict its events: its cache is ignored`);
        return isDistrusted;
      },
      counted(hits, lookups) {
        own.counted(hits, lookups);
        teller?.counted(hits, lookups);
      },
    } satisfies Partial<KvIndex>;
  }

  function stop(): void {
    sources?.close();
    sources = undefined;
    index = undefined;
  }

  follow(snapshot);
  return {
    /** Undefined while it is off. */
    inUse(): KvIndexInUse | undefined {
      const now = index;
      if (now === undefined) return undefined;
      return {
        stats: () => ({ ...now.stats(), eventSources: sources?.views() ?? [] }),
        clear(backendName) {
          teller?.cleared(backendName);
          return now.clear(backendName);
        },
      };
    },
    /** What another process has learnt. */
    heard({ learnt, told, ended, hits, lookups }: KvNews): void {
      if (index === undefined) return;
      for (const [name, words] of learnt) index.learn(name, { words });
      for (const [name, event] of told) index.told(name, event);
      for (const [name, hasFailed, isConfirmed] of ended) index.ended(name, hasFailed, isConfirmed);
      index.counted(hits, lookups);
    },
    forget: (backendName: string | undefined) => index?.clear(backendName),
    /** For a process that begins; undefined while the index is off. */
    image: () => index?.image(),
    restore: (image: KvIndexImage | undefined) => image && index?.restore(image),
    /** The strategy of the configuration with the index above it, where that is on. */
    strategyOver(configured: SelectionStrategy): SelectionStrategy {
      if (index === undefined) return configured;
      const { withPrefixIndex } =
        require("../routing/strategies/prefix-index.ts") as typeof import("../routing/strategies/prefix-index.ts");
      return withPrefixIndex(inRequests(index), configured);
    },
    /** Undefined where prompts that begin alike are not looked for. */
    prefixes(prompts: PromptSource): PromptPrefixes | undefined {
      if (index === undefined && current.routing.selection_strategy !== "PrefixAwareHash") return undefined;
      const { createPromptPrefixes } = require("./prompt-prefixes.ts") as typeof import("./prompt-prefixes.ts");
      return createPromptPrefixes(prompts, index && inRequests(index));
    },
    follow,
    stop,
  };
}
