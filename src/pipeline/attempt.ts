// One attempt at one backend: its request is made and sent, and whatever comes of it is settled, counted and told once.

import type { SlotEnd } from "../admission/admission.ts";
import type { Backend } from "../backends/backend.ts";
import type { BackendEntry } from "../backends/board.ts";
import { TextCount } from "../generation/token-count.ts";
import type { Usage } from "../generation/usage.ts";
import type { Claim } from "../kv-index/claim-trust.ts";
import type { Circuits } from "../routing/circuits.ts";
import type { Admitted } from "../routing/router.ts";
import { type AttemptStep, NOT_SENT } from "../stats/request-record.ts";
import { backendWords } from "../upstream/backend-words.ts";
import type { ExchangeTimeouts } from "../upstream/exchange.ts";
import { failureLabel, type UpstreamFailure } from "../upstream/failure.ts";
import type { LiveStream } from "../upstream/relay.ts";
import { countFailure, type Sender } from "../upstream/send.ts";
import type { AnswerAverages } from "./answer-averages.ts";
import type { BackendWatch, RequestContext } from "./context.ts";
import { hookedAttempt } from "./hook-attempt.ts";
import type { Bridge, ModelRequest } from "./model-request.ts";
import type { RequestReporter } from "./observe.ts";
import { PREFIX_HEADER, type PromptPrefixes } from "./prefixes.ts";
import { sendSideBySide } from "./side-by-side.ts";
import { type Held, isBilled, type Spending } from "./spending.ts";
import { offerToVendor } from "./vendor-offer.ts";

/** `entry` is the backend of the last attempt. */
export type ForwardResult = { entry: BackendEntry } & (
  | {
      kind: "plain";
      body: Uint8Array;
      contentType: string;
      headers: Record<string, string>;
      itemIds?: readonly string[] | undefined;
    }
  /** `contentType` is undefined for a stream of events. */
  | { kind: "stream"; live: LiveStream; headers: Record<string, string>; contentType?: string | undefined }
  /** `retryAfterMs` is the soonest that a backend named. */
  | { kind: "failed"; failure: UpstreamFailure; retryAfterMs?: number | undefined }
);

export interface AttemptParts {
  watch: Pick<BackendWatch, "suspect">;
  circuits: Pick<Circuits, "outcomeOf">;
  sender: Sender;
  bridge: Bridge;
  /** Undefined: prompts that begin alike are not looked for. */
  prefixes?: PromptPrefixes | undefined;
  /** Undefined: there are no budgets. */
  spending?: Pick<Spending, "reserve"> | undefined;
  /** How long answers are; undefined: no budgets and no queue ask for it. */
  averages?: Pick<AnswerAverages, "add"> | undefined;
  /** Counts the attempt. */
  attempted: RequestReporter["attempted"];
  now(): number;
}

/** What a story keeps of a failure. */
function tellFailure(step: AttemptStep, failure: UpstreamFailure, backend: Backend): void {
  step.failure = failureLabel(failure);
  const detail = "message" in failure ? failure.message : backendWords(failure, backend);
  if (detail !== undefined) step.detail = detail;
  if (failure.kind !== "status") return;
  step.status = failure.status;
  if (failure.retryAfterMs !== undefined) step.retryAfterMs = failure.retryAfterMs;
}

/**
 * Sends a request to the backend that was chosen. Throws a GatewayError for what its format cannot say, and a BudgetError where
 * it may not be paid for.
 */
export async function attempt(
  parts: AttemptParts,
  context: RequestContext,
  request: ModelRequest,
  admitted: Admitted,
  timeouts: ExchangeTimeouts,
): Promise<ForwardResult> {
  const { watch, circuits, sender, bridge, prefixes, spending, averages, attempted, now } = parts;
  const { entry, permit, slot, told, scoreMeans, decidedBy, inPanic } = admitted;
  const { record, clientHeaders, trace, client, settings, spans } = context;
  const { model, stream, choices } = request;
  const { name } = entry.backend;
  let held: Held | undefined;
  if (spending !== undefined) {
    try {
      const reserving = spending.reserve(context, request, entry);
      held = reserving instanceof Promise ? await reserving : reserving;
    } catch (error) {
      giveBack(admitted);
      throw error;
    }
  }
  const seen = held?.seen ?? (slot && stream ? new TextCount() : undefined);
  slot?.watch(seen);
  const strategy = scoreMeans === undefined ? undefined : (decidedBy ?? settings.routing.selection_strategy);
  const step = record.attempt(name, model, strategy, told, scoreMeans);
  if (inPanic) step.inPanic = true;
  let usage: Usage | undefined;
  let claim: Claim | undefined;
  const startedAtMs = now();
  const span = spans?.attempt(entry.backend, model, startedAtMs);

  /** The answer is over, or the attempt without one. `firstTokenMs` is known of streams. */
  function over(failure: UpstreamFailure | undefined, firstTokenMs?: number): void {
    permit.settle(circuits.outcomeOf(name, failure));
    const durationMs = now() - startedAtMs;
    slot?.ended(slotEnd(failure, usage, seen, { durationMs, firstByteMs: step.firstByteMs, stream }));
    record.ended(durationMs);
    attempted(name, failure, durationMs, firstTokenMs);
    if (usage !== undefined) {
      record.usage = usage;
      if (failure === undefined) averages?.add(model, usage.output.total);
    }
    held?.settle({ failure, usage, seen: held.seen });
    held = undefined;
    prefixes?.ended(entry.backend, failure, claim, usage);
    step.durationMs = durationMs;
    if (failure === undefined) step.status = 200;
    if (failure !== undefined) tellFailure(step, failure, entry.backend);
    span?.ended(step, firstTokenMs, record);
    if (record.isOver) record.settle();
  }

  try {
    const preparing = prepare(bridge, context, request, entry.backend);
    const prepared = preparing instanceof Promise ? await preparing : preparing;
    const sent = span === undefined ? trace : span.trace;
    const outgoing = { ...prepared, model, stream, choices, clientHeaders, trace: sent, client, timeouts };
    const prefix = prefixes?.at(request, name);
    if (prefix !== undefined) {
      outgoing.headers = { ...outgoing.headers, [PREFIX_HEADER]: prefix.deepest };
      claim = prefixes?.claimOf(prefix, name);
    }
    const { sideBySide } = prepared;
    if (context.vendorTurn !== undefined) await offerToVendor(context, request, entry, outgoing, held, sideBySide);
    const outcome =
      sideBySide === undefined
        ? await sender.send(entry, outgoing, settings)
        : await sendSideBySide(sender, entry, outgoing, settings, sideBySide);
    const { firstByteMs } = outcome;
    step.firstByteMs = firstByteMs;
    if (!outcome.ok) {
      const { failure } = outcome;
      over(failure);
      return { kind: "failed", entry, failure };
    }
    prefixes?.began(request, entry.backend);
    const { headers } = outcome;
    if (outcome.kind === "plain") {
      const { body, contentType, itemIds } = outcome;
      usage = outcome.usage;
      over(undefined);
      return { kind: "plain", entry, body, contentType, headers, itemIds };
    }
    // A trial that streams has shown what it was to show; others need its place before it ends.
    if (permit.isProbe) permit.settle("success");
    step.status = 200;
    const { stream: opened, exchange, reader, contentType } = outcome;
    function finished(failure: UpstreamFailure | undefined): void {
      usage = reader.usage;
      over(failure, firstByteMs);
      if (failure === undefined) return;
      countFailure(entry, failure);
      if (failure.kind === "reset") watch.suspect(name);
    }
    const live: LiveStream = { stream: opened, exchange, reader, seen, finished };
    return { kind: "stream", entry, headers, contentType, live };
  } catch (error) {
    step.durationMs = now() - startedAtMs;
    step.failure = NOT_SENT;
    giveBack(admitted);
    held?.settle(undefined);
    span?.ended(step, undefined, record);
    throw error;
  }
}

/** The request as the backend gets it, as its hooks leave it. */
function prepare(bridge: Bridge, context: RequestContext, request: ModelRequest, backend: Backend) {
  const { hooks } = context;
  if (hooks === undefined) return bridge.prepare(context, request, backend);
  return hookedAttempt(hooks, request, backend.name).then((asked) => bridge.prepare(context, asked, backend));
}

/** Nothing was sent. */
function giveBack({ permit, slot }: Admitted): void {
  permit.settle("neutral");
  slot?.ended(undefined);
}

/** What the owner of the slot learns of the attempt. */
function slotEnd(
  failure: UpstreamFailure | undefined,
  usage: Usage | undefined,
  seen: TextCount | undefined,
  of: Pick<SlotEnd, "durationMs" | "firstByteMs" | "stream">,
): SlotEnd {
  const didNothing = usage === undefined && !isBilled(failure, seen);
  return {
    ...of,
    inputTokens: didNothing ? 0 : usage?.input.total,
    cachedTokens: usage?.input.cacheRead,
    outputTokens: didNothing ? 0 : usage?.output.total,
    isOverload: failure !== undefined && isOverload(failure),
  };
}

/** The backend says that it has too much to do, or does not keep up. */
function isOverload(failure: UpstreamFailure): boolean {
  if (failure.kind === "status") return failure.status === 429 || failure.status === 503;
  return failure.kind === "timeout" && failure.phase !== "connect";
}
