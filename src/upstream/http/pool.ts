// The connections to one origin: those that are idle wait here for the next request.

import type { LookupFunction } from "node:net";
import { type ConnectionOwner, HttpConnection } from "./connection.ts";
import type { Address } from "./target.ts";

interface PoolParts {
  address: Address;
  /** How many connections wait at most. */
  maxIdle: number;
  scratch: Buffer;
  lookup: LookupFunction;
  now(): number;
  /** A connection has become idle. */
  onIdle(): void;
  /** No connection is left. */
  onEmpty(): void;
}

export class Pool implements ConnectionOwner {
  readonly scratch: Buffer;
  readonly lookup: LookupFunction;
  /** Connections that stand or are being made, idle ones included. */
  open = 0;
  readonly #parts: PoolParts;
  #maxIdle: number;
  /** The one that was used last is at the end. */
  readonly #idle: HttpConnection[] = [];
  #probe: HttpConnection | undefined;

  constructor(parts: PoolParts) {
    this.#parts = parts;
    this.scratch = parts.scratch;
    this.lookup = parts.lookup;
    this.#maxIdle = parts.maxIdle;
  }

  now(): number {
    return this.#parts.now();
  }

  get idleCount(): number {
    return this.#idle.length;
  }

  /** The idle connection that was used last. */
  take(): HttpConnection | undefined {
    return this.#idle.pop();
  }

  connect(): HttpConnection {
    this.open++;
    return new HttpConnection(this.#parts.address, this);
  }

  idle(connection: HttpConnection): void {
    if (this.#idle.length >= this.#maxIdle) {
      connection.close();
      return;
    }
    connection.idleSinceMs = this.#parts.now();
    this.#idle.push(connection);
    this.#parts.onIdle();
  }

  closed(connection: HttpConnection, isUnreachable: boolean): void {
    this.open--;
    const place = this.#idle.indexOf(connection);
    if (place >= 0) this.#idle.splice(place, 1);
    if (isUnreachable) this.distrust();
    if (this.open === 0) this.#parts.onEmpty();
  }

  /** Closes all idle connections: after a failure of the origin they are probably stale. */
  distrust(): void {
    for (const connection of this.#idle.splice(0)) connection.close();
  }

  /** Closes what has been idle since before a time. */
  expire(beforeMs: number): void {
    const kept = this.#idle.findIndex(({ idleSinceMs }) => idleSinceMs > beforeMs);
    for (const connection of this.#idle.splice(0, kept < 0 ? this.#idle.length : kept)) connection.close();
  }

  /** Closes the idle connections, and keeps none from now on. */
  retire(): void {
    this.#maxIdle = 0;
    this.distrust();
  }

  /**
   * Resolves when a new connection stands or is refused; calls at the same time share one. A refusal is an answer: a
   * backend that drains has closed its port and still finishes what it has.
   */
  probe(): Promise<void> {
    if (this.#probe?.isConnecting !== true) this.#probe = this.connect();
    return this.#probe.settled();
  }

  /** The probe had no answer in time: it is aborted, and the next one connects again. */
  giveProbeUp(): void {
    this.distrust();
    const probe = this.#probe;
    this.#probe = undefined;
    if (probe?.isConnecting === true) probe.abort();
  }
}
