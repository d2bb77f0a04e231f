// The errors that clients were answered with lately, and how many there were: bounded, and without secrets.

import type { Clock } from "../lib/clock.ts";
import { getOrMake } from "../lib/get-or-make.ts";
import { RingClock, type RingPosition, slotsWithin, type WindowSlot } from "../lib/time-rings.ts";
import { OTHER } from "./finished-request.ts";
import { RefusedEntries } from "./refused-entries.ts";
import { WindowedNumbers } from "./windowed-numbers.ts";
import { withoutSecrets } from "./without-secrets.ts";

/** One attempt at a backend that failed. */
export interface FailedAttempt {
  backend: string;
  model?: string | undefined;
  /** "status_502", "timeout_first_byte", … */
  failure: string;
  /** As in AttemptStep. */
  detail?: string | undefined;
  durationMs?: number | undefined;
}

export interface ErrorReport {
  /** The gateway's own: no two requests have the same. */
  id: string;
  /** The client's own, where it sent one. */
  requestId: string;
  status: number;
  /** The gateway refused it, and asked no backend. */
  isRefusal?: boolean | undefined;
  type: string;
  code: string | number | null;
  message: string;
  model?: string | undefined;
  /** The backend of the last attempt. */
  backend?: string | undefined;
  /** As in StoryEnd. */
  endedBy?: string | undefined;
  attempts?: readonly FailedAttempt[] | undefined;
  keyId?: string | undefined;
  userId?: string | undefined;
  organizationId?: string | undefined;
  clientAddress?: string | undefined;
}

/** What is kept of a report. */
export interface ErrorRecord extends ErrorReport {
  timeMs: number;
  /** Grows from record to record. */
  turn: number;
  attempts: readonly FailedAttempt[];
}

interface ErrorCounts {
  total: number;
  types: Record<string, number>;
  statuses: Record<string, number>;
  backends: Record<string, number>;
}

/** Most errors that are kept, without refusals. */
const DEFAULT_CAPACITY = 1_000;
/** Of known keys, and as many of clients without one. */
const MAX_REFUSED = 500;
const MAX_ATTEMPTS = 20;
const MAX_MESSAGE_LENGTH = 1_000;
const MAX_NAME_LENGTH = 256;
/** Most types, statuses and backends that are counted by name. */
const MAX_NAMES = 100;

export class ErrorRecorder {
  readonly #clock: RingClock;
  readonly #capacity: number;
  /** By the gateway's own id; the newest stands at the end. */
  readonly #byId = new Map<string, ErrorRecord>();
  readonly #refused = new RefusedEntries<ErrorRecord>(MAX_REFUSED);
  #turn = 0;
  readonly #total = newCount();
  readonly #types = new Tally();
  readonly #statuses = new Tally();
  readonly #backends = new Tally();

  constructor({ clock, capacity = DEFAULT_CAPACITY }: { clock: Clock; capacity?: number }) {
    this.#clock = new RingClock(clock);
    this.#capacity = capacity;
  }

  record(report: ErrorReport): ErrorRecord {
    const timeMs = this.#clock.tick();
    const record: ErrorRecord = {
      id: report.id,
      requestId: cut(report.requestId),
      timeMs,
      turn: ++this.#turn,
      status: report.status,
      type: cut(report.type),
      code: typeof report.code === "string" ? cut(report.code) : report.code,
      message: withoutSecrets(report.message.slice(0, MAX_MESSAGE_LENGTH)),
      model: report.model && withoutSecrets(cut(report.model)),
      backend: report.backend && cut(report.backend),
      endedBy: report.endedBy,
      attempts: (report.attempts ?? []).slice(0, MAX_ATTEMPTS),
      keyId: report.keyId,
      userId: report.userId,
      organizationId: report.organizationId,
      clientAddress: report.clientAddress,
    };
    if (report.isRefusal === true) this.#refused.add(record, false);
    else this.#keep(record);
    const { position } = this.#clock;
    this.#total.count(position, 0);
    this.#types.add(record.type, position);
    this.#statuses.add(String(record.status), position);
    for (const backend of failedBackends(record)) this.#backends.add(backend, position);
    return record;
  }

  #keep(record: ErrorRecord): void {
    this.#byId.set(record.id, record);
    if (this.#byId.size <= this.#capacity) return;
    const [oldest] = this.#byId.keys();
    if (oldest !== undefined) this.#byId.delete(oldest);
  }

  /** By the gateway's own id of the request. */
  byId(id: string): ErrorRecord | undefined {
    return this.#byId.get(id) ?? this.#refused.entries().find((record) => record.id === id);
  }

  /** By either id; of several requests with one id of a client the newest. */
  find(id: string): ErrorRecord | undefined {
    return this.byId(id) ?? this.recent().find(({ requestId }) => requestId === cut(id));
  }

  /** The newest first. */
  recent(filter: { type?: string | undefined; backend?: string | undefined } = {}): ErrorRecord[] {
    const { type, backend } = filter;
    return [...this.#byId.values(), ...this.#refused.entries()]
      .filter((record) => (type === undefined || record.type === type) && concerns(record, backend))
      .sort((a, b) => b.turn - a.turn);
  }

  /** Undefined: since the start. */
  counts(windowMs?: number): ErrorCounts {
    const slots = windowMs === undefined ? undefined : slotsWithin(windowMs, this.#clock.tick());
    return {
      total: sumOf(this.#total, slots),
      types: this.#types.sums(slots),
      statuses: this.#statuses.sums(slots),
      backends: this.#backends.sums(slots),
    };
  }
}

/** Each backend once, however often it was asked. */
function failedBackends({ backend, attempts }: ErrorRecord): Iterable<string> {
  if (attempts.length === 0) return backend === undefined ? [] : [backend];
  return new Set(attempts.map((attempt) => attempt.backend));
}

function concerns({ backend, attempts }: ErrorRecord, wanted: string | undefined): boolean {
  return wanted === undefined || backend === wanted || attempts.some((attempt) => attempt.backend === wanted);
}

function cut(text: string): string {
  return text.length > MAX_NAME_LENGTH ? text.slice(0, MAX_NAME_LENGTH) : text;
}

/** Counts by name, one number for each. */
class Tally {
  readonly #counts = new Map<string, WindowedNumbers>();

  add(wanted: string, position: RingPosition): void {
    const name = this.#counts.has(wanted) || this.#counts.size < MAX_NAMES ? wanted : OTHER;
    getOrMake(this.#counts, name, newCount).count(position, 0);
  }

  sums(window: readonly WindowSlot[] | undefined): Record<string, number> {
    const sums = [...this.#counts].map(([name, count]) => [name, sumOf(count, window)] as const);
    return Object.fromEntries(sums.filter(([, sum]) => sum > 0).sort(([, a], [, b]) => b - a));
  }
}

function newCount(): WindowedNumbers {
  return new WindowedNumbers(1, Uint32Array);
}

function sumOf(count: WindowedNumbers, window: readonly WindowSlot[] | undefined): number {
  return count.sums(window)[0] as number;
}
