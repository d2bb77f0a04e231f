// The one place where bytes leave for a backend: over TCP or TLS, over a unix socket, or to the embedded demo backend.

import type { CredentialSet } from "../backends/credentials/credential-set.ts";
import type { EmbeddedBackend, Transport } from "../backends/transport.ts";
import type { Settings } from "../config/sections/registry.ts";
import { hasForwardProxy } from "../lib/proxy-environment.ts";
import type { TlsOf } from "./backend-tls.ts";
import { CredentialCall } from "./credential-call.ts";
import { callEmbedded, createFetchClient } from "./fetch-client.ts";
import { createSocketClient } from "./http/socket-client.ts";
import { createReachability } from "./reachability.ts";

type ClientName = Settings["server"]["upstream_client"];

interface TransportOptions {
  /** The client that is asked for; clientInUse() says which one it is. */
  client?: ClientName;
  /** Idle connections that are kept to each backend, at most. */
  poolSize?: number;
  env?: Record<string, string | undefined>;
  tlsOf?: TlsOf;
  /** Needed where a backend has a credential. */
  credentials?: Pick<CredentialSet, "of">;
}

export interface OwnedTransport extends Transport {
  /** Closes the connections that wait for requests, and the others with the end of theirs. */
  close(): void;
}

export function createTransport(demo: EmbeddedBackend, options: TransportOptions = {}): OwnedTransport {
  const { client = "sockets", poolSize = 100, env = {}, tlsOf = () => undefined, credentials } = options;
  const sockets = clientInUse(client, env) === "sockets" ? createSocketClient({ maxIdle: poolSize, tlsOf }) : undefined;
  const call = sockets?.call ?? createFetchClient(createReachability(env), tlsOf);
  const transport: Transport = (backend, pathAndQuery, request) => {
    if (backend.kind.isEmbedded) return callEmbedded(demo, backend, pathAndQuery, request);
    if (!backend.hasCredential || credentials === undefined) return call(backend, pathAndQuery, request);
    return new CredentialCall(call, credentials.of(backend), backend, pathAndQuery, request);
  };
  return Object.assign(transport, { close: () => sockets?.close() });
}

/** Only fetch speaks to forward proxies. */
export function clientInUse(client: ClientName, env: Record<string, string | undefined>): ClientName {
  return hasForwardProxy(env) ? "fetch" : client;
}
