// Calls by the gateway's own HTTP client.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Call, CallRequest, Calls } from "./calls.ts";

const CLIENT = join(import.meta.dir, "../../src/upstream/http/socket-client.ts");

interface ClientModule {
  createSocketClient(options: { maxIdle: number }): {
    call(backend: { rootUrl: string }, pathAndQuery: string, request: CallRequest): Call;
  };
}

/** The gateway has a client of its own. */
export function hasOwnClient(): boolean {
  return existsSync(CLIENT);
}

export async function callBySockets(upstreamPort: number): Promise<Calls> {
  const { createSocketClient } = (await import(CLIENT)) as ClientModule;
  const client = createSocketClient({ maxIdle: 1024 });
  const backend = { rootUrl: `http://127.0.0.1:${upstreamPort}` };
  return (path, request) => client.call(backend, path, request);
}
