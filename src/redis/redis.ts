// A Redis or Valkey server that gateways share, over connections of Bun's own client: asked within a bounded time, and not
// at all while it is away.

import { readRedisUrl } from "../config/values/redis-url.ts";
import { backoffDelayMs } from "../lib/backoff.ts";
import { DEADLINE_RESOLUTION_MS, type Deadline, type Deadlines } from "../lib/deadlines.ts";
import type { Logger } from "../logging/logger.ts";
import { CLOSED, commandFault, type Fault } from "./fault.ts";

/** The part of the client that commands may use. */
export type RedisClient = Pick<Bun.RedisClient, "send" | "getBuffer" | "set">;

/** One round trip, or a few. Throws what the client throws, or a BadAnswer (fault.ts). */
type RedisCommand<Answer> = (client: RedisClient) => Promise<Answer>;

interface RedisSettings {
  url: string;
  /** Most connections. */
  poolSize: number;
  connectTimeoutMs: number;
  commandTimeoutMs: number;
  tls: boolean;
}

export interface RedisParts {
  settings: RedisSettings;
  /** The purpose of the server, for the log and the metrics. */
  use: string;
  /** The first command of every connection: that the server does what is needed. */
  check: RedisCommand<unknown>;
  /** It is there again, after it was away. */
  returned?: (() => void) | undefined;
  /** A command had no good answer in time, or was not sent. */
  unanswered: () => void;
  /** Milliseconds that a request may have waited for the same server already, for another use. */
  waitedMs?: () => number;
  deadlines: Deadlines;
  now(): number;
  random(): number;
  log: Pick<Logger, "info" | "warn">;
}

export interface Redis {
  /** False while the server is away. */
  readonly isThere: boolean;
  /**
   * Undefined at once while the server is away, or has too much to do already; undefined later when it gives no good
   * answer in time. `bytes` are those that are sent, where they are many.
   */
  ask<Answer>(command: RedisCommand<Answer>, bytes?: number): Promise<Answer | undefined> | undefined;
  close(): void;
}

/** Commands that wait for an answer, and their bytes: beyond them, commands are not sent. */
export const MAX_WAITING = 4096;
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/** No request waits for a write: large values are given the time that they need on a slow line. */
const BYTES_PER_MS = 1024;

/** However long the request has waited for the server before. */
const LEAST_WAIT_MS = 100;

const BACKOFF = { baseDelayMs: 250, maxDelayMs: 10_000, multiplier: 2, jitter: true };

/** After a connection of this length the next pause is a short one again. */
const STABLE_MS = 10_000;

/** Where a further connection could not be opened, the others do for so long. */
const ENOUGH_MS = 10_000;

/** A server may close connections whenever it likes; one that does nothing else, for each of them, is none. */
const MOST_CUTS = 2;

interface Waiting extends Deadline {
  finish(fault: Fault | undefined): void;
}

export function createRedis({ settings, use, check, deadlines, now, random, log, ...told }: RedisParts): Redis {
  const place = placeOf(settings);
  const links = new Set<Link>();
  let waitingBytes = 0;
  let waitingCount = 0;
  let isAway = false;
  let isClosed = false;
  let failures = 0;
  /** Connections that were closed since the last good answer. */
  let cuts = 0;
  let backSinceMs = Number.NEGATIVE_INFINITY;
  let enoughUntilMs = Number.NEGATIVE_INFINITY;
  let timer: Timer | undefined;

  /** No command is sent from now on, and all waits end. */
  function leave(fault: Fault): void {
    if (isAway || isClosed) return;
    isAway = true;
    if (now() - backSinceMs >= STABLE_MS) failures = 0;
    log.warn({ use, reason: fault.reason }, "Redis is away; the gateway goes on without it");
    for (const link of [...links]) link.close(fault);
    pause();
  }

  function pause(): void {
    failures++;
    timer = setTimeout(() => void comeBack(), backoffDelayMs(BACKOFF, failures, random));
  }

  async function comeBack(): Promise<void> {
    const link = open();
    const fault = await link.opened;
    if (isClosed) return;
    if (fault !== undefined) {
      pause();
      return;
    }
    isAway = false;
    cuts = 0;
    backSinceMs = now();
    log.info({ use }, "Redis is back");
    told.returned?.();
  }

  function open(): Link {
    const link = new Link({ settings, place, check, deadlines, now }, (fault) => {
      links.delete(link);
      if (isAway) return;
      const isOneMore = !link.isOpen && [...links].some(({ isOpen }) => isOpen);
      if (fault !== undefined && isOneMore) enoughUntilMs = now() + ENOUGH_MS;
      else if (fault !== undefined) leave(fault);
      else if (++cuts > MOST_CUTS * settings.poolSize) leave(CLOSED);
    });
    links.add(link);
    return link;
  }

  /** The one with the least to do; another is opened where all have something. Commands do not wait for it while others are open. */
  function choose(): Link {
    let best: Link | undefined;
    for (const link of links) {
      const isBetter = link.isOpen === best?.isOpen ? link.asked < best.asked : link.isOpen;
      if (best === undefined || isBetter) best = link;
    }
    if (best === undefined) return open();
    const areEnough = links.size >= settings.poolSize || (best.isOpen && now() < enoughUntilMs);
    if (best.asked === 0 || areEnough) return best;
    const another = open();
    return best.isOpen ? best : another;
  }

  async function askOn<Answer>(link: Link, command: RedisCommand<Answer>, bytes: number): Promise<Answer | undefined> {
    waitingCount++;
    waitingBytes += bytes;
    const limitMs = Math.max(settings.commandTimeoutMs - (told.waitedMs?.() ?? 0), LEAST_WAIT_MS);
    const answer = await link.ask(command, limitMs + bytes / BYTES_PER_MS);
    waitingCount--;
    waitingBytes -= bytes;
    if (answer === undefined) told.unanswered();
    else cuts = 0;
    return answer;
  }

  open();
  return {
    get isThere() {
      return !isAway;
    },
    ask<Answer>(command: RedisCommand<Answer>, bytes = 0) {
      const hasRoom = waitingCount < MAX_WAITING && waitingBytes + bytes <= MAX_WAITING_BYTES;
      if (!isAway && !isClosed && hasRoom) return askOn(choose(), command, bytes);
      told.unanswered();
      return undefined;
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
      for (const link of [...links]) link.close(undefined);
    },
  };
}

function placeOf({ url }: RedisSettings) {
  const place = readRedisUrl(url);
  if (place === undefined) throw new TypeError("not the URL of a Redis server"); // the schema has refused it
  return place;
}

interface LinkParts extends Pick<RedisParts, "settings" | "check" | "deadlines" | "now"> {
  place: ReturnType<typeof placeOf>;
}

/** One connection. When it is over, it is over: another takes its place. */
class Link {
  /** Resolves with what kept it from opening, if anything did. */
  readonly opened: Promise<Fault | undefined>;
  /** Commands that wait for their answers. */
  asked = 0;
  readonly #waiting = new Set<Waiting>();
  readonly #parts: LinkParts;
  readonly #over: (fault: Fault | undefined) => void;
  #client: Bun.RedisClient | undefined;
  /** True once the connection was open. */
  isOpen = false;
  /** The fault that ended it. */
  #end: Fault | undefined;
  #isOver = false;

  /** `over` is called once: with a fault of the server, or without one where a connection was just closed. */
  constructor(parts: LinkParts, over: (fault: Fault | undefined) => void) {
    this.#parts = parts;
    this.#over = over;
    this.opened = this.#open();
  }

  async #open(): Promise<Fault | undefined> {
    const { settings, check, place } = this.#parts;
    let fault: Fault | undefined;
    await this.#within(settings.connectTimeoutMs, async (client) => {
      await client.connect();
      if (place.database !== undefined) await client.send("SELECT", [String(place.database)]);
      await check(client);
      this.isOpen = true;
    }).then(
      () => {},
      (error: Fault) => {
        fault = error;
        this.close(error);
      },
    );
    return fault ?? this.#end;
  }

  /** Undefined when there is no good answer in time. */
  async ask<Answer>(command: RedisCommand<Answer>, limitMs: number): Promise<Answer | undefined> {
    this.asked++;
    try {
      return await this.#within(limitMs, async (client) => {
        if (!this.isOpen) await this.opened;
        return command(client);
      });
    } catch (fault) {
      // A connection that was closed says little of the server, once it has been open.
      const isHarmless = (fault as Fault).kind === "closed" && this.isOpen;
      this.close(isHarmless ? undefined : (fault as Fault));
      return undefined;
    } finally {
      this.asked--;
    }
  }

  /** Rejects with a Fault. */
  #within<Answer>(limitMs: number, work: (client: Bun.RedisClient) => Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const { deadlines, now, settings } = this.#parts;
      const waiting: Waiting = {
        deadlineMs: now() + limitMs - DEADLINE_RESOLUTION_MS,
        expire: () => waiting.finish({ kind: "timeout", reason: "no answer in time" }),
        finish: (fault) => {
          deadlines.remove(waiting);
          this.#waiting.delete(waiting);
          if (fault !== undefined) reject(fault);
        },
      };
      if (this.#isOver) {
        reject(this.#end ?? CLOSED);
        return;
      }
      this.#waiting.add(waiting);
      deadlines.add(waiting);
      const working = async () => {
        this.#client ??= this.#newClient(settings);
        return work(this.#client);
      };
      working().then(
        (answer) => {
          waiting.finish(undefined);
          resolve(answer);
        },
        (error) => waiting.finish(commandFault(error)),
      );
    });
  }

  #newClient({ tls, connectTimeoutMs }: RedisSettings): Bun.RedisClient {
    const { place } = this.#parts;
    const client = new Bun.RedisClient(place.url, {
      connectionTimeout: connectTimeoutMs,
      // This module decides when to try again; the client's own queue would wait without an end.
      autoReconnect: false,
      enableOfflineQueue: false,
      ...(tls && { tls: true }),
    });
    client.onclose = () => {
      // The client rejects what waits, each in its turn.
      if (this.#waiting.size === 0) this.close(undefined);
    };
    return client;
  }

  close(fault: Fault | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#end = fault;
    for (const waiting of [...this.#waiting]) waiting.finish(fault ?? CLOSED);
    this.#client?.close();
    this.#over(fault);
  }
}
