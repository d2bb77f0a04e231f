// What one finished request, and each of its attempts, adds to the metrics. On the path of every request: series are
// looked up once and held.

import type { Usage } from "../generation/usage.ts";
import { countedUsage, type FinishedRequest, hasFailed } from "../stats/finished-request.ts";
import { INSTRUMENTS } from "./instruments.ts";
import type { Counter, Histogram, MetricsRegistry } from "./registry.ts";

/** The series of one model on one backend. */
export interface MetricsHandle {
  readonly model: string;
  readonly backend: string;
  /** By operation. */
  readonly operations: Map<string, OperationSeries>;
  tokens: TokenSeries | undefined;
  readonly cost: Counter;
}

interface OperationSeries {
  name: string;
  byStatus: Map<number, Counter>;
  succeeded: Histogram;
  firstToken: Histogram | undefined;
  perToken: Histogram | undefined;
  inputTokens: Histogram | undefined;
  outputTokens: Histogram | undefined;
}

interface TokenSeries {
  input: Counter;
  output: Counter;
  cacheRead: Counter | undefined;
  cacheWrite: Counter | undefined;
  reasoning: Counter | undefined;
}

/** The series of the attempts at one backend. */
export interface AttemptSeries {
  readonly backend: string;
  readonly succeeded: Histogram;
  firstToken: Histogram | undefined;
}

/** gen_ai.operation.name where the conventions have a word of their own for it. */
const OPERATION_NAMES: Readonly<Record<string, string>> = {
  chat: "chat",
  responses: "chat",
  messages: "chat",
  completions: "text_completion",
  embeddings: "embeddings",
  "embed-sparse": "embeddings",
  "embed-content": "embeddings",
  "generate-content": "generate_content",
};

export interface RequestMetrics {
  /** `model` is a name that may be counted by itself. */
  handle(model: string, backend: string | undefined): MetricsHandle;
  finished(handle: MetricsHandle, request: FinishedRequest, cost: number): void;
  /** `backend` is a name that may be counted by itself. */
  attempts(backend: string): AttemptSeries;
  attempted(
    series: AttemptSeries,
    failure: string | undefined,
    durationMs: number,
    firstTokenMs: number | undefined,
  ): void;
}

export function createRequestMetrics(registry: MetricsRegistry): RequestMetrics {
  const hits = registry.counter(INSTRUMENTS.cacheDecisions, "hit");
  const misses = registry.counter(INSTRUMENTS.cacheDecisions, "miss");
  const bypasses = registry.counter(INSTRUMENTS.cacheDecisions, "bypass");

  function operationSeries(handle: MetricsHandle, operation: string): OperationSeries {
    const name = OPERATION_NAMES[operation] ?? operation;
    const series: OperationSeries = {
      name,
      byStatus: new Map(),
      succeeded: registry.histogram(INSTRUMENTS.requestDuration, name, handle.model, handle.backend, ""),
      firstToken: undefined,
      perToken: undefined,
      inputTokens: undefined,
      outputTokens: undefined,
    };
    handle.operations.set(operation, series);
    return series;
  }

  function statusCounter(
    { model, backend }: MetricsHandle,
    series: OperationSeries,
    request: FinishedRequest,
  ): Counter {
    const status = String(request.status);
    const counter = registry.counter(INSTRUMENTS.requests, request.operation, model, backend, status);
    series.byStatus.set(request.status, counter);
    return counter;
  }

  /** A failure is rare enough to be looked up each time. */
  function failedDuration({ model, backend }: MetricsHandle, { name }: OperationSeries, request: FinishedRequest) {
    const error = request.failure ?? `status_${request.status}`;
    return registry.histogram(INSTRUMENTS.requestDuration, name, model, backend, error.slice(0, 64));
  }

  function countTokens(handle: MetricsHandle, series: OperationSeries, usage: Usage): void {
    const { model, backend } = handle;
    const { input, output } = usage;
    const tokens = tokenSeries(handle);
    tokens.input.value += input.total;
    tokens.output.value += output.total;
    series.inputTokens ??= registry.histogram(INSTRUMENTS.tokenUsage, series.name, model, backend, "input");
    series.inputTokens.observe(input.total);
    if (output.total > 0) {
      series.outputTokens ??= registry.histogram(INSTRUMENTS.tokenUsage, series.name, model, backend, "output");
      series.outputTokens.observe(output.total);
    }
    if (input.cacheRead) {
      tokens.cacheRead ??= registry.counter(INSTRUMENTS.tokens, model, backend, "cache_read");
      tokens.cacheRead.value += input.cacheRead;
    }
    if (input.cacheWrite) {
      tokens.cacheWrite ??= registry.counter(INSTRUMENTS.tokens, model, backend, "cache_write");
      tokens.cacheWrite.value += input.cacheWrite;
    }
    if (output.reasoning) {
      tokens.reasoning ??= registry.counter(INSTRUMENTS.tokens, model, backend, "reasoning");
      tokens.reasoning.value += output.reasoning;
    }
  }

  function tokenSeries(handle: MetricsHandle): TokenSeries {
    handle.tokens ??= {
      input: registry.counter(INSTRUMENTS.tokens, handle.model, handle.backend, "input"),
      output: registry.counter(INSTRUMENTS.tokens, handle.model, handle.backend, "output"),
      cacheRead: undefined,
      cacheWrite: undefined,
      reasoning: undefined,
    };
    return handle.tokens;
  }

  function timeStream(handle: MetricsHandle, series: OperationSeries, request: FinishedRequest, firstByteMs: number) {
    const { model, backend } = handle;
    series.firstToken ??= registry.histogram(INSTRUMENTS.timeToFirstToken, series.name, model, backend);
    series.firstToken.observe(firstByteMs / 1000);
    const outputTokens = request.usage?.output.total ?? 0;
    if (outputTokens < 2 || hasFailed(request)) return;
    series.perToken ??= registry.histogram(INSTRUMENTS.timePerOutputToken, series.name, model, backend);
    series.perToken.observe((request.durationMs - firstByteMs) / 1000 / (outputTokens - 1));
  }

  return {
    attempts(backend) {
      const succeeded = registry.histogram(INSTRUMENTS.attemptDuration, backend, "");
      return { backend, succeeded, firstToken: undefined };
    },
    attempted(series, failure, durationMs, firstTokenMs) {
      const { backend, succeeded } = series;
      const duration =
        failure === undefined
          ? succeeded
          : registry.histogram(INSTRUMENTS.attemptDuration, backend, failure.slice(0, 64));
      duration.observe(durationMs / 1000);
      if (firstTokenMs === undefined) return;
      series.firstToken ??= registry.histogram(INSTRUMENTS.attemptFirstToken, backend);
      series.firstToken.observe(firstTokenMs / 1000);
    },
    handle(model, backend = "") {
      registry.counter(INSTRUMENTS.retries, model, backend); // stands at 0, so that the first one is seen as an increase
      return {
        model,
        backend,
        operations: new Map(),
        tokens: undefined,
        cost: registry.counter(INSTRUMENTS.cost, model, backend),
      };
    },
    finished(handle, request, cost) {
      const series = handle.operations.get(request.operation) ?? operationSeries(handle, request.operation);
      const counter = series.byStatus.get(request.status) ?? statusCounter(handle, series, request);
      counter.value++;
      const duration = hasFailed(request) ? failedDuration(handle, series, request) : series.succeeded;
      duration.observe(request.durationMs / 1000);
      // What was kept by the cache streams at another pace than a model does.
      if (request.stream && request.firstByteMs !== undefined && request.cache !== "HIT") {
        timeStream(handle, series, request, request.firstByteMs);
      }
      const usage = countedUsage(request);
      if (usage !== undefined) countTokens(handle, series, usage);
      if (cost > 0) handle.cost.value += cost;
      for (const { model, backend } of request.retried ?? []) {
        registry.counter(INSTRUMENTS.retries, model, backend).value++;
      }
      if (request.cache !== undefined) {
        (request.cache === "HIT" ? hits : request.cache === "MISS" ? misses : bypasses).value++;
      }
      if (request.shared === true) registry.counter(INSTRUMENTS.sharedCalls, handle.model).value++;
      if (request.fallback !== undefined) {
        registry.counter(INSTRUMENTS.fallbacks, handle.model, request.fallback.slice(0, 64)).value++;
      }
    },
  };
}
