// The table of the admin API: every endpoint with what it reads and changes. It is made once, whatever the settings become.

import type { KeyIdentity } from "../access/key-identity.ts";
import { adminRoutes } from "../admin/routes.ts";
import type { FileReloader } from "../config/store/file-reload.ts";
import type { ConfigStore } from "../config/store/store.ts";
import type { Fleet } from "../fleet/fleet.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import type { DescribedEndpoint } from "../openapi/operation.ts";
import type { ResponseCache } from "../response-cache/cache.ts";
import { createRouteTable, type RouteTable } from "../server/route-table.ts";
import { averageLatency } from "../stats/windows.ts";
import type { Telemetry } from "./telemetry.ts";

export interface AdminTableParts {
  store: ConfigStore;
  fleet: Fleet;
  telemetry: Telemetry;
  reloader: Pick<FileReloader, "status">;
  /** The one that answers now; undefined while it is off. */
  cache(): ResponseCache | undefined;
  identify: KeyIdentity;
  home: string | undefined;
  clock: Clock;
  log: Logger;
}

export function adminTable(parts: AdminTableParts): RouteTable<DescribedEndpoint> {
  const { store, fleet, telemetry, reloader, home } = parts;
  return createRouteTable(
    adminRoutes({
      ...telemetry,
      ...parts,
      settings: () => store.current.settings,
      newId: () => crypto.randomUUID(),
      storageProblems: () => [...(store.storageProblem ? [store.storageProblem] : []), ...telemetry.storageProblems()],
      promptFiles: {
        baseDir: store.current.baseDir,
        home,
        current: () => store.current.attachments.promptFiles,
        use: (promptFiles) => store.attach({ promptFiles }),
      },
      backendStatus: () => fleet.status(),
      backendUsage(name) {
        const sums = telemetry.collector.backend(name);
        return sums && { averageLatencyMs: averageLatency(sums), lastUsedMs: sums.lastUsedMs };
      },
      reloadStatus: () => reloader.status(),
    }),
  );
}
