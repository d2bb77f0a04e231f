// Server mode: opens the addresses, puts a gateway behind them, says what was found, and runs until a signal.

import { systemClock } from "../lib/clock.ts";
import { listen, NOT_YET, type Server } from "../server/listener.ts";
import { behind, serveTargets } from "../server/request-target.ts";
import { createGateway } from "./gateway.ts";
import { greet, type ServeParts, warnOfOpenDoor } from "./greeting.ts";
import { drain, untilSignalled } from "./shutdown.ts";

/** How long the last traces and metrics may be sent: what is left of the time to shut down, within these. */
const LEAST_LAST_WORDS_MS = 1_000;
const MOST_LAST_WORDS_MS = 10_000;

const NOT_SHARED = "server.workers has no effect here: only Linux lets processes share a port; there is one process";

/** Returns the exit code and, when an address could not be opened, why. */
export async function serve(parts: ServeParts): Promise<{ exitCode: number; message?: string }> {
  const { workers } = parts.store.current.settings.server;
  const count = workers === 0 ? navigator.hardwareConcurrency : workers;
  if (count > 1 && process.platform === "linux") {
    const { servePrimary } = await import("../workers/primary.ts");
    return await servePrimary(count, parts);
  }
  if (count > 1) parts.log.warn({ workers: count }, NOT_SHARED);
  return await serveAlone(parts);
}

async function serveAlone({ findings, ...options }: ServeParts): Promise<{ exitCode: number; message?: string }> {
  const { store, log } = options;
  const { settings, baseDir } = store.current;
  // The addresses come first: a port that is taken ends the start before any backend is asked for anything.
  const servers: Server[] = [];
  const addresses: string[] = [];
  const socketMode = Number.parseInt(settings.server.unix_socket_mode, 8);
  for (const bindAddress of [settings.server.bind_address].flat()) {
    const result = await listen(bindAddress, baseDir, NOT_YET, socketMode);
    if (!result.ok) {
      await Promise.all(servers.map((server) => server.stop(true)));
      return { exitCode: 1, message: result.message };
    }
    servers.push(result.server);
    addresses.push(result.address);
  }
  warnOfOpenDoor(settings, log);

  const gateway = createGateway({ ...options, clock: systemClock });
  // Requests from here on wait until everything is there.
  const ready = gateway.start();
  const [api, admin] = [behind(ready, gateway.api), behind(ready, gateway.admin)];
  const served = serveTargets(api, admin);
  for (const server of servers) server.reload(served);
  await ready;
  api.handle = gateway.api.handle;
  admin.handle = gateway.admin.handle;

  const signalled = untilSignalled();
  await greet(addresses, findings, options, gateway);

  await signalled;
  const { shutdown_timeout } = store.current.settings.server;
  gateway.closing();
  const { now } = systemClock;
  const endMs = now() + shutdown_timeout;
  await drain(servers, shutdown_timeout, log);
  await gateway.stop(Math.min(Math.max(endMs - now(), LEAST_LAST_WORDS_MS), MOST_LAST_WORDS_MS));
  store.close();
  log.info("stopped");
  return { exitCode: 0 };
}
