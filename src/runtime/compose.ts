// What answers requests in every process, as parts that follow the configuration in one order: those that others are made
// of come first, and stop last. A worker has replicas of what its primary owns in the same places.

import { createTokensPart } from "../access/jwt/tokens-part.ts";
import { createAdmissionPart } from "../admission/admission-part.ts";
import { createBudgetsPart } from "../budgets/budgets-part.ts";
import { type Part, remade } from "../config/compile/part.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import { resolveDataPath } from "../config/values/paths.ts";
import { createFilesPart } from "../files/files-part.ts";
import { createHooksPart } from "../hooks/hooks-part.ts";
import { applyLogSettings } from "../logging/logger.ts";
import { createRoutesPart } from "../model-routes/routes-part.ts";
import { createKvIndexPart } from "../pipeline/kv-index-part.ts";
import { createLimiterPart } from "../rate-limit/limiter-part.ts";
import { createRecordingPart } from "../recording/recording-part.ts";
import { createCachePart } from "../response-cache/cache-part.ts";
import { createStrategy } from "../routing/strategies/registry.ts";
import type { SelectionStrategy } from "../routing/strategy.ts";
import { buildDataPlane } from "./data-plane.ts";
import { hookProcess } from "./hook-process.ts";
import { createProcessState } from "./process-state.ts";
import type { Surroundings } from "./surroundings.ts";

export type Composition = ReturnType<typeof compose>;

/** Long because it makes every part, and lists them in their order. */
export function compose(around: Surroundings) {
  const { snapshot, home, clock, log, wayToBackends, fleet, telemetry, owner } = around;
  const { server } = snapshot.settings;
  const state = createProcessState(wayToBackends.transport, clock.now, log);
  const { redisUnanswered } = around.happened;
  const ofRedis = { clock, deadlines: state.deadlines, log, redisUnanswered };
  const limits = createLimiterPart(snapshot, { ...ofRedis, elsewhere: owner?.limiter });
  const cache = createCachePart(snapshot, {
    ...ofRedis,
    elsewhere: owner?.answers,
    cacheSeed: around.cacheSeed,
    waitedMs: limits.server.waitedMs,
  });
  const strategy = createStrategyPart(snapshot);
  const routes = createRoutesPart(snapshot);
  const dataPath = (path: string) =>
    resolveDataPath(path, { dataDir: server.data_dir, baseDir: snapshot.baseDir, home });
  const ofBudgets = { ...around, ...ofRedis, dataPath, waitedMs: limits.server.waitedMs, elsewhere: owner?.budgets };
  const budgets = createBudgetsPart(snapshot, ofBudgets);
  const { roomChanged } = around;
  const admission = createAdmissionPart(snapshot, { ...ofRedis, elsewhere: owner?.admission, roomChanged });
  const hooks = createHooksPart(snapshot, {
    ...{ clock, log, deadlines: state.deadlines },
    launch: () => hookProcess(process.env),
    secret: () => around.identify({ key: "hooks" }),
    restarted: around.happened.hookRestarted,
  });
  const files = createFilesPart(snapshot, { dataPath, clock, log });
  const recording = createRecordingPart(snapshot, {
    ...{ dataPath, clock, log },
    recorded: around.happened.recorded,
    elsewhere: owner?.recordings,
    ask: around.askAgain,
    ratedBefore: around.ratedBefore,
  });
  const kvIndex = createKvIndexPart(snapshot, {
    fleet,
    transport: wayToBackends.transport,
    clock,
    random: Math.random,
    log,
    teller: around.kvPeers?.teller,
    isToldOfEvents: around.kvPeers?.follows,
  });
  const tokens = createTokensPart(snapshot, { clock, log });
  const build = (version: ConfigSnapshot) =>
    buildDataPlane(
      around,
      {
        ...{ state, files, kvIndex, recording },
        limiter: limits.limiter,
        budgets: budgets.inUse,
        admission: admission.inUse,
        cache: cache.inUse,
        strategy: strategy.now,
        routes: routes.inUse,
        hooks: hooks.inUse,
        tokens: tokens.verifier,
      },
      version,
    );
  let running = build(snapshot);

  const parts: readonly Part[] = [
    { follow: ({ settings }) => applyLogSettings(log, settings.logging) },
    telemetry,
    wayToBackends,
    around.backends,
    ...around.keeperParts,
    limits,
    budgets,
    admission,
    cache,
    strategy,
    routes,
    hooks,
    files,
    recording,
    kvIndex,
    tokens,
    {
      follow(version) {
        running = build(version);
      },
    },
  ];

  return {
    state,
    limits,
    budgets,
    admission,
    cache,
    files,
    recording,
    kvIndex,
    /** Serves under the configuration in force. */
    get running() {
      return running;
    },
    redis: () =>
      [
        { use: "response_cache", isThere: cache.server.isThere },
        { use: "rate_limiting", isThere: limits.server.isThere },
        { use: "budgets", isThere: budgets.server.isThere },
        { use: "admission", isThere: admission.server.isThere },
      ].filter((server): server is { use: string; isThere: boolean } => server.isThere !== undefined),
    follow(next: ConfigSnapshot): void {
      for (const part of parts) part.follow(next);
    },
    async stop(withinMs: number): Promise<void> {
      for (const part of parts.toReversed()) await part.stop?.(withinMs);
    },
  };
}

/** Its turns go on while its own settings stay. */
function createStrategyPart(snapshot: ConfigSnapshot) {
  const made = remade<Parameters<typeof createStrategy>, SelectionStrategy>({
    make: (slice) => createStrategy(...slice),
  });
  function follow({ settings: { routing, kv_cache_index } }: Pick<ConfigSnapshot, "settings">): void {
    const { enabled, fallback_strategy } = kv_cache_index;
    made.of([routing, { enabled, fallback_strategy }]);
  }
  follow(snapshot);
  return {
    follow,
    get now() {
      return made.now as SelectionStrategy;
    },
  };
}
