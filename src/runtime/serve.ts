// Server mode: builds both planes, opens the addresses, says what was found, and runs until a signal.

import { isOnLoopback } from "../access/hosts.ts";
import { createKeyIdentity } from "../access/key-identity.ts";
import { createAdminDoor } from "../admin/admin-auth.ts";
import type { BackendUsage } from "../admin/backend-record.ts";
import { adminRoutes } from "../admin/routes.ts";
import { telemetryRoutes } from "../admin/telemetry-routes.ts";
import { createTransport } from "../backends/transport.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { ConfigStore } from "../config/store/store.ts";
import { createDemoBackend } from "../demo/backend.ts";
import { Fleet } from "../fleet/fleet.ts";
import { systemClock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import type { BackendReading, CacheReading } from "../metrics/gateway-metrics.ts";
import type { ResponseCache } from "../response-cache/cache.ts";
import type { CircuitChange } from "../routing/circuits.ts";
import { listen, type Server } from "../server/listener.ts";
import { serveTargets, type TargetHandler } from "../server/request-target.ts";
import type { StatsCollector } from "../stats/collector.ts";
import { averageLatency } from "../stats/view.ts";
import { createDataPlane } from "./data-plane.ts";
import { followConfiguration, type ReadFacts } from "./follow-configuration.ts";
import { drain, untilSignalled } from "./shutdown.ts";
import { createTelemetry } from "./telemetry.ts";

export interface ServeOptions {
  store: ConfigStore;
  /** Of the configuration file as it was read, so that an edit since then is not missed. */
  fileHash: string | undefined;
  log: Logger;
  env: Record<string, string | undefined>;
  /** What the first settings name. */
  facts: ReadFacts;
  /** The same for later settings. Rejects with what is wrong. */
  readFacts(snapshot: ConfigSnapshot): Promise<ReadFacts>;
  /** Called once when every address is open and the backends have been looked at, or are late. */
  started(state: { addresses: string[]; fleet: Fleet }): Promise<void>;
}

/** How long the start waits for the first health checks before it says that it is up. */
const FIRST_CHECKS_MS = 1_000;

const OPEN_TO_ALL =
  "other machines can connect and no API key is required: whoever reaches the port can use all backends and spend their " +
  "keys; set api_keys.mode to blocking, or bind to 127.0.0.1";

/** Returns the exit code and, when an address could not be opened, why. */
export async function serve(options: ServeOptions): Promise<{ exitCode: number; message?: string }> {
  const { store, log, env, started } = options;
  const { settings, baseDir } = store.current;
  const clock = systemClock;
  const transport = createTransport(createDemoBackend());
  // The addresses come first: a port that is taken ends the start before any backend is asked for anything.
  const servers: Server[] = [];
  const addresses: string[] = [];
  const socketMode = Number.parseInt(settings.server.unix_socket_mode, 8);
  const bound = [settings.server.bind_address].flat();
  for (const bindAddress of bound) {
    const result = await listen(bindAddress, baseDir, { fetch: async () => notYet() }, socketMode);
    if (!result.ok) {
      await Promise.all(servers.map((server) => server.stop(true)));
      return { exitCode: 1, message: result.message };
    }
    servers.push(result.server);
    addresses.push(result.address);
  }
  if (settings.api_keys.mode === "permissive" && !isOnLoopback(bound)) log.warn({ bind_address: bound }, OPEN_TO_ALL);
  const circuitChanged = ({ backend, to }: CircuitChange) => telemetry.events.circuitChanged(backend, to);
  const fleet = new Fleet({ settings, transport, clock, log, circuitChanged });
  const telemetry = createTelemetry({
    snapshot: store.current,
    metadata: options.facts.metadata,
    home: env.HOME,
    clock,
    log,
    sources: {
      backends: () => backendReadings(fleet),
      configVersion: () => store.current.version,
      configReloadOk: () => follower.status().lastFailure === undefined,
      cache: () => cacheReading(data.cache),
    },
  });
  const { reporter } = telemetry;
  const { rateLimited: limited } = telemetry.events;
  const identify = createKeyIdentity(() => store.keySalt());
  const data = createDataPlane({
    settings,
    fleet,
    transport,
    clock,
    log,
    env,
    identify,
    reporter,
    limited,
    adminDoor: createAdminDoor({ settings: () => store.current.settings, identify, clock, log }),
    adminRoutes(bodies) {
      const common = { bodies, clock, backendStatus: () => fleet.status() };
      return [
        ...telemetryRoutes({
          ...common,
          ...telemetry,
          settings: () => store.current.settings,
          newId: () => crypto.randomUUID(),
          storageProblems: () => [
            ...(store.storageProblem ? [store.storageProblem] : []),
            ...telemetry.storageProblems(),
          ],
          promptFiles: {
            baseDir,
            home: env.HOME,
            current: () => follower.promptFiles(),
            use: (files) => follower.usePromptFiles(files),
          },
        }),
        ...adminRoutes({
          ...common,
          store,
          identify,
          reloadStatus: () => follower.status(),
          backendUsage: (name) => usageOf(telemetry.collector, name),
          cache: () => data.cache,
          log,
        }),
      ];
    },
    ...options.facts,
  });
  // Whoever asks from here on waits until everything is there.
  const ready = Promise.withResolvers<void>();
  let answer: TargetHandler = async (...asked) => {
    await ready.promise;
    return data.handle(...asked);
  };
  for (const server of servers) {
    server.reload(serveTargets(data.paths, (request, self, target) => answer(request, self, target)));
  }
  await telemetry.restore();
  const follower = followConfiguration({ ...options, fleet, data, telemetry, clock });
  answer = data.handle;
  ready.resolve();

  const signalled = untilSignalled();
  await Promise.race([fleet.firstChecks, Bun.sleep(FIRST_CHECKS_MS)]);
  await started({ addresses, fleet });

  await signalled;
  await drain({
    servers,
    timeoutMs: store.current.settings.server.shutdown_timeout,
    async stopControlPlane() {
      follower.stop();
      await fleet.stop();
      await telemetry.stop();
      store.close();
    },
    log,
  });
  return { exitCode: 0 };
}

/** For the moment between the first address and the last one. */
function notYet(): Response {
  return new Response("The gateway is starting.\n", { status: 503, headers: { "Retry-After": "1" } });
}

function* backendReadings({ board, circuits }: Fleet): Generator<BackendReading> {
  for (const { backend, health, available, counters } of board.entries) {
    const { name, kind } = backend;
    const { inFlight, totalRequests, failedRequests, latencyMs } = counters;
    const circuit = circuits.state(name);
    yield { name, kind: kind.name, available, health, circuit, inFlight, totalRequests, failedRequests, latencyMs };
  }
}

/** Undefined also for a cache that has to be waited for. */
function cacheReading(cache: ResponseCache | undefined): CacheReading | undefined {
  const statistics = cache?.stats();
  return statistics instanceof Promise ? undefined : statistics;
}

/** What the statistics know of a backend since they were begun. */
function usageOf(collector: StatsCollector, name: string): BackendUsage | undefined {
  const sums = collector.backend(name);
  return sums && { averageLatencyMs: averageLatency(sums), lastUsedMs: sums.lastUsedMs };
}
