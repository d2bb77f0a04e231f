// One request from its arrival to its end: written by the steps themselves, read by the access log, statistics, metrics, errors
// and spans, told by a worker to the primary, and kept as the story of the request.

import type { Allowance, Quota } from "../generation/quota.ts";
import type { Usage } from "../generation/usage.ts";
import type { Outcome } from "./outcome.ts";
import { withoutSecrets } from "./without-secrets.ts";

/** A backend that could have been chosen, as the strategy saw it. */
export interface Candidate {
  backend: string;
  /** The value that the strategy compared; AttemptStep.scoreMeans says what it is. */
  score?: number | undefined;
  inFlight?: number | undefined;
  latencyMs?: number | undefined;
  /** Why it could not be chosen after all: "circuit_open", "rate_limited", "tried", "standby", … */
  excluded?: string | undefined;
}

/** `atMs` and all durations are of the request's own time, from its arrival. */
export type StoryStep =
  | AttemptStep
  /** `reason`: "retry", "trial", "first_checks", "model_refresh", "limits", "queue". */
  | { kind: "wait"; atMs: number; durationMs: number; reason: string; class?: string }
  | { kind: "fallback"; atMs: number; from: string; to: string; reason: string }
  /** Another backend goes on in a stream that broke off. */
  | { kind: "takeover"; atMs: number; from: string; to: string; reason: string }
  /** Joined an identical request in flight. */
  | { kind: "shared"; atMs: number; leader: string }
  /** The field names a file that is not kept here: it is left to a backend that may hold it. */
  | { kind: "file"; atMs: number; field: string }
  /** A hook has done more than let the request pass. */
  | HookStep
  /** No backend could be asked. */
  | { kind: "refused"; atMs: number; reason: string };

export interface HookStep {
  kind: "hook";
  atMs: number;
  hook: string;
  event: string;
  /** "pass", "change", "refuse", "answer", "repair", "error", "timeout" or "unavailable". */
  verdict: string;
  durationMs: number;
  /** The code of a refusal, the names of what was changed with sizes, or why the hook failed; never a content. */
  detail?: string | undefined;
  /** Numbers and truth values that the hook has noted. */
  note?: Readonly<Record<string, number | boolean>> | undefined;
}

/** One target of a route, by names. */
export interface RouteArm {
  route: string;
  arm: string;
}

export interface AttemptStep {
  kind: "attempt";
  atMs: number;
  backend: string;
  model: string;
  /** Undefined if no strategy was asked. */
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
  /** The backend's own words, cleaned and cut; without any, the gateway's words for the failure. */
  detail?: string | undefined;
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

/** The error in the client's answer. */
export interface AnsweredError {
  type: string;
  code: string | number | null;
  message: string;
}

/** Every fact of a record but its steps. */
type Facts = Omit<RequestRecord, Methods | Derived | OfOneProcess>;
type OfOneProcess = "weighedBytes" | "allowance" | "quota";
type Methods = "add" | "attempt" | "ended" | "standIn" | "askArms" | "failArms" | "finish" | "settle" | Copying;
type Copying = "follow" | "tell" | "outline";
type Derived =
  | ("shownModel" | "sinceStartMs" | "isOver" | "wasSent" | "wasOnlyRefused" | "user" | "bytes")
  | ("steps" | "onlyStep" | "hasSeveralSteps" | "isOutlined" | "ownAttempts" | "retried" | "backends");

type IdentityFact = "id" | "requestId" | "startedAtMs" | "droppedSteps";

/** A record as one process tells it to another. Times are milliseconds since 1970. */
export interface ToldRecord extends Partial<Omit<Facts, IdentityFact>>, Pick<Facts, IdentityFact> {
  steps: readonly StoryStep[];
  outline?: Outline;
}

/** The failure of an attempt that the gateway itself refused: the backend's format cannot say what is asked. */
export const NOT_SENT = "not_sent";

/** More steps than a request can have with sensible settings. */
const MAX_STEPS = 64;
const MAX_CANDIDATES = 32;

/** Estimates of what is held in memory. */
const RECORD_BYTES = 490;
const STEP_BYTES = 130;
const CANDIDATE_BYTES = 80;
const NAME_BYTES = 8;

/** A summary of the steps of a record that comes without them. */
interface Outline {
  attempts: number;
  backends: readonly string[];
  wasSent: boolean;
}

const NO_ATTEMPTS: readonly AttemptStep[] = [];

/**
 * One object from the beginning to the end: thousands of them are kept, and the garbage collector walks over all that they
 * consist of. Its steps allocate nothing else.
 */
export class RequestRecord {
  /** The gateway's own: no two requests have the same. */
  readonly id: string;
  /** The client's own, where it sent one: two requests may have the same. */
  readonly requestId: string;
  /** Clock milliseconds. */
  readonly startedAtMs: number;
  /** "chat", "messages", "embeddings", …; empty of requests that ask no model. */
  operation = "";
  /** The model that was asked for, after aliases and routes; the client's own text where no such model exists. Empty until it is known. */
  model = "";
  /** The route that the client asked for. */
  route: string | undefined = undefined;
  /** Its target that was asked last; undefined also where a fallback chain went on. */
  arm: string | undefined = undefined;
  /** The target that it has chosen first, and why, in words that many requests share. */
  routeReason: string | undefined = undefined;
  /** The lot of the session, where that has decided; kept in memory only. */
  routeLot: number | undefined = undefined;
  /** The same with the targets of a route behind it; undefined: the model was named itself. Let go when it is counted. */
  arms: readonly RouteArm[] | undefined = undefined;
  /** Those that were tried before, and could not answer. */
  failedArms: readonly RouteArm[] | undefined = undefined;
  /** For the mirror of a route: no client has asked for it. */
  isCopy = false;
  stream = false;
  /** The request was read: it counts under its model. */
  isRead = false;
  /** Its steps are kept, because it can be looked up. */
  isKept = false;
  keyId: string | undefined = undefined;
  /** The user that the caller's key names. */
  userId: string | undefined = undefined;
  /** The user that the request itself names (`user`, `safety_identifier`, `metadata.user_id`): any text of the client. */
  endUser: string | undefined = undefined;
  organizationId: string | undefined = undefined;
  /** Behind trusted proxies; undefined on a unix socket. */
  clientAddress: string | undefined = undefined;
  /** Method and path, of a request that was refused before it was known what it asks. */
  target: string | undefined = undefined;
  /** The backend of the last attempt; undefined when none was asked. */
  backend: string | undefined = undefined;
  /** The model of the last attempt, where another stands in. */
  answeredBy: string | undefined = undefined;
  /** Attempts at backends, those of a call that it shares included; 0 for answers from the cache and for refusals. */
  attempts = 0;
  /** Until the first byte went to the client; undefined when there was a failure only. */
  firstByteMs: number | undefined = undefined;
  /** How long it waited for a slot at a backend. */
  queuedMs = 0;
  /** Time of the attempts that are over. */
  backendMs: number | undefined = undefined;
  /** The decision of the response cache, and why: "not_deterministic", "streamed", … */
  cache: "HIT" | "MISS" | "BYPASS" | undefined = undefined;
  cacheReason: string | undefined = undefined;
  /** Why another model was asked, e.g. "error_code_429". */
  fallbackReason: string | undefined = undefined;
  /** Got its answer from another request's call: the tokens are counted there. */
  isShared = false;
  /** Tokens of the answer, where they are known. */
  usage: Usage | undefined = undefined;
  /** The vendor's batch that has answered, in place of a single request. */
  vendorBatch: string | undefined = undefined;
  /** Why the model stopped, where the answer was read. */
  finishReason: string | undefined = undefined;
  /** Fields that the translation to the last backend could not carry. */
  dropped: readonly string[] | undefined = undefined;
  error: AnsweredError | undefined = undefined;
  /** A backend or the gateway could not, whatever the status says: 404 for a model whose backends are away. */
  isOutage = false;
  /** Why the last attempt failed, or the request itself. */
  lastFailure: string | undefined = undefined;
  /** The rules by which no other backend was asked after the last attempt failed. */
  lastRule: string | undefined = undefined;
  /** Why a stream broke off after its status had been sent. */
  streamFailure: string | undefined = undefined;
  /** Requests that the limits of its client leave; undefined where none holds. */
  allowance: Allowance | undefined = undefined;
  /** What its budgets leave. */
  quota: Quota | undefined = undefined;

  // The rest is known when it is over.
  /** As the client saw it; 499 when it left before the end. Of a stream that broke off, what a plain answer had been. */
  status: number | undefined = undefined;
  outcome: Outcome | undefined = undefined;
  durationMs: number | undefined = undefined;
  /** "status_502", "timeout_first_byte", "aborted", …; undefined for a success, whatever its earlier attempts met. */
  failure: string | undefined = undefined;
  /** Of the error that the client was answered with; its type where the code is only the status. */
  code: string | undefined = undefined;
  /** Of a failure: the rules by which no other backend and no other model was asked. */
  endedBy: string | undefined = undefined;
  promptTokens: number | undefined = undefined;
  completionTokens: number | undefined = undefined;

  droppedSteps = 0;
  /** The bytes that StoryRing has counted for this record. */
  weighedBytes = 0;
  readonly #now: () => number;
  #firstStep: StoryStep | undefined;
  /** Undefined for most requests: they have one step. */
  #furtherSteps: StoryStep[] | undefined;
  /** Replaces the steps of an old story. */
  #outline: Outline | undefined;

  /** @param startedAtMs - by the clock `now` */
  constructor(id: string, requestId: string, startedAtMs: number, now: () => number) {
    this.id = id;
    this.requestId = requestId;
    this.startedAtMs = startedAtMs;
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

  /** True if an attempt went so far that a backend got the request. */
  get wasSent(): boolean {
    if (this.#outline !== undefined) return this.#outline.wasSent;
    return isSent(this.#firstStep) || this.#furtherSteps?.some(isSent) === true;
  }

  /** In their order; put together when asked for. */
  get steps(): readonly StoryStep[] {
    return this.#firstStep === undefined ? [] : [this.#firstStep, ...(this.#furtherSteps ?? [])];
  }

  /** Undefined where there are several. */
  get onlyStep(): StoryStep | undefined {
    return this.#furtherSteps === undefined ? this.#firstStep : undefined;
  }

  /** Without those of a call that it shares. */
  get ownAttempts(): number {
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

  /** True if only an outline of the steps is left. */
  get isOutlined(): boolean {
    return this.#outline !== undefined;
  }

  /** Forgets the steps of a request that is over, but not that it was. */
  outline(): void {
    const { ownAttempts, backends, steps, wasSent } = this;
    this.#outline = { attempts: ownAttempts, backends, wasSent };
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
    this.attempts++;
    if (!this.isOver) this.backend = backend;
    this.#keep(step);
    return step;
  }

  /** Another model than the one that was asked for. Like an attempt, it may outlive the request, when others share its call. */
  standIn(model: string): void {
    if (!this.isOver) this.answeredBy = model;
  }

  /** A target of a route is asked; of none, where its fallback chain goes on. */
  askArms(arms: readonly RouteArm[]): void {
    if (this.isOver) return;
    this.arms = arms;
    this.arm = arms[0]?.arm;
    this.route ??= arms[0]?.route;
  }

  /** Another target is asked in place of this one, which has failed. */
  failArms(arms: readonly RouteArm[]): void {
    if (arms.length > 0 && !this.isOver) this.failedArms = [...(this.failedArms ?? []), ...arms];
  }

  /** Adds the time of an attempt that has ended. */
  ended(durationMs: number): void {
    if (!this.isOver) this.backendMs = (this.backendMs ?? 0) + durationMs;
  }

  /** The end user: as the key names them, else as the request does. */
  get user(): string | undefined {
    return this.userId ?? this.endUser;
  }

  /** The attempts that another one followed. */
  get retried(): readonly AttemptStep[] {
    if (this.#furtherSteps === undefined) return NO_ATTEMPTS;
    return this.steps.filter((step) => step.kind === "attempt").slice(0, -1);
  }

  /** `status` is what the client saw. */
  finish(status: number, outcome: Outcome, durationMs: number): void {
    this.status = status;
    this.outcome = outcome;
    this.durationMs = durationMs;
    this.promptTokens = this.usage?.input.total;
    this.completionTokens = this.usage?.output.total;
  }

  /** The model as it may be shown: a name that nothing answers to may be a key in the wrong place. */
  get shownModel(): string {
    return this.outcome === "refused" ? withoutSecrets(this.model) : this.model;
  }

  /** Every report of its end is made: lets go of what only they need. */
  settle(): void {
    this.usage = undefined;
    this.error = undefined;
    this.allowance = undefined;
    this.quota = undefined;
    this.arms = undefined;
    this.failedArms = undefined;
  }

  /** Takes over what another process tells of it; what is left out there stays. */
  follow({ steps, outline, startedAtMs: _, ...facts }: ToldRecord): void {
    Object.assign(this, facts);
    this.#outline = outline;
    const [firstStep, ...furtherSteps] = steps;
    this.#firstStep = firstStep;
    this.#furtherSteps = furtherSteps.length === 0 ? undefined : furtherSteps;
  }

  /** The record for another process. */
  tell(wallOffsetMs: number): ToldRecord {
    const { weighedBytes: _, allowance: __, quota: ___, ...facts } = this;
    return { ...facts, startedAtMs: this.startedAtMs + wallOffsetMs, steps: this.steps };
  }

  #keep(step: StoryStep): void {
    if (!this.isKept) return;
    if (this.#firstStep === undefined) this.#firstStep = step;
    else if (this.#furtherSteps === undefined) this.#furtherSteps = [step];
    else if (this.#furtherSteps.length + 1 < MAX_STEPS) this.#furtherSteps.push(step);
    else this.droppedSteps++;
  }

  get bytes(): number {
    let bytes = RECORD_BYTES + this.requestId.length + this.model.length + (this.user?.length ?? 0);
    if (this.endedBy !== undefined) bytes += this.endedBy.length;
    for (const name of this.dropped ?? []) bytes += NAME_BYTES + name.length;
    if (this.#outline !== undefined) bytes += this.#outline.backends.length * NAME_BYTES;
    if (this.#firstStep !== undefined) bytes += bytesOf(this.#firstStep);
    if (this.#furtherSteps !== undefined) for (const step of this.#furtherSteps) bytes += bytesOf(step);
    return bytes;
  }
}

const { id, requestId, startedAtMs, weighedBytes, allowance, quota, ...fresh } = new RequestRecord("", "", 0, () => 0);
/** The facts of a request of which nothing is known yet. */
export const NOTHING_KNOWN: Omit<Facts, IdentityFact> = fresh;

function isSent(step: StoryStep | undefined): boolean {
  return step?.kind === "attempt" && step.failure !== NOT_SENT;
}

function bytesOf(step: StoryStep): number {
  if (step.kind === "hook") return STEP_BYTES + (step.detail?.length ?? 0);
  if (step.kind !== "attempt") return STEP_BYTES;
  return STEP_BYTES + (step.candidates?.length ?? 0) * CANDIDATE_BYTES + (step.detail?.length ?? 0);
}
