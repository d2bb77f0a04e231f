// What one finished request, and each of its attempts, adds to the metrics. On the path of every request: series are
// looked up once and held.

import type { Usage } from "../generation/usage.ts";
import { getOrMake } from "../lib/get-or-make.ts";
import { lazily } from "../lib/lazily.ts";
import { countedUsage } from "../stats/counted.ts";
import type { Outcome } from "../stats/outcome.ts";
import type { RequestRecord, RouteArm } from "../stats/request-record.ts";
import { INSTRUMENTS } from "./instruments.ts";
import { type Histogram, MAX_SERIES, type MetricsRegistry } from "./registry.ts";

/** gen_ai.operation.name where the conventions have a word of their own for it. */
const OPERATION_NAMES: Readonly<Record<string, string>> = {
  chat: "chat",
  responses: "chat",
  messages: "chat",
  "ollama-api": "chat",
  completions: "text_completion",
  embeddings: "embeddings",
  "embed-sparse": "embeddings",
  "embed-content": "embeddings",
  "embed-one-content": "embeddings",
  "generate-content": "generate_content",
  "invoke-embeddings": "embeddings",
  converse: "chat",
};

/** The name of an operation in the OpenTelemetry conventions. */
export function operationName(operation: string): string {
  return OPERATION_NAMES[operation] ?? operation;
}

/** The series of one operation of a model on one backend. */
function operationSeries(registry: MetricsRegistry, operation: string, model: string, backend: string) {
  const name = operationName(operation);
  return {
    requests: held((status: number) =>
      registry.counter(INSTRUMENTS.requests, operation, model, backend, String(status)),
    ),
    ...durations((error) => registry.histogram(INSTRUMENTS.requestDuration, name, model, backend, error)),
    firstToken: lazily(() => registry.histogram(INSTRUMENTS.timeToFirstToken, name, model, backend)),
    perToken: lazily(() => registry.histogram(INSTRUMENTS.timePerOutputToken, name, model, backend)),
    tokenUsage: held((type: TokenType) => registry.histogram(INSTRUMENTS.tokenUsage, name, model, backend, type)),
  };
}

/** The series of one model on one backend. */
function modelSeries(registry: MetricsRegistry, model: string, backend: string) {
  return {
    model,
    operation: held((operation: string) => operationSeries(registry, operation, model, backend)),
    tokens: held((type: TokenType) => registry.counter(INSTRUMENTS.tokens, model, backend, type)),
    cost: registry.counter(INSTRUMENTS.cost, model, backend),
  };
}

/** The series of the attempts at one backend. */
function attemptSeries(registry: MetricsRegistry, backend: string) {
  return {
    ...durations((error) => registry.histogram(INSTRUMENTS.attemptDuration, backend, error)),
    firstToken: lazily(() => registry.histogram(INSTRUMENTS.attemptFirstToken, backend)),
  };
}

/** A failure is rare enough to be looked up each time. */
function durations(look: (error: string) => Histogram) {
  return { succeeded: look(""), failed: (error: string) => look(error.slice(0, 64)) };
}

/** Looks up what is asked for once, and holds it. */
function held<Key, Value>(look: (key: Key) => Value): (key: Key) => Value {
  const known = new Map<Key, Value>();
  return (key) => known.get(key) ?? getOrMake(known, key, look);
}

function keySeries(registry: MetricsRegistry, key: string, organization: string) {
  return {
    organization,
    requests: held((outcome: Outcome) => registry.counter(INSTRUMENTS.keyRequests, key, organization, outcome)),
    tokens: held((type: TokenType) => registry.counter(INSTRUMENTS.keyTokens, key, organization, type)),
    cost: lazily(() => registry.counter(INSTRUMENTS.keyCost, key, organization)),
  };
}

/** The series of one target of a route; both names are configured. */
function armSeries(registry: MetricsRegistry, route: string, arm: string) {
  return {
    requests: held((outcome: Outcome) => registry.counter(INSTRUMENTS.routeRequests, route, arm, outcome)),
    firstToken: lazily(() => registry.histogram(INSTRUMENTS.routeFirstToken, route, arm)),
    outputTokens: lazily(() => registry.counter(INSTRUMENTS.routeOutputTokens, route, arm)),
    cost: lazily(() => registry.counter(INSTRUMENTS.routeCost, route, arm)),
  };
}

type TokenType = "input" | "output" | "cache_read" | "cache_write" | "reasoning";
type OperationSeries = ReturnType<typeof operationSeries>;
export type ModelSeries = ReturnType<typeof modelSeries>;
export type AttemptSeries = ReturnType<typeof attemptSeries>;
export type RequestMetrics = ReturnType<typeof createRequestMetrics>;

/** @param isByKey - whether keys have metrics of their own */
export function createRequestMetrics(registry: MetricsRegistry, isByKey: () => boolean) {
  /** Holds keys that are or were configured. */
  const keys = new Map<string, ReturnType<typeof keySeries>>();

  function ofKey(keyId: string, organization = "") {
    const known = keys.get(keyId);
    if (known?.organization === organization) return known;
    const series = keySeries(registry, keyId, organization);
    if (known !== undefined || keys.size < MAX_SERIES) keys.set(keyId, series);
    return series;
  }

  /** Holds targets that are or were configured. */
  const arms = new Map<string, ReturnType<typeof armSeries>>();

  function ofArm({ route, arm }: RouteArm) {
    const key = `${route}\n${arm}`;
    const known = arms.get(key);
    if (known !== undefined) return known;
    const series = armSeries(registry, route, arm);
    if (arms.size < MAX_SERIES) arms.set(key, series);
    return series;
  }

  /** The targets that failed, and the one that was asked last. */
  function routed(
    { arms: asked = [], failedArms = [], outcome = "failed", firstByteMs, usage }: RequestRecord,
    cost: number,
  ) {
    for (const arm of failedArms) ofArm(arm).requests("failed").value++;
    for (const arm of asked) {
      const series = ofArm(arm);
      series.requests(outcome).value++;
      if (firstByteMs !== undefined && failedArms.length === 0) series.firstToken().observe(firstByteMs / 1000);
      if (usage !== undefined) series.outputTokens().value += usage.output.total;
      if (cost > 0) series.cost().value += cost;
    }
  }

  const cacheDecisions = {
    HIT: registry.counter(INSTRUMENTS.cacheDecisions, "hit"),
    MISS: registry.counter(INSTRUMENTS.cacheDecisions, "miss"),
    BYPASS: registry.counter(INSTRUMENTS.cacheDecisions, "bypass"),
  };
  return {
    /** `backend` is a name that may be counted by itself. */
    attempts: (backend: string) => attemptSeries(registry, backend),
    attempted(
      { succeeded, failed, firstToken }: AttemptSeries,
      failure: string | undefined,
      durationMs: number,
      firstTokenMs: number | undefined,
    ): void {
      (failure === undefined ? succeeded : failed(failure)).observe(durationMs / 1000);
      if (firstTokenMs !== undefined) firstToken().observe(firstTokenMs / 1000);
    },
    /** Both are names that may be counted by themselves. */
    model(model: string, backend = ""): ModelSeries {
      registry.counter(INSTRUMENTS.retries, model, backend); // stands at 0, so that the first one is seen as an increase
      return modelSeries(registry, model, backend);
    },
    finished(series: ModelSeries, request: RequestRecord, cost: number): void {
      const { status = 0, outcome = "failed", durationMs = 0, failure, firstByteMs, cache } = request;
      const operation = series.operation(request.operation);
      operation.requests(status).value++;
      const duration = outcome === "succeeded" ? operation.succeeded : operation.failed(failure ?? `status_${status}`);
      duration.observe(durationMs / 1000);
      // An answer from the cache streams at another pace than a model does.
      if (request.stream && firstByteMs !== undefined && cache !== "HIT") timeStream(operation, request, firstByteMs);
      const usage = countedUsage(request);
      if (usage !== undefined) countTokens(series, operation, usage);
      if (cost > 0) series.cost.value += cost;
      if (request.keyId !== undefined && isByKey()) {
        const key = ofKey(request.keyId, request.organizationId);
        key.requests(outcome).value++;
        if (usage !== undefined) {
          key.tokens("input").value += usage.input.total;
          key.tokens("output").value += usage.output.total;
        }
        if (cost > 0) key.cost().value += cost;
      }
      for (const { model, backend } of request.retried) {
        registry.counter(INSTRUMENTS.retries, model, backend).value++;
      }
      if (cache !== undefined) cacheDecisions[cache].value++;
      if (request.route !== undefined) routed(request, cost);
      if (request.isShared) registry.counter(INSTRUMENTS.sharedCalls, series.model).value++;
      if (request.fallbackReason !== undefined) {
        registry.counter(INSTRUMENTS.fallbacks, series.model, request.fallbackReason.slice(0, 64)).value++;
      }
    },
    /** It was refused before it was known which model it asks for. */
    turnedAway({ keyId, organizationId }: KeyOfRequest): void {
      if (keyId !== undefined && isByKey()) ofKey(keyId, organizationId).requests("refused").value++;
    },
  };
}

export type KeyOfRequest = Pick<RequestRecord, "keyId" | "organizationId">;

function timeStream(operation: OperationSeries, request: RequestRecord, firstByteMs: number): void {
  operation.firstToken().observe(firstByteMs / 1000);
  const { usage, outcome, durationMs = 0 } = request;
  const outputTokens = usage?.output.total ?? 0;
  if (outputTokens < 2 || outcome !== "succeeded") return;
  operation.perToken().observe((durationMs - firstByteMs) / 1000 / (outputTokens - 1));
}

function countTokens({ tokens }: ModelSeries, { tokenUsage }: OperationSeries, { input, output }: Usage): void {
  tokens("input").value += input.total;
  tokens("output").value += output.total;
  tokenUsage("input").observe(input.total);
  if (output.total > 0) tokenUsage("output").observe(output.total);
  if (input.cacheRead) tokens("cache_read").value += input.cacheRead;
  if (input.cacheWrite) tokens("cache_write").value += input.cacheWrite;
  if (output.reasoning) tokens("reasoning").value += output.reasoning;
}
