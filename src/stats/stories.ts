// What became of the latest requests, step by step. Written on the path of every request: a story allocates its steps and
// nothing else, and is put into words only when somebody asks (admin/request-view.ts).

import { ERRORS } from "../errors/catalog.ts";
import type { Clock } from "../lib/clock.ts";
import type { FinishedRequest } from "./finished-request.ts";
import type { Outcome } from "./outcome.ts";
import { RefusedEntries } from "./refused-entries.ts";
import { StoryRing } from "./story-ring.ts";
import { withoutSecrets } from "./without-secrets.ts";

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
  /** What the backend said, cleaned and cut; where it said nothing, what the gateway says of the failure. */
  detail?: string;
  /** How long the backend asked to be left alone. */
  retryAfterMs?: number;
  /** The circuits of all backends that could be asked were open: this one was tried all the same. */
  inPanic?: boolean;
}

/** Every step knows its time; the present one, unless it is given. */
type NewStep = StoryStep extends infer Step
  ? Step extends StoryStep
    ? Omit<Step, "atMs"> & { atMs?: number }
    : never
  : never;

/** A story as one process tells it to another. Times are of the wall. */
export interface ToldStory extends Omit<StoryStart, "startedAtMs">, Partial<KeptEnd>, KeptTokens {
  startedAtMs: number;
  steps: readonly StoryStep[];
  droppedSteps: number;
  cache: Story["cache"];
  cacheReason: string | undefined;
  outline?: Outline;
}

export interface StoryStart {
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
  /** As the key names them, else as the request does. */
  userId?: string | undefined;
  organizationId?: string | undefined;
  /** Behind trusted proxies; undefined on a unix socket. */
  clientAddress?: string | undefined;
  /** Method and path, of a request that was refused before it was known what it asks. */
  target?: string | undefined;
}

/** What a story keeps of a request that is over. */
type KeptEnd = Pick<
  FinishedRequest,
  | ("status" | "outcome" | "durationMs" | "failure" | "code" | "endedBy")
  | ("backend" | "answeredBy" | "firstByteMs" | "backendMs")
>;
interface KeptTokens {
  promptTokens?: number | undefined;
  completionTokens?: number | undefined;
}

export type StoryEnd = KeptEnd & Partial<Pick<FinishedRequest, "usage">>;

/** The failure of an attempt that the gateway itself refused: the backend's format cannot say what is asked. */
export const NOT_SENT = "not_sent";

/** More steps than a request can have with sensible settings. */
const MAX_STEPS = 64;
const MAX_CANDIDATES = 32;
const MAX_NAME_LENGTH = 256;

/** Estimates of what is held in memory. */
const STORY_BYTES = 328;
const STEP_BYTES = 130;
const CANDIDATE_BYTES = 80;
const NAME_BYTES = 8;

/** What is known of the steps of a story that is told without them. */
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
  model: string;
  readonly stream: boolean;
  readonly startedAtMs: number;
  readonly keyId: string | undefined;
  readonly userId: string | undefined;
  readonly organizationId: string | undefined;
  readonly clientAddress: string | undefined;
  readonly target: string | undefined;
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
  outcome: Outcome | undefined;
  failure: string | undefined;
  code: string | undefined;
  endedBy: string | undefined;
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
    this.userId = start.userId;
    this.organizationId = start.organizationId;
    this.clientAddress = start.clientAddress;
    this.target = start.target;
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

  /** Refused by the gateway itself: nothing was sent to a backend. */
  get wasOnlyRefused(): boolean {
    return this.outcome === "refused" && !this.wasSent;
  }

  /** Whether an attempt went so far that a backend got the request. */
  get wasSent(): boolean {
    if (this.#outline !== undefined) return this.#outline.attempts > 0;
    return isSent(this.#firstStep) || this.#furtherSteps?.some(isSent) === true;
  }

  /** In their order; put together for whoever asks. */
  get steps(): readonly StoryStep[] {
    return this.#firstStep === undefined ? [] : [this.#firstStep, ...(this.#furtherSteps ?? [])];
  }

  /** Undefined where there are several. */
  get onlyStep(): StoryStep | undefined {
    return this.#furtherSteps === undefined ? this.#firstStep : undefined;
  }

  get attempts(): number {
    if (this.#outline !== undefined) return this.#outline.attempts;
    let count = this.#firstStep?.kind === "attempt" ? 1 : 0;
    if (this.#furtherSteps === undefined) return count;
    for (const step of this.#furtherSteps) if (step.kind === "attempt") count++;
    return count;
  }

  /** All that were asked, each of them once. */
  get backends(): readonly string[] {
    if (this.#outline !== undefined) return this.#outline.backends;
    const first = this.#firstStep;
    if (this.#furtherSteps === undefined) return first?.kind === "attempt" ? [first.backend] : [];
    const backends = new Set<string>();
    for (const step of this.steps) if (step.kind === "attempt") backends.add(step.backend);
    return [...backends];
  }

  /** Whether it is told without its steps. */
  get isOutlined(): boolean {
    return this.#outline !== undefined;
  }

  /** Forgets the steps of a request that is over, but not that it was. */
  outline(): void {
    const { attempts, backends, steps } = this;
    this.#outline = { attempts, backends };
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
    // A name that nothing answers to may be a key in the wrong place.
    if (end.outcome === "refused") this.model = withoutSecrets(this.model);
    this.status = end.status;
    this.durationMs = end.durationMs;
    this.outcome = end.outcome;
    this.failure = end.failure;
    this.code = end.code;
    this.endedBy = end.endedBy;
    this.backend = end.backend;
    this.answeredBy = end.answeredBy;
    this.firstByteMs = end.firstByteMs;
    this.backendMs = end.backendMs;
    this.promptTokens = end.usage?.input.total;
    this.completionTokens = end.usage?.output.total;
  }

  /** Takes over what another process tells of it. */
  follow({ steps, droppedSteps, cache, cacheReason, outline, ...told }: ToldStory): void {
    this.#outline = outline;
    const [firstStep, ...furtherSteps] = steps;
    this.#firstStep = firstStep;
    this.#furtherSteps = furtherSteps.length === 0 ? undefined : furtherSteps;
    this.droppedSteps = droppedSteps;
    this.cache = cache;
    this.cacheReason = cacheReason;
    if (told.status !== undefined) this.finish(told as KeptEnd);
    this.promptTokens = told.promptTokens;
    this.completionTokens = told.completionTokens;
  }

  /** For another process. */
  tell(wallOffsetMs: number): ToldStory {
    const { id, requestId, operation, model, stream, startedAtMs, steps, droppedSteps, cache, cacheReason } = this;
    const { keyId, userId, organizationId, clientAddress, target } = this;
    const { status, outcome, durationMs, failure, code, backend, answeredBy, firstByteMs, backendMs } = this;
    const { endedBy, promptTokens, completionTokens } = this;
    const start = { id, requestId, operation, model, stream, startedAtMs: startedAtMs + wallOffsetMs };
    const caller = { keyId, userId, organizationId, clientAddress, target };
    const told: ToldStory = { ...start, ...caller, steps, droppedSteps, cache, cacheReason };
    if (status === undefined || outcome === undefined || durationMs === undefined) return told;
    const end = { status, outcome, durationMs, failure, code, backend, answeredBy, firstByteMs, backendMs };
    return { ...told, ...end, endedBy, promptTokens, completionTokens };
  }

  #keep(step: StoryStep): void {
    if (!this.isKept) return;
    if (this.#firstStep === undefined) this.#firstStep = step;
    else if (this.#furtherSteps === undefined) this.#furtherSteps = [step];
    else if (this.#furtherSteps.length + 1 < MAX_STEPS) this.#furtherSteps.push(step);
    else this.droppedSteps++;
  }

  get bytes(): number {
    let bytes = STORY_BYTES + this.requestId.length + this.model.length + (this.userId?.length ?? 0);
    if (this.endedBy !== undefined) bytes += this.endedBy.length;
    if (this.#outline !== undefined) bytes += this.#outline.backends.length * NAME_BYTES;
    if (this.#firstStep !== undefined) bytes += bytesOf(this.#firstStep);
    if (this.#furtherSteps !== undefined) for (const step of this.#furtherSteps) bytes += bytesOf(step);
    return bytes;
  }
}

function isSent(step: StoryStep | undefined): boolean {
  return step?.kind === "attempt" && step.failure !== NOT_SENT;
}

function bytesOf(step: StoryStep): number {
  if (step.kind !== "attempt") return STEP_BYTES;
  return STEP_BYTES + (step.candidates?.length ?? 0) * CANDIDATE_BYTES + (step.detail?.length ?? 0);
}

/** Of requests that ask no model, and of those that were refused before it was known which one: nothing is kept. */
export const NO_STORY = Object.freeze(
  new Story({ id: "", requestId: "", operation: "", model: "", stream: false, startedAtMs: 0 }, () => 0, false),
) as Story;

/** Of a request that was refused before its story began. */
export function refusedStory(start: StoryStart, end: StoryEnd, now: () => number): Story {
  const story = new Story(start, now);
  story.add({ kind: "refused", atMs: end.durationMs, reason: end.failure ?? "refused" });
  story.finish(end);
  return story;
}

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
/** Of known keys, and as many of clients without one. */
const MAX_REFUSED = 1_000;
/** One that weighs more, as after a long chain of models, is kept without its steps. */
const MAX_REFUSED_BYTES = 4 * 1024;

export class Stories {
  readonly #wallOffsetMs: number;
  readonly #now: () => number;
  readonly #happenings: StoriesParts["happenings"];
  readonly #ring: StoryRing<Story>;
  /** Beside the ring, so that they remove nothing from it. */
  readonly #refused = new RefusedEntries<Story>(MAX_REFUSED);

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

  begin(start: StoryStart): Story {
    const story = new Story(start, this.#now);
    this.#ring.add(story);
    return story;
  }

  /** Of a request that was refused before its story began. */
  refused(start: StoryStart, end: StoryEnd): void {
    const story = refusedStory(start, end, this.#now);
    this.#keepApart(story);
    this.#happenings?.requestEnded(story);
  }

  /** A story that another process tells, from its beginning or on from where it was. */
  follow(story: Story | undefined, told: ToldStory): Story {
    const known = story ?? this.#newStory(told);
    known.follow(told);
    if (story === undefined && !known.wasOnlyRefused) this.#ring.add(known);
    else if (!known.isOver) this.#ring.weigh(known);
    if (known.isOver) this.#ended(known);
    return known;
  }

  /** One that is told from elsewhere and not kept here. */
  revive(told: ToldStory): Story {
    const story = this.#newStory(told);
    story.follow(told);
    return story;
  }

  finish(story: Story, end: StoryEnd): void {
    story.finish(end);
    this.#ended(story);
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
    const refusals = [...this.#refused.entries()];
    refusals.sort((first, second) => second.startedAtMs - first.startedAtMs);
    let next = 0;
    for (const story of this.#ring.newestFirst()) {
      for (; next < refusals.length && (refusals[next] as Story).startedAtMs > story.startedAtMs; next++) {
        yield refusals[next] as Story;
      }
      yield story;
    }
    yield* refusals.slice(next);
  }

  /** When the request came, in milliseconds since 1970. */
  startedAt(story: Story): number {
    return story.startedAtMs + this.#wallOffsetMs;
  }

  #newStory(told: ToldStory): Story {
    return new Story({ ...told, startedAtMs: told.startedAtMs - this.#wallOffsetMs }, this.#now);
  }

  #ended(story: Story): void {
    if (story.wasOnlyRefused) {
      this.#ring.remove(story);
      this.#keepApart(story);
    } else this.#ring.weigh(story);
    this.#happenings?.requestEnded(story);
  }

  #keepApart(story: Story): void {
    if (story.bytes > MAX_REFUSED_BYTES) story.outline();
    this.#refused.add(story, story.code === ERRORS.routeNotFound.type);
  }
}
