// What a seed stands for: the configuration, the load and the faults of one simulation.

import { type ConfigDocument, documentSchema, type Settings } from "../../src/config/sections/registry.ts";
import { STRATEGY_NAMES } from "../../src/config/sections/routing.ts";
import type { Condition } from "./network.ts";
import { type SeededRandom, seededRandom } from "./seeded-random.ts";

export const PATTERNS = ["mixed", "overload-storm", "mass-restart", "flapping", "last-survivor", "calm"] as const;

export type Pattern = (typeof PATTERNS)[number];

export interface Scenario {
  seed: number;
  pattern: Pattern;
  settings: Settings;
  models: readonly string[];
  /** Backends that nothing ever happens to. */
  survivors: ReadonlySet<string>;
  conditions: readonly Condition[];
  requests: number;
  meanGapMs: number;
  meanFaultGapMs: number;
  meanFaultMs: number;
  /** Share of the requests whose client leaves before it has its answer. */
  leaving: number;
  /** Share of the requests that every backend answers with 400. */
  mistaken: number;
  clients: number;
  keyLimits: ReadonlyMap<string, number>;
  /** Mean time between two removals of a backend, which comes back under its name later; undefined: none. */
  meanRemovalGapMs: number | undefined;
  /** Of the limiter; small, so that buckets are forgotten. */
  maxEntries: number;
  random: SeededRandom;
}

/** What a test may lay down instead of leaving it to the seed. */
export interface ScenarioWishes {
  pattern?: Pattern;
  backends?: number;
  requests?: number;
  limits?: boolean;
  chains?: boolean;
  breaker?: boolean;
  removals?: boolean;
}

/** Few requests at many backends, so that each seed costs about the same. */
function backendCount(random: SeededRandom): number {
  const draw = random.next();
  if (draw < 0.75) return random.between(2, 16);
  return draw < 0.97 ? random.between(17, 100) : random.between(101, 1000);
}

const REFUSALS: readonly Condition[] = ["refusing", "resetting", "swallowing", "hanging", "loading"];
const RETRYABLE: readonly Condition[] = [
  ...REFUSALS,
  "stuck",
  "overloaded",
  "unavailable",
  "slow",
  "cutting",
  "breaking",
];
const ALL: readonly Condition[] = [...RETRYABLE, "erring"];

export function scenarioOf(seed: number, wishes: ScenarioWishes = {}): Scenario {
  const random = seededRandom(seed);
  const count = wishes.backends ?? backendCount(random);
  const pattern = wishes.pattern ?? random.pick(PATTERNS);
  const models = ["m0", "m1", "m2"].slice(0, Math.min(count, random.between(1, 3)));
  // Each model has a backend; the others serve one or all.
  const names = Array.from({ length: count }, (_, index) => `b${index}`);
  const backends = names.map((name, index) => ({
    name,
    url: "http://simulated",
    weight: index < models.length ? 1 : random.pick([0, 1, 1, 1, 3]),
    models: index >= models.length && random.chance(0.3) ? models : [models[index % models.length] as string],
  }));
  const hasChains = (wishes.chains ?? random.chance(0.5)) && models.length > 1;
  const hasLimits = wishes.limits ?? random.chance(0.3);
  const isPatient = pattern === "last-survivor" || random.chance(0.6);
  const document: ConfigDocument = {
    backends,
    routing: { selection_strategy: random.pick(STRATEGY_NAMES) },
    retry: { max_attempts: isPatient ? 20 : random.between(1, 4), base_delay: "50ms", max_delay: "2s" },
    timeouts: { connect: "1s", first_byte: "2s", between_chunks: "1500ms", request: "120s" },
    health_checks: {
      interval: `${random.between(2, 10)}s`,
      timeout: "1s",
      unhealthy_threshold: random.between(1, 3),
      healthy_threshold: random.between(1, 2),
      warmup_check_interval: "500ms",
      max_warmup_duration: "20s",
    },
    circuit_breaker: {
      enabled: wishes.breaker ?? random.chance(0.85),
      failure_threshold: random.between(1, 5),
      minimum_requests: random.between(2, 10),
      timeout: `${random.between(1, 15)}s`,
      half_open_max_requests: random.between(1, 3),
      success_threshold: random.between(1, 3),
      panic: seededRandom(seed + 0.25).chance(0.5),
    },
    fallback: {
      fallback_chains: hasChains
        ? Object.fromEntries(models.slice(1).map((_, i) => [models[i], models.slice(i + 1)]))
        : {},
    },
    streaming: { mid_stream_fallback: { enabled: random.chance(0.5) } },
    rate_limiting: {
      enabled: hasLimits,
      limits: {
        per_client: { requests_per_second: random.between(1, 10), burst_capacity: random.between(1, 20) },
        per_api_key: { requests_per_second: random.between(5, 50) },
        per_backend: { requests_per_second: random.between(2, 40), burst_capacity: random.between(1, 40) },
        global: { requests_per_second: random.between(20, 200) },
      },
    },
  };
  const survivors = new Set<string>();
  // The last model stands at the end of every chain; without chains each model needs a survivor of its own.
  if (pattern === "last-survivor")
    for (const name of names.slice(hasChains ? models.length - 1 : 0, models.length)) survivors.add(name);
  else if (random.chance(0.4)) survivors.add(random.pick(names));
  // Drawn apart, so that all else about a seed is the same with and without removals.
  const hasRemovals = wishes.removals ?? (pattern !== "last-survivor" && seededRandom(seed + 0.5).chance(0.5));
  const isFlapping = pattern === "flapping";
  return {
    seed,
    pattern,
    settings: documentSchema.parse(document),
    models,
    survivors,
    conditions:
      pattern === "overload-storm"
        ? ["overloaded"]
        : random.chance(0.3)
          ? REFUSALS
          : random.chance(0.7)
            ? RETRYABLE
            : ALL,
    requests: wishes.requests ?? (count > 100 ? 250 : count > 16 ? 250 : 400),
    meanGapMs: random.pick([5, 30, 150]),
    meanFaultGapMs: (isFlapping ? 400 : pattern === "calm" ? 60_000 : 3_000) / Math.max(1, count / 8),
    meanFaultMs: isFlapping ? 600 : pattern === "last-survivor" ? 60_000 : random.pick([2_000, 10_000, 30_000]),
    leaving: random.pick([0, 0.1, 0.3]),
    mistaken: 0.03,
    clients: random.pick([3, 40, 400]),
    keyLimits: new Map(random.chance(0.3) ? [["key0", random.between(5, 200)]] : []),
    meanRemovalGapMs: hasRemovals ? Math.max(200, 2_000 / Math.max(1, count / 8)) : undefined,
    maxEntries: Math.max(count, random.pick([8, 64, 1000])),
    random,
  };
}
