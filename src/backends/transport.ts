// The one place where bytes leave for a backend: over TCP or TLS, over a unix socket, or to the embedded demo backend.

import type { Backend } from "./backend.ts";

/** What a request to a backend consists of; headers are complete, credentials included. */
interface TransportRequest {
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
    if (backend.kind.isEmbedded) return demo(new Request(url, request));
    const { method, headers, body, signal } = request;
    // Signalbox has deadlines of its own; the timer inside fetch would cut long silences after five minutes.
    const init = { method, headers, body, signal, redirect: "manual", timeout: false, unix: backend.socketPath };
    return fetch(url, init as RequestInit);
  };
}
