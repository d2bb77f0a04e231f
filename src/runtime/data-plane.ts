// Builds what answers requests: routes over the pipeline, and the frame around them.

import { createAccessControl } from "../access/api-keys.ts";
import { adminRoutes } from "../admin/routes.ts";
import { publicRoutes } from "../api/routes.ts";
import type { Transport } from "../backends/transport.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Clock } from "../lib/clock.ts";
import { createDeadlines } from "../lib/deadlines.ts";
import type { Logger } from "../logging/logger.ts";
import { createForwarder } from "../pipeline/forward.ts";
import { createStrategy } from "../routing/strategies/registry.ts";
import { createHandler } from "../server/handler.ts";
import type { FetchHandler } from "../server/listener.ts";
import { createRouteTable } from "../server/route-table.ts";
import { createReachability } from "../upstream/reachability.ts";
import { createSender } from "../upstream/send.ts";
import type { ControlPlane } from "./control-plane.ts";

export interface DataPlaneOptions {
  settings: Settings;
  control: ControlPlane;
  transport: Transport;
  clock: Clock;
  log: Logger;
  env: Record<string, string | undefined>;
  /** Optional fields of a single model, from metadata. */
  modelFields(id: string): Record<string, unknown>;
}

export function createDataPlane({
  settings,
  control,
  transport,
  clock,
  log,
  env,
  modelFields,
}: DataPlaneOptions): FetchHandler {
  const { now } = clock;
  const deadlines = createDeadlines(now);
  const sender = createSender(transport, { deadlines, reachability: createReachability(env), now });
  const strategy = createStrategy(settings.routing.selection_strategy);
  const forwarder = createForwarder({ watch: control, strategy, sender, log, now, random: Math.random });
  const isReady = () => control.board.entries.some((entry) => entry.available);
  const routes = createRouteTable([
    ...publicRoutes({
      forwarder,
      deadlines,
      now,
      isReady,
      models: {
        listModels: () => control.listModels(),
        findModel: (id) => control.findModel(id),
        allUnhealthy: () => control.board.entries.some(({ backend }) => backend.enabled) && !isReady(),
        modelFields,
      },
    }),
    ...adminRoutes({ backendStatus: () => control.status() }),
  ]);
  return createHandler({
    routes,
    access: createAccessControl(settings.api_keys),
    settings,
    clock,
    log,
    newId: () => crypto.randomUUID(),
  });
}
