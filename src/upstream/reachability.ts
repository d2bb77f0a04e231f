// Whether a connection to a backend can be made at all: asked only when an answer is late.

import type { Backend } from "../backends/backend.ts";
import { hasForwardProxy } from "../lib/proxy-environment.ts";

/**
 * False when a TCP connection is neither made nor refused within the time: the host is not there. A refusal is an answer: a
 * backend that drains has closed its port and still finishes what it has. Late requests share one try.
 */
export type Reachability = (backend: Backend, timeoutMs: number) => Promise<boolean>;

export function createReachability(env: Record<string, string | undefined>): Reachability {
  // Behind a forward proxy the backend is not connected to directly, and the proxy gives its own errors.
  const proxied = hasForwardProxy(env);
  const running = new WeakMap<Backend, Promise<boolean>>();
  return (backend, timeoutMs) => {
    if (proxied || backend.kind.isEmbedded || backend.socketPath !== undefined) return Promise.resolve(true);
    let attempt = running.get(backend);
    if (attempt === undefined) {
      attempt = connects(new URL(backend.rootUrl), timeoutMs).finally(() => running.delete(backend));
      running.set(backend, attempt);
    }
    return attempt;
  };
}

function connects(url: URL, timeoutMs: number): Promise<boolean> {
  const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return new Promise((resolve) => {
    // Not Bun.connect, which cannot be stopped: the kernel would go on trying for two minutes.
    const socket = process.getBuiltinModule("node:net").connect({ host, port });
    const timer = setTimeout(() => settle(false), timeoutMs);
    function settle(connects: boolean): void {
      clearTimeout(timer);
      socket.destroy();
      resolve(connects);
    }
    socket.once("connect", () => settle(true));
    socket.on("error", () => settle(true));
  });
}
