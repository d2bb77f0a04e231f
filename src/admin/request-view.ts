// What became of requests, in words: the list of the latest (GET /admin/requests) and one of them, step by step
// (GET /admin/requests/{id}).

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Candidate, Stories, Story, StoryStep } from "../stats/stories.ts";
import { badParameter, readNumber, readTime } from "./query.ts";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 1_000;
/** Requests with the same id of a client that an explanation names. */
const MAX_OTHERS = 20;
const CLIENT_CLOSED_REQUEST = 499;

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
    if (story.start.id === cursor) isBehindCursor = true;
  }
  return {
    requests: page.map((story) => requestRow(stories, story)),
    total,
    next_cursor: hasMore ? (page.at(-1)?.start.id ?? null) : null,
  };
}

type Filter = (story: Story) => boolean;

function readFilter(stories: Stories, query: URLSearchParams): Filter {
  const filters: Filter[] = [];
  const model = query.get("model");
  if (model !== null) filters.push(({ start, end }) => start.model === model || end?.answeredBy === model);
  const backend = query.get("backend");
  if (backend !== null) filters.push(({ steps, end }) => end?.backend === backend || steps.some(isAttemptAt(backend)));
  const status = query.get("status");
  if (status !== null) filters.push(statusFilter(status));
  const key = query.get("key");
  if (key !== null) filters.push(({ start }) => start.keyId === key);
  const part = query.get("id");
  if (part !== null) filters.push(({ start }) => start.id.includes(part) || start.requestId.includes(part));
  const minDurationMs = readNumber(query, "min_duration_ms", 0);
  if (minDurationMs !== undefined) filters.push((story) => durationOf(story) >= minDurationMs);
  const sinceMs = readTime(query, "since");
  if (sinceMs !== undefined) filters.push((story) => stories.startedAt(story) >= sinceMs);
  const untilMs = readTime(query, "until");
  if (untilMs !== undefined) filters.push((story) => stories.startedAt(story) < untilMs);
  return (story) => filters.every((isMatch) => isMatch(story));
}

function statusFilter(text: string): Filter {
  const pattern = /^([1-5])(\d\d|xx)$/i.exec(text);
  if (pattern === null) throw badParameter("status", "a status such as 502, or a class of them such as 5xx");
  const isClass = Number.isNaN(Number(text));
  return ({ end }) =>
    end !== undefined && (isClass ? Math.floor(end.status / 100) === Number(pattern[1]) : end.status === Number(text));
}

function isAttemptAt(backend: string): (step: StoryStep) => boolean {
  return (step) => step.kind === "attempt" && step.backend === backend;
}

/** The answer of GET /admin/requests/{id}; throws 404. */
export function explainRequest(stories: Stories, id: string): object {
  const story = stories.find(id);
  if (story === undefined) {
    throw new GatewayError(
      ERRORS.routeNotFound,
      `This request is not known, or no longer: the latest ${stories.size} are kept. Its id stands in the headers X-Signalbox-Request-ID and X-Request-ID of the answer.`,
    );
  }
  const { end, steps } = story;
  return {
    ...requestRow(stories, story),
    cache: story.cache === undefined ? null : { decision: story.cache, reason: story.cacheReason ?? null },
    timings: {
      total_ms: round(durationOf(story)),
      gateway_ms: end?.backendMs === undefined ? null : round(Math.max(0, end.durationMs - end.backendMs)),
      backend_ms: roundOrNull(end?.backendMs),
      first_token_ms: story.start.stream ? roundOrNull(end?.firstByteMs) : null,
      first_byte_ms: roundOrNull(end?.firstByteMs),
      waiting_ms: round(steps.reduce((sum, step) => sum + (step.kind === "wait" ? step.durationMs : 0), 0)),
    },
    steps: steps.map(stepView),
    steps_dropped: story.droppedSteps,
    others: othersOf(stories, story),
  };
}

/** Further requests with the same id of a client, by their own. */
function othersOf(stories: Stories, { start }: Story): string[] {
  const others: string[] = [];
  for (const { start: other } of stories.newestFirst()) {
    if (other.requestId === start.requestId && other.id !== start.id) others.push(other.id);
    if (others.length === MAX_OTHERS) break;
  }
  return others;
}

/** What the list and an explanation have in common. */
function requestRow(stories: Stories, story: Story): object {
  const { start, end, steps } = story;
  return {
    id: start.id,
    request_id: start.requestId,
    started_at: new Date(stories.startedAt(story)).toISOString(),
    finished: end !== undefined,
    outcome: outcomeOf(story),
    operation: start.operation,
    model: start.model,
    answered_by: end?.answeredBy ?? null,
    stream: start.stream,
    key_id: start.keyId ?? null,
    backend: end?.backend ?? null,
    status: end?.status ?? null,
    failure: end?.failure ?? null,
    attempts: steps.filter(({ kind }) => kind === "attempt").length,
    duration_ms: round(durationOf(story)),
    first_byte_ms: roundOrNull(end?.firstByteMs),
    prompt_tokens: end?.promptTokens ?? null,
    completion_tokens: end?.completionTokens ?? null,
  };
}

export const OUTCOMES = ["running", "succeeded", "failed", "stream_broken", "client_left"] as const;

function outcomeOf({ end }: Story): (typeof OUTCOMES)[number] {
  if (end === undefined) return "running";
  if (end.status === CLIENT_CLOSED_REQUEST) return "client_left";
  if (end.streamBroke === true) return "stream_broken";
  return end.failure === undefined && end.status < 400 ? "succeeded" : "failed";
}

function durationOf(story: Story): number {
  return story.end?.durationMs ?? story.sinceStartMs;
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
        candidates: (step.candidates ?? []).map(candidateView),
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

function candidateView({ backend, score, inFlight, latencyMs, excluded }: Candidate): object {
  return { backend, score, in_flight: inFlight, latency_ms: latencyMs, excluded };
}

function round(durationMs: number): number {
  return Math.round(durationMs * 10) / 10;
}

function roundOrNull(durationMs: number | undefined): number | null {
  return durationMs === undefined ? null : round(durationMs);
}
