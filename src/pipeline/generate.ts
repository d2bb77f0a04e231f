// The whole sequence of a generation request, top to bottom: cache, calls in flight that can be shared, fallback chain,
// and what happens to the answer on its way out.

import { ownerOf } from "../access/owner.ts";
import { formatOf } from "../backends/operations.ts";
import { clientLeft, type GatewayError } from "../errors/gateway-error.ts";
import { ByteAllowance } from "../lib/byte-allowance.ts";
import type { KeptAnswers } from "../protocols/kept-answers.ts";
import { keptAnswers } from "../protocols/registry.ts";
import type { CachedAnswer, CacheInUse, RequestKey } from "../response-cache/cache.ts";
import { requestKey } from "../response-cache/key.ts";
import { bypassReason, type CacheDecision, isCacheablePlain, isCacheableStream } from "../response-cache/policy.ts";
import { type Replay, replayAnswer } from "../response-cache/replay.ts";
import type { RequestRecord } from "../stats/request-record.ts";
import type { UpstreamFailure } from "../upstream/failure.ts";
import {
  type ByteSink,
  type LiveStream,
  MAX_TRANSCRIPTS_BYTES,
  type RelayOptions,
  relayInto,
  relayStream,
} from "../upstream/relay.ts";
import { Transcript } from "../upstream/transcript.ts";
import type { RequestContext } from "./context.ts";
import { type Deduplicator, flightKey, isSharable, type SharedAnswer } from "./deduplicate.ts";
import type { FallbackChains, FallbackResult } from "./fallback.ts";
import { type MidStreamParts, takeoverFor } from "./mid-stream.ts";
import type { ModelRequest } from "./model-request.ts";
import type { Spending } from "./spending.ts";

/** What the front door adds to a stream, in its protocol. */
export interface StreamFrame {
  /**
   * Undefined where the answer has no place for one.
   * @param sent - the last events that the client has
   */
  errorEvent(failure: UpstreamFailure, sent: Uint8Array | undefined): string | undefined;
  /** Called exactly once, when this client's stream is over; undefined = it was complete. */
  ended(failure: UpstreamFailure | undefined): void;
  /** In place of ended(): a hook refuses the rest of the stream. Returns the event that says so. */
  refused(error: GatewayError, sent: Uint8Array | undefined): string | undefined;
}

/** `cache` is undefined where the cache has no say. */
export type Generated = { cache: CacheDecision | undefined } & (
  | { kind: "replayed"; replay: Replay }
  | { kind: "plain"; result: Extract<FallbackResult, { kind: "plain" }> }
  | { kind: "failed"; result: Extract<FallbackResult, { kind: "failed" }> }
  | { kind: "stream"; result: StreamHead; body: ReadableStream }
);

/** Throws GatewayError, or rejects with it, when no backend can take the request at all. */
export type Generate = (context: RequestContext, request: ModelRequest, frame: StreamFrame) => Promise<Generated>;

type OpenedStream = Extract<FallbackResult, { kind: "stream" }>;

/** A stream for those who do not relay it. Of one that another process relays, only its start is known here. */
interface StreamHead extends Omit<OpenedStream, "live"> {
  live: {
    exchange: Pick<LiveStream["exchange"], "startedAtMs">;
    stream?: Pick<LiveStream["stream"], "firstEvents">;
    reader?: Pick<LiveStream["reader"], "itemIds">;
  };
}

/** What an upstream call came to, and whether its plain answer was stored. */
type CallResult = FallbackResult & { isKept?: boolean };

/** What the clients of a shared call get: the outcome, and the record of the request that made the call. */
export interface SharedCall {
  record: Pick<RequestRecord, "id" | "attempts" | "dropped">;
  outcome: Exclude<CallResult, OpenedStream> | StreamHead | { kind: "refused"; error: unknown };
  /** The request that made the call is at another process. */
  isElsewhere?: true;
}

/** Calls in flight at other processes of this gateway. */
export interface FlightsElsewhere {
  /** Undefined when this process is to make the call. */
  join(key: string, ttlMs: number, signal: AbortSignal): Promise<SharedAnswer<SharedCall> | undefined>;
  /** A call that this process was to make is over. */
  landed(key: string): void;
}

/** Where and how the answer to a request is kept. */
interface Keeping {
  key: RequestKey;
  kept: KeptAnswers;
}

interface GeneratorParts extends MidStreamParts {
  chains: FallbackChains;
  /** Undefined: there are no budgets. */
  spending?: Pick<Spending, "noteQuota"> | undefined;
  deduplicator: Deduplicator<SharedCall>;
  /** Undefined: this is the only process. */
  flights?: FlightsElsewhere | undefined;
  /** Undefined while the cache is off. */
  cache: CacheInUse | undefined;
  /** Of the prompts that are put into requests, whatever the clients say; "" where there are none. */
  promptsDigest: string;
}

const encoder = new TextEncoder();

export function createGenerator(parts: GeneratorParts): Generate {
  const { chains, spending, deduplicator, flights, cache, promptsDigest } = parts;
  const transcripts = new ByteAllowance(MAX_TRANSCRIPTS_BYTES);

  /** A stored answer in the form that was asked for. */
  function replayFor(request: ModelRequest, kept: KeptAnswers, answer: CachedAnswer): Replay | undefined {
    const { stream, body } = request;
    const options = body.value.stream_options as { include_usage?: unknown } | null | undefined;
    return replayAnswer(kept, answer, stream, options?.include_usage === true);
  }

  /** Keeps the plain answer of an upstream call, if it may be kept: once, however many clients share it. */
  function keep(
    context: RequestContext,
    { model }: ModelRequest,
    storeUnder: Keeping | undefined,
    result: FallbackResult,
  ): CallResult {
    // What a model that stood in has said is not kept as the answer of the one that was asked.
    if (storeUnder === undefined || cache === undefined || result.kind !== "plain") return result;
    if (result.reasons.length > 0) {
      tellBypass(context, "stand_in_answered");
      return result;
    }
    const { response_cache } = context.settings;
    const { body, contentType } = result;
    const { key, kept } = storeUnder;
    if (!isCacheablePlain(kept, body, response_cache)) {
      tellBypass(context, "answer_not_kept");
      return result;
    }
    void cache.store.put(key, { form: "plain", model, contentType, body }, response_cache.ttl);
    return { ...result, isKept: true };
  }

  /** How the stream of a result is relayed: who may take over, and what is kept of it. */
  function relayOptions(
    context: RequestContext,
    request: ModelRequest,
    result: FallbackResult,
    storeUnder: Keeping | undefined,
    ended: (failure: UpstreamFailure | undefined) => void,
  ): RelayOptions {
    const takeover = takeoverFor(parts, context, request, result);
    if (storeUnder === undefined || cache === undefined || result.reasons.length > 0) {
      return { takeover, transcripts, tap: undefined, finished: ended };
    }
    const { store, streams } = cache;
    const { key, kept } = storeUnder;
    const { response_cache } = context.settings;
    const recording = new Transcript(response_cache.max_stream_buffer_size, streams);
    return {
      takeover,
      transcripts,
      tap: recording,
      finished(failure) {
        const body = failure === undefined && takeover?.hasHappened !== true ? recording.joined() : undefined;
        recording.forget();
        if (body !== undefined && isCacheableStream(kept, body, response_cache)) {
          const contentType = "text/event-stream; charset=utf-8";
          void store.put(key, { form: "stream", model: request.model, contentType, body }, response_cache.ttl);
        }
        ended(failure);
      },
    };
  }

  async function generateAlone(
    context: RequestContext,
    request: ModelRequest,
    frame: StreamFrame,
    cacheDecision: CacheDecision | undefined,
    storeUnder: Keeping | undefined,
  ): Promise<Generated> {
    const result = keep(context, request, storeUnder, await chains.forward(context, request));
    if (result.kind !== "stream") return wholeAnswer(result, cacheDecision);
    const options = relayOptions(context, request, result, storeUnder, frame.ended);
    return { kind: "stream", cache: cacheDecision, result, body: relayStream(result.live, frame.errorEvent, options) };
  }

  async function generateShared(
    context: RequestContext,
    request: ModelRequest,
    frame: StreamFrame,
    cacheDecision: CacheDecision | undefined,
    storeUnder: Keeping | undefined,
    key: string,
  ): Promise<Generated> {
    /** Of the request that made the call, once it is known. */
    let leader: SharedCall["record"] | undefined;
    const noteAttempts = () => {
      if (leader === undefined) return;
      context.record.attempts = leader.attempts;
      if (leader.dropped !== undefined) context.record.dropped = leader.dropped;
    };
    const joined = await deduplicator.join({
      key,
      ttlMs: context.settings.deduplication.ttl,
      signal: context.client.signal,
      async start(signal) {
        const ttlMs = context.settings.deduplication.ttl;
        const elsewhere = flights && (await flights.join(key, ttlMs, signal));
        if (elsewhere !== undefined) return elsewhere;
        if (signal.aborted) {
          flights?.landed(key);
          throw clientLeft(); // all of them left while the other process was asked
        }
        // The call lives as long as any of its clients, not as long as the first.
        const shared: RequestContext = { ...context, client: { signal } };
        const { record } = shared;
        let outcome: CallResult;
        try {
          outcome = keep(shared, request, storeUnder, await chains.forward(shared, request));
        } catch (error) {
          flights?.landed(key);
          return { head: { record, outcome: { kind: "refused", error } } };
        }
        if (outcome.kind !== "stream") {
          flights?.landed(key);
          return { head: { record, outcome } };
        }
        const { live } = outcome;
        const options = relayOptions(shared, request, outcome, storeUnder, () => flights?.landed(key));
        return {
          head: { record, outcome },
          feed(sink: ByteSink) {
            const relay = relayInto(live, sink, options);
            if (signal.aborted) relay.cancel();
            else signal.addEventListener("abort", relay.cancel);
          },
        };
      },
      lastWords: (failure, sent) => encoder.encode(frame.errorEvent(failure, sent)),
      finished(failure) {
        noteAttempts(); // a takeover is an attempt more
        frame.ended(failure);
      },
    });
    if (joined === undefined) throw clientLeft();
    const { head, body } = joined;
    leader = head.record;
    noteAttempts();
    if (!joined.isLeader || head.isElsewhere) {
      const { record } = context;
      record.isShared = true;
      record.add({ kind: "shared", leader: leader.id });
      const noted = spending?.noteQuota(context, request);
      if (noted !== undefined) await noted;
    }
    const { outcome: result } = head;
    if (result.kind === "refused") throw result.error;
    context.record.backend = result.entry.backend.name;
    if (result.reasons.length > 0) context.record.answeredBy = result.model;
    if (result.kind !== "stream") return wholeAnswer(result, cacheDecision);
    return { kind: "stream", cache: cacheDecision, result, body: body as ReadableStream };
  }

  // No async function, and none that waits for it, where nothing has to be waited for: most requests pass through.
  return (context, request, frame) => {
    const { settings, clientHeaders, caller, vendorTurn } = context;
    const { operation } = request;
    const { value } = request.body;
    const idempotencyKey = clientHeaders.get("idempotency-key");
    const kept = keptAnswers(request.asking.client?.name ?? formatOf(operation));
    const bypass =
      cache === undefined || kept === undefined
        ? undefined
        : request.namesVendorState === true
          ? "vendor_state"
          : bypassReason(kept, value);
    if (bypass !== undefined) tellBypass(context, bypass);
    const store = kept !== undefined && bypass === undefined ? cache?.store : undefined;
    // A form holds more than the texts that are compared, and bytes have no words for a copy that fell behind.
    const isComparable = request.body.contentType === undefined && request.answers !== "bytes";
    // A line that may be handed over has no answer to share, and that of a vendor's batch is its own.
    const mayShare = isComparable && vendorTurn === undefined;
    const isShared = mayShare && isSharable(settings.deduplication.mode, kept, value, idempotencyKey);
    const decision = cache === undefined || kept === undefined ? undefined : store !== undefined ? "MISS" : "BYPASS";
    if (store === undefined && !isShared) return generateAlone(context, request, frame, decision, undefined);

    // What hooks change of attempts is another question, too.
    const digest = context.hooks === undefined ? promptsDigest : `${promptsDigest} ${context.hooks.attemptKey}`;
    const key = requestKey(request, ownerOf(caller), clientHeaders, digest, kept);
    const storeUnder = store === undefined || kept === undefined ? undefined : { key, kept };
    function ifItMay(found: CachedAnswer | undefined): Promise<Generated> {
      const may = found !== undefined && request.mayReplay?.(found);
      if (may instanceof Promise) return may.then((isGranted) => orElseGenerate(isGranted ? found : undefined));
      return orElseGenerate(may === false ? undefined : found);
    }
    function orElseGenerate(found: CachedAnswer | undefined): Promise<Generated> {
      const replay = found && kept && replayFor(request, kept, found);
      if (replay !== undefined) {
        const replayed = { kind: "replayed", cache: "HIT", replay } as const;
        const noted = spending?.noteQuota(context, request);
        return noted === undefined ? Promise.resolve(replayed) : noted.then(() => replayed);
      }
      if (!isShared) return generateAlone(context, request, frame, decision, storeUnder);
      const flight = flightKey(key, caller?.keyId, idempotencyKey);
      return generateShared(context, request, frame, decision, storeUnder, flight);
    }
    const found = vendorTurn?.answer === undefined ? store?.get(key, request.model) : undefined;
    return found instanceof Promise ? found.then(ifItMay) : ifItMay(found);
  };
}

/** Why the cache was not asked, for the story of the request. */
function tellBypass({ record }: RequestContext, reason: string): void {
  record.cacheReason = reason;
}

function wholeAnswer(result: Exclude<CallResult, OpenedStream>, decision: CacheDecision | undefined): Generated {
  if (result.kind === "failed") return { kind: "failed", cache: decision, result };
  // An answer that turned out not to be worth keeping was not a miss.
  return { kind: "plain", cache: decision === "MISS" && !result.isKept ? "BYPASS" : decision, result };
}
