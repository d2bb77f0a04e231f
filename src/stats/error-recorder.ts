// The errors that clients were answered with lately, and how many there were: bounded, and without secrets.

import type { Clock } from "../lib/clock.ts";
import { getOrMake } from "../lib/get-or-make.ts";
import { RingClock, type RingPosition, slotsWithin, type WindowSlot } from "../lib/time-rings.ts";
import { OTHER } from "./counted.ts";
import { RefusedEntries } from "./refused-entries.ts";
import type { AnsweredError, AttemptStep, RequestRecord, StoryStep } from "./request-record.ts";
import { WindowedNumbers } from "./windowed-numbers.ts";
import { withoutSecrets } from "./without-secrets.ts";

/** One attempt at a backend that failed. */
interface FailedAttempt extends Pick<AttemptStep, "backend"> {
  model?: string | undefined;
  /** "status_502", "timeout_first_byte", … */
  failure: string;
  /** See AttemptStep. */
  detail?: string | undefined;
  durationMs?: number | undefined;
}

type OfRequest = "id" | "requestId" | "backend" | "endedBy" | "keyId" | "organizationId" | "clientAddress";

export interface KeptError extends AnsweredError, Pick<RequestRecord, OfRequest> {
  timeMs: number;
  /** Grows from record to record. */
  turn: number;
  status: number;
  model: string;
  userId: string | undefined;
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
/** Most refusals kept of known keys, and as many of clients without one. */
const MAX_REFUSED = 500;
const MAX_ATTEMPTS = 20;
const MAX_MESSAGE_LENGTH = 1_000;
const MAX_NAME_LENGTH = 256;
/** Most types, statuses and backends that are counted by name. */
const MAX_NAMES = 100;

export class ErrorRecorder {
  readonly #clock: RingClock;
  readonly #capacity: number;
  /** Keys are the gateway's own ids; the newest stands at the end. */
  readonly #byId = new Map<string, KeptError>();
  readonly #refused = new RefusedEntries<KeptError>(MAX_REFUSED);
  #turn = 0;
  readonly #total = newCount();
  readonly #types = new Tally();
  readonly #statuses = new Tally();
  readonly #backends = new Tally();

  constructor({ clock, capacity = DEFAULT_CAPACITY }: { clock: Clock; capacity?: number }) {
    this.#clock = new RingClock(clock);
    this.#capacity = capacity;
  }

  /** @param request - it is over, and has failed */
  record(request: RequestRecord): KeptError {
    const timeMs = this.#clock.tick();
    const { id, requestId, status = 0, failure = "", backend, endedBy, keyId, user, organizationId } = request;
    const { type = failure, code = null, message = failure } = request.error ?? {};
    const record: KeptError = {
      id,
      requestId: cut(requestId),
      timeMs,
      turn: ++this.#turn,
      status,
      type: cut(type),
      code: typeof code === "string" ? cut(code) : code,
      message: withoutSecrets(message.slice(0, MAX_MESSAGE_LENGTH)),
      model: withoutSecrets(cut(request.model)),
      backend: backend && cut(backend),
      endedBy,
      attempts: failedAttempts(request.steps),
      keyId,
      userId: user,
      organizationId,
      clientAddress: request.clientAddress,
    };
    if (request.wasOnlyRefused) this.#refused.add(record, false);
    else this.#keep(record);
    const { position } = this.#clock;
    this.#total.count(position, 0);
    this.#types.add(record.type, position);
    this.#statuses.add(String(record.status), position);
    for (const backend of failedBackends(record)) this.#backends.add(backend, position);
    return record;
  }

  #keep(record: KeptError): void {
    this.#byId.set(record.id, record);
    if (this.#byId.size <= this.#capacity) return;
    const [oldest] = this.#byId.keys();
    if (oldest !== undefined) this.#byId.delete(oldest);
  }

  /** Takes the gateway's own id of the request. */
  byId(id: string): KeptError | undefined {
    return this.#byId.get(id) ?? this.#refused.entries().find((record) => record.id === id);
  }

  /** By either id; of several requests with one id of a client the newest. */
  find(id: string): KeptError | undefined {
    return this.byId(id) ?? this.recent().find(({ requestId }) => requestId === cut(id));
  }

  /** The newest first. */
  recent(filter: { type?: string | undefined; backend?: string | undefined } = {}): KeptError[] {
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
function failedBackends({ backend, attempts }: KeptError): Iterable<string> {
  if (attempts.length === 0) return backend === undefined ? [] : [backend];
  return new Set(attempts.map((attempt) => attempt.backend));
}

function concerns({ backend, attempts }: KeptError, wanted: string | undefined): boolean {
  return wanted === undefined || backend === wanted || attempts.some((attempt) => attempt.backend === wanted);
}

function failedAttempts(steps: readonly StoryStep[]): FailedAttempt[] {
  const failed: FailedAttempt[] = [];
  for (const step of steps) {
    if (step.kind !== "attempt" || step.failure === undefined) continue;
    const { backend, model, failure, detail, durationMs } = step;
    if (failed.length < MAX_ATTEMPTS) {
      failed.push({
        backend,
        model: model || undefined,
        failure,
        detail,
        durationMs: durationMs && Math.round(durationMs),
      });
    }
  }
  return failed;
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
