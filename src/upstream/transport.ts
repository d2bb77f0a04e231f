// The one place where bytes leave for a backend: over TCP or TLS, over a unix socket, or to the embedded demo backend.

import type { EmbeddedBackend, Transport } from "../backends/transport.ts";
import { callEmbedded, createFetchClient } from "./fetch-client.ts";
import { createReachability } from "./reachability.ts";

export function createTransport(demo: EmbeddedBackend, env: Record<string, string | undefined> = {}): Transport {
  const client = createFetchClient(createReachability(env));
  return (backend, pathAndQuery, request) =>
    backend.kind.isEmbedded
      ? callEmbedded(demo, backend, pathAndQuery, request)
      : client(backend, pathAndQuery, request);
}
