// Every admin path. All of them stand behind one door: access "admin" (admin-auth.ts).

import type { ConfigStore } from "../config/store/store.ts";
import type { Clock } from "../lib/clock.ts";
import type { Endpoint } from "../server/endpoint.ts";
import type { BodyReader } from "../server/read-body.ts";
import { type BackendParts, backendRoutes } from "./backends.ts";
import { configHistoryRoutes } from "./config-history.ts";
import { type ConfigReadParts, configReadRoutes } from "./config-read.ts";
import { type ConfigTransferParts, configTransferRoutes } from "./config-transfer.ts";
import { configWriteRoutes } from "./config-write.ts";
import { type KeyParts, keyRoutes } from "./keys.ts";
import { type ResponseCacheParts, responseCacheRoutes } from "./response-cache.ts";

/** Nothing of it is looked at before a request asks for it. */
export interface AdminParts
  extends Pick<BackendParts, "backendStatus" | "backendUsage">,
    Pick<ConfigReadParts, "reloadStatus">,
    Pick<KeyParts, "identify">,
    ResponseCacheParts {
  store: ConfigStore;
  bodies: BodyReader;
  clock: Clock;
  log: ConfigTransferParts["log"];
}

export function adminRoutes(parts: AdminParts): Endpoint[] {
  return [
    ...configReadRoutes(parts),
    ...configWriteRoutes(parts),
    ...configTransferRoutes(parts),
    ...configHistoryRoutes(parts),
    ...backendRoutes(parts),
    ...keyRoutes(parts),
    ...responseCacheRoutes(parts),
  ];
}
