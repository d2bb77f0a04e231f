// Identical requests in flight share one upstream call, and every client gets its own live copy of the answer.

import type { DeduplicationMode } from "../config/sections/deduplication.ts";
import type { JsonObject } from "../lib/json.ts";
import { type KeptAnswers, temperatureIn } from "../protocols/kept-answers.ts";
import type { RequestKey } from "../response-cache/cache.ts";
import type { UpstreamFailure } from "../upstream/failure.ts";
import type { ByteSink } from "../upstream/relay.ts";

/** What the upstream call came to. `head` is the same object for all clients and must not be changed. */
export interface SharedAnswer<Head> {
  head: Head;
  /** Set for a stream: called once, starts to write the stream's bytes; ends with close() or fail(). */
  feed?: ((sink: ByteSink) => void) | undefined;
}

/** How a copy of a stream ended for one client; undefined = it was complete. */
interface End {
  readonly failure: UpstreamFailure | undefined;
}

const COMPLETE: End = { failure: undefined };
const LEFT: End = { failure: { kind: "aborted" } };
/** The client fell behind the others by more than the buffer holds. */
const LAGGED: End = {
  failure: {
    kind: "invalid-response",
    message: "The stream was read too slowly and could not be kept any longer.",
  },
};

export interface Joining<Head> {
  key: string;
  /** How long after its start the call can be joined; counts for the call that this request starts. */
  ttlMs: number;
  /** Aborts when this client leaves. */
  signal: AbortSignal;
  /** The upstream call, made by the first of the clients only. The signal aborts when the last of them has left. */
  start(signal: AbortSignal): Promise<SharedAnswer<Head>>;
  /** The in-band error event for this client, behind the last bytes that it was sent. */
  lastWords(failure: UpstreamFailure, sent: Uint8Array | undefined): Uint8Array;
  /** Called exactly once when this client's copy of a stream is over; undefined = it was complete. */
  finished(failure: UpstreamFailure | undefined): void;
}

export interface Joined<Head> {
  head: Head;
  isLeader: boolean;
  body: ReadableStream<Uint8Array> | undefined;
}

/** What the fastest client may have left to take before the upstream call waits. */
export const HIGH_WATER_BYTES = 64 * 1024;

/** Whether a request may share a call at all. */
export function isSharable(
  mode: DeduplicationMode,
  kept: Pick<KeptAnswers, "hasSideEffect" | "temperatureOf"> | undefined,
  body: JsonObject,
  idempotencyKey: string | null,
): boolean {
  if (mode === "off") return false;
  const isAsked =
    mode === "all" || temperatureIn(kept, body) === 0 || (idempotencyKey !== null && idempotencyKey !== "");
  return isAsked && kept?.hasSideEffect(body) !== true;
}

/**
 * Answers are shared by an organisation, but calls in flight only by one caller, and only under one Idempotency-Key. The
 * question stands in it as a whole, so that only requests that are equal share; it is kept as long as the call.
 */
export function flightKey(
  { question, form }: Pick<RequestKey, "question" | "form">,
  keyId: string | undefined,
  idempotencyKey: string | null,
): string {
  return `${JSON.stringify([form, keyId ?? null, idempotencyKey])}${question}`;
}

/** A list in one direction: what every client has passed is freed by itself. */
interface FlightPiece {
  bytes: Uint8Array;
  next: FlightPiece | undefined;
}

/** The calls in flight, and the memory that they share. */
export class Deduplicator<Head> {
  /** Those that can be joined now. */
  readonly flights = new Map<string, Flight<Head>>();
  /** Bytes of streams held back for clients, now. */
  heldBytes = 0;
  /** How far a client may fall behind the others; half of it is kept for clients that join late. */
  readonly maxBufferBytes: number;
  /** Bound of all calls together; beyond it no client joins late, and clients may hardly fall behind. */
  readonly maxTotalBytes: number;
  /** Clock milliseconds. */
  readonly now: () => number;

  constructor(now: () => number, maxBufferBytes = 4 * 1024 * 1024, maxTotalBytes = 256 * 1024 * 1024) {
    this.now = now;
    this.maxBufferBytes = maxBufferBytes;
    this.maxTotalBytes = maxTotalBytes;
  }

  /** Whether one more client would share a call. */
  isInFlight(key: string): boolean {
    return this.flights.get(key)?.canBeJoined() === true;
  }

  /**
   * Undefined when the client left before there was an answer. Rejects with whatever `start` rejects with, for all
   * clients.
   */
  join(joining: Joining<Head>): Promise<Joined<Head> | undefined> {
    if (joining.signal.aborted) return Promise.resolve(undefined);
    const running = this.flights.get(joining.key);
    if (running?.canBeJoined()) return new FlightClient(running, joining).answer(false);
    const flight = new Flight(this, joining.key, joining.ttlMs);
    const client = new FlightClient(flight, joining);
    flight.begin(joining.start);
    return client.answer(true);
  }
}

/** One upstream call with its clients. */
class Flight<Head> implements ByteSink {
  readonly clients = new Set<FlightClient<Head>>();
  /** Where late clients start to read; undefined as soon as no client can join any more. */
  start: FlightPiece | undefined = { bytes: new Uint8Array(0), next: undefined };
  totalBytes = 0;
  end: End | undefined;
  answer!: Promise<SharedAnswer<Head>>;
  #last: FlightPiece = this.start as FlightPiece;
  readonly #shared: Deduplicator<Head>;
  readonly #key: string;
  readonly #joinableUntilMs: number;
  readonly #controller = new AbortController();
  #heldBytes = 0;
  #room: (() => void) | undefined;

  constructor(shared: Deduplicator<Head>, key: string, ttlMs: number) {
    this.#shared = shared;
    this.#key = key;
    this.#joinableUntilMs = shared.now() + ttlMs;
    shared.flights.get(key)?.closeDoor();
    shared.flights.set(key, this);
  }

  begin(start: Joining<Head>["start"]): void {
    this.answer = this.#run(start);
  }

  canBeJoined(): boolean {
    if (this.start !== undefined && this.#shared.now() >= this.#joinableUntilMs) this.closeDoor();
    return this.start !== undefined;
  }

  /** From now on no client can join, and what all clients have read is let go. */
  closeDoor(): void {
    this.start = undefined;
    if (this.#shared.flights.get(this.#key) === this) this.#shared.flights.delete(this.#key);
    this.#countHeld();
  }

  /** A client has left, was ended, or has its whole answer. */
  remove(client: FlightClient<Head>): void {
    if (!this.clients.delete(client)) return;
    if (this.clients.size === 0) {
      this.closeDoor();
      if (this.end === undefined) this.#controller.abort();
    }
    this.#countHeld();
    this.clientMoved();
  }

  /** A client has taken bytes: the upstream call may have to go on. */
  clientMoved(): void {
    if (this.#room === undefined || this.#isFull()) return;
    const room = this.#room;
    this.#room = undefined;
    room();
  }

  write(bytes: Uint8Array): number | Promise<unknown> {
    const { length } = bytes;
    if (length === 0 || this.clients.size === 0 || this.end !== undefined) return length;
    const { maxBufferBytes, maxTotalBytes } = this.#shared;
    const isScarce = this.#shared.heldBytes + length > maxTotalBytes;
    // A late client starts at the beginning, and must not be ended for that at once.
    if (this.canBeJoined() && (isScarce || this.totalBytes + length > maxBufferBytes / 2)) this.closeDoor();
    const longestLag = isScarce ? Math.min(2 * HIGH_WATER_BYTES, maxBufferBytes) : maxBufferBytes;
    for (const client of this.clients) {
      // The new bytes do not count: one piece larger than the buffer makes no client slow.
      if (this.totalBytes - client.takenBytes > longestLag) client.finish(LAGGED);
    }
    const piece: FlightPiece = { bytes, next: undefined };
    this.#last.next = piece;
    this.#last = piece;
    this.totalBytes += length;
    this.#countHeld();
    for (const client of this.clients) client.wake();
    if (!this.#isFull()) return length;
    return new Promise<void>((resolve) => {
      this.#room = resolve;
    });
  }

  close(): void {
    this.#endWith(COMPLETE);
  }

  fail(failure: UpstreamFailure): void {
    this.#endWith({ failure });
  }

  async #run(start: Joining<Head>["start"]): Promise<SharedAnswer<Head>> {
    try {
      const answer = await start(this.#controller.signal);
      // A stream is fed even when all followers have left: only its feeder can release what it holds.
      if (answer.feed === undefined) this.#endWith(COMPLETE);
      else answer.feed(this);
      return answer;
    } catch (error) {
      this.#endWith(COMPLETE);
      throw error;
    }
  }

  #endWith(end: End): void {
    if (this.end !== undefined) return;
    this.end = end;
    this.closeDoor();
    for (const client of this.clients) client.wake();
  }

  #isFull(): boolean {
    for (const client of this.clients) {
      if (this.totalBytes - client.takenBytes <= HIGH_WATER_BYTES) return false;
    }
    return this.clients.size > 0;
  }

  #countHeld(): void {
    let held = 0;
    if (this.start !== undefined) held = this.totalBytes;
    else for (const client of this.clients) held = Math.max(held, this.totalBytes - client.takenBytes);
    this.#shared.heldBytes += held - this.#heldBytes;
    this.#heldBytes = held;
  }
}

/** One client of a flight: its place in the stream, and its copy. */
class FlightClient<Head> {
  takenBytes = 0;
  readonly #flight: Flight<Head>;
  readonly #joining: Joining<Head>;
  /** The last piece taken. */
  #place: FlightPiece | undefined;
  #end: End | undefined;
  #streams = false;
  #wake: (() => void) | undefined;
  #leave: (() => void) | undefined;

  constructor(flight: Flight<Head>, joining: Joining<Head>) {
    this.#flight = flight;
    this.#joining = joining;
    this.#place = flight.start;
    flight.clients.add(this);
    // An object as listener: it needs no removal, the signal ends with its request.
    joining.signal.addEventListener("abort", this);
  }

  /** The client has left. */
  handleEvent(): void {
    this.finish(LEFT);
  }

  async answer(isLeader: boolean): Promise<Joined<Head> | undefined> {
    const left = new Promise<undefined>((resolve) => {
      this.#leave = () => resolve(undefined);
    });
    let answer: SharedAnswer<Head> | undefined;
    try {
      answer = await Promise.race([this.#flight.answer, left]);
    } catch (error) {
      this.finish(COMPLETE);
      throw error;
    }
    if (answer === undefined || this.#end === LEFT) return undefined;
    const { head, feed } = answer;
    if (feed === undefined) {
      this.finish(COMPLETE);
      return { head, isLeader, body: undefined };
    }
    this.#streams = true;
    // It may have fallen behind already, if the stream's first bytes came all at once.
    if (this.#end !== undefined) this.#joining.finished(this.#end.failure);
    return { head, isLeader, body: this.#body() };
  }

  wake(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  /** Ends this client's share of the flight, once. */
  finish(end: End): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#place = undefined;
    this.#leave?.();
    this.#flight.remove(this);
    this.wake();
    if (this.#streams) this.#joining.finished(end.failure);
  }

  #body(): ReadableStream<Uint8Array> {
    const source: Bun.DirectUnderlyingSource<Uint8Array> = {
      type: "direct",
      pull: (copy) => this.#pump(copy),
      cancel: () => this.finish(LEFT),
    };
    return new ReadableStream(source);
  }

  async #pump(copy: ReadableStreamDirectController): Promise<void> {
    let sent: Uint8Array | undefined;
    while (this.#end === undefined) {
      const piece: FlightPiece | undefined = this.#place?.next;
      if (piece !== undefined) {
        sent = piece.bytes;
        const written = copy.write(sent);
        // Taken when the client has taken it: until then it counts as behind.
        if (typeof written !== "number") await written;
        void copy.flush();
        if (this.#end !== undefined) break;
        this.#place = piece;
        this.takenBytes += piece.bytes.length;
        this.#flight.clientMoved();
      } else if (this.#flight.end !== undefined) {
        this.finish(this.#flight.end);
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
    const end = this.#end as End | undefined;
    if (end?.failure !== undefined && end !== LEFT) void copy.write(this.#joining.lastWords(end.failure, sent));
    // A copy that was cancelled is closed already; closing it again does nothing.
    copy.close();
  }
}
