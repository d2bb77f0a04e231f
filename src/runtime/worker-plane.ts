// The data plane of a worker: what it has of its own, and what it has of its primary.

import { createKeyIdentity } from "../access/key-identity.ts";
import { createAdminDoor } from "../admin/admin-auth.ts";
import { metricsRoutes } from "../admin/metrics.ts";
import { ADMIN_PATHS } from "../admin/paths.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import { resolveDataPath } from "../config/values/paths.ts";
import { DASHBOARD_PATHS } from "../dashboard/paths.ts";
import { systemClock } from "../lib/clock.ts";
import { applyLogSettings, createLogger } from "../logging/logger.ts";
import { type Surface, serveTargets } from "../server/request-target.ts";
import type { Channel } from "../workers/channel.ts";
import { createHandOn } from "../workers/hand-on.ts";
import { createKvNews } from "../workers/kv-news.ts";
import type { PrimaryDesk, Start, State } from "../workers/messages.ts";
import { createRemoteCache } from "../workers/remote-cache.ts";
import { createRemoteFlights } from "../workers/remote-flights.ts";
import { createRemoteLimiter } from "../workers/remote-limiter.ts";
import { createRemoteResponses } from "../workers/remote-responses.ts";
import { createReplicaCircuits } from "../workers/replica-circuits.ts";
import { createReplicaFleet } from "../workers/replica-fleet.ts";
import { createReports } from "../workers/reports.ts";
import { createShownFlights } from "../workers/shown-flights.ts";
import { buildDataPlane, configuredBy, type DataPlaneParts } from "./data-plane.ts";
import { createFilesOwner } from "./files-in-use.ts";
import { createKeeper } from "./kept.ts";
import { createKvIndexOwner } from "./kv-index-in-use.ts";
import { createLasting } from "./lasting.ts";
import { createOtlpOwner } from "./otlp-in-use.ts";
import { createWayToBackends } from "./way-to-backends.ts";

const OPENAPI_PATH = "/openapi.json";
/** However many share the memory for bodies, each takes one body that is as large as most may be. */
const LEAST_FOR_BODIES_BYTES = 128 * 1024 * 1024;
/** For traces that are still to be sent when the last request is over. */
const LAST_WORDS_MS = 2_000;

/** What the primary owns, as this process has it, and what is its own. */
function createOwn(
  { snapshot, cacheSeed, keySalt, secret, ownSocket, kvIndex: known }: Start,
  channel: Channel<PrimaryDesk>,
  env: Record<string, string | undefined>,
  offsetMs: number,
) {
  const clock = systemClock;
  const { settings, baseDir } = snapshot;
  const log = createLogger(settings.logging, true);
  applyLogSettings(log, settings.logging);
  const identify = createKeyIdentity(() => keySalt);
  const wayToBackends = createWayToBackends(snapshot, env, { info() {} });
  const { transport } = wayToBackends;
  const circuits = createReplicaCircuits({
    settings: settings.circuit_breaker,
    channel,
    now: clock.now,
    toPrimary: (atMs) => atMs + offsetMs,
  });
  const fleet = createReplicaFleet({ settings, channel, circuits, now: clock.now });
  const otlp = createOtlpOwner({
    ...{ settings, clock, log },
    // Those of the primary stand at 0 already.
    counters: {
      otlpExported(signal, isOk, times = 1) {
        if (times > 0) reports.event({ kind: "otlpExported", signal, isOk, times });
      },
      otlpDropped(spans) {
        if (spans > 0) reports.event({ kind: "otlpDropped", spans });
      },
    },
    metrics: undefined, // they are in the primary
  });
  const reports = createReports({
    ...{ clock, channel, counters: fleet.counters, spans: otlp.spans },
    servers: () => {
      return { redis: keeper.redis(), cache: keeper.cacheServerStats(), tracesUp: otlp.isUp("traces") };
    },
  });
  const responses = createRemoteResponses(channel, clock.now);
  const lasting = createLasting(clock, log, transport, responses, [settings.server.bind_address].flat());
  const files = createFilesOwner({
    settings: settings.files,
    dataPath: (path) => resolveDataPath(path, { dataDir: settings.server.data_dir, baseDir, home: env.HOME }),
    clock,
    log,
  });
  const keeper = createKeeper({
    ...{ settings, identify, clock, log, deadlines: lasting.deadlines },
    redisUnanswered: (use) => reports.event({ kind: "redisUnanswered", use }),
    elsewhere: {
      limiter: (settings) => createRemoteLimiter(settings, channel, clock.now),
      answers: createRemoteCache(channel, cacheSeed),
    },
  });
  const news = createKvNews(
    (told) => channel.tell("kvNews", told),
    () => {}, // the admin API is in the primary
  );
  const kvIndex = createKvIndexOwner({
    ...{ settings, fleet, transport, clock, log },
    random: Math.random,
    teller: news,
    isToldOfEvents: true,
  });
  kvIndex.restore(known);
  const flights = createRemoteFlights({
    ...{ channel, secret, now: clock.now },
    socket: ownSocket,
    entryOf: (name) => fleet.board.entries.find(({ backend }) => backend.name === name),
  });
  return {
    ...{ flights, clock, log, identify, wayToBackends, circuits, fleet },
    ...{ reports, lasting, files, keeper, news, kvIndex, otlp },
  };
}

export type Worker = Awaited<ReturnType<typeof createWorker>>;

export async function createWorker(
  start: Start,
  channel: Channel<PrimaryDesk>,
  env: Record<string, string | undefined>,
  offsetMs: number,
) {
  const { count, socket, secret } = start;
  let snapshot = withOwnShare(start.snapshot, count);
  const { settings } = snapshot;
  const own = createOwn({ ...start, snapshot }, channel, env, offsetMs);
  const { clock, log, identify, wayToBackends, circuits, fleet, reports, lasting, files, keeper, news, kvIndex } = own;
  const current = () => snapshot.settings;
  const metrics = metricsRoutes({ registry: undefined, settings: current });
  const parts: DataPlaneParts = {
    lasting,
    files: files.inUse,
    uploaded: (result) => reports.event({ kind: "fileUploaded", result }),
    fleet,
    kvIndex,
    flights: own.flights,
    reporter: reports.reporter,
    limited: (scope) => reports.event({ kind: "rateLimited", scope }),
    identify,
    adminDoor: createAdminDoor({ settings: current, identify, clock, log }),
    metrics,
    adminTable: () => Promise.reject(new Error("the admin API is in the primary")),
    clock,
    log,
  };
  await keeper.load();
  const shown = Bun.serve({
    unix: start.ownSocket,
    idleTimeout: 0,
    development: false,
    fetch: createShownFlights({ ...lasting, keyOf: own.flights.keyOf, now: clock.now }, secret),
  } as Bun.Serve.Options<undefined>);
  let running = buildDataPlane(parts, keeper.keep(settings), configuredBy(snapshot));
  fleet.follow(start.facts);
  circuits.follow(start.circuits);

  const handedOn = [...ADMIN_PATHS, ...DASHBOARD_PATHS, ...metrics.map(({ path }) => path), OPENAPI_PATH];
  const ownPaths = running.paths.filter((path) => !handedOn.includes(path));
  const api: Surface = {
    paths: ownPaths,
    handle: (request, server, target) => running.handle(request, server, target),
  };
  const handOn = createHandOn(socket, secret);
  const admin: Surface = { paths: handedOn, handle: handOn.handle };
  /** From now on each answer ends its connection: the client's next one goes to another worker. */
  function leave(): void {
    for (const surface of [api, admin]) {
      const { handle } = surface;
      surface.handle = async (...asked) => {
        const response = await handle(...asked);
        response.headers.set("Connection", "close");
        return response;
      };
    }
  }
  function follow(state: State): void {
    if (state.snapshot !== undefined) {
      snapshot = withOwnShare(state.snapshot, count);
      const { settings } = snapshot;
      applyLogSettings(log, settings.logging);
      wayToBackends.follow(snapshot);
      fleet.apply(settings);
      files.apply(settings.files);
      kvIndex.apply(settings);
      own.otlp.apply(settings);
      running = buildDataPlane(parts, keeper.keep(settings), configuredBy(snapshot));
    }
    fleet.follow(state.facts);
    circuits.follow(state.circuits);
  }
  function tell(): void {
    news.flush();
    circuits.tell();
    reports.report(true);
  }
  async function stop(): Promise<void> {
    await own.otlp.stop(LAST_WORDS_MS);
    tell();
    for (const owner of [reports, circuits, fleet, kvIndex, keeper, files]) owner.stop();
    void shown.stop(true);
    wayToBackends.transport.close();
  }
  return {
    log,
    served: serveTargets(api, admin),
    leave,
    closing: handOn.closing,
    watch: reports.watch,
    follow,
    heard: fleet.heard,
    kvIndex,
    tell,
    stop,
  };
}

/** The memory for bodies is each process's own. */
function withOwnShare(snapshot: ConfigSnapshot, count: number): ConfigSnapshot {
  const { settings } = snapshot;
  const { max_buffered_bodies: all } = settings.server;
  const share = Math.max(Math.floor(all / count), Math.min(all, LEAST_FOR_BODIES_BYTES));
  return { ...snapshot, settings: { ...settings, server: { ...settings.server, max_buffered_bodies: share } } };
}
