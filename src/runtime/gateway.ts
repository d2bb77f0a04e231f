// One gateway, without listeners and signals: what it keeps, what answers requests, and how a change of the configuration
// reaches both. Owners are made before those who read them.

import { createKeyIdentity } from "../access/key-identity.ts";
import { createAdminDoor } from "../admin/admin-auth.ts";
import { metricsRoutes } from "../admin/metrics.ts";
import type { AdminParts } from "../admin/parts.ts";
import { ADMIN_PATHS } from "../admin/paths.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import { followConfigFile } from "../config/store/file-reload.ts";
import type { ConfigStore } from "../config/store/store.ts";
import { resolveDataPath, resolvePath } from "../config/values/paths.ts";
import { DASHBOARD_PATHS } from "../dashboard/paths.ts";
import { Fleet } from "../fleet/fleet.ts";
import type { Clock } from "../lib/clock.ts";
import { lazily } from "../lib/lazily.ts";
import { applyLogSettings, type Logger } from "../logging/logger.ts";
import type { NeutralEntry } from "../pipeline/neutral-entry.ts";
import { createResponseStore } from "../pipeline/response-store.ts";
import type { CacheStatistics, ResponseCache } from "../response-cache/cache.ts";
import type { Surface } from "../server/request-target.ts";
import { createRouteTable } from "../server/route-table.ts";
import type { StatsCollector } from "../stats/collector.ts";
import { averageLatency } from "../stats/windows.ts";
import type { KvTeller } from "../workers/kv-news.ts";
import type { Owners } from "../workers/owners.ts";
import { buildDataPlane, configuredBy, type DataPlaneParts } from "./data-plane.ts";
import { createFilesOwner } from "./files-in-use.ts";
import { followConfiguration } from "./follow-configuration.ts";
import type { GaugeSources } from "./gauges.ts";
import { createKeeper } from "./kept.ts";
import { createKvIndexOwner } from "./kv-index-in-use.ts";
import { createLasting } from "./lasting.ts";
import { createTelemetry } from "./telemetry.ts";
import { createWayToBackends } from "./way-to-backends.ts";

const LAST_WORDS_MS = 1_000;

export interface GatewayParts {
  store: ConfigStore;
  /** Of the configuration file as it was read, so that an edit since then is not missed. */
  fileHash: string | undefined;
  env: Record<string, string | undefined>;
  clock: Clock;
  log: Logger;
  /** Other processes that answer for this one, which owns what they share; see src/workers. */
  workers?: Workers | undefined;
  /** Under which these name cached answers. */
  cacheSeed?: number;
  /** What this process makes of a version of the configuration; default: all of it. */
  view?: (snapshot: ConfigSnapshot) => ConfigSnapshot;
}

export type Workers = NonNullable<AdminParts["workers"]> &
  NonNullable<GaugeSources["workers"]> & {
    kvTeller: KvTeller;
    /** Of a cache on a server, which each of them asks itself; of those that are gone as well. */
    withTheirCounts(own: CacheStatistics): CacheStatistics;
  };

export interface Gateway extends NeutralEntry {
  readonly api: Surface;
  readonly admin: Surface;
  readonly fleet: Fleet;
  /** Of what other processes share with this one. */
  readonly owners: Owners;
  /** Before the first request: brings back what was kept of earlier ones. */
  start(): Promise<void>;
  /** Requests from now on are answered under this configuration; those under way go on with the one they began with. */
  apply(snapshot: ConfigSnapshot): void;
  /** Before the listeners are drained: answers that would never end are over. */
  closing(): void;
  /** What has to be sent to others still is sent, for so long at most. */
  stop(withinMs?: number): Promise<void>;
}

export function createGateway({
  store,
  fileHash,
  env,
  clock,
  log,
  workers,
  cacheSeed,
  view = asItIs,
}: GatewayParts): Gateway {
  const snapshot = view(store.current);
  const { settings } = snapshot;
  const home = env.HOME;
  const identify = createKeyIdentity(() => store.keySalt());
  const configured = configuredBy(snapshot);
  const telemetry = createTelemetry(snapshot, configured.metadata, home, clock, log);
  const { configReloaded: reloaded, rateLimited: limited, fileUploaded: uploaded } = telemetry.events;
  const reloader = followConfigFile({ store, clock, log, fileHash, reloaded });
  const wayToBackends = createWayToBackends(snapshot, env, log);
  const { transport } = wayToBackends;
  const fleet = new Fleet({ settings, transport, clock, log, ...telemetry.ofBackends });
  const responses = createResponseStore(clock.now);
  const lasting = createLasting(clock, log, transport, responses, [settings.server.bind_address].flat());
  const files = createFilesOwner({
    settings: settings.files,
    dataPath: (path) => resolveDataPath(path, { dataDir: settings.server.data_dir, baseDir: snapshot.baseDir, home }),
    clock,
    log,
  });
  const { redisUnanswered } = telemetry.events;
  const { deadlines } = lasting;
  const keeper = createKeeper({ settings, identify, clock, deadlines, log, redisUnanswered, cacheSeed });
  let kept = keeper.keep(settings);
  const teller = workers?.kvTeller;
  const kvIndex = createKvIndexOwner({ settings, fleet, transport, clock, random: Math.random, log, teller });

  const cache = () => withWorkers(kept.cache?.store);
  const configVersion = () => store.current.version;
  const configReloadOk = () => reloader.status().lastFailure === undefined;
  /** Whoever has lost a server is told of, whichever process it is. */
  function redis() {
    const told = workers?.numbers().flatMap((numbers) => numbers.redis) ?? [];
    return keeper.redis().map(({ use, isThere }) => {
      return { use, isThere: isThere && !told.some((other) => other.use === use && !other.isThere) };
    });
  }
  function withWorkers(store: ResponseCache | undefined): ResponseCache | undefined {
    const own = keeper.cacheServerStats();
    if (store === undefined || own === undefined || workers === undefined) return store;
    return { ...store, stats: () => workers.withTheirCounts(own) };
  }
  const kvIndexInUse = kvIndex.inUse;
  telemetry.show({
    ...{ fleet, cache, redis, configVersion, configReloadOk, workers },
    files: files.usage,
    kvIndex: kvIndexInUse,
  });
  const adminDoor = createAdminDoor({ settings: () => store.current.settings, identify, clock, log });
  function partsOfAdmin(): AdminParts {
    return {
      ...telemetry,
      ...{ store, identify, adminDoor, workers, clock, log },
      files: files.inUse,
      cache,
      kvIndex: kvIndexInUse,
      agentSessions: () => agentSessionsOf(snapshot, home),
      settings: () => store.current.settings,
      newId: () => crypto.randomUUID(),
      storageProblems: () => [...(store.storageProblem ? [store.storageProblem] : []), ...telemetry.storageProblems()],
      promptFiles: promptsOf(store, home),
      backendStates: () => fleet.states(),
      resetCircuit: (name) => fleet.circuits.reset(name),
      backendUsage: (name) => usageOf(telemetry.collector.backend(name)),
      reloadStatus: () => reloader.status(),
    };
  }
  const adminParts = partsOfAdmin();
  const parts: DataPlaneParts = {
    lasting,
    files: files.inUse,
    uploaded,
    fleet,
    kvIndex,
    reporter: telemetry.reporter,
    limited,
    identify,
    adminDoor,
    metrics: metricsRoutes(adminParts),
    adminTable: lazily(async () => {
      const { adminRoutes } = await import("../admin/routes.ts");
      const { dashboardRoutes } = await import("../dashboard/routes.ts");
      return createRouteTable([...adminRoutes(adminParts), ...dashboardRoutes(adminParts)]);
    }),
    clock,
    log,
  };
  let running = buildDataPlane(parts, kept, configured);

  function apply(next: ConfigSnapshot): void {
    const configured = configuredBy(next);
    applyLogSettings(log, next.settings.logging);
    const reassessed = wayToBackends.follow(next);
    fleet.update(next.settings);
    for (const name of reassessed) fleet.suspect(name);
    kept = keeper.keep(next.settings);
    files.apply(next.settings.files);
    kvIndex.apply(next.settings);
    running = buildDataPlane(parts, kept, configured);
    telemetry.apply(next.settings, configured.metadata);
  }
  const unfollow = followConfiguration(store, (next) => apply(view(next)), fleet, log);

  return {
    api: { paths: running.paths, handle: (request, server, target) => running.handle(request, server, target) },
    admin: {
      paths: [...ADMIN_PATHS, ...DASHBOARD_PATHS],
      handle: (request, server, target) => running.handleAdmin(request, server, target),
    },
    owners: { ...telemetry, ...keeper.own, kvIndex, fleet, responses, fileStored: files.start },
    generate: (request, call) => running.generate(request, call),
    fleet,
    async start() {
      files.start();
      const loading = keeper.load();
      await telemetry.restore();
      if (loading === undefined) return;
      await loading;
      const current = view(store.current);
      kept = keeper.keep(current.settings);
      running = buildDataPlane(parts, kept, configuredBy(current));
    },
    apply,
    closing: () => telemetry.happenings.closing(),
    async stop(withinMs = LAST_WORDS_MS) {
      unfollow();
      reloader.stop();
      kvIndex.stop();
      await fleet.stop();
      transport.close();
      files.stop();
      keeper.stop();
      await telemetry.stop(withinMs);
    },
  };
}

function asItIs(snapshot: ConfigSnapshot): ConfigSnapshot {
  return snapshot;
}

async function agentSessionsOf({ settings, baseDir }: ConfigSnapshot, home: string | undefined) {
  const { readRunningSessions } = await import("../acp/running-sessions.ts");
  return await readRunningSessions(resolvePath(settings.server.data_dir, baseDir, home));
}

function usageOf(sums: ReturnType<StatsCollector["backend"]>): ReturnType<AdminParts["backendUsage"]> {
  return sums && { averageLatencyMs: averageLatency(sums), lastUsedMs: sums.lastUsedMs };
}

/** The prompt files stay where they were at the start. */
function promptsOf(store: ConfigStore, home: string | undefined): AdminParts["promptFiles"] {
  return {
    baseDir: store.current.baseDir,
    home,
    current: () => store.current.attachments.promptFiles,
    use: (promptFiles) => store.attach({ promptFiles }),
  };
}
