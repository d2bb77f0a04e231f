// What became of requests, in words: a row of their list (GET /admin/requests), and one of them, step by step
// (GET /admin/requests/{id}).

import type { KeptError } from "../stats/error-recorder.ts";
import type { AttemptStep, Candidate, RequestRecord, StoryStep } from "../stats/request-record.ts";
import type { Stories } from "../stats/stories.ts";
import { type CandidateRow, type RequestRow, type RequestStep, type RequestStory, RUNNING } from "./request-schemas.ts";
import { candidateWords, explain, stepWords, summarize, tokensPerSecond } from "./request-words.ts";

/**
 * One request, step by step.
 * @param error - what the client was answered with
 * @param others - own ids of further requests with the same id of a client
 */
export function storyView(
  stories: Pick<Stories, "startedAt">,
  story: RequestRecord,
  error: KeptError | undefined,
  others: readonly string[],
): RequestStory {
  const { steps, durationMs, backendMs, firstByteMs } = story;
  const told = error?.message;
  return {
    ...requestRow(stories, story),
    summary: summarize(story, told),
    explanation: explain(story, told),
    ended_by: story.endedBy ?? null,
    route_reason: story.routeReason ?? null,
    route_lot: story.routeLot ?? null,
    error: error === undefined ? null : { type: error.type, code: error.code, message: error.message },
    cache: story.cache === undefined ? null : { decision: story.cache, reason: story.cacheReason ?? null },
    timings: {
      total_ms: round(durationOf(story)),
      gateway_ms:
        durationMs === undefined || backendMs === undefined ? null : round(Math.max(0, durationMs - backendMs)),
      backend_ms: roundOrNull(backendMs),
      first_token_ms: story.stream ? roundOrNull(firstByteMs) : null,
      first_byte_ms: roundOrNull(firstByteMs),
      until_first_attempt_ms: roundOrNull(steps.find(({ kind }) => kind === "attempt")?.atMs),
      tokens_per_second: tokensPerSecond(story) ?? null,
      waiting_ms: round(steps.reduce((sum, step) => sum + (step.kind === "wait" ? step.durationMs : 0), 0)),
    },
    steps: steps.map((step) => ({ ...stepView(step), text: stepWords(step, story, told) })),
    steps_dropped: story.droppedSteps,
    others,
  };
}

/** Members that the list and an explanation share. */
export function requestRow(stories: Pick<Stories, "startedAt">, story: RequestRecord): RequestRow {
  return {
    id: story.id,
    request_id: story.requestId,
    started_at: new Date(inMicroseconds(stories.startedAt(story)) / 1000).toISOString(),
    finished: story.isOver,
    outcome: outcomeOf(story),
    operation: story.operation,
    model: story.model,
    answered_by: story.answeredBy ?? null,
    route: story.route ?? null,
    arm: story.arm ?? null,
    stream: story.stream,
    key_id: story.keyId ?? null,
    user_id: story.user ?? null,
    organization_id: story.organizationId ?? null,
    client: story.clientAddress ?? null,
    target: story.target ?? null,
    backend: story.backend ?? null,
    vendor_batch: story.vendorBatch ?? null,
    status: story.status ?? null,
    failure: story.failure ?? null,
    code: story.code ?? null,
    attempts: story.ownAttempts,
    duration_ms: round(durationOf(story)),
    first_byte_ms: roundOrNull(story.firstByteMs),
    prompt_tokens: story.promptTokens ?? null,
    completion_tokens: story.completionTokens ?? null,
  };
}

/** For the holder of its key: without backends, whose words may quote more than the key may know. */
export function ownRow(stories: Pick<Stories, "startedAt">, story: RequestRecord, cost: number | undefined) {
  const { key_id, user_id, organization_id, client, target, backend, vendor_batch, failure, attempts, ...row } =
    requestRow(stories, story);
  return {
    ...row,
    model: story.shownModel,
    cost: cost ?? null,
    cached: story.cache === "HIT",
    attempts: story.steps.flatMap((step) => (step.kind === "attempt" ? [ownAttempt(step)] : [])),
  };
}

function ownAttempt({ model, failure, status, durationMs }: AttemptStep) {
  return {
    model,
    outcome: attemptOutcome(failure, durationMs),
    failure: failure ?? null,
    status: status ?? null,
    duration_ms: roundOrNull(durationMs),
  };
}

function attemptOutcome(
  failure: string | undefined,
  durationMs: number | undefined,
): "failed" | "running" | "succeeded" {
  return failure !== undefined ? "failed" : durationMs === undefined ? "running" : "succeeded";
}

const outcomeOf = ({ outcome }: RequestRecord) => outcome ?? RUNNING;

function durationOf(story: RequestRecord): number {
  return story.durationMs ?? story.sinceStartMs;
}

type WithoutText<Step> = Step extends Step ? Omit<Step, "text"> : never;

function stepView(step: StoryStep): WithoutText<RequestStep> {
  const at_ms = round(step.atMs);
  switch (step.kind) {
    case "attempt":
      return {
        kind: step.kind,
        at_ms,
        backend: step.backend,
        model: step.model,
        strategy: step.strategy ?? null,
        score_means: step.scoreMeans ?? null,
        candidates: (step.candidates ?? []).map((candidate) => candidateView(candidate, step)),
        outcome: attemptOutcome(step.failure, step.durationMs),
        failure: step.failure ?? null,
        detail: step.detail ?? null,
        retry_after_ms: roundOrNull(step.retryAfterMs),
        in_panic: step.inPanic === true,
        status: step.status ?? null,
        duration_ms: roundOrNull(step.durationMs),
        first_byte_ms: roundOrNull(step.firstByteMs),
      };
    case "wait":
      return {
        ...{ kind: step.kind, at_ms, duration_ms: round(step.durationMs), reason: step.reason },
        class: step.class ?? null,
      };
    case "fallback":
    case "takeover":
      return { kind: step.kind, at_ms, from: step.from, to: step.to, reason: step.reason };
    case "shared":
      return { kind: step.kind, at_ms, leader: step.leader };
    case "file":
      return { kind: step.kind, at_ms, field: step.field };
    case "hook": {
      const { kind, hook, event, verdict, durationMs, detail, note } = step;
      return {
        kind,
        at_ms,
        hook,
        event,
        verdict,
        duration_ms: round(durationMs),
        detail: detail ?? null,
        note: note ?? null,
      };
    }
    case "refused":
      return { kind: step.kind, at_ms, reason: step.reason };
  }
}

function candidateView(candidate: Candidate, step: AttemptStep): CandidateRow {
  const { backend, score, inFlight, latencyMs, excluded } = candidate;
  return {
    backend,
    score,
    in_flight: inFlight,
    latency_ms: latencyMs,
    excluded,
    chosen: backend === step.backend,
    why: candidateWords(candidate, step),
  };
}

function round(durationMs: number): number {
  return Math.round(inMicroseconds(durationMs) / 100) / 10;
}

/** The disk keeps microseconds: by way of them a request looks the same from memory and from disk. */
function inMicroseconds(timeMs: number): number {
  return Math.round(timeMs * 1000);
}

function roundOrNull(durationMs: number | undefined): number | null {
  return durationMs === undefined ? null : round(durationMs);
}
