// Routes behind the frame of every request, on a real socket, in this process.

import { createAccessControl } from "../../src/access/api-keys.ts";
import { createClientAddressReader } from "../../src/access/client-address.ts";
import { createKeyIdentity } from "../../src/access/key-identity.ts";
import { NO_STORED_KEYS } from "../../src/access/stored-keys.ts";
import { createWebPageRules } from "../../src/access/web-pages.ts";
import { createAdminDoor } from "../../src/admin/admin-auth.ts";
import { documentSchema, type Settings } from "../../src/config/sections/registry.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createDeadlines } from "../../src/lib/deadlines.ts";
import { silentLogger } from "../../src/logging/logger.ts";
import { createLimiter } from "../../src/rate-limit/limiter.ts";
import { createBodyDrain } from "../../src/server/drain-body.ts";
import type { Endpoint } from "../../src/server/endpoint.ts";
import { createHandler } from "../../src/server/handler.ts";
import { listen } from "../../src/server/listener.ts";
import { createBodyReader } from "../../src/server/read-body.ts";
import { serveTargets } from "../../src/server/request-target.ts";
import { createRouteTable } from "../../src/server/route-table.ts";

export interface ServedRoutes {
  port: number;
  fetch(path: string, init?: RequestInit): Promise<Response>;
  stop(): Promise<void>;
}

/** Settings as a file with these sections would give them. */
export function settingsOf(document: object = {}): Settings {
  return documentSchema.parse(document as Parameters<typeof documentSchema.parse>[0]);
}

/** Endpoints of the admin API answer clients on this machine. */
export async function serveRoutes(routes: readonly Endpoint[], log = silentLogger()): Promise<ServedRoutes> {
  const settings = settingsOf();
  const { now, wallTime } = systemClock;
  const table = createRouteTable(routes);
  const identify = createKeyIdentity(() => "salt");
  const deadlines = createDeadlines(now);
  const handle = createHandler({
    routes: table,
    access: createAccessControl(settings, identify, wallTime),
    webPages: createWebPageRules({ allowedHosts: [], allowedOrigins: [], boundTo: [], keysRequired: false }),
    limiter: createLimiter({ settings: settings.rate_limiting, now, wallTime }),
    adminDoor: createAdminDoor({
      storedKeys: NO_STORED_KEYS,
      settings: () => settings,
      identify,
      clock: systemClock,
      log: silentLogger(),
    }),
    clientAddresses: createClientAddressReader([]),
    bodies: createBodyReader({ deadlines, now }),
    drain: createBodyDrain({ deadlines, now }),
    settings,
    clock: systemClock,
    log,
    newId: () => crypto.randomUUID(),
    newOwnId: () => crypto.randomUUID(),
    finished() {},
  });
  const opened = await listen("127.0.0.1:0", ".", serveTargets({ paths: table.paths, handle }));
  if (!opened.ok) throw new Error(opened.message);
  const { server } = opened;
  return {
    port: server.port as number,
    fetch: (path, init) => fetch(`http://127.0.0.1:${server.port}${path}`, init),
    stop: () => server.stop(true),
  };
}
