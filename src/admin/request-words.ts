// What became of a request, in plain sentences: who was asked, what went wrong there, and who answered in the end.

import { microseconds } from "../request-log/columns.ts";
import type { AttemptStep, Candidate, HookStep, RequestRecord, StoryStep } from "../stats/request-record.ts";

/** Longer than this between the arrival of a request and its first attempt is worth a sentence. */
const NOTABLE_MS = 1_000;

const CACHE_BYPASSES: Readonly<Record<string, string>> = {
  not_deterministic: "its temperature is not 0, so that every answer is another one",
  side_effect: "its answer is more than a text, such as a call that a client makes",
  depends_on_more: "its answer depends on more than the request says",
  vendor_state: "it refers to what a backend keeps",
  answer_not_kept: "the answer was too large to be kept, or not whole",
  stand_in_answered: "another model has answered",
};

const HOOK_VERDICTS: Readonly<Record<string, string>> = {
  pass: "changed nothing",
  change: "made changes",
  refuse: "refused the request",
  answer: "gave the answer itself",
  repair: "had the answer repaired",
  error: "failed",
  timeout: "gave no verdict in time",
  unavailable: "could not be called",
};

const WAITS: Readonly<Record<string, string>> = {
  retry: "before another attempt",
  first_checks: "for the first health checks of the backends",
  model_refresh: "for the backends to say which models they have",
  trial: "for a request that was trying a backend after failures",
  limits: "for a limit that is kept elsewhere",
  queue: "in the queue",
};

const EXCLUSIONS: Readonly<Record<string, string>> = {
  no_operation: "it has no endpoint for the request",
  circuit_open: "its circuit is open",
  rate_limited: "its rate limit has no room",
  tried: "it was asked already",
  avoided: "a part of this stream has failed there",
  standby: "it stands by with weight 0",
  no_slot: "it had no free slot",
  over_share: "it has more than its share of the open requests",
};

const REFUSALS: Readonly<Record<string, string>> = {
  model_not_found: "no backend that is available has the model",
  rate_limit_exceeded: "a rate limit is reached",
  queue_refused: "the queue had no slot for it in time",
  circuit_breaker_open: "the circuits of all its backends are open",
  all_backends_unhealthy: "no backend is healthy",
  service_unavailable: "no backend is available",
  aborted: "the client left before anybody was",
};

const UNREACHABLE: readonly (readonly [code: RegExp, words: string])[] = [
  [/ECONNREFUSED|ConnectionRefused/, "refused the connection"],
  [/ENOTFOUND|EAI_AGAIN/, "has a name that leads nowhere"],
  [/EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL/, "cannot be reached from here"],
  [/ENOENT/, "has no socket at its path"],
  [/EACCES/, "has a socket that the gateway may not use"],
  [/EPROTO/, "does not speak TLS"],
  [/CERT|SELF_SIGNED|ISSUER|ALTNAME|SIGNATURE/, "showed a certificate that is not accepted"],
];

/** The sentences, in the order of what happened. */
export function explain(story: RequestRecord, told: string | undefined): string[] {
  const { steps } = story;
  return [
    ...cacheSentence(story),
    ...arrivalSentence(steps),
    ...routeSentence(story),
    ...steps.flatMap((step) => stepSentence(step, story, told)),
    ...droppedSentence(story),
    ...endOfTries(story).map((clause) => `${capital(clause)}.`),
    endSentence(story),
  ];
}

export function summarize(story: RequestRecord, told: string | undefined): string {
  if (story.cache === "HIT") return "The response cache answered.";
  const attempts = story.steps.flatMap((step) => (step.kind === "attempt" ? [attemptWords(step)] : []));
  const parts = attempts.length > 0 ? attempts : story.steps.flatMap((step) => clauseOf(step, told));
  if (parts.length === 0) return endSentence(story);
  parts.push(...endOfTries(story));
  const isCut = story.outcome === "stream_broken" || story.outcome === "client_left";
  return `${capital(parts.join("; "))}.${isCut ? ` ${endSentence(story)}` : ""}`;
}

/** Undefined for a step that needs no words. */
export function stepWords(step: StoryStep, story: RequestRecord, told: string | undefined): string | null {
  return stepSentence(step, story, told)[0] ?? null;
}

function cacheSentence({ cache, cacheReason }: RequestRecord): string[] {
  if (cache === "HIT") return ["The response cache had the answer: no backend was asked."];
  if (cache === "MISS") return ["The response cache did not have the answer."];
  if (cache === undefined) return [];
  const reason = cacheReason === undefined ? undefined : CACHE_BYPASSES[cacheReason];
  return [`The response cache was left out${reason === undefined ? "" : `: ${reason}`}.`];
}

function routeSentence({ route, routeReason, routeLot }: RequestRecord): string[] {
  if (route === undefined || routeReason === undefined) return [];
  const lot = routeLot === undefined ? "" : ` (${numberText(routeLot)})`;
  return [`The route ${route} chose ${routeReason}${lot}.`];
}

function arrivalSentence([first]: readonly StoryStep[]): string[] {
  if (first === undefined || first.kind === "refused" || first.atMs < NOTABLE_MS) return [];
  return [`The request took ${time(first.atMs)} to arrive and to be read.`];
}

function stepSentence(step: StoryStep, story: RequestRecord, told: string | undefined): string[] {
  if (step.kind !== "attempt") return clauseOf(step, told).map((clause) => `${capital(clause)}.`);
  const model = step.model === story.model ? "" : ` (asked for ${step.model})`;
  const asked = step.inPanic ? `${model} (tried although its circuit was open, as those of all others were)` : model;
  const over = passedOver(step.candidates ?? []);
  return [`${capital(attemptWords(step))}${asked}${over === "" ? "" : `; ${over}`}.`];
}

function clauseOf(step: Exclude<StoryStep, AttemptStep> | StoryStep, told: string | undefined): string[] {
  switch (step.kind) {
    case "attempt":
      return [];
    case "wait": {
      const ofClass = step.class === undefined ? "" : ` (class ${step.class})`;
      return [`the request waited ${time(step.durationMs)} ${WAITS[step.reason] ?? `(${step.reason})`}${ofClass}`];
    }
    case "fallback":
      return [`${step.from} could not answer (${step.reason}), so ${step.to} was asked instead`];
    case "takeover":
      return [`${step.to} went on in the stream that had broken off at ${step.from} (${step.reason})`];
    case "shared":
      return [`an identical request was under way (${step.leader}), and its answer was shared`];
    case "file":
      return [`${step.field} names a file that is not kept here: only backends that may hold it could be asked`];
    case "hook":
      return [hookWords(step)];
    case "refused":
      return [`no backend was asked: ${told === undefined ? refusalWords(step.reason) : withoutPoint(told)}`];
  }
}

function hookWords({ hook, event, verdict, durationMs, detail, note }: HookStep): string {
  const why = detail === undefined ? "" : ` (${detail})`;
  const noted = Object.entries(note ?? {}).map(([name, value]) => `${name} ${value}`);
  const notes = noted.length === 0 ? "" : `; it noted ${noted.join(", ")}`;
  return `the hook ${hook} ${HOOK_VERDICTS[verdict] ?? verdict} at ${event} after ${time(durationMs)}${why}${notes}`;
}

function refusalWords(reason: string): string {
  return REFUSALS[reason] ?? reason;
}

function attemptWords(step: AttemptStep): string {
  const { backend, failure, durationMs, firstByteMs, retryAfterMs } = step;
  const words = failure === undefined ? undefined : failureWords(step, failure);
  if (words !== undefined) {
    const wish = retryAfterMs === undefined ? "" : ` and asked to be left alone for ${time(retryAfterMs)}`;
    return `${backend} ${words}${wish}`;
  }
  if (durationMs === undefined) {
    return firstByteMs === undefined
      ? `${backend} is being asked`
      : `${backend} began to answer after ${time(firstByteMs)} and goes on`;
  }
  return `${backend} answered after ${time(firstByteMs ?? durationMs)}`;
}

/** Continues a sentence that begins with the backend's name. */
function failureWords(step: AttemptStep, failure: string): string {
  const { durationMs = 0, firstByteMs, detail = "", status } = step;
  if (status !== undefined && failure === `status_${status}`) return `${statusWords(status)}${saying(detail)}`;
  const hasBegun = firstByteMs !== undefined;
  switch (failure) {
    case "connect": {
      const known = UNREACHABLE.find(([code]) => code.test(detail))?.[1];
      return known ?? "could not be reached";
    }
    case "reset":
      if (detail.includes("taken out of service")) return "was taken out of service before its answer was complete";
      return hasBegun
        ? `broke the connection off in the middle of its answer, after ${time(durationMs)}`
        : "broke the connection off before it had answered";
    case "timeout_connect":
      return `could not be connected to within ${limitOf(detail, durationMs)}`;
    case "timeout_first_byte":
      return `sent nothing within ${limitOf(detail, durationMs)}`;
    case "timeout_between_chunks":
      return `fell silent in the middle of its answer, for ${limitOf(detail, durationMs)}`;
    case "timeout_request":
      return `was not done when the time for the whole request was over, after ${time(durationMs)}`;
    case "invalid_response":
      return withoutPoint(detail.replace(/^Backend '[^']*' /, "")) || "gave an answer that cannot be read";
    case "told_in_stream":
      return `ended its stream with an error of its own${saying(detail)}`;
    case "aborted":
      return `was still answering when the client left, after ${time(durationMs)}`;
    case "not_sent":
      return "was not asked: its format cannot say what the request wants";
    default:
      return `failed (${failure})`;
  }
}

function saying(detail: string): string {
  return detail === "" ? "" : `, saying "${withoutPoint(detail)}"`;
}

function statusWords(status: number): string {
  if (status === 401 || status === 403) return `did not accept the gateway's own credentials (status ${status})`;
  if (status === 429) return "had no room for the request (status 429)";
  if (status === 503) return "was overloaded or not ready (status 503)";
  return status >= 500 ? `failed (status ${status})` : `refused the request (status ${status})`;
}

/** The limit in the text of a timeout; without one the attempt's duration. */
function limitOf(detail: string, durationMs: number): string {
  const limit = / limit of (\d+) ms /.exec(detail)?.[1];
  return time(limit === undefined ? durationMs : Number(limit));
}

/** Those that would have been asked, had nothing been in their way. */
function passedOver(candidates: readonly Candidate[]): string {
  const notable = candidates.filter(({ excluded }) => excluded !== undefined && excluded !== "tried");
  return notable
    .map(({ backend, excluded = "" }) => `${backend} was passed over: ${EXCLUSIONS[excluded] ?? excluded}`)
    .join("; ");
}

/** Why a candidate was or was not chosen. */
export function candidateWords(candidate: Candidate, step: AttemptStep): string {
  const { backend, score, excluded } = candidate;
  if (backend === step.backend) {
    if (score === undefined) return step.strategy === undefined ? "chosen: the only one to be asked" : "chosen";
    return `chosen by ${step.strategy ?? "its score"}: ${numberText(score)}`;
  }
  if (excluded !== undefined) return `not chosen: ${EXCLUSIONS[excluded] ?? excluded}`;
  const chosen = step.candidates?.find((other) => other.backend === step.backend)?.score;
  if (score === undefined || chosen === undefined) return `not chosen: ${step.backend} went first`;
  if (score === chosen) return `not chosen: as good as ${step.backend} (${numberText(score)})`;
  return `not chosen: ${numberText(score)} against ${numberText(chosen)} of ${step.backend}`;
}

/** Says why no other backend was asked. */
function endOfTries({ endedBy }: RequestRecord): string[] {
  return endedBy === undefined ? [] : [`no other backend was asked: ${endedBy}`];
}

function droppedSentence({ droppedSteps, steps }: RequestRecord): string[] {
  if (droppedSteps === 0) return [];
  return steps.length === 0
    ? ["Its steps are not kept any more: newer requests needed the memory."]
    : [`${droppedSteps} further steps are not kept.`];
}

function endSentence(story: RequestRecord): string {
  const { status, outcome } = story;
  if (status === undefined) return `It still runs, for ${time(story.sinceStartMs)} so far.`;
  const after = time(story.durationMs ?? 0);
  if (outcome === "client_left") return `The client left after ${after}.`;
  if (outcome === "stream_broken") {
    return `The stream broke off after ${after}: the client has a part of the answer and an error behind it.`;
  }
  if (outcome === "refused") return `The request was refused after ${after}, with status ${status}.`;
  if (outcome === "failed") return `The client got status ${status} after ${after}.`;
  const tokens = story.completionTokens;
  const speed = tokensPerSecond(story);
  const counted =
    tokens === undefined ? "" : `, with ${tokens} tokens${speed === undefined ? "" : ` (${speed} per second)`}`;
  return `The answer was complete after ${after}${counted}.`;
}

/** While the model wrote; from microseconds, so that it is the same from memory and from disk, which keeps these. */
export function tokensPerSecond(story: RequestRecord): number | undefined {
  const { completionTokens, durationMs, stream, firstByteMs, backendMs, cache } = story;
  if (completionTokens === undefined || completionTokens === 0 || durationMs === undefined || cache === "HIT")
    return undefined;
  const wholeUs = microseconds(durationMs);
  const writingUs =
    stream && firstByteMs !== undefined ? wholeUs - microseconds(firstByteMs) : (microseconds(backendMs) ?? wholeUs);
  return writingUs < 1_000 ? undefined : Math.round((completionTokens / writingUs) * 10_000_000) / 10;
}

/** Such as "85 ms", "1.2 s", "2 min 5 s". */
function time(durationMs: number): string {
  if (durationMs < 999.5) return `${Math.round(durationMs)} ms`;
  if (durationMs < 59_950) return `${Number((durationMs / 1000).toFixed(1))} s`;
  const seconds = Math.round(durationMs / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

function numberText(value: number): string {
  return String(Number(value.toPrecision(4)));
}

function withoutPoint(text: string): string {
  return text.replace(/\.\s*$/, "");
}

/** Names of backends and models stay as they are. */
function capital(text: string): string {
  return /^(?:the|an|no) /.test(text) ? (text[0] as string).toUpperCase() + text.slice(1) : text;
}
