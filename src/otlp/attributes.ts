// The attributes of spans, by the OpenTelemetry conventions for generative AI as of version 1.41.0, the last one before they
// moved to a repository of their own; and the gateway's own, which begin with "signalbox.".

import type { Backend } from "../backends/backend.ts";
import { getOrMake } from "../lib/get-or-make.ts";
import { operationName } from "../metrics/request-metrics.ts";
import { type Alike, type Attributes, type AttributeValue, type OtlpSpan, SPAN_KIND } from "./data.ts";

export const SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0";

/** Clients choose the names of models; longer ones are cut. */
const MAX_TEXT_LENGTH = 256;
/** Equals the limit in metrics. */
const MAX_ERROR_LENGTH = 64;
/** Most models of a backend, and most things that one of them was said alike, that are kept for the next span. */
const MAX_MODELS = 1_000;
const MAX_ALIKE = 30;

type GivenAttributes = readonly (readonly [name: string, value: AttributeValue | undefined])[];

function present(attributes: GivenAttributes): Attributes {
  return attributes.filter(([, value]) => value !== undefined) as unknown as Attributes;
}

/** The provider that a backend stands for. */
export function providerOf({ kind }: Backend): string {
  return kind.provider ?? kind.name;
}

/** Where a backend is: its host and port, or the path of its socket. */
export function addressOf({ rootUrl, socketPath, kind }: Backend): Attributes {
  if (socketPath !== undefined) return [["server.address", socketPath]];
  const url = kind.isEmbedded === true ? null : URL.parse(rootUrl);
  if (url === null) return [];
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  const address = url.hostname.replace(/^\[|\]$/g, "");
  return [
    ["server.address", address],
    ["server.port", port],
  ];
}

/** The names of what no two spans have alike. */
export const OWN = {
  requestId: "signalbox.request.id",
  firstChunk: "gen_ai.response.time_to_first_chunk",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  cacheReadTokens: "gen_ai.usage.cache_read.input_tokens",
  cacheWriteTokens: "gen_ai.usage.cache_creation.input_tokens",
  reasoningTokens: "gen_ai.usage.reasoning.output_tokens",
} as const;

export function ownAttributes({ requestId, firstChunkMs, usage }: OtlpSpan): Attributes {
  return present([
    [OWN.requestId, requestId],
    [OWN.firstChunk, firstChunkMs === undefined ? undefined : seconds(firstChunkMs)],
    [OWN.inputTokens, usage?.input.total],
    [OWN.outputTokens, usage?.output.total],
    [OWN.cacheReadTokens, usage?.input.cacheRead],
    [OWN.cacheWriteTokens, usage?.input.cacheWrite],
    [OWN.reasoningTokens, usage?.output.reasoning],
  ]);
}

export function seconds(durationMs: number): { double: number } {
  return { double: Math.round(durationMs * 1000) / 1e6 };
}

/** A span is named by what is done and with which model. */
function spanName(operation: string, model: string): string {
  const name = operationName(operation);
  return model === "" ? name : `${name} ${model.slice(0, MAX_TEXT_LENGTH)}`;
}

/** All that decides what spans say alike, but for the backend. Few values each: what is counted or timed is not of it. */
export interface Traits {
  kind: Alike["kind"];
  operation: string;
  model: string;
  stream: boolean;
  /** HTTP; undefined where no answer came. */
  status: number | undefined;
  failure: string | undefined;
  finish: string | undefined;
  isError: boolean;
  /** Of a request: how many there were; of an attempt: how many came before it. */
  attempts: number;
  /** The others are known of requests only. */
  method: string;
  path: string;
  answeredBy: string | undefined;
  cache: string | undefined;
  fallback: string | undefined;
  shared: boolean;
}

/** Written out: every span is compared. What differs most often comes first. */
function areSame(one: Traits, other: Traits): boolean {
  return (
    one.kind === other.kind &&
    one.status === other.status &&
    one.path === other.path &&
    one.operation === other.operation &&
    one.stream === other.stream &&
    one.failure === other.failure &&
    one.finish === other.finish &&
    one.isError === other.isError &&
    one.attempts === other.attempts &&
    one.answeredBy === other.answeredBy &&
    one.cache === other.cache &&
    one.fallback === other.fallback &&
    one.shared === other.shared &&
    one.model === other.model &&
    one.method === other.method
  );
}

interface KnownModels {
  traits: Traits;
  alike: Alike;
}

export type AlikeSpans = ReturnType<typeof createAlikeSpans>;

export function createAlikeSpans() {
  // Weak: removed backends are collected.
  const known = new WeakMap<Backend, Map<string, KnownModels[]>>();
  /** For requests that reached no backend. */
  const withoutBackend = newModels();

  return (backend: Backend | undefined, traits: Traits): Alike => {
    if (!isWorthKeeping(traits)) return alikeOf(backend, traits);
    const models = backend === undefined ? withoutBackend : getOrMake(known, backend, newModels);
    let list = models.get(traits.model);
    if (list === undefined) {
      if (models.size >= MAX_MODELS) models.clear();
      list = [];
      models.set(traits.model, list);
    }
    for (const each of list) if (areSame(each.traits, traits)) return each.alike;
    const alike = alikeOf(backend, traits);
    if (list.length >= MAX_ALIKE) list.length = 0;
    list.push({ traits, alike });
    return alike;
  };
}

/** False if a text of a client or a backend is longer than what is exported: the span is made, but its traits are not kept. */
function isWorthKeeping({ model, path, finish = "", failure = "" }: Traits): boolean {
  return Math.max(model.length, path.length, finish.length, failure.length) <= MAX_TEXT_LENGTH;
}

function newModels(): Map<string, KnownModels[]> {
  return new Map();
}

function alikeOf(backend: Backend | undefined, traits: Traits): Alike {
  const { kind, operation, model, isError } = traits;
  const attributes = kind === SPAN_KIND.server ? ofRequest(backend, traits) : ofAttempt(backend, traits);
  return { name: spanName(operation, model), kind, isError, attributes, bytes: undefined };
}

function ofRequest(backend: Backend | undefined, traits: Traits): Attributes {
  const { method, path, answeredBy, attempts, cache, fallback, shared } = traits;
  return present([
    ...ofBoth(backend, traits),
    ["gen_ai.response.model", answeredBy?.slice(0, MAX_TEXT_LENGTH)],
    ["http.request.method", method || undefined],
    ["url.path", path.slice(0, MAX_TEXT_LENGTH) || undefined],
    ["signalbox.attempts", attempts],
    ["signalbox.response_cache", cache?.toLowerCase()],
    ["signalbox.fallback.reason", fallback?.slice(0, MAX_ERROR_LENGTH)],
    ["signalbox.shared", shared || undefined],
  ]);
}

function ofAttempt(backend: Backend | undefined, traits: Traits): Attributes {
  const resends = traits.attempts || undefined;
  const address = backend === undefined ? [] : addressOf(backend);
  return present([...ofBoth(backend, traits), ["http.request.resend_count", resends], ...address]);
}

function ofBoth(
  backend: Backend | undefined,
  { operation, model, stream, status, failure, finish }: Traits,
): GivenAttributes {
  return [
    ["gen_ai.operation.name", operationName(operation)],
    ["gen_ai.provider.name", backend && providerOf(backend)],
    ["gen_ai.request.model", model.slice(0, MAX_TEXT_LENGTH) || undefined],
    ["gen_ai.request.stream", stream || undefined],
    ["gen_ai.response.finish_reasons", finish === undefined ? undefined : [finish.slice(0, MAX_TEXT_LENGTH)]],
    ["http.response.status_code", status],
    ["error.type", failure?.slice(0, MAX_ERROR_LENGTH)],
    ["signalbox.backend", backend?.name],
  ];
}
