// The backends in a worker: the settings and what the primary knows of each make a board of its own, with its own counters.

import { type BackendCounters, toBackend } from "../backends/backend.ts";
import { createDrains } from "../backends/drains.ts";
import { BACKEND_KINDS } from "../backends/kinds.ts";
import { createRegistry } from "../backends/registry.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { ServingFleet } from "../fleet/fleet.ts";
import { createDeadlines } from "../lib/deadlines.ts";
import type { BackendKindName } from "../names.ts";
import { type Channel, NO_LIMIT_MS } from "./channel.ts";
import type { BackendFacts, Load, PrimaryDesk } from "./messages.ts";
import type { ReplicaCircuits } from "./replica-circuits.ts";

interface ReplicaFleetParts {
  settings: Settings;
  channel: Channel<PrimaryDesk>;
  circuits: ReplicaCircuits;
  now(): number;
}

export function createReplicaFleet({ settings, channel, circuits, now }: ReplicaFleetParts) {
  const drains = createDrains({ deadlines: createDeadlines(now), now });
  const registry = createRegistry([], { checksEnabled: settings.health_checks.enabled, drains });
  let facts = new Map<string, BackendFacts & { toldAtMs: number }>();
  /** Of every backend that has, or may still have, requests. */
  const slots = new Map<BackendCounters, number>();

  function apply({ backends, health_checks, circuit_breaker }: Settings): void {
    registry.replace(backends.map(toBackend), health_checks.enabled);
    circuits.apply(circuit_breaker);
  }
  apply(settings);

  return {
    get board() {
      return registry.current;
    },
    circuits,
    models: {
      list: async () => (await channel.call("listModels", [], NO_LIMIT_MS)) ?? [],
      find: (id: string) => channel.call("findModel", [id], NO_LIMIT_MS),
    },
    get firstChecks() {
      return channel.call("firstChecks", [], NO_LIMIT_MS);
    },
    refreshModels: () => channel.call("refreshModels", [], NO_LIMIT_MS),
    suspect: (name) => channel.tell("suspect", name),
    absenceOf(name) {
      const known = facts.get(name);
      if (known === undefined) return { why: "not checked yet", nextLookMs: undefined };
      const { why, nextLookMs, toldAtMs } = known;
      return { why, nextLookMs: nextLookMs && Math.max(0, nextLookMs - (now() - toldAtMs)) };
    },
    follow: ({ settings }: { settings: Settings }) => apply(settings),
    /** What the primary knows, of the same configuration. */
    hear(told: readonly BackendFacts[]): void {
      const toldAtMs = now();
      facts = new Map(told.map((fact) => [fact.name, { ...fact, toldAtMs }]));
      const known = new Map(registry.current.entries.map(({ backend, counters }) => [backend.name, counters]));
      for (const { name, slot, kind, health, held, models, intakes } of told) {
        const counters = known.get(name);
        if (counters === undefined) continue;
        slots.set(counters, slot);
        // Only what was recognised is news; the settings say the rest here, too.
        if (registry.backend(name).kind.name !== kind) registry.setKind(name, BACKEND_KINDS[kind as BackendKindName]);
        registry.setModels(name, models);
        registry.setIntakes(name, new Map(intakes));
        registry.setHealth(name, health);
        registry.setHeld(name, held);
      }
    },
    /** What other processes do at the same backends. */
    heard(loads: readonly Load[]): void {
      const bySlot = new Map([...slots].map(([counters, slot]) => [slot, counters]));
      for (const { slot, inFlight, latencyMs, expectedMs, latencyAgeMs } of loads) {
        const counters = bySlot.get(slot);
        if (counters === undefined) continue;
        counters.inFlightElsewhere = inFlight;
        const atMs = now() - latencyAgeMs;
        if (expectedMs === undefined || atMs <= counters.latencyAtMs) continue;
        counters.latencyMs = latencyMs;
        counters.expectedMs = expectedMs;
        counters.latencyAtMs = atMs;
      }
    },
    /** Whose numbers are to be reported. */
    *counters() {
      const present = new Set(registry.current.entries.map(({ counters }) => counters));
      for (const [counters, slot] of slots) {
        yield { slot, counters, forget: () => void (present.has(counters) || slots.delete(counters)) };
      }
    },
    stop: () => drains.stop(),
  } satisfies ServingFleet & Record<string, unknown>;
}
