// One worker as its primary sees it: a process, the channel to it, and whether it lives.

import type { Deadlines } from "../lib/deadlines.ts";
import type { Logger } from "../logging/logger.ts";
import { type Channel, createChannel } from "./channel.ts";
import { MARK } from "./mark.ts";
import type { Start, State, WorkerDesk } from "./messages.ts";
import type { WorkerDeskOfPrimary } from "./owners.ts";

/** A worker has this time to open its addresses. */
const START_LIMIT_MS = 30_000;
const PING_INTERVAL_MS = 1_000;
/** Together the time after which a worker that answers nothing is killed; the last one is for a primary that slept itself. */
const PING_LIMIT_MS = 9_000;
const LAST_PING_LIMIT_MS = 1_000;
/** Beyond the time for its requests. */
const DRAIN_GRACE_MS = 5_000;

interface MemberParts {
  id: number;
  /** What starts this program. */
  command: readonly string[];
  env: Record<string, string | undefined>;
  desk: WorkerDeskOfPrimary;
  deadlines: Deadlines;
  now(): number;
  wallTime(): number;
  log: Logger;
  /** It is gone; `isWanted`: it had been asked to drain. */
  ended(member: Member, isWanted: boolean): void;
}

type MemberState = "starting" | "running" | "draining";

export class Member {
  readonly id: number;
  readonly desk: WorkerDeskOfPrimary;
  readonly startedAtMs: number;
  readonly exited: Promise<void>;
  state: MemberState = "starting";
  /** It was killed because it answered nothing. */
  hasHung = false;
  /** Every change that was sent to it is in force there. */
  followed: Promise<unknown> = Promise.resolve();
  readonly #channel: Channel<WorkerDesk>;
  readonly #process: Bun.Subprocess;
  readonly #parts: MemberParts;
  #timer: Timer | undefined;
  #hasEnded = false;

  constructor(parts: MemberParts) {
    const { command, env, desk, log } = parts;
    this.#parts = parts;
    this.id = parts.id;
    this.desk = desk;
    this.startedAtMs = parts.wallTime();
    const exited = Promise.withResolvers<void>();
    this.exited = exited.promise;
    const spawned = Bun.spawn([...command], {
      env: { ...env, [MARK]: String(parts.id) },
      stdio: ["ignore", "inherit", "inherit"],
      serialization: "advanced",
      ipc: (items) => this.#channel.received(items),
      onExit: (_, exitCode, signal) => {
        this.#end(exitCode, signal);
        exited.resolve();
      },
    });
    this.#process = spawned;
    this.#channel = createChannel<WorkerDesk>({
      send: (items) => spawned.send(items),
      desk: desk.desk,
      deadlines: parts.deadlines,
      now: parts.now,
      failed: (name, err) => log.error({ err, message: name }, "a message of a worker could not be handled"),
    });
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** What keeps it from listening; undefined when it does. */
  async start(start: Start): Promise<string | undefined> {
    const started = await this.#channel.call("start", [start], START_LIMIT_MS);
    if (started?.problem !== undefined || started === undefined || this.state !== "starting") {
      this.kill();
      return started?.problem ?? "a worker did not start";
    }
    this.state = "running";
    this.#timer = setTimeout(() => void this.#watch(), PING_INTERVAL_MS);
    return undefined;
  }

  follow(state: State): void {
    const following = this.#channel.call("follow", [state]);
    this.#channel.flush();
    this.followed = following;
    void following.then((isInForce) => {
      if (isInForce || this.#hasEnded || this.state === "starting") return;
      this.#parts.log.warn({ worker: this.pid }, "a worker has not followed a change in time; it will");
    });
  }

  /** What it may hear a moment later. */
  tell<Name extends "loads" | "kvNews" | "admission">(name: Name, ...given: Parameters<WorkerDesk[Name]>): void {
    (this.#channel.tell as (name: Name, ...told: unknown[]) => void)(name, ...given);
  }

  forgetKvCaches(backendName: string | undefined): void {
    const forgotten = this.#channel.call("forgetKvCaches", [backendName]);
    this.followed = Promise.all([this.followed, forgotten]);
  }

  /** Resolves when it has answered, and so everything that it told before has come; or after the time. */
  ask(name: "flush" | "ping", limitMs: number): Promise<unknown> {
    return this.#channel.call(name, [], limitMs);
  }

  /** No new connections; it ends with its last request, or after the time. */
  drain(timeoutMs: number, leavingMs = 0): void {
    if (this.#hasEnded || this.state === "draining") return;
    const hasBegun = this.state !== "starting";
    this.state = "draining";
    if (!hasBegun) {
      this.kill();
      return;
    }
    this.#channel.tell("drain", timeoutMs, leavingMs);
    const timer = setTimeout(() => this.kill(), timeoutMs + leavingMs + DRAIN_GRACE_MS);
    void this.exited.then(() => clearTimeout(timer));
  }

  kill(): void {
    if (!this.#hasEnded) this.#process.kill("SIGKILL");
  }

  async #watch(): Promise<void> {
    const answers = (limitMs: number) => this.#channel.call("ping", [], limitMs);
    const isAlive = (await answers(PING_LIMIT_MS)) ?? (await answers(LAST_PING_LIMIT_MS));
    if (this.#hasEnded) return;
    if (isAlive) {
      this.#timer = setTimeout(() => void this.#watch(), PING_INTERVAL_MS);
      return;
    }
    this.#parts.log.error({ worker: this.pid }, "a worker does not answer and is killed");
    this.hasHung = true;
    this.kill();
  }

  #end(exitCode: number | null, signal: unknown): void {
    this.#hasEnded = true;
    clearTimeout(this.#timer);
    this.#channel.close();
    this.desk.gone();
    const { log, ended } = this.#parts;
    const isWanted = this.state === "draining";
    if (!isWanted) log.error({ worker: this.pid, exit_code: exitCode, signal }, "a worker has ended");
    ended(this, isWanted);
  }
}
