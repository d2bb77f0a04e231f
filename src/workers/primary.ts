// Server mode with several processes: a gateway that owns what they share, and workers on one port that answer for it.

import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { ConfigStore } from "../config/store/store.ts";
import { systemClock } from "../lib/clock.ts";
import { randomSeed } from "../lib/random-seed.ts";
import { createGateway, type Workers } from "../runtime/gateway.ts";
import { greet, type ServeParts, warnOfOpenDoor } from "../runtime/greeting.ts";
import { ownCommand } from "../runtime/runtime-options.ts";
import { drain, untilSignalled } from "../runtime/shutdown.ts";
import type { Server } from "../server/listener.ts";
import { behind, serveTargets } from "../server/request-target.ts";
import { takeAddresses } from "../server/take-addresses.ts";
import { createHandedOn } from "./hand-on.ts";
import { createKvNews } from "./kv-news.ts";
import { createTeam, type Team } from "./team.ts";

const NO_RESTARTS = { crash: 0, hang: 0, memory: 0, request: 0 };

type Exit = { exitCode: number; message?: string };

/** Returns the exit code and, when an address could not be opened, why. */
export async function servePrimary(count: number, { findings, ...options }: ServeParts): Promise<Exit> {
  const { store, log, env } = options;
  const { settings, baseDir } = store.current;
  const socketMode = Number.parseInt(settings.server.unix_socket_mode, 8);
  const made = makeFolder(env.TMPDIR || "/tmp");
  if (!made.ok) return { exitCode: 1, message: made.message };
  const { folder } = made;
  const taken = await takeAddresses([settings.server.bind_address].flat(), baseDir, socketMode);
  if (!taken.ok) {
    rmSync(folder, { recursive: true, force: true });
    return { exitCode: 1, message: taken.message };
  }
  warnOfOpenDoor(settings, log);

  let team: Team | undefined;
  const workers = workersOf(() => team);
  const cacheSeed = randomSeed();
  const gateway = createGateway({ ...options, clock: systemClock, workers, cacheSeed });
  const listening = Promise.withResolvers<void>();
  const waiting = serveTargets(behind(listening.promise, gateway.api), behind(listening.promise, gateway.admin));
  for (const server of taken.own) server.reload(waiting);
  await gateway.start();

  const socket = join(folder, "primary.sock");
  const secret = crypto.getRandomValues(new Uint8Array(32)).toHex();
  const control = Bun.serve({
    unix: socket,
    idleTimeout: 0,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    fetch: createHandedOn([gateway.admin, gateway.api], secret, async (answer) => {
      // Workers report before the answer is made, and a change is in force everywhere before it is answered.
      await team?.flush();
      const response = await answer();
      await team?.settled();
      return response;
    }),
  } as Bun.Serve.Options<undefined>) as Server;

  team = createTeam({
    size: count,
    command: ownCommand(),
    env,
    owners: gateway.owners,
    snapshot: () => store.current,
    fixed: { count, addresses: taken.shared, cacheSeed, socket, secret, ...ofDataFolder(store) },
    clock: systemClock,
    log,
  });
  // Behind the gateway's own subscription: what follows from a change is known when it is sent.
  const unsubscribe = store.subscribe((snapshot) => {
    team?.follow(snapshot);
    return [];
  });
  const signalled = untilSignalled();
  const problem = await team.start();
  await Promise.all(taken.held.map((server) => server.stop(true)));
  if (problem === undefined) {
    const served = serveTargets(gateway.api, gateway.admin);
    for (const server of taken.own) server.reload(served);
    listening.resolve();
    await greet(taken.addresses, findings, options, gateway);
    await signalled;
  }
  const { shutdown_timeout } = store.current.settings.server;
  gateway.closing();
  await end(team, taken.own, problem === undefined ? shutdown_timeout : 0, log);
  unsubscribe();
  await control.stop(true);
  rmSync(folder, { recursive: true, force: true });
  await gateway.stop();
  store.close();
  taken.release();
  if (problem !== undefined) return { exitCode: 1, message: problem };
  log.info("stopped");
  return { exitCode: 0 };
}

/** What the gateway asks of its workers, from before there are any. */
function workersOf(team: () => Team | undefined): Workers {
  return {
    rows: () => team()?.rows() ?? [],
    restarts: () => team()?.restarts() ?? NO_RESTARTS,
    restart: async () => (await team()?.restart()) ?? 0,
    numbers: () => team()?.numbers() ?? [],
    withTheirCounts: (own) => team()?.withTheirCounts(own) ?? own,
    pastCpuSeconds: () => team()?.pastCpuSeconds() ?? 0,
    roomChanged: (backend, isFull) => team()?.roomChanged(backend, isFull),
    kvTeller: createKvNews(
      (news) => team()?.tellKvNews(news),
      (backendName) => team()?.forgetKvCaches(backendName),
    ),
  };
}

async function end(team: Team, own: readonly Server[], timeoutMs: number, log: ServeParts["log"]): Promise<void> {
  await team.flush();
  const running = team.numbers().reduce((sum, { openRequests }) => sum + openRequests, 0);
  const ofOwn = own.reduce((sum, server) => sum + server.pendingRequests, 0);
  log.info({ running_requests: running + ofOwn, timeout_ms: timeoutMs }, "shutting down");
  await Promise.all([team.drain(timeoutMs), drain(own, timeoutMs, { ...log, info() {} })]);
}

function ofDataFolder(store: ConfigStore) {
  return { keySalt: store.keySalt(), dataFolder: store.dataFolder };
}

/** A folder for the sockets between the processes, which no other user can open. */
function makeFolder(place: string): { ok: true; folder: string } | { ok: false; message: string } {
  try {
    const folder = mkdtempSync(join(place, "signalbox-"));
    chmodSync(folder, 0o700);
    return { ok: true, folder };
  } catch (error) {
    const { code = "unknown" } = error as NodeJS.ErrnoException;
    const message = `server.workers: no folder can be made in ${place} (${code}). Set TMPDIR to one that can be written to.`;
    return { ok: false, message };
  }
}
