// The way to the backends that a gateway has: the client that the configuration of the start asks for, and the authorities
// that the configuration names at the moment.

import type { EmbeddedBackend } from "../backends/transport.ts";
import type { Attachments } from "../config/compile/attachments.ts";
import type { Settings } from "../config/sections/registry.ts";
import { lazily } from "../lib/lazily.ts";
import type { Logger } from "../logging/logger.ts";
import { createTlsOf } from "./backend-tls.ts";
import { clientInUse, createTransport, type OwnedTransport } from "./transport.ts";

interface ConfiguredWay {
  settings: Settings;
  attachments: Pick<Attachments, "authorities">;
}

export interface WayToBackends {
  readonly transport: OwnedTransport;
  /** New connections are opened as this configuration says. */
  follow(next: ConfiguredWay): void;
  /** Backends whose files of authorities hold something else than under the configuration before. */
  readonly reassessed: readonly string[];
  stop(): void;
}

const PROXIED =
  "the environment names a forward proxy (HTTP_PROXY, HTTPS_PROXY): requests to backends are made by fetch, whatever " +
  "server.upstream_client says";

export function createWayToBackends(
  { settings, attachments }: ConfiguredWay,
  env: Record<string, string | undefined>,
  log: Pick<Logger, "info">,
): WayToBackends {
  const { upstream_client: client, connection_pool_size: poolSize } = settings.server;
  let { authorities } = attachments;
  const tlsOf = createTlsOf(() => authorities);
  if (clientInUse(client, env) !== client) log.info(PROXIED);
  const transport = createTransport(demoBackend(), { client, poolSize, env, tlsOf });
  let reassessed: readonly string[] = [];
  return {
    transport,
    follow({ settings, attachments }) {
      const before = authorities;
      authorities = attachments.authorities;
      const isOther = (file = "") => authorities.get(file) !== before.get(file);
      reassessed = settings.backends.filter(({ tls }) => isOther(tls?.ca)).map(({ name }) => name);
    },
    get reassessed() {
      return reassessed;
    },
    stop: () => transport.close(),
  };
}

/** Few gateways have one. */
function demoBackend(): EmbeddedBackend {
  const made = lazily(async () => (await import("../demo/backend.ts")).createDemoBackend());
  return async (request) => (await made())(request);
}
