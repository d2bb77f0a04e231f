// What became of requests, in words: the list of the latest (GET /admin/requests) and one of them, step by step
// (GET /admin/requests/{id}).

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { ErrorRecord } from "../stats/error-recorder.ts";
import { OUTCOMES } from "../stats/outcome.ts";
import type { AttemptStep, Candidate, Stories, Story, StoryStep } from "../stats/stories.ts";
import { badParameter, readNumber, readTime } from "./query.ts";
import { candidateWords, explain, stepWords, summarize, tokensPerSecond } from "./request-words.ts";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 1_000;
/** Requests with the same id of a client that an explanation names. */
const MAX_OTHERS = 20;
export const CLIENT_CLOSED_REQUEST = 499;

/** The answer of GET /admin/requests, the newest first; throws 400 for a parameter that makes no sense. */
export function listRequests(stories: Stories, query: URLSearchParams): object {
  const matches = readFilter(stories, query);
  const limit = Math.min(readNumber(query, "limit", 1) ?? DEFAULT_LIMIT, MAX_LIMIT);
  const cursor = query.get("cursor");
  const page: Story[] = [];
  let total = 0;
  let isBehindCursor = cursor === null;
  let hasMore = false;
  for (const story of stories.newestFirst()) {
    if (matches(story)) {
      total++;
      if (isBehindCursor && page.length === limit) hasMore = true;
      else if (isBehindCursor) page.push(story);
    }
    if (story.id === cursor) isBehindCursor = true;
  }
  return {
    requests: page.map((story) => requestRow(stories, story)),
    total,
    next_cursor: hasMore ? (page.at(-1)?.id ?? null) : null,
  };
}

type Filter = (story: Story) => boolean;

function readFilter(stories: Stories, query: URLSearchParams): Filter {
  const filters: Filter[] = [];
  const model = query.get("model");
  if (model !== null) filters.push((story) => story.model === model || story.answeredBy === model);
  const backend = query.get("backend");
  if (backend !== null) filters.push((story) => story.wasAt(backend));
  const status = query.get("status");
  if (status !== null) filters.push(statusFilter(status));
  const key = query.get("key");
  if (key !== null) filters.push(({ keyId }) => keyId === key);
  const user = query.get("user");
  if (user !== null) filters.push(({ userId }) => userId === user);
  const organization = query.get("organization");
  if (organization !== null) filters.push(({ organizationId }) => organizationId === organization);
  const outcome = query.get("outcome");
  if (outcome !== null) {
    if (!SHOWN_OUTCOMES.includes(outcome)) throw badParameter("outcome", `one of ${SHOWN_OUTCOMES.join(", ")}`);
    filters.push((story) => outcomeOf(story) === outcome);
  }
  const part = query.get("id");
  if (part !== null) filters.push(({ id, requestId }) => id.includes(part) || requestId.includes(part));
  const minDurationMs = readNumber(query, "min_duration_ms", 0);
  if (minDurationMs !== undefined) filters.push((story) => durationOf(story) >= minDurationMs);
  const sinceMs = readTime(query, "since");
  if (sinceMs !== undefined) filters.push((story) => stories.startedAt(story) >= sinceMs);
  const untilMs = readTime(query, "until");
  if (untilMs !== undefined) filters.push((story) => stories.startedAt(story) < untilMs);
  return (story) => filters.every((isMatch) => isMatch(story));
}

/** A status, or a class of them. */
export const STATUS_PATTERN = "^([1-5])(\\d\\d|[xX][xX])$";
const STATUS = new RegExp(STATUS_PATTERN);

function statusFilter(text: string): Filter {
  const pattern = STATUS.exec(text);
  if (pattern === null) throw badParameter("status", "a status such as 502, or a class of them such as 5xx");
  const isClass = Number.isNaN(Number(text));
  return ({ status }) =>
    status !== undefined && (isClass ? Math.floor(status / 100) === Number(pattern[1]) : status === Number(text));
}

/**
 * The answer of GET /admin/requests/{id}; throws 404.
 * @param errorOf - what a client was told, by the gateway's own id of its request
 */
export function explainRequest(
  stories: Stories,
  id: string,
  errorOf: (id: string) => ErrorRecord | undefined = () => undefined,
): object {
  const story = stories.find(id);
  if (story === undefined) {
    throw new GatewayError(
      ERRORS.routeNotFound,
      `This request is not known, or no longer: the latest ${stories.size} are kept. Its id stands in the headers X-Signalbox-Request-ID and X-Request-ID of the answer.`,
    );
  }
  const { steps, durationMs, backendMs, firstByteMs } = story;
  const error = errorOf(story.id);
  const told = error?.message;
  return {
    ...requestRow(stories, story),
    summary: summarize(story, told),
    explanation: explain(story, told),
    ended_by: story.endedBy ?? null,
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
    others: othersOf(stories, story),
  };
}

/** Further requests with the same id of a client, by their own. */
function othersOf(stories: Stories, { id, requestId }: Story): string[] {
  const others: string[] = [];
  for (const other of stories.newestFirst()) {
    if (other.requestId === requestId && other.id !== id) others.push(other.id);
    if (others.length === MAX_OTHERS) break;
  }
  return others;
}

/** What the list and an explanation have in common. */
export function requestRow(stories: Pick<Stories, "startedAt">, story: Story): object {
  return {
    id: story.id,
    request_id: story.requestId,
    started_at: new Date(stories.startedAt(story)).toISOString(),
    finished: story.isOver,
    outcome: outcomeOf(story),
    operation: story.operation,
    model: story.model,
    answered_by: story.answeredBy ?? null,
    stream: story.stream,
    key_id: story.keyId ?? null,
    user_id: story.userId ?? null,
    organization_id: story.organizationId ?? null,
    client: story.clientAddress ?? null,
    target: story.target ?? null,
    backend: story.backend ?? null,
    status: story.status ?? null,
    failure: story.failure ?? null,
    code: story.code ?? null,
    attempts: story.attempts,
    duration_ms: round(durationOf(story)),
    first_byte_ms: roundOrNull(story.firstByteMs),
    prompt_tokens: story.promptTokens ?? null,
    completion_tokens: story.completionTokens ?? null,
  };
}

const RUNNING = "running";
/** Of the list and of an explanation. */
export const SHOWN_OUTCOMES: readonly string[] = [RUNNING, ...OUTCOMES];

const outcomeOf = ({ outcome }: Story): string => outcome ?? RUNNING;

function durationOf(story: Story): number {
  return story.durationMs ?? story.sinceStartMs;
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
        score_means: step.scoreMeans ?? null,
        candidates: (step.candidates ?? []).map((candidate) => candidateView(candidate, step)),
        outcome: step.failure !== undefined ? "failed" : step.durationMs === undefined ? "running" : "succeeded",
        failure: step.failure ?? null,
        detail: step.detail ?? null,
        retry_after_ms: roundOrNull(step.retryAfterMs),
        in_panic: step.inPanic === true,
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
    case "file":
      return { kind: step.kind, at_ms, field: step.field };
    case "refused":
      return { kind: step.kind, at_ms, reason: step.reason };
  }
}

function candidateView(candidate: Candidate, step: AttemptStep): object {
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
  return Math.round(durationMs * 10) / 10;
}

function roundOrNull(durationMs: number | undefined): number | null {
  return durationMs === undefined ? null : round(durationMs);
}
