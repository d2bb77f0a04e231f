// The one place where bytes leave for a backend: over TCP or TLS, over a unix socket, or to the embedded demo backend.

import type { Backend } from "./backend.ts";

/** What a request to a backend consists of; headers are complete, credentials included. */
export interface TransportRequest {
  method: string;
  headers: Record<string, string>;
  body?: Uint8Array | string;
  signal: AbortSignal;
}

/** Rejects as fetch does; redirects are answers, never followed, because credentials would follow with them. */
export type Transport = (backend: Backend, pathAndQuery: string, request: TransportRequest) => Promise<Response>;

/** An HTTP server inside this process. */
export type EmbeddedBackend = (request: Request) => Promise<Response>;

export function createTransport(demo: EmbeddedBackend): Transport {
  return (backend, pathAndQuery, request) => {
    const url = backend.rootUrl + pathAndQuery;
    if (backend.kind.name === "demo") return demo(new Request(url, request));
    if (backend.socketPath !== undefined) {
      return fetch(url, { ...request, redirect: "manual", unix: backend.socketPath, timeout: false } as RequestInit);
    }
    // Signalbox has deadlines of its own; the timer inside fetch would cut long silences after five minutes.
    return fetch(url, { ...request, redirect: "manual", timeout: false } as RequestInit);
  };
}
