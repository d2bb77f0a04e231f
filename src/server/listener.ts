// Listening addresses: host and port, IPv6, unix sockets.

import { lstatSync, unlinkSync } from "node:fs";
import { resolve } from "node:path";

export type Server = Bun.Server<undefined>;
export type FetchHandler = (request: Request, server: Server) => Promise<Response>;

/** The handlers of a listener: a route of the runtime, or else `fetch`. */
export interface Served {
  routes?: Record<string, FetchHandler>;
  fetch: FetchHandler;
  /** Answers if an answer cannot be sent. */
  error?(thrown: unknown): Response;
}

/** `address` is the one that was opened, with the port that was really taken. */
export type ListenResult = { ok: true; server: Server; address: string } | { ok: false; message: string };

/**
 * Seconds after which the runtime closes a quiet connection. Requests that wait for a model lift it for themselves; it
 * ends idle keep-alive connections and clients that never finish a request head or never read their answer.
 */
export const IDLE_TIMEOUT_SECONDS = 75;

/** Serves between the opening of the first address and that of the last. */
export const NOT_YET: Served = {
  fetch: async () => new Response("The gateway is starting.\n", { status: 503, headers: { "Retry-After": "1" } }),
};

/** Bodies are bounded per endpoint (read-body.ts), with an answer that the runtime's own limit would not give. */
const RUNTIME_BODY_LIMIT = Number.MAX_SAFE_INTEGER;

/**
 * Opens one address of `server.bind_address`; a port that is taken is a message, not an exception. A relative socket
 * path is below `baseDir`. `sharesPort`: other processes of this gateway open it too.
 */
export async function listen(
  bindAddress: string,
  baseDir: string,
  served: Served,
  unixSocketMode = 0o660,
  sharesPort = false,
): Promise<ListenResult> {
  const target = parseAddress(bindAddress, baseDir);
  if ("unix" in target) await removeStaleSocket(target.unix);
  // The file has its permissions from the first moment on.
  const umask = "unix" in target ? process.umask(0o777 & ~unixSocketMode) : undefined;
  try {
    const server = Bun.serve({
      ...target,
      idleTimeout: "unix" in target ? 0 : IDLE_TIMEOUT_SECONDS,
      maxRequestBodySize: RUNTIME_BODY_LIMIT,
      development: false,
      reusePort: sharesPort, // two gateways would share a port in silence
      ...served,
    } as Bun.Serve.Options<undefined>) as Server;
    const address = "unix" in target ? `unix:${target.unix}` : `${formatHost(target.hostname)}:${server.port}`;
    return { ok: true, server, address };
  } catch (error) {
    return { ok: false, message: listenFailure(bindAddress, error) };
  } finally {
    if (umask !== undefined) process.umask(umask);
  }
}

function parseAddress(bindAddress: string, baseDir: string): { unix: string } | { hostname: string; port: number } {
  if (bindAddress.startsWith("unix:")) return { unix: resolve(baseDir, bindAddress.slice("unix:".length)) };
  return parseHostAndPort(bindAddress);
}

export function parseHostAndPort(bindAddress: string): { hostname: string; port: number } {
  const colon = bindAddress.lastIndexOf(":");
  return {
    hostname: bindAddress.slice(0, colon).replace(/^\[|\]$/g, ""),
    port: Number(bindAddress.slice(colon + 1)),
  };
}

function formatHost(hostname: string): string {
  return hostname.includes(":") ? `[${hostname}]` : hostname;
}

/** A socket file that a killed process left behind would block the address; one with a listener stays. */
async function removeStaleSocket(path: string): Promise<void> {
  const isSocket = lstatSync(path, { throwIfNoEntry: false })?.isSocket() ?? false;
  if (!isSocket) return;
  try {
    const socket = await Bun.connect({ unix: path, socket: { data() {} } });
    socket.end();
  } catch {
    unlinkSync(path); // no listener
  }
}

const LISTEN_FAILURES: Readonly<Record<string, string>> = {
  EADDRINUSE: "another process uses it. Stop that one, or set another address.",
  EACCES: "not permitted for this user (ports below 1024 need privileges).",
  ENOTTY: "the host name cannot be resolved.", // what the runtime says of a name that does not resolve
  EINVAL: "this machine has no such address, or the host name cannot be resolved.",
  ENOTFOUND: "the host name cannot be resolved.",
  EADDRNOTAVAIL: "this machine has no such address.",
};

export function listenFailure(bindAddress: string, error: unknown): string {
  const { code = "", message = String(error) } = error as Partial<NodeJS.ErrnoException>;
  return `server.bind_address: cannot listen on ${bindAddress}: ${LISTEN_FAILURES[code] ?? message}`;
}
