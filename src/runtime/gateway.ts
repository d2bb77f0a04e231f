// One gateway, without listeners and signals: what it keeps, what answers requests, and how a change of the configuration
// reaches both. Owners are made before those who read them.

import { createKeyIdentity } from "../access/key-identity.ts";
import { openKeyStore } from "../access/key-store.ts";
import { moveKeys } from "../access/move-keys.ts";
import { createSharedIdsCheck } from "../access/shared-ids.ts";
import { createAdminDoor } from "../admin/admin-auth.ts";
import { createAuditLog } from "../admin/audit-log.ts";
import { metricsRoutes } from "../admin/metrics.ts";
import type { AdminParts } from "../admin/parts.ts";
import { ADMIN_PATHS } from "../admin/paths.ts";
import { allBatchRoutes } from "../api/batch-routes.ts";
import { feedbackRoutes } from "../api/feedback.ts";
import { ownUsageRoutes } from "../api/me-usage.ts";
import { createBatchesPart } from "../batches/batches-part.ts";
import type { Part } from "../config/compile/part.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import { followConfigFile } from "../config/store/file-reload.ts";
import type { ConfigStore } from "../config/store/store.ts";
import { resolveDataPath, resolvePath } from "../config/values/paths.ts";
import { DASHBOARD_PATHS } from "../dashboard/paths.ts";
import { Fleet } from "../fleet/fleet.ts";
import type { KvTeller } from "../kv-index/kv-teller.ts";
import type { Clock } from "../lib/clock.ts";
import { lazily } from "../lib/lazily.ts";
import type { Logger } from "../logging/logger.ts";
import { createRollbackPart } from "../model-routes/rollback.ts";
import { createNotificationsPart, type Notifications } from "../notifications/notifications-part.ts";
import type { NeutralEntry } from "../pipeline/neutral-entry.ts";
import { createResponseStore } from "../pipeline/response-store.ts";
import { createRequestSearch } from "../request-log/search.ts";
import type { CacheStatistics, ResponseCache } from "../response-cache/cache.ts";
import type { Surface } from "../server/request-target.ts";
import { createRouteTable } from "../server/route-table.ts";
import type { StatsCollector } from "../stats/collector.ts";
import type { RequestRecord } from "../stats/request-record.ts";
import { averageLatency } from "../stats/windows.ts";
import { createWayToBackends, type WayToBackends } from "../upstream/way-to-backends.ts";
import { createVendorBatches } from "../vendor-batches/vendor-batches.ts";
import type { Owners } from "../workers/owners.ts";
import { createAskAgain } from "./ask-again.ts";
import { createLineAsker } from "./ask-line.ts";
import { compose } from "./compose.ts";
import { followConfiguration } from "./follow-configuration.ts";
import type { GaugeSources } from "./gauges.ts";
import { createTelemetry } from "./telemetry.ts";

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
  /** This process's version of a configuration; default: the configuration itself. */
  view?: (snapshot: ConfigSnapshot) => ConfigSnapshot;
}

export type Workers = NonNullable<AdminParts["workers"]> &
  NonNullable<GaugeSources["workers"]> & {
    kvTeller: KvTeller;
    roomChanged(backend: string, isFull: boolean): void;
    /** Of a cache on a server, which each of them asks itself; of those that are gone as well. */
    withTheirCounts(own: CacheStatistics): CacheStatistics;
  };

export interface Gateway extends NeutralEntry {
  readonly api: Surface;
  readonly admin: Surface;
  readonly fleet: Fleet;
  /** Owners of the state that other processes share with this one. */
  readonly owners: Owners;
  /** Before the first request: brings back what was kept of earlier ones. */
  start(): Promise<void>;
  /** Before the listeners are drained: answers that would never end are over. */
  closing(): void;
  /** Sends what still has to be sent, for at most this time. */
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
  const home = env.HOME;
  const identify = createKeyIdentity(() => store.keySalt());
  const keyStore = openKeyStore({ folder: store.dataFolder, clock, log }, true);
  const telemetry = createTelemetry(snapshot, home, clock, log);
  const { events } = telemetry;
  const reloader = followConfigFile({
    store,
    clock,
    log,
    fileHash,
    reloaded: events.configReloaded,
    refused: (file, problems) => notifications.configRefused(file, problems),
  });
  const wayToBackends = createWayToBackends(snapshot, { env, baseDir: snapshot.baseDir, clock, log });
  const { transport } = wayToBackends;
  const fleet = new Fleet({ settings: snapshot.settings, transport, clock, log, ...telemetry.ofBackends });
  const responses = createResponseStore(clock.now);
  const settings = () => store.current.settings;
  const adminDoor = createAdminDoor({ settings, identify, storedKeys: keyStore, clock, log });
  const dataPath = (path: string) =>
    resolveDataPath(path, { dataDir: snapshot.settings.server.data_dir, baseDir: snapshot.baseDir, home });
  const { audit: auditSettings } = snapshot.settings.admin;
  const audit = createAuditLog({ settings: auditSettings, path: dataPath(auditSettings.path), clock, log });
  // The store of the configuration tells of a folder that is missing.
  const keysProblem = store.dataFolder === undefined ? undefined : keyStore.problem;
  const storageProblems = () =>
    [
      store.storageProblem,
      keysProblem,
      audit.problem,
      ...telemetry.storageProblems(),
      composed.budgets.ledger().problem,
    ].filter((problem) => problem !== undefined);
  const notifications: Notifications = createNotificationsPart(snapshot, {
    ...{ clock, log, identify, storageProblems },
    keysEnding: keyStore.ending,
    happenings: telemetry.happenings,
    dataPath,
    counted: events.notified,
  });
  const rollback = createRollbackPart(snapshot, {
    ...{ store, log, book: telemetry.arms, now: clock.now },
    rolledBack: (change) => telemetry.happenings.routeRolledBack(change),
  });
  const adminParts: AdminParts = {
    store,
    keyStore,
    identify,
    adminDoor,
    workers,
    clock,
    log,
    settings,
    collector: telemetry.collector,
    errors: telemetry.errors,
    stories: telemetry.stories,
    arms: telemetry.arms,
    happenings: telemetry.happenings,
    ledger: () => composed.budgets.ledger(),
    registry: telemetry.registry,
    requestLog: telemetry.requestLog,
    history: telemetry.history,
    files: () => composed.files.inUse(),
    batches: () => batches.inUse(),
    recordings: (isWanted) => composed.recording.inUse(isWanted),
    cache,
    kvIndex: () => composed.kvIndex.inUse(),
    queue: () => composed.admission.view(),
    agentSessions: () => agentSessionsOf(snapshot, home),
    newId: () => crypto.randomUUID(),
    storageProblems,
    notifications: () => notifications,
    audit: () => audit.entries,
    promptFiles: promptsOf(store, home),
    backendStates: () => fleet.states(),
    resetCircuit: (name) => fleet.circuits.reset(name),
    backendUsage: (name) => usageOf(telemetry.collector.backend(name)),
    reloadStatus: () => reloader.status(),
  };
  const ownSearch = lazily(() => createRequestSearch({ stories: telemetry.stories, log: telemetry.requestLog, clock }));
  const composed = compose({
    snapshot,
    home,
    clock,
    log,
    identify,
    storedKeys: keyStore,
    adminDoor,
    wayToBackends,
    fleet,
    telemetry,
    backends: partOf(fleet, wayToBackends),
    responses,
    cacheSeed,
    reporter: telemetry.reporter,
    happened: { ...events, budgetCrossed: (change) => telemetry.happenings.budgetCrossed(change) },
    metrics: metricsRoutes(adminParts),
    // A search of its own, so that holders of keys do not keep operators waiting.
    ownUsage: [
      ...ownUsageRoutes(lazily(() => ({ ...adminParts, search: ownSearch() }))),
      ...feedbackRoutes(() => ({ ...adminParts, search: ownSearch(), rated: ratingOf(telemetry) })),
    ],
    batches: allBatchRoutes(() => {
      const { bodies, deadlines } = composed.state;
      const { now, wallTime } = clock;
      return { batches: batches.inUse, files: composed.files.inUse, bodies, deadlines, now, wallTime };
    }),
    adminTable: lazily(async () => {
      const { adminRoutes } = await import("../admin/routes.ts");
      const { dashboardRoutes } = await import("../dashboard/routes.ts");
      return createRouteTable([...adminRoutes(adminParts), ...dashboardRoutes({ ...adminParts, env })]);
    }),
    audit,
    ratedBefore: telemetry.arms.ratedBefore,
    askAgain: createAskAgain({
      running: () => composed.running,
      queueClass: () => settings().batches.class,
      costOf: telemetry.costOf,
    }),
    keeperParts: [audit, notifications, rollback],
    roomChanged: workers?.roomChanged,
    kvPeers: workers && { teller: workers.kvTeller, follows: false },
  });
  // It asks the gateway itself: it follows behind all parts, and stops first.
  const batches = createBatchesPart(snapshot, {
    ...{ dataPath, clock, log },
    deadlines: composed.state.deadlines,
    redisUnanswered: events.redisUnanswered,
    files: { inUse: composed.files.inUse, maxTotalBytes: () => settings().files.max_total_size },
    ask: createLineAsker({
      handle: (...asked) => composed.running.handle(...asked),
      queueClass: () => settings().batches.class,
      costOf: telemetry.costOf,
    }),
    vendors: createVendorBatches({ board: () => fleet.board, transport, wallTime: clock.wallTime }),
    counted: events.batchLine,
  });
  telemetry.show({
    fleet,
    cache,
    redis,
    workers,
    files: composed.files.usage,
    batches: batches.openCount,
    kvIndex: composed.kvIndex.inUse,
    queue: composed.admission.view,
    ledger: composed.budgets.ledger,
    configVersion: () => store.current.version,
    configReloadOk: () => reloader.status().lastFailure === undefined,
  });

  /** The one that answers now; its numbers are those of all processes. */
  function cache(): ResponseCache | undefined {
    const store = composed.cache.inUse?.store;
    const own = composed.cache.serverStats();
    if (store === undefined || own === undefined || workers === undefined) return store;
    return { ...store, stats: () => workers.withTheirCounts(own) };
  }
  /** A Redis server counts as lost as soon as one process has lost it. */
  function redis() {
    const told = workers?.numbers().flatMap((numbers) => numbers.redis) ?? [];
    const { isThere } = batches.server;
    const own = isThere === undefined ? [] : [{ use: "batches", isThere }];
    return [...composed.redis(), ...own].map(({ use, isThere }) => {
      return { use, isThere: isThere && !told.some((other) => other.use === use && !other.isThere) };
    });
  }
  function followAll(next: ConfigSnapshot): void {
    const version = view(next);
    composed.follow(version);
    batches.follow(version);
  }
  const sharedIds = createSharedIdsCheck({ keyStore, identify, log });
  const unfollow = followConfiguration(store, followAll, fleet, log);
  const unwatch = store.subscribe(({ version, settings }, previous, fields) => {
    if (version === previous.version) return []; // files that it names were read again
    notifications.configChanged(version, previous.version, [...new Set(fields.map(({ section }) => section))]);
    return sharedIds(settings);
  });

  return {
    api: {
      paths: composed.running.paths,
      handle: (request, server, target) => composed.running.handle(request, server, target),
    },
    admin: {
      paths: [...ADMIN_PATHS, ...DASHBOARD_PATHS],
      handle: (request, server, target) => composed.running.handleAdmin(request, server, target),
    },
    owners: {
      fleet,
      responses,
      events,
      books: telemetry.books,
      stories: telemetry.stories,
      limiter: composed.limits.own,
      budgets: () => composed.budgets.inUse,
      admission: () => composed.admission.inUse,
      answers: composed.cache.own,
      kvIndex: composed.kvIndex,
      recordings: composed.recording,
      fileStored: composed.files.start,
    },
    generate: (request, call) => composed.running.generate(request, call),
    fleet,
    async start() {
      composed.files.start();
      await moveKeys({ store, keyStore, identify, log });
      sharedIds(settings());
      await telemetry.restore();
      batches.start();
      // A guest leaves them to the gateway of the folder.
      if (store.dataFolder !== undefined) composed.recording.start();
    },
    closing() {
      batches.closing();
      telemetry.happenings.closing();
    },
    async stop(withinMs = LAST_WORDS_MS) {
      unfollow();
      unwatch();
      reloader.stop();
      await batches.stop(withinMs);
      await composed.stop(withinMs);
      keyStore.close();
    },
  };
}

/** Where files of authorities hold something else, backends are looked at again. */
function partOf(fleet: Fleet, wayToBackends: WayToBackends): Part {
  return {
    follow({ settings }) {
      fleet.update(settings);
      for (const name of wayToBackends.reassessed) fleet.suspect(name);
    },
    stop: () => fleet.stop(),
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

/** Counts the score that a client gives, for the target of the route that answered. */
function ratingOf({ arms, events }: ReturnType<typeof createTelemetry>) {
  return ({ route, arm }: RequestRecord, score: number, before: number | undefined): void => {
    if (route === undefined || arm === undefined) return;
    arms.rated({ route, arm }, score, before);
    events.rated(route, arm, score);
  };
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
