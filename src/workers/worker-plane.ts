// The data plane of a worker: what it has of its own, and what it has of its primary.

import { createKeyIdentity } from "../access/key-identity.ts";
import { openKeyStore } from "../access/key-store.ts";
import { createAdminDoor } from "../admin/admin-auth.ts";
import { metricsRoutes } from "../admin/metrics.ts";
import { ADMIN_PATHS } from "../admin/paths.ts";
import { createRemoteAdmission } from "../admission/remote-admission.ts";
import { allBatchRoutes } from "../api/batch-routes.ts";
import { feedbackRoutes } from "../api/feedback.ts";
import { ownUsageRoutes } from "../api/me-usage.ts";
import type { BudgetEvents } from "../budgets/budgets-part.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import { DASHBOARD_PATHS } from "../dashboard/paths.ts";
import { systemClock } from "../lib/clock.ts";
import { applyLogSettings, createLogger, type Logger } from "../logging/logger.ts";
import { createOtlpPart } from "../otlp/otlp-part.ts";
import { type Composition, compose } from "../runtime/compose.ts";
import type { Surroundings } from "../runtime/surroundings.ts";
import { type Surface, serveTargets } from "../server/request-target.ts";
import { createWayToBackends } from "../upstream/way-to-backends.ts";
import type { Channel } from "./channel.ts";
import { createHandOn } from "./hand-on.ts";
import { createKvNews } from "./kv-news.ts";
import type { PrimaryDesk, Start, State } from "./messages.ts";
import { createRemoteBudgets } from "./remote-budgets.ts";
import { createRemoteCache } from "./remote-cache.ts";
import { createRemoteFlights } from "./remote-flights.ts";
import { createRemoteLimiter } from "./remote-limiter.ts";
import { createRemoteRecordings } from "./remote-recordings.ts";
import { createRemoteResponses } from "./remote-responses.ts";
import { createReplicaCircuits } from "./replica-circuits.ts";
import { createReplicaFleet } from "./replica-fleet.ts";
import { createReports } from "./reports.ts";
import { createShownFlights } from "./shown-flights.ts";

const OPENAPI_PATH = "/openapi.json";
/** However many share the memory for bodies, each takes one body that is as large as most may be. */
const LEAST_FOR_BODIES_BYTES = 128 * 1024 * 1024;
/** For traces that are still to be sent when the last request is over. */
const LAST_WORDS_MS = 2_000;

/** The primary says what concerns all processes. */
const QUIET = { info() {}, warn() {} };

const NO_BUDGET_EVENTS: BudgetEvents = { budgetRefused() {}, budgetCrossed() {} };

interface ReplicaParts {
  start: Start;
  snapshot: ConfigSnapshot;
  channel: Channel<PrimaryDesk>;
  log: Logger;
  /** What the primary's clock is ahead of this one's. */
  offsetMs: number;
  /** Once it is there. */
  composed(): Composition;
}

/** What the primary owns, as this process has it. */
function createReplicas({ start, snapshot, channel, log, offsetMs, composed }: ReplicaParts) {
  const { settings } = snapshot;
  const { now } = systemClock;
  const toPrimary = (atMs: number) => atMs + offsetMs;
  const circuits = createReplicaCircuits({ settings: settings.circuit_breaker, channel, now, toPrimary });
  const fleet = createReplicaFleet({ settings, channel, circuits, now });
  const otlp = createOtlpPart(snapshot, {
    clock: systemClock,
    log,
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
    clock: systemClock,
    channel,
    counters: fleet.counters,
    spans: otlp.spans,
    servers() {
      const { redis, cache } = composed();
      return { redis: redis(), cache: cache.serverStats(), tracesUp: otlp.isUp("traces") };
    },
  });
  const news = createKvNews(
    (told) => channel.tell("kvNews", told),
    () => {}, // the admin API is in the primary
  );
  const flights = createRemoteFlights({
    channel,
    secret: start.secret,
    now,
    socket: start.ownSocket,
    entryOf: (name) => fleet.board.entries.find(({ backend }) => backend.name === name),
  });
  return { circuits, fleet, otlp, reports, news, flights };
}

/** The primary counts what happens here. */
function eventsFor({ event }: ReturnType<typeof createReports>): Surroundings["happened"] {
  return {
    rateLimited: (scope) => event({ kind: "rateLimited", scope }),
    recorded: (result, times = 1) => event({ kind: "recorded", result, times }),
    fileUploaded: (result) => event({ kind: "fileUploaded", result }),
    queueWaited: (className, durationMs) => event({ kind: "queueWaited", className, durationMs }),
    queueShed: (className, reason) => event({ kind: "queueShed", className, reason }),
    hookCalled: (hook, name, verdict, durationMs, times) =>
      event({ kind: "hookCalled", hook, event: name, verdict, durationMs, times }),
    hookRestarted: (hook, cause) => event({ kind: "hookRestarted", hook, cause }),
    redisUnanswered: (use) => event({ kind: "redisUnanswered", use }),
    ...NO_BUDGET_EVENTS, // the ledger is in the primary
  };
}

function inPrimary(): never {
  throw new Error("what became of requests is in the primary");
}

/** Of the public API, what the primary answers. */
function routesOfPrimary(settings: () => ConfigSnapshot["settings"]) {
  return {
    metrics: metricsRoutes({ registry: undefined, settings }),
    ownUsage: [...ownUsageRoutes(inPrimary), ...feedbackRoutes(inPrimary)],
    batches: allBatchRoutes(() => {
      throw new Error("the batches are in the primary");
    }),
  };
}

export type Worker = ReturnType<typeof createWorker>;

export function createWorker(
  start: Start,
  channel: Channel<PrimaryDesk>,
  env: Record<string, string | undefined>,
  offsetMs: number,
) {
  const { count, socket, secret, cacheSeed, keySalt, dataFolder } = start;
  const clock = systemClock;
  let snapshot = withOwnShare(start.snapshot, count);
  const current = () => snapshot.settings;
  const log = createLogger(current().logging, true);
  applyLogSettings(log, current().logging);
  const identify = createKeyIdentity(() => keySalt);
  const storedKeys = openKeyStore({ folder: dataFolder, clock, log }, false);
  const replicas = createReplicas({ start, snapshot, channel, log, offsetMs, composed: () => composed });
  const { circuits, fleet, otlp, reports, news, flights } = replicas;
  const queue = createRemoteAdmission((message) => channel.tell("admission", message), clock.now);
  const ofPrimary = routesOfPrimary(current);
  const composed: Composition = compose({
    keeperParts: [],
    ...{ snapshot, home: env.HOME, clock, log, identify, storedKeys },
    adminDoor: createAdminDoor({ settings: current, identify, storedKeys, clock, log }),
    wayToBackends: createWayToBackends(snapshot, { env, baseDir: snapshot.baseDir, clock, log: QUIET }),
    fleet,
    telemetry: { follow: otlp.follow },
    backends: fleet,
    reporter: reports.reporter,
    happened: eventsFor(reports),
    responses: createRemoteResponses(channel, clock.now),
    ...ofPrimary,
    adminTable: () => Promise.reject(new Error("the admin API is in the primary")),
    kvPeers: { teller: news, follows: true },
    owner: {
      limiter: (settings) => createRemoteLimiter(settings, channel, clock.now),
      budgets: createRemoteBudgets(channel),
      answers: createRemoteCache(channel, cacheSeed),
      admission: queue.admission,
      recordings: createRemoteRecordings(channel),
    },
    flights,
  });
  composed.kvIndex.restore(start.kvIndex);
  const shown = Bun.serve({
    unix: start.ownSocket,
    idleTimeout: 0,
    development: false,
    fetch: createShownFlights({ ...composed.state, keyOf: flights.keyOf, now: clock.now }, secret),
  } as Bun.Serve.Options<undefined>);
  fleet.hear(start.facts);
  circuits.follow(start.circuits);

  const pathsOfPrimary = Object.values(ofPrimary).flatMap((routes) => routes.map(({ path }) => path));
  const handedOn = [...new Set([...ADMIN_PATHS, ...DASHBOARD_PATHS, ...pathsOfPrimary, OPENAPI_PATH])];
  const ownPaths = composed.running.paths.filter((path) => !handedOn.includes(path));
  const api: Surface = {
    paths: ownPaths,
    handle: (request, server, target) => composed.running.handle(request, server, target),
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
      composed.follow(snapshot);
    }
    fleet.hear(state.facts);
    circuits.follow(state.circuits);
  }
  function tell(): void {
    news.flush();
    circuits.tell();
    reports.report(true);
  }
  async function stop(): Promise<void> {
    await otlp.stop(LAST_WORDS_MS);
    tell();
    reports.stop();
    circuits.stop();
    queue.stop();
    await composed.stop(LAST_WORDS_MS);
    storedKeys.close();
    void shown.stop(true);
  }
  return {
    log,
    served: serveTargets(api, admin),
    leave,
    closing: handOn.closing,
    watch: reports.watch,
    follow,
    heard: fleet.heard,
    admission: queue.heard,
    kvIndex: composed.kvIndex,
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
