// Explain one request: what became of the latest requests, step by step (GET /admin/requests/{id}). Written on the path of
// every request: a story allocates its steps and nothing else, and is put into words only when somebody asks.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Clock } from "../lib/clock.ts";

/** A backend that could have been chosen, as the strategy saw it. */
export interface Candidate {
  backend: string;
  /** What the strategy went by, the meaning of which is its own. */
  score?: number | undefined;
  in_flight?: number | undefined;
  latency_ms?: number | undefined;
  /** Why it could not be chosen after all: "circuit_open", "rate_limited", "tried", "standby". */
  excluded?: string | undefined;
}

/** `atMs` and all durations are of the request's own time, from its arrival. */
export type StoryStep =
  | AttemptStep
  /** `reason`: "retry", "trial", "first_checks", "model_refresh", … */
  | { kind: "wait"; atMs: number; durationMs: number; reason: string }
  /** Another model is asked. */
  | { kind: "fallback"; atMs: number; from: string; to: string; reason: string }
  /** Another backend goes on in a stream that broke off. */
  | { kind: "takeover"; atMs: number; from: string; to: string; reason: string }
  /** Joined an identical request in flight. */
  | { kind: "shared"; atMs: number; leader: string }
  /** Nobody could be asked. */
  | { kind: "refused"; atMs: number; reason: string };

export interface AttemptStep {
  kind: "attempt";
  atMs: number;
  backend: string;
  model: string;
  strategy: string | undefined;
  candidates: readonly Candidate[] | undefined;
  /** The rest is filled in when the attempt has ended. */
  durationMs: number | undefined;
  firstByteMs: number | undefined;
  status: number | undefined;
  /** Undefined: it succeeded, or goes on. */
  failure: string | undefined;
}

export interface StoryStart {
  requestId: string;
  operation: string;
  model: string;
  stream: boolean;
  /** Clock milliseconds. */
  startedAtMs: number;
}

export interface StoryEnd {
  status: number;
  durationMs: number;
  failure?: string | undefined;
  backend?: string | undefined;
  answeredBy?: string | undefined;
  keyId?: string | undefined;
  firstByteMs?: number | undefined;
}

/** More steps than a request can have with sensible settings. */
const MAX_STEPS = 64;
const MAX_CANDIDATES = 32;
const MAX_NAME_LENGTH = 256;

/** Estimates of what is held in memory. */
const STORY_BYTES = 500;
const STEP_BYTES = 200;
const CANDIDATE_BYTES = 100;

/** The story of one request while it runs; kept in the log from its start, so that a request that hangs can be seen. */
export class RequestStory {
  readonly start: StoryStart;
  readonly #now: () => number;
  readonly steps: StoryStep[] = [];
  droppedSteps = 0;
  /** The decision of the response cache, and why: "not_deterministic", "streamed", … */
  cache: "HIT" | "MISS" | "BYPASS" | undefined;
  cacheReason: string | undefined;
  end: StoryEnd | undefined;
  /** What the log has counted for it. */
  weighedBytes = 0;

  constructor(start: StoryStart, now: () => number) {
    this.start = start;
    this.#now = now;
  }

  /** Milliseconds since the request came. */
  get sinceStartMs(): number {
    return this.#now() - this.start.startedAtMs;
  }

  add(step: StoryStep): void {
    if (this.steps.length < MAX_STEPS) this.steps.push(step);
    else this.droppedSteps++;
  }

  /** Candidates need to be given only where there was a choice. */
  attempt(backend: string, model: string, strategy?: string, candidates?: readonly Candidate[]): AttemptStep {
    const step: AttemptStep = {
      kind: "attempt",
      atMs: this.sinceStartMs,
      backend,
      model,
      strategy,
      candidates:
        candidates !== undefined && candidates.length > MAX_CANDIDATES
          ? candidates.slice(0, MAX_CANDIDATES)
          : candidates,
      durationMs: undefined,
      firstByteMs: undefined,
      status: undefined,
      failure: undefined,
    };
    this.add(step);
    return step;
  }

  attemptEnded(step: AttemptStep, failure: string | undefined, status?: number): void {
    step.durationMs = this.sinceStartMs - step.atMs;
    step.failure = failure;
    step.status = status;
  }

  get bytes(): number {
    const { requestId, model } = this.start;
    let bytes = STORY_BYTES + requestId.length + model.length;
    for (const step of this.steps) {
      bytes += STEP_BYTES;
      if (step.kind === "attempt") bytes += (step.candidates?.length ?? 0) * CANDIDATE_BYTES;
    }
    return bytes;
  }
}

export interface RequestLogOptions {
  clock: Clock;
  /** Most stories that are kept. */
  maxEntries?: number;
  maxBytes?: number;
}

const DEFAULT_MAX_ENTRIES = 2_000;
const DEFAULT_MAX_BYTES = 4 * 1024 * 1024;

export class RequestLog {
  readonly #wallOffsetMs: number;
  readonly #now: () => number;
  readonly #maxBytes: number;
  /** Around the end; searched only when somebody asks, so that a request pays for no index. */
  readonly #ring: (RequestStory | undefined)[];
  #oldest = 0;
  #count = 0;
  #bytes = 0;

  constructor({ clock, maxEntries = DEFAULT_MAX_ENTRIES, maxBytes = DEFAULT_MAX_BYTES }: RequestLogOptions) {
    this.#now = () => clock.now();
    this.#wallOffsetMs = clock.wallTime() - clock.now();
    this.#maxBytes = maxBytes;
    this.#ring = Array.from({ length: maxEntries }, () => undefined);
  }

  get size(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#bytes;
  }

  begin(start: StoryStart): RequestStory {
    if (start.model.length > MAX_NAME_LENGTH) start.model = start.model.slice(0, MAX_NAME_LENGTH);
    const story = new RequestStory(start, this.#now);
    if (this.#count === this.#ring.length) this.#forgetOldest();
    this.#ring[(this.#oldest + this.#count) % this.#ring.length] = story;
    this.#count++;
    this.#weigh(story);
    return story;
  }

  finish(story: RequestStory, end: StoryEnd): void {
    story.end = end;
    if (story.weighedBytes > 0) this.#weigh(story); // else it was forgotten while the request ran
  }

  /** Of several with one id the newest. */
  find(requestId: string): RequestStory | undefined {
    for (let index = this.#count - 1; index >= 0; index--) {
      const story = this.#ring[(this.#oldest + index) % this.#ring.length];
      if (story?.start.requestId === requestId) return story;
    }
    return undefined;
  }

  /** When the request came, in milliseconds since 1970. */
  startedAt(story: RequestStory): number {
    return story.start.startedAtMs + this.#wallOffsetMs;
  }

  #weigh(story: RequestStory): void {
    const { bytes } = story;
    this.#bytes += bytes - story.weighedBytes;
    story.weighedBytes = bytes;
    while (this.#bytes > this.#maxBytes && this.#count > 1) this.#forgetOldest();
  }

  #forgetOldest(): void {
    const story = this.#ring[this.#oldest];
    this.#ring[this.#oldest] = undefined;
    this.#oldest = (this.#oldest + 1) % this.#ring.length;
    this.#count--;
    if (story === undefined) return;
    this.#bytes -= story.weighedBytes;
    story.weighedBytes = 0;
  }
}

/** The answer of GET /admin/requests/{id}; throws 404. */
export function explainRequest(log: RequestLog, requestId: string): object {
  const story = log.find(requestId);
  if (story === undefined) {
    throw new GatewayError(
      ERRORS.routeNotFound,
      `This request is not known, or no longer: the latest ${log.size} are kept. Its id stands in the X-Request-ID header of the answer.`,
    );
  }
  const { start, end, steps } = story;
  return {
    request_id: start.requestId,
    started_at: new Date(log.startedAt(story)).toISOString(),
    finished: end !== undefined,
    operation: start.operation,
    model: start.model,
    answered_by: end?.answeredBy ?? null,
    stream: start.stream,
    key_id: end?.keyId ?? null,
    backend: end?.backend ?? null,
    status: end?.status ?? null,
    failure: end?.failure ?? null,
    cache: story.cache === undefined ? null : { decision: story.cache, reason: story.cacheReason ?? null },
    attempts: steps.filter(({ kind }) => kind === "attempt").length,
    timings: {
      total_ms: round(end?.durationMs ?? story.sinceStartMs),
      first_byte_ms: roundOrNull(end?.firstByteMs),
      waiting_ms: round(steps.reduce((sum, step) => sum + (step.kind === "wait" ? step.durationMs : 0), 0)),
    },
    steps: steps.map(stepView),
    steps_dropped: story.droppedSteps,
  };
}

function stepView(step: StoryStep): object {
  const at_ms = round(step.atMs);
  switch (step.kind) {
    case "attempt":
      return {
        kind: step.kind,
        at_ms,
        backend: step.backend,
        model: step.model,
        strategy: step.strategy ?? null,
        candidates: step.candidates ?? [],
        outcome: step.failure !== undefined ? "failed" : step.durationMs === undefined ? "running" : "succeeded",
        failure: step.failure ?? null,
        status: step.status ?? null,
        duration_ms: roundOrNull(step.durationMs),
        first_byte_ms: roundOrNull(step.firstByteMs),
      };
    case "wait":
      return { kind: step.kind, at_ms, duration_ms: round(step.durationMs), reason: step.reason };
    case "fallback":
    case "takeover":
      return { kind: step.kind, at_ms, from: step.from, to: step.to, reason: step.reason };
    case "shared":
      return { kind: step.kind, at_ms, leader: step.leader };
    case "refused":
      return { kind: step.kind, at_ms, reason: step.reason };
  }
}

function round(durationMs: number): number {
  return Math.round(durationMs * 10) / 10;
}

function roundOrNull(durationMs: number | undefined): number | null {
  return durationMs === undefined ? null : round(durationMs);
}
