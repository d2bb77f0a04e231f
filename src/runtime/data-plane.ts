// Builds what answers requests: routes over the pipeline, and the frame around them.

import { createAccessControl, keyId } from "../access/api-keys.ts";
import { createClientAddressReader } from "../access/client-address.ts";
import { adminRoutes } from "../admin/routes.ts";
import { publicRoutes } from "../api/routes.ts";
import type { Transport } from "../backends/transport.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Clock } from "../lib/clock.ts";
import { createDeadlines } from "../lib/deadlines.ts";
import type { Logger } from "../logging/logger.ts";
import { createDeduplicator } from "../pipeline/deduplicate.ts";
import { createFallbackChains } from "../pipeline/fallback.ts";
import { createForwarder } from "../pipeline/forward.ts";
import { type CacheParts, createGenerator } from "../pipeline/generate.ts";
import { createLimiter } from "../rate-limit/limiter.ts";
import { createMemoryCache } from "../response-cache/memory.ts";
import { createRecorder } from "../response-cache/recorder.ts";
import type { Circuits } from "../routing/circuits.ts";
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
  circuits: Circuits;
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
  circuits,
  transport,
  clock,
  log,
  env,
  modelFields,
}: DataPlaneOptions): FetchHandler {
  const { now } = clock;
  const deadlines = createDeadlines(now);
  const sender = createSender(transport, { deadlines, reachability: createReachability(env), now });
  const strategy = createStrategy(settings.routing);
  const limiter = createLimiter({
    settings: settings.rate_limiting,
    keyLimits: keyLimits(settings.api_keys.keys),
    now,
    wallTime: clock.wallTime,
    seed: crypto.getRandomValues(new Uint32Array(1))[0] as number,
  });
  const forwarder = createForwarder({
    watch: control,
    strategy,
    circuits,
    limits: limiter,
    sender,
    log,
    now,
    random: Math.random,
  });
  const chains = createFallbackChains(forwarder);
  const cache = createCache(settings.response_cache, now);
  const generator = createGenerator({ forwarder, chains, log, deduplicator: createDeduplicator({ now }), cache });
  const isReady = () => control.board.entries.some((entry) => entry.available);
  const routes = createRouteTable([
    ...publicRoutes({
      generator,
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
    ...adminRoutes({ backendStatus: () => control.status(), cache: cache?.store }),
  ]);
  return createHandler({
    routes,
    access: createAccessControl(settings.api_keys),
    limiter,
    clientAddresses: createClientAddressReader(settings.server.trusted_proxies),
    settings,
    clock,
    log,
    newId: () => crypto.randomUUID(),
  });
}

/** Requests per minute by key id. */
function keyLimits(keys: Settings["api_keys"]["keys"]): Map<string, number> {
  const limits = new Map<string, number>();
  keys.forEach((key, index) => {
    if (key.enabled && key.rate_limit !== undefined) limits.set(keyId(key, index), key.rate_limit);
  });
  return limits;
}

function createCache(settings: Settings["response_cache"], now: () => number): CacheParts | undefined {
  if (!settings.enabled) return undefined;
  const maxBytes = settings.max_total_size;
  return {
    store: createMemoryCache({ capacity: settings.capacity, maxBytes, now }),
    recorder: createRecorder({ maxBytes: settings.max_stream_buffer_size, maxTotalBytes: maxBytes }),
  };
}
