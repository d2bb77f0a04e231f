// The HTTP/1.1 client of the gateway: sockets to backends, kept for the next request.

import type { Backend } from "../../backends/backend.ts";
import type { BackendCall, TransportRequest } from "../../backends/transport.ts";
import type { TlsOf } from "../backend-tls.ts";
import { HttpCall } from "./call.ts";
import { createHostLookup } from "./host-lookup.ts";
import { Pool } from "./pool.ts";
import { writeRequest } from "./request-head.ts";
import { Target } from "./target.ts";

export interface SocketClientOptions {
  /** Idle connections kept per origin. */
  maxIdle: number;
  /** How the certificate of a backend is checked, if not as usual. */
  tlsOf?: TlsOf;
  /** Milliseconds of a monotonic clock. */
  now?(): number;
  maxIdleMs?: number;
}

export interface SocketClient {
  call(backend: Backend, pathAndQuery: string, request: TransportRequest): BackendCall;
  /** Closes the idle connections now, and the others when their exchange is over. */
  close(): void;
  /** Connections that stand or are being made, idle ones included. */
  readonly open: number;
  readonly idle: number;
}

const MAX_IDLE_MS = 60_000;
/** Enough for a head with a usual body. */
const SCRATCH_BYTES = 64 * 1024;

export function createSocketClient({
  maxIdle,
  tlsOf,
  now = () => performance.now(),
  maxIdleMs = MAX_IDLE_MS,
}: SocketClientOptions): SocketClient {
  const targets = new WeakMap<Backend, Target>();
  /** By origin; those without connections are forgotten. */
  const pools = new Map<string, Pool>();
  const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);
  const lookup = createHostLookup(now);
  let timer: Timer | undefined;
  let isClosed = false;

  function targetOf(backend: Backend): Target {
    const known = targets.get(backend);
    const tls = tlsOf?.(backend);
    // Its authorities may stand in a file that has been edited.
    if (known?.isFor(tls) === true) return known;
    const target = new Target(backend, tls);
    targets.set(backend, target);
    return target;
  }

  function poolOf({ origin, address }: Target): Pool {
    let pool = pools.get(origin);
    if (pool === undefined) {
      const onEmpty = () => pools.delete(origin);
      pool = new Pool({ address, maxIdle: isClosed ? 0 : maxIdle, scratch, lookup, now, onIdle, onEmpty });
      pools.set(origin, pool);
    }
    return pool;
  }

  function onIdle(): void {
    timer ??= setInterval(expire, maxIdleMs / 4).unref();
  }

  function expire(): void {
    for (const pool of pools.values()) pool.expire(now() - maxIdleMs);
    if (idle() > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  function idle(): number {
    return sum((pool) => pool.idleCount);
  }

  function sum(count: (pool: Pool) => number): number {
    return [...pools.values()].reduce((total, pool) => total + count(pool), 0);
  }

  return {
    call(backend, pathAndQuery, request) {
      try {
        const target = targetOf(backend);
        return new HttpCall(poolOf(target), writeRequest(target, pathAndQuery, request));
      } catch (error) {
        return refusedCall(error);
      }
    },
    close() {
      isClosed = true;
      clearInterval(timer);
      for (const pool of pools.values()) pool.retire();
    },
    get open() {
      return sum((pool) => pool.open);
    },
    get idle() {
      return idle();
    },
  };
}

/** A request that cannot be sent as it is. */
function refusedCall(error: unknown): BackendCall {
  const answer = Promise.reject(error);
  answer.catch(() => {}); // an answer that is not awaited must not crash the process
  return { answer, abort() {}, connects: async () => true };
}
