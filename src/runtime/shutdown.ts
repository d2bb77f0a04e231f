// Ending in order: no new connections, and running requests finish until the deadline.

import { inTime } from "../lib/abortable-delay.ts";
import type { Logger } from "../logging/logger.ts";
import type { Server } from "../server/listener.ts";

/** Resolves when no request runs any more; those that are still open after the time are cut. */
export async function drain(servers: readonly Server[], timeoutMs: number, log: Logger): Promise<void> {
  const running = servers.reduce((sum, server) => sum + server.pendingRequests, 0);
  log.info({ running_requests: running, timeout_ms: timeoutMs }, "shutting down");
  const finished = Promise.all(servers.map((server) => server.stop()));
  if ((await inTime(finished, timeoutMs)) === undefined) {
    const open = servers.reduce((sum, server) => sum + server.pendingRequests, 0);
    log.warn({ open_requests: open }, "shutdown_timeout has passed, open requests are cut");
    await Promise.all(servers.map((server) => server.stop(true)));
  }
}

const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;

/** Resolves with the first of these signals; a second one ends the process at once. */
export function untilSignalled(names: readonly (keyof typeof SIGNALS)[] = ["SIGTERM", "SIGINT"]): Promise<void> {
  return new Promise((resolve) => {
    let signalled = false;
    for (const signal of names) {
      const number = SIGNALS[signal];
      process.on(signal, () => {
        if (signalled) process.exit(128 + number);
        signalled = true;
        resolve();
      });
    }
  });
}
