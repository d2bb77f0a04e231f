// What became of the latest requests, step by step. Written on the path of every request: a story allocates its steps and
// nothing else, and is put into words only when somebody asks (admin/request-view.ts).

import type { Clock } from "../lib/clock.ts";

/** A backend that could have been chosen, as the strategy saw it. */
export interface Candidate {
  backend: string;
  /** What the strategy went by; AttemptStep.scoreMeans says what that is. */
  score?: number | undefined;
  inFlight?: number | undefined;
  latencyMs?: number | undefined;
  /** Why it could not be chosen after all: "circuit_open", "rate_limited", "tried", "standby", … */
  excluded?: string | undefined;
}

/** `atMs` and all durations are of the request's own time, from its arrival. */
export type StoryStep =
  | AttemptStep
  /** `reason`: "retry", "trial", "first_checks", "model_refresh", "limits". */
  | { kind: "wait"; atMs: number; durationMs: number; reason: string }
  /** Another model is asked. */
  | { kind: "fallback"; atMs: number; from: string; to: string; reason: string }
  /** Another backend goes on in a stream that broke off. */
  | { kind: "takeover"; atMs: number; from: string; to: string; reason: string }
  /** Joined an identical request in flight. */
  | { kind: "shared"; atMs: number; leader: string }
  /** The field names a file that is not kept here: it is left to a backend that may hold it. */
  | { kind: "file"; atMs: number; field: string }
  /** Nobody could be asked. */
  | { kind: "refused"; atMs: number; reason: string };

export interface AttemptStep {
  kind: "attempt";
  atMs: number;
  backend: string;
  model: string;
  /** Undefined where none was asked. */
  strategy: string | undefined;
  scoreMeans: string | undefined;
  candidates: readonly Candidate[] | undefined;
  /** Until the backend began to answer: of a stream, until its first event. */
  firstByteMs: number | undefined;
  /** The rest is filled in when the attempt has ended. */
  durationMs: number | undefined;
  status: number | undefined;
  /** Undefined: it succeeded, or goes on. */
  failure: string | undefined;
  /** What the gateway says of the failure in words of its own. */
  detail?: string;
  /** How long the backend asked to be left alone. */
  retryAfterMs?: number;
}

/** Every step knows its time; the present one, unless it is given. */
type NewStep = StoryStep extends infer Step
  ? Step extends StoryStep
    ? Omit<Step, "atMs"> & { atMs?: number }
    : never
  : never;

/** A story as one process tells it to another. Times are of the wall. */
export interface ToldStory extends Omit<StoryStart, "startedAtMs">, Partial<StoryEnd> {
  startedAtMs: number;
  steps: readonly StoryStep[];
  droppedSteps: number;
  cache: Story["cache"];
  cacheReason: string | undefined;
}

interface StoryStart {
  /** The gateway's own: no two stories have the same. */
  id: string;
  /** The client's own, where it sent one. */
  requestId: string;
  operation: string;
  model: string;
  stream: boolean;
  /** Clock milliseconds. */
  startedAtMs: number;
  /** The caller's key. */
  keyId?: string | undefined;
}

export interface StoryEnd {
  /** As the client saw it; of a stream that broke off, what it would have been had nothing been sent. */
  status: number;
  durationMs: number;
  failure?: string | undefined;
  /** The status 200 and a part of the answer had been sent. */
  streamBroke?: boolean | undefined;
  backend?: string | undefined;
  answeredBy?: string | undefined;
  firstByteMs?: number | undefined;
  /** Time of all attempts. */
  backendMs?: number | undefined;
  promptTokens?: number | undefined;
  completionTokens?: number | undefined;
}

/** More steps than a request can have with sensible settings. */
const MAX_STEPS = 64;
const MAX_CANDIDATES = 32;
const MAX_NAME_LENGTH = 256;

/** Estimates of what is held in memory. */
const STORY_BYTES = 328;
const STEP_BYTES = 130;
const CANDIDATE_BYTES = 80;
const NAME_BYTES = 8;

/** What is left of the steps of a story that is too old to be kept as a whole. */
interface Outline {
  attempts: number;
  /** Each of them once. */
  backends: readonly string[];
}

/**
 * The story of one request while it runs; kept from its start, so that a request that hangs can be seen. One object holds
 * its beginning and its end: thousands of them are kept, and the garbage collector walks over all that they consist of.
 */
export class Story implements StoryStart {
  readonly id: string;
  readonly requestId: string;
  readonly operation: string;
  readonly model: string;
  readonly stream: boolean;
  readonly startedAtMs: number;
  readonly keyId: string | undefined;
  /** Whether anybody can read it. */
  readonly isKept: boolean;
  readonly #now: () => number;
  #firstStep: StoryStep | undefined;
  /** Most requests have one step. */
  #furtherSteps: StoryStep[] | undefined;
  /** In place of the steps. */
  #outline: Outline | undefined;
  droppedSteps = 0;
  /** The decision of the response cache, and why: "not_deterministic", "streamed", … */
  cache: "HIT" | "MISS" | "BYPASS" | undefined;
  cacheReason: string | undefined;
  status: number | undefined;
  durationMs: number | undefined;
  failure: string | undefined;
  streamBroke: boolean | undefined;
  backend: string | undefined;
  answeredBy: string | undefined;
  firstByteMs: number | undefined;
  backendMs: number | undefined;
  promptTokens: number | undefined;
  completionTokens: number | undefined;
  /** What was counted for it among all that are kept. */
  weighedBytes = 0;

  constructor(start: StoryStart, now: () => number, isKept = true) {
    const { model } = start;
    this.id = start.id;
    this.requestId = start.requestId;
    this.operation = start.operation;
    this.model = model.length > MAX_NAME_LENGTH ? model.slice(0, MAX_NAME_LENGTH) : model;
    this.stream = start.stream;
    this.startedAtMs = start.startedAtMs;
    this.keyId = start.keyId;
    this.isKept = isKept;
    this.#now = now;
  }

  /** Milliseconds since the request came. */
  get sinceStartMs(): number {
    return this.#now() - this.startedAtMs;
  }

  get isOver(): boolean {
    return this.status !== undefined;
  }

  /** In their order; put together for whoever asks. */
  get steps(): readonly StoryStep[] {
    return this.#firstStep === undefined ? [] : [this.#firstStep, ...(this.#furtherSteps ?? [])];
  }

  get attempts(): number {
    if (this.#outline !== undefined) return this.#outline.attempts;
    let count = this.#firstStep?.kind === "attempt" ? 1 : 0;
    for (const step of this.#furtherSteps ?? []) if (step.kind === "attempt") count++;
    return count;
  }

  /** Whether the backend was asked. */
  wasAt(backend: string): boolean {
    if (this.backend === backend) return true;
    if (this.#outline !== undefined) return this.#outline.backends.includes(backend);
    const first = this.#firstStep;
    if (first?.kind === "attempt" && first.backend === backend) return true;
    return this.#furtherSteps?.some((step) => step.kind === "attempt" && step.backend === backend) === true;
  }

  /** Forgets the steps of a request that is over, but not that it was. */
  outline(): void {
    const backends = new Set<string>();
    for (const step of this.steps) if (step.kind === "attempt") backends.add(step.backend);
    const { attempts, steps } = this;
    this.#outline = { attempts, backends: [...backends] };
    this.droppedSteps += steps.length;
    this.#firstStep = undefined;
    this.#furtherSteps = undefined;
  }

  get hasSeveralSteps(): boolean {
    return this.#furtherSteps !== undefined;
  }

  add(step: NewStep): void {
    this.#keep({ atMs: this.sinceStartMs, ...step });
  }

  /** Candidates need to be given only where there was a choice. */
  attempt(
    backend: string,
    model: string,
    strategy?: string,
    candidates?: readonly Candidate[],
    scoreMeans?: string,
  ): AttemptStep {
    const step: AttemptStep = {
      kind: "attempt",
      atMs: this.sinceStartMs,
      backend,
      model,
      strategy,
      scoreMeans,
      candidates:
        candidates !== undefined && candidates.length > MAX_CANDIDATES
          ? candidates.slice(0, MAX_CANDIDATES)
          : candidates,
      firstByteMs: undefined,
      durationMs: undefined,
      status: undefined,
      failure: undefined,
    };
    this.#keep(step);
    return step;
  }

  finish(end: StoryEnd): void {
    this.status = end.status;
    this.durationMs = end.durationMs;
    this.failure = end.failure;
    this.streamBroke = end.streamBroke;
    this.backend = end.backend;
    this.answeredBy = end.answeredBy;
    this.firstByteMs = end.firstByteMs;
    this.backendMs = end.backendMs;
    this.promptTokens = end.promptTokens;
    this.completionTokens = end.completionTokens;
  }

  /** Takes over what another process tells of it. */
  follow({ steps, droppedSteps, cache, cacheReason, ...told }: ToldStory): void {
    const [firstStep, ...furtherSteps] = steps;
    this.#firstStep = firstStep;
    this.#furtherSteps = furtherSteps.length === 0 ? undefined : furtherSteps;
    this.droppedSteps = droppedSteps;
    this.cache = cache;
    this.cacheReason = cacheReason;
    if (told.status !== undefined) this.finish(told as StoryEnd);
  }

  /** For another process. */
  tell(wallOffsetMs: number): ToldStory {
    const { id, requestId, operation, model, stream, startedAtMs, keyId, steps, droppedSteps, cache, cacheReason } =
      this;
    const { status, durationMs, failure, streamBroke, backend, answeredBy, firstByteMs, backendMs } = this;
    const { promptTokens, completionTokens } = this;
    const start = { id, requestId, operation, model, stream, keyId, startedAtMs: startedAtMs + wallOffsetMs };
    const told: ToldStory = { ...start, steps, droppedSteps, cache, cacheReason };
    if (status === undefined || durationMs === undefined) return told;
    const end = { status, durationMs, failure, streamBroke, backend, answeredBy, firstByteMs, backendMs };
    return { ...told, ...end, promptTokens, completionTokens };
  }

  #keep(step: StoryStep): void {
    if (!this.isKept) return;
    if (this.#firstStep === undefined) this.#firstStep = step;
    else if (this.#furtherSteps === undefined) this.#furtherSteps = [step];
    else if (this.#furtherSteps.length + 1 < MAX_STEPS) this.#furtherSteps.push(step);
    else this.droppedSteps++;
  }

  get bytes(): number {
    let bytes = STORY_BYTES + this.requestId.length + this.model.length;
    if (this.#outline !== undefined) bytes += this.#outline.backends.length * NAME_BYTES;
    if (this.#firstStep !== undefined) bytes += bytesOf(this.#firstStep);
    if (this.#furtherSteps !== undefined) for (const step of this.#furtherSteps) bytes += bytesOf(step);
    return bytes;
  }
}

function bytesOf(step: StoryStep): number {
  if (step.kind !== "attempt") return STEP_BYTES;
  return STEP_BYTES + (step.candidates?.length ?? 0) * CANDIDATE_BYTES + (step.detail?.length ?? 0);
}

/** Of requests that ask no model, and of those that were refused before it was known which one: nothing is kept. */
export const NO_STORY = Object.freeze(
  new Story({ id: "", requestId: "", operation: "", model: "", stream: false, startedAtMs: 0 }, () => 0, false),
) as Story;

interface StoriesParts {
  clock: Clock;
  /** Most stories that are kept. */
  maxEntries?: number;
  maxBytes?: number;
  /** Where the end of a request is told. */
  happenings?: { requestEnded(story: Story): void };
}

const DEFAULT_MAX_ENTRIES = 10_000;
const DEFAULT_MAX_BYTES = 8 * 1024 * 1024;
/** The share of stories that may be without their steps: with longer ids there are fewer stories, but not only outlines. */
const MAX_OUTLINED = 0.9;

export class Stories {
  readonly #wallOffsetMs: number;
  readonly #now: () => number;
  readonly #maxBytes: number;
  readonly #happenings: StoriesParts["happenings"];
  /** Around the end; searched only when somebody asks, so that a request pays for no index. */
  readonly #ring: (Story | undefined)[];
  #oldest = 0;
  #count = 0;
  /** So many of the oldest were looked at for their steps, which are forgotten before the stories are. */
  #outlined = 0;
  #bytes = 0;

  constructor({ clock, maxEntries = DEFAULT_MAX_ENTRIES, maxBytes = DEFAULT_MAX_BYTES, happenings }: StoriesParts) {
    this.#happenings = happenings;
    this.#now = () => clock.now();
    this.#wallOffsetMs = clock.wallTime() - clock.now();
    this.#maxBytes = maxBytes;
    this.#ring = new Array<Story | undefined>(maxEntries).fill(undefined);
  }

  get size(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#bytes;
  }

  begin(start: StoryStart): Story {
    const story = new Story(start, this.#now);
    if (this.#count === this.#ring.length) this.#forgetOldest();
    this.#ring[(this.#oldest + this.#count) % this.#ring.length] = story;
    this.#count++;
    this.#weigh(story);
    return story;
  }

  /** A story that another process tells, from its beginning or on from where it was. */
  follow(story: Story | undefined, told: ToldStory): Story {
    const known = story ?? this.begin({ ...told, startedAtMs: told.startedAtMs - this.#wallOffsetMs });
    known.follow(told);
    if (known.weighedBytes > 0) this.#weigh(known);
    if (told.status !== undefined) this.#happenings?.requestEnded(known);
    return known;
  }

  finish(story: Story, end: StoryEnd): void {
    story.finish(end);
    if (story.weighedBytes > 0) this.#weigh(story); // else it was forgotten while the request ran
    this.#happenings?.requestEnded(story);
  }

  /** By either id. The gateway's own goes first: a client may have chosen it for another request. */
  find(id: string): Story | undefined {
    let newest: Story | undefined;
    for (const story of this.newestFirst()) {
      if (story.id === id) return story;
      if (story.requestId === id) newest ??= story;
    }
    return newest;
  }

  *newestFirst(): Generator<Story> {
    for (let index = this.#count - 1; index >= 0; index--) {
      yield this.#ring[(this.#oldest + index) % this.#ring.length] as Story;
    }
  }

  /** When the request came, in milliseconds since 1970. */
  startedAt(story: Story): number {
    return story.startedAtMs + this.#wallOffsetMs;
  }

  #weigh(story: Story): void {
    const { bytes } = story;
    this.#bytes += bytes - story.weighedBytes;
    story.weighedBytes = bytes;
    while (this.#bytes > this.#maxBytes && this.#count > 1) {
      if (this.#outlined + 1 <= this.#count * MAX_OUTLINED) this.#outlineNext();
      else this.#forgetOldest();
    }
  }

  /** A request that runs keeps its steps: they are few, and somebody may wonder where it hangs. */
  #outlineNext(): void {
    const story = this.#ring[(this.#oldest + this.#outlined) % this.#ring.length] as Story;
    this.#outlined++;
    if (!story.isOver) return;
    story.outline();
    const { bytes } = story;
    this.#bytes += bytes - story.weighedBytes;
    story.weighedBytes = bytes;
  }

  #forgetOldest(): void {
    const story = this.#ring[this.#oldest];
    this.#ring[this.#oldest] = undefined;
    this.#oldest = (this.#oldest + 1) % this.#ring.length;
    this.#count--;
    if (this.#outlined > 0) this.#outlined--;
    if (story === undefined) return;
    this.#bytes -= story.weighedBytes;
    story.weighedBytes = 0;
  }
}
