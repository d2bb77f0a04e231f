// One exchange with one backend: its abort, its deadlines, its place in the in-flight count. Released exactly once.

import { beginRunning, endRunning, type Running } from "../backends/backend.ts";
import type { BackendEntry } from "../backends/board.ts";
import type { BackendCall } from "../backends/transport.ts";
import type { Deadline, Deadlines } from "../lib/deadlines.ts";
import { type TimeoutPhase, toFailure, type UpstreamFailure } from "./failure.ts";

export interface ExchangeTimeouts {
  connectMs: number;
  firstByteMs: number;
  betweenChunksMs: number;
  /** Clock milliseconds at which the whole request must be over. */
  requestDeadlineMs: number;
  /** The key of section timeouts that stands in for those of all phases but connecting, where one does. */
  standIn?: string;
}

/** The side that waits for an answer. */
export interface Client {
  /** Aborts when the client leaves. The runtime makes it when it is asked for, at the cost of a twentieth of a plain request. */
  readonly signal: AbortSignal;
}

export interface ExchangeEnvironment {
  deadlines: Deadlines;
  now(): number;
}

/** An exchange that is over by then does not look whether its client has left. */
export const CLIENT_LOOK_MS = 10;
/** Longest wait for the end of a connection whose answer is complete. */
const CLOSING_GRACE_MS = 500;

export class Exchange implements Deadline, Running {
  readonly entry: BackendEntry;
  readonly startedAtMs: number;
  deadlineMs: number;
  place = 0;
  older: Deadline | undefined = undefined;
  newer: Deadline | undefined = undefined;
  readonly #timeouts: ExchangeTimeouts;
  readonly #environment: ExchangeEnvironment;
  readonly #client: Client;
  /** When the present phase has lasted too long. */
  #dueMs: number;
  /** When the client is looked at; Infinity: its leaving is listened for. */
  #lookMs: number;
  #call: BackendCall | undefined;
  /** The client or the gateway has ended it. */
  isAborted = false;
  #phase: TimeoutPhase = "connect";
  #hasHead = false;
  /** The client reads slowly, and the backend waits for it. */
  #isHeld = false;
  /** Why the gateway itself ended the exchange. */
  #endedBy: UpstreamFailure | undefined;
  #released = false;

  constructor(entry: BackendEntry, client: Client, timeouts: ExchangeTimeouts, environment: ExchangeEnvironment) {
    this.entry = entry;
    this.#timeouts = timeouts;
    this.#environment = environment;
    this.#client = client;
    this.startedAtMs = environment.now();
    // Half of the time for connecting passes before its other half is spent on asking whether a connection stands.
    const firstLookMs = Math.min(timeouts.connectMs / 2, timeouts.firstByteMs);
    this.#lookMs = this.startedAtMs + CLIENT_LOOK_MS;
    this.#dueMs = Math.min(this.startedAtMs + firstLookMs, timeouts.requestDeadlineMs);
    this.deadlineMs = Math.min(this.#dueMs, this.#lookMs);
    beginRunning(entry.counters, this);
    environment.deadlines.add(this);
  }

  /** The request is on its way. */
  begin(call: BackendCall): void {
    this.#call = call;
  }

  /** What must not be shown of the request, besides what the backend itself has. */
  get credential(): BackendCall["credential"] {
    return this.#call?.credential;
  }

  /** The backend sent the head of its answer. */
  headReceived(): void {
    this.#hasHead = true;
    this.#phase = "first_byte";
    this.#waitFor(this.#timeouts.firstByteMs, this.startedAtMs);
  }

  /** The backend sent bytes: the next ones may take as long as the timeout between chunks allows. */
  chunkReceived(): void {
    this.#phase = "between_chunks";
    this.#isHeld = false;
    this.#waitFor(this.#timeouts.betweenChunksMs, this.#environment.now());
  }

  /** The answer is complete; the backend has a moment to end the connection in order, so that it can be used again. */
  answerComplete(): void {
    this.#isHeld = false;
    this.#endAt(this.#environment.now() + CLOSING_GRACE_MS);
  }

  /** The client reads slowly: no byte is expected from the backend until it has caught up. */
  pause(): void {
    this.#isHeld = true;
    this.#endAt(this.#timeouts.requestDeadlineMs);
  }

  /** What it means that a call or the body of its answer has failed. */
  failureOf(error: unknown): UpstreamFailure {
    if (this.#endedBy !== undefined) return this.#endedBy;
    if (this.#client.signal.aborted) return { kind: "aborted" };
    return toFailure(error, this.entry.backend.name);
  }

  /** Closes the connection to the backend. */
  abort(): void {
    this.isAborted = true;
    this.#call?.abort();
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.#environment.deadlines.remove(this);
    endRunning(this.entry.counters, this);
  }

  cut(): void {
    this.#end({
      kind: "reset",
      message: `Backend '${this.entry.backend.name}' was taken out of service, and its time to finish has passed.`,
    });
  }

  expire(): void {
    if (this.#released) return;
    const nowMs = this.#environment.now();
    if (nowMs < this.#dueMs) {
      this.#listen();
      return;
    }
    if (nowMs >= this.#timeouts.requestDeadlineMs) this.#phase = "request";
    if (this.#phase === "connect") this.#awaitFirstByte(nowMs);
    else this.#timeOut(this.#phase);
  }

  /** The client has left. */
  handleEvent(): void {
    this.abort();
  }

  #waitFor(durationMs: number, sinceMs: number): void {
    this.#endAt(Math.min(sinceMs + durationMs, this.#timeouts.requestDeadlineMs));
  }

  #endAt(dueMs: number): void {
    this.#dueMs = dueMs;
    this.deadlineMs = Math.min(dueMs, this.#lookMs);
  }

  #listen(): void {
    this.#lookMs = Number.POSITIVE_INFINITY;
    this.deadlineMs = this.#dueMs;
    this.#environment.deadlines.add(this);
    const { signal } = this.#client;
    // Not removed at the end: the signal ends with its request, and aborting what is over does nothing.
    signal.addEventListener("abort", this);
    if (signal.aborted) this.abort();
  }

  /** A slow model is waited for, a dead host is not. */
  #awaitFirstByte(nowMs: number): void {
    this.#phase = "first_byte";
    this.#waitFor(this.#timeouts.firstByteMs, this.startedAtMs);
    if (this.#dueMs <= nowMs) {
      this.#timeOut("first_byte");
      return;
    }
    this.#environment.deadlines.add(this);
    void this.#call?.connects(this.#timeouts.connectMs / 2).then((connects) => {
      const waiting = !this.#released && !this.#hasHead && this.#endedBy === undefined;
      if (!connects && waiting) this.#timeOut("connect");
    });
  }

  #timeOut(phase: TimeoutPhase): void {
    const limitMs = {
      connect: this.#timeouts.connectMs,
      first_byte: this.#timeouts.firstByteMs,
      between_chunks: this.#timeouts.betweenChunksMs,
      request: undefined,
    }[phase];
    const limit = limitMs === undefined ? "" : ` of ${limitMs} ms`;
    const key = phase === "connect" ? phase : (this.#timeouts.standIn ?? phase);
    this.#end({
      kind: "timeout",
      phase,
      message: `Backend '${this.entry.backend.name}' did not answer in time: the limit${limit} for timeouts.${key} has passed.`,
      ...(this.#isHeld && { byClient: true }),
    });
  }

  /** The first reason counts. */
  #end(failure: UpstreamFailure): void {
    if (this.isAborted) return;
    if (!this.#client.signal.aborted) this.#endedBy = failure;
    this.abort();
  }
}
