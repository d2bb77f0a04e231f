// One gateway, without listeners and signals: what it keeps, what answers requests, and how a change of the configuration
// reaches both. Owners are made before those who read them.

import { createKeyIdentity } from "../access/key-identity.ts";
import { createAdminDoor } from "../admin/admin-auth.ts";
import { createTransport } from "../backends/transport.ts";
import type { ConfigStore } from "../config/store/store.ts";
import { createDemoBackend } from "../demo/backend.ts";
import { Fleet } from "../fleet/fleet.ts";
import type { Clock } from "../lib/clock.ts";
import { applyLogSettings, type Logger } from "../logging/logger.ts";
import type { NeutralEntry } from "../pipeline/neutral-entry.ts";
import type { Surface } from "../server/request-target.ts";
import { adminTable } from "./admin-table.ts";
import { buildDataPlane, type Configured, type DataPlaneParts } from "./data-plane.ts";
import { configuredBy, followConfiguration } from "./follow-configuration.ts";
import { createKeeper } from "./kept.ts";
import { createLasting } from "./lasting.ts";
import { createTelemetry } from "./telemetry.ts";

export interface GatewayOptions {
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
  /** Requests from now on are answered under these facts; those under way go on with the ones they began with. */
  apply(configured: Configured): void;
  stop(): Promise<void>;
}

export function createGateway({ store, fileHash, env, clock, log }: GatewayOptions): Gateway {
  const { settings } = store.current;
  const configured = configuredBy(store.current);
  const { metadata } = configured;
  const home = env.HOME;
  const transport = createTransport(createDemoBackend());
  const identify = createKeyIdentity(() => store.keySalt());
  const telemetry = createTelemetry({ snapshot: store.current, metadata, home, clock, log });
  const { circuitChanged } = telemetry.events;
  const fleet = new Fleet({ settings, transport, clock, log, circuitChanged });
  const lasting = createLasting(clock, log, transport, env, [settings.server.bind_address].flat());
  const keep = createKeeper(identify, clock);
  let kept = keep(settings);
  const cache = () => kept.cache?.store;
  const follower = followConfiguration({ store, fileHash, fleet, telemetry, clock, log, apply });
  telemetry.show({
    fleet,
    cache,
    configVersion: () => store.current.version,
    configReloadOk: () => follower.status().lastFailure === undefined,
  });

  const parts: DataPlaneParts = {
    lasting,
    fleet,
    reporter: telemetry.reporter,
    limited: telemetry.events.rateLimited,
    identify,
    adminDoor: createAdminDoor({ settings: () => store.current.settings, identify, clock, log }),
    adminTable: adminTable({ store, fleet, telemetry, lasting, follower, cache, identify, home, clock, log }),
    clock,
    log,
  };
  let running = buildDataPlane(parts, kept, configured);

  function apply(configured: Configured): void {
    applyLogSettings(log, configured.settings.logging);
    fleet.update(configured.settings);
    kept = keep(configured.settings);
    running = buildDataPlane(parts, kept, configured);
    telemetry.apply(configured.settings, configured.metadata);
  }

  return {
    api: { paths: running.paths, handle: (request, server, target) => running.handle(request, server, target) },
    admin: {
      paths: parts.adminTable.paths,
      handle: (request, server, target) => running.handleAdmin(request, server, target),
    },
    generate: (request, call) => running.generate(request, call),
    fleet,
    start: () => telemetry.restore(),
    apply,
    async stop() {
      follower.stop();
      await fleet.stop();
      await telemetry.stop();
    },
  };
}
