// The answer of a vendor's batch to a line, read as any answer: it takes the place of the exchange with the backend, and costs what
// a batch costs.

import { newCounters } from "../backends/backend.ts";
import type { BackendAnswer, BackendCall } from "../backends/transport.ts";
import type { VendorAnswer, VendorTurn } from "../batches/vendor/vendor-turn.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { createDeadlines } from "../lib/deadlines.ts";
import type { RouteTarget } from "../model-routes/routes.ts";
import type { Permit } from "../routing/circuits.ts";
import { createSender, type Sender } from "../upstream/send.ts";
import { type AttemptParts, attempt, type ForwardResult } from "./attempt.ts";
import type { CandidatesParts } from "./candidates.ts";
import type { RequestContext } from "./context.ts";
import type { ModelRequest } from "./model-request.ts";
import { forTarget } from "./routes.ts";
import type { Spending } from "./spending.ts";
import { KeptReservation } from "./vendor-offer.ts";

type ReaderParts = Omit<AttemptParts, "spending"> &
  Pick<CandidatesParts, "watch"> & { spending?: Pick<Spending, "owe"> | undefined };

/** Says nothing about the circuit of the backend. */
const NO_PERMIT: Permit = { isProbe: false, settle() {} };
/** The answer is there. */
const NO_HURRY = {
  connectMs: 1_000,
  firstByteMs: 1_000,
  betweenChunksMs: 1_000,
  requestDeadlineMs: Number.POSITIVE_INFINITY,
};

export type VendorReader = ReturnType<typeof createVendorReader>;

/** Reads the answer of a turn. Throws where the backend is not configured any more. */
export function createVendorReader(parts: ReaderParts) {
  const deadlines = createDeadlines(parts.now);
  return async (
    context: RequestContext,
    request: ModelRequest,
    turn: VendorTurn,
  ): Promise<ForwardResult & { model: string; reasons: readonly [] }> => {
    const answer = turn.answer as VendorAnswer;
    const { record } = context;
    const known = parts.watch.board.entries.find(({ backend }) => backend.name === answer.backend);
    if (known === undefined) {
      throw new GatewayError(ERRORS.noBackends, `The backend '${answer.backend}' is not configured any more.`);
    }
    turn.isUsed = true;
    // Nothing is learnt of how quickly the backend answers.
    const entry = { ...known, counters: newCounters() };
    const { spending } = parts;
    const kept = answer.kept instanceof KeptReservation ? answer.kept.reservation : undefined;
    const reading: AttemptParts = {
      ...parts,
      prefixes: undefined,
      averages: undefined,
      sender: senderOf(answer, deadlines, parts.now),
      spending: spending && { reserve: (...asked) => spending.owe(...asked, kept) },
    };
    const aimed = aimedAs(context, request, answer);
    record.vendorBatch = answer.batch;
    const result = await attempt(reading, context, aimed, { entry, permit: NO_PERMIT }, NO_HURRY);
    if (record.usage !== undefined) record.usage = { ...record.usage, isBatched: true };
    return { ...result, model: answer.model, reasons: [] };
  };
}

/** The request as it was handed over: for the same target of its route, or for the same model of its chain. */
function aimedAs({ record }: RequestContext, request: ModelRequest, { model, arms }: VendorAnswer): ModelRequest {
  const { routed } = request;
  const wanted = JSON.stringify(arms);
  const targets = routed === undefined ? [] : [routed.target, ...routed.others];
  const target: RouteTarget = targets.find((each) => JSON.stringify(each.arms) === wanted && each.model === model) ?? {
    model,
    arms: [],
  };
  if (routed !== undefined) record.askArms(target.arms);
  if (target === routed?.target || (routed === undefined && model === request.model)) return request;
  record.standIn(model);
  return forTarget(request, target);
}

function senderOf(answer: VendorAnswer, deadlines: ReturnType<typeof createDeadlines>, now: () => number): Sender {
  const sender = createSender(() => callOf(answer), { deadlines, now });
  return {
    async send(entry, request, settings) {
      // Its path is not looked at.
      const outcome = await sender.send(entry, { ...request, path: "/" }, settings);
      if (!outcome.ok || outcome.kind !== "plain" || outcome.usage === undefined) return outcome;
      return { ...outcome, usage: { ...outcome.usage, isBatched: true } };
    },
  };
}

function callOf({ status, body }: VendorAnswer): BackendCall {
  const answer: BackendAnswer = {
    status,
    header: (name) => (name === "content-type" ? "application/json" : null),
    read(receiver) {
      receiver.received(body);
      receiver.ended();
    },
    pause() {},
    resume() {},
  };
  return { answer: Promise.resolve(answer), abort() {}, connects: async () => true };
}
