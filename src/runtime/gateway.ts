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
import { resolveDataPath } from "../config/values/paths.ts";
import { Fleet } from "../fleet/fleet.ts";
import type { Clock } from "../lib/clock.ts";
import { lazily } from "../lib/lazily.ts";
import { applyLogSettings, type Logger } from "../logging/logger.ts";
import { createModelMetadata } from "../models/metadata.ts";
import type { NeutralEntry } from "../pipeline/neutral-entry.ts";
import type { Surface } from "../server/request-target.ts";
import { createRouteTable } from "../server/route-table.ts";
import type { StatsCollector } from "../stats/collector.ts";
import { averageLatency } from "../stats/windows.ts";
import { buildDataPlane, type Configured, type DataPlaneParts } from "./data-plane.ts";
import { createFilesOwner } from "./files-in-use.ts";
import { followConfiguration } from "./follow-configuration.ts";
import { createKeeper } from "./kept.ts";
import { createKvIndexOwner } from "./kv-index-in-use.ts";
import { createLasting } from "./lasting.ts";
import { createTelemetry } from "./telemetry.ts";
import { createWayToBackends } from "./way-to-backends.ts";

export interface GatewayParts {
  store: ConfigStore;
  /** Of the configuration file as it was read, so that an edit since then is not missed. */
  fileHash: string | undefined;
  env: Record<string, string | undefined>;
  clock: Clock;
  log: Logger;
}

export interface Gateway extends NeutralEntry {
  readonly api: Surface;
  readonly admin: Surface;
  readonly fleet: Fleet;
  /** Before the first request: brings back what was kept of earlier ones. */
  start(): Promise<void>;
  /** Requests from now on are answered under this configuration; those under way go on with the one they began with. */
  apply(snapshot: ConfigSnapshot): void;
  stop(): Promise<void>;
}

export function createGateway({ store, fileHash, env, clock, log }: GatewayParts): Gateway {
  const { current: snapshot } = store;
  const { settings } = snapshot;
  const home = env.HOME;
  const identify = createKeyIdentity(() => store.keySalt());
  const configured = configuredBy(snapshot);
  const telemetry = createTelemetry(snapshot, configured.metadata, home, clock, log);
  const { circuitChanged, configReloaded: reloaded, rateLimited: limited, fileUploaded: uploaded } = telemetry.events;
  const reloader = followConfigFile({ store, clock, log, fileHash, reloaded });
  const wayToBackends = createWayToBackends(snapshot, env, log);
  const { transport } = wayToBackends;
  const fleet = new Fleet({ settings, transport, clock, log, circuitChanged });
  const lasting = createLasting(clock, log, transport, [settings.server.bind_address].flat());
  const files = createFilesOwner({
    settings: settings.files,
    dataPath: (path) => resolveDataPath(path, { dataDir: settings.server.data_dir, baseDir: snapshot.baseDir, home }),
    clock,
    log,
  });
  const keep = createKeeper(identify, clock, log);
  let kept = keep(settings);
  const kvIndex = createKvIndexOwner({ settings, fleet, transport, clock, random: Math.random, log });

  const cache = () => kept.cache?.store;
  const configVersion = () => store.current.version;
  const configReloadOk = () => reloader.status().lastFailure === undefined;
  telemetry.show({ fleet, cache, files: files.usage, kvIndex: kvIndex.inUse, configVersion, configReloadOk });
  const adminParts: AdminParts = {
    ...telemetry,
    store,
    files: files.inUse,
    cache,
    kvIndex: kvIndex.inUse,
    identify,
    clock,
    log,
    settings: () => store.current.settings,
    newId: () => crypto.randomUUID(),
    storageProblems: () => [...(store.storageProblem ? [store.storageProblem] : []), ...telemetry.storageProblems()],
    promptFiles: promptsOf(store, home),
    backendStatus: () => fleet.status(),
    backendUsage: (name) => usageOf(telemetry.collector.backend(name)),
    reloadStatus: () => reloader.status(),
  };
  const parts: DataPlaneParts = {
    lasting,
    files: files.inUse,
    uploaded,
    fleet,
    kvIndex,
    reporter: telemetry.reporter,
    limited,
    identify,
    adminDoor: createAdminDoor({ settings: () => store.current.settings, identify, clock, log }),
    metrics: metricsRoutes(adminParts),
    adminTable: lazily(async () => {
      const { adminRoutes } = await import("../admin/routes.ts");
      return createRouteTable(adminRoutes(adminParts));
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
    kept = keep(next.settings);
    files.apply(next.settings.files);
    kvIndex.apply(next.settings);
    running = buildDataPlane(parts, kept, configured);
    telemetry.apply(next.settings, configured.metadata);
  }
  const unfollow = followConfiguration(store, apply, fleet, log);

  return {
    api: { paths: running.paths, handle: (request, server, target) => running.handle(request, server, target) },
    admin: {
      paths: ADMIN_PATHS,
      handle: (request, server, target) => running.handleAdmin(request, server, target),
    },
    generate: (request, call) => running.generate(request, call),
    fleet,
    start() {
      files.start();
      return telemetry.restore();
    },
    apply,
    async stop() {
      unfollow();
      reloader.stop();
      kvIndex.stop();
      await fleet.stop();
      transport.close();
      files.stop();
      await telemetry.stop();
    },
  };
}

function configuredBy({ settings, attachments: { metadata, promptFiles } }: ConfigSnapshot): Configured {
  return { settings, metadata: createModelMetadata({ backends: settings.backends, external: metadata }), promptFiles };
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
