// The way to the backends that a gateway has: the client that the configuration of the start asks for, and the authorities
// that the configuration names at the moment.

import { createCredentialSet } from "../backends/credentials/credential-set.ts";
import type { EmbeddedBackend } from "../backends/transport.ts";
import type { Attachments } from "../config/compile/attachments.ts";
import type { Settings } from "../config/sections/registry.ts";
import { resolvePath } from "../config/values/paths.ts";
import type { Clock } from "../lib/clock.ts";
import { lazily } from "../lib/lazily.ts";
import type { Logger } from "../logging/logger.ts";
import { createTlsOf } from "./backend-tls.ts";
import { clientInUse, createTransport, type OwnedTransport } from "./transport.ts";

interface ConfiguredWay {
  settings: Settings;
  attachments: Pick<Attachments, "authorities">;
}

interface WayTools {
  env: Record<string, string | undefined>;
  /** Paths in the configuration begin here. */
  baseDir: string;
  clock: Clock;
  log: Pick<Logger, "info" | "warn">;
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
  { env, baseDir, clock, log }: WayTools,
): WayToBackends {
  const { upstream_client: client, connection_pool_size: poolSize } = settings.server;
  let { authorities } = attachments;
  const tlsOf = createTlsOf(() => authorities);
  if (clientInUse(client, env) !== client) log.info(PROXIED);
  const credentials = createCredentialSet({
    env,
    clock,
    log,
    resolve: (path) => resolvePath(path, baseDir, env.HOME),
  });
  credentials.follow(settings.backends);
  const transport = createTransport(demoBackend(), { client, poolSize, env, tlsOf, credentials });
  let reassessed: readonly string[] = [];
  return {
    transport,
    follow({ settings, attachments }) {
      const before = authorities;
      authorities = attachments.authorities;
      credentials.follow(settings.backends);
      const isOther = (file = "") => authorities.get(file) !== before.get(file);
      reassessed = settings.backends.filter(({ tls }) => isOther(tls?.ca)).map(({ name }) => name);
    },
    get reassessed() {
      return reassessed;
    },
    stop() {
      credentials.stop();
      transport.close();
    },
  };
}

/** Few gateways have one. */
function demoBackend(): EmbeddedBackend {
  const made = lazily(async () => (await import("../demo/backend.ts")).createDemoBackend());
  return async (request) => (await made())(request);
}
