// The way to the backends that a gateway has, as the configuration of the start wants it.

import type { Transport } from "../backends/transport.ts";
import type { Settings } from "../config/sections/registry.ts";
import { createDemoBackend } from "../demo/backend.ts";
import type { Logger } from "../logging/logger.ts";
import { clientInUse, createTransport } from "../upstream/transport.ts";

const PROXIED =
  "the environment names a forward proxy (HTTP_PROXY, HTTPS_PROXY): requests to backends are made by fetch, whatever " +
  "server.upstream_client says";

export function createWayToBackends(
  { server: { upstream_client: client, connection_pool_size: poolSize } }: Settings,
  env: Record<string, string | undefined>,
  log: Pick<Logger, "info">,
): { transport: Transport } {
  if (clientInUse(client, env) !== client) log.info({}, PROXIED);
  return { transport: createTransport(createDemoBackend(), { client, poolSize, env }) };
}
