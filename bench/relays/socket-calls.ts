// Calls by the gateway's own HTTP client.

import type { Backend } from "../../src/backends/backend.ts";
import { createSocketClient } from "../../src/upstream/http/socket-client.ts";
import type { Calls } from "./calls.ts";

export function callBySockets(upstreamPort: number): Calls {
  const client = createSocketClient({ maxIdle: 1024 });
  // Of a backend the client looks at nothing but its address.
  const backend = { rootUrl: `http://127.0.0.1:${upstreamPort}` } as Backend;
  return (path, request) => client.call(backend, path, request);
}
