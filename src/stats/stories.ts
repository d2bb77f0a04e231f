// The records of the latest requests, by which each is explained step by step; they are put into words only when asked for
// (admin/request-view.ts).

import { ERRORS } from "../errors/catalog.ts";
import type { Clock } from "../lib/clock.ts";
import { RefusedEntries } from "./refused-entries.ts";
import { NOTHING_KNOWN, RequestRecord, type ToldRecord } from "./request-record.ts";
import { StoryRing } from "./story-ring.ts";

interface StoriesParts {
  clock: Clock;
  maxEntries?: number;
  maxBytes?: number;
  /** Gets the end of each request. */
  happenings?: { requestEnded(record: RequestRecord): void };
}

const DEFAULT_MAX_ENTRIES = 10_000;
const DEFAULT_MAX_BYTES = 8 * 1024 * 1024;
/** Most refusals kept of known keys, and as many of clients without one. */
const MAX_REFUSED = 1_000;
/** One that weighs more, as after a long chain of models, is kept without its steps. */
const MAX_REFUSED_BYTES = 4 * 1024;

export class Stories {
  readonly #wallOffsetMs: number;
  readonly #now: () => number;
  readonly #happenings: StoriesParts["happenings"];
  readonly #ring: StoryRing<RequestRecord>;
  /** Beside the ring, so that they remove nothing from it. */
  readonly #refused = new RefusedEntries<RequestRecord>(MAX_REFUSED);

  constructor({ clock, maxEntries = DEFAULT_MAX_ENTRIES, maxBytes = DEFAULT_MAX_BYTES, happenings }: StoriesParts) {
    this.#happenings = happenings;
    this.#now = () => clock.now();
    this.#wallOffsetMs = clock.wallTime() - clock.now();
    this.#ring = new StoryRing(maxEntries, maxBytes);
  }

  get size(): number {
    return this.#ring.size + this.#refused.size;
  }

  /** Without those of refused requests: there are few, and all texts in them are bounded. */
  get bytes(): number {
    return this.#ring.bytes;
  }

  begin(record: RequestRecord): void {
    this.#ring.add(record);
  }

  /** Of a request that has begun, and is not over. */
  forget(record: RequestRecord): void {
    this.#ring.remove(record);
  }

  /** Called for every request that is over; keeps those with steps. */
  end(record: RequestRecord): void {
    if (!record.isKept) return;
    if (record.wasOnlyRefused) {
      this.#ring.remove(record);
      if (record.bytes > MAX_REFUSED_BYTES) record.outline();
      this.#refused.add(record, record.code === ERRORS.routeNotFound.type);
    } else this.#ring.weigh(record);
    this.#happenings?.requestEnded(record);
  }

  /** Takes a request's record from another process; `known`: the record that has followed the request so far. */
  follow(known: RequestRecord | undefined, told: ToldRecord): RequestRecord {
    if (known === undefined) {
      const record = this.revive(told);
      if (record.isKept && !record.wasOnlyRefused) this.begin(record);
      return record;
    }
    known.follow({ ...NOTHING_KNOWN, ...told });
    if (!known.isOver) this.#ring.weigh(known); // its steps are read before end() weighs it
    return known;
  }

  /** A record of another process or of the disk, which is not kept here. */
  revive(told: ToldRecord): RequestRecord {
    const { id, requestId, startedAtMs } = told;
    const record = new RequestRecord(id, requestId, startedAtMs - this.#wallOffsetMs, this.#now);
    record.follow(told);
    return record;
  }

  /** By either id. The gateway's own goes first: a client may have chosen it for another request. */
  find(id: string): RequestRecord | undefined {
    let newest: RequestRecord | undefined;
    for (const record of this.newestFirst()) {
      if (record.id === id) return record;
      if (record.requestId === id) newest ??= record;
    }
    return newest;
  }

  /** The newest request of a key with an id that its client has chosen. */
  newestOf(keyId: string | undefined, requestId: string): RequestRecord | undefined {
    for (const record of this.newestFirst()) {
      if (record.requestId === requestId && record.keyId === keyId) return record;
    }
    return undefined;
  }

  *newestFirst(): Generator<RequestRecord> {
    const refusals = [...this.#refused.entries()];
    refusals.sort((first, second) => second.startedAtMs - first.startedAtMs);
    let next = 0;
    for (const record of this.#ring.newestFirst()) {
      for (; next < refusals.length && (refusals[next] as RequestRecord).startedAtMs > record.startedAtMs; next++) {
        yield refusals[next] as RequestRecord;
      }
      yield record;
    }
    yield* refusals.slice(next);
  }

  /** When the request came, in milliseconds since 1970. */
  startedAt(record: RequestRecord): number {
    return record.startedAtMs + this.#wallOffsetMs;
  }
}
