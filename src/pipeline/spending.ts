// What an attempt may cost and did cost, for the budgets of its caller: set aside before it, settled behind it.

import type { BackendEntry } from "../backends/board.ts";
import { drawsPictures, formatOf, isFree, type Operation, writesText } from "../backends/operations.ts";
import { type Amounts, NOTHING } from "../budgets/amounts.ts";
import type { Budgets, Reservation, Reserved } from "../budgets/budgets.ts";
import { BudgetError } from "../budgets/refusal.ts";
import type { Spender } from "../budgets/rules.ts";
import type { ModelMetadata } from "../config/sections/metadata-entry.ts";
import { mostTokensOfBody, TextCount, usualTokensOfBody } from "../generation/token-count.ts";
import type { Usage } from "../generation/usage.ts";
import type { Eventually } from "../lib/eventually.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import type { Logger } from "../logging/logger.ts";
import { isPictureBase64 } from "../media/media-types.ts";
import type { PriceOf } from "../models/prices.ts";
import { clientProtocol } from "../protocols/registry.ts";
import { type ModelPrices, nanosOf } from "../stats/costs.ts";
import type { RequestRecord } from "../stats/request-record.ts";
import type { UpstreamFailure } from "../upstream/failure.ts";
import type { AnswerAverages } from "./answer-averages.ts";
import type { RequestContext } from "./context.ts";
import type { ModelRequest } from "./model-request.ts";

interface SpendingParts {
  budgets: Budgets;
  averages: Pick<AnswerAverages, "of">;
  priceOf: PriceOf;
  metadataOf(model: string, backend: string): ModelMetadata | undefined;
  currency: string;
  wallTime(): number;
  log: Pick<Logger, "warn">;
}

/** What became of an attempt. */
interface Ended {
  failure: UpstreamFailure | undefined;
  usage: Usage | undefined;
  /** What came of the answer; undefined: nothing, or it is no text. */
  seen: TextCount | undefined;
}

export interface Held {
  /** Counts the text of a stream, which may break off before the backend has counted it. */
  readonly seen: TextCount | undefined;
  readonly reservation: Reservation;
  /** The reservation is settled elsewhere: settle() does nothing any more. */
  keep(): void;
  /** Called once. */
  settle(ended: Ended | undefined): void;
}

export type Spending = ReturnType<typeof createSpending>;

/** What a model may say that tells no bound, and has not answered yet. */
export const UNKNOWN_OUTPUT = 1_000;

export function createSpending(parts: SpendingParts) {
  const { budgets, averages, metadataOf, currency, wallTime, log } = parts;
  const { isOn } = budgets;
  /** Models that were warned of. */
  const unpriced = new Set<string>();

  /** Undefined where tokens cost nothing, or the price is not known. */
  function priceOf(model: string, backend: string): ModelPrices | undefined {
    const prices = parts.priceOf(model, backend);
    if (prices === undefined && budgets.countsCost && unpriced.size < MAX_MODELS && !unpriced.has(model)) {
      unpriced.add(model);
      log.warn(
        { model, backend },
        "a model has no price: budgets count its cost as 0; see pricing in docs/configuration.md",
      );
    }
    return prices;
  }

  /** The most that the attempt can cost, as far as it can be known. */
  function boundOf({ body, operation, model, choices }: ModelRequest, backend: string): Amounts {
    const prices = priceOf(model, backend);
    const limits = metadataOf(model, backend)?.limits;
    const input = Math.min(
      mostTokensOfBody(body.value, isPictureBase64),
      limits?.context_window ?? Number.POSITIVE_INFINITY,
    );
    const most = writesText(operation)
      ? (askedOutput(body.value, operation) ?? limits?.max_output ?? averages.of(model))
      : 0;
    const images = drawsPictures(operation) ? choices : 0;
    const output = (most ?? UNKNOWN_OUTPUT) * (images > 0 ? 1 : choices);
    const cost = nanosOf({ input: { total: input }, output: { total: output }, images }, prices);
    return { cost, input, output, requests: 1 };
  }

  /** What it did cost: as the vendor counted it, else as it is estimated of what was sent and seen. */
  function costOf({ failure, usage, seen }: Ended, { body, model, operation }: ModelRequest, backend: string): Amounts {
    if (usage === undefined && !isBilled(failure, seen)) return NOTHING;
    const writes = writesText(operation);
    const estimated = writes ? (seen?.tokens ?? 0) : 0;
    // A stream that broke off may have told what it read, and not yet what it wrote.
    const counted: Usage =
      usage === undefined
        ? {
            input: { total: writes ? usualTokensOfBody(body.value, isPictureBase64) : 0 },
            output: { total: estimated },
          }
        : failure === undefined || usage.output.total >= estimated
          ? usage
          : { ...usage, output: { ...usage.output, total: estimated } };
    const { input, output } = counted;
    return { cost: nanosOf(counted, priceOf(model, backend)), input: input.total, output: output.total, requests: 1 };
  }

  /** Keys that are made through the admin API carry budgets that no configuration has. */
  const isCounted = (caller: RequestContext["caller"]) => isOn || caller?.carriesBudget === true;

  function held(reservation: Reservation, request: ModelRequest, backend: string): Held {
    let isKept = false;
    return {
      seen: request.stream && writesText(request.operation) ? new TextCount() : undefined,
      reservation,
      keep() {
        isKept = true;
      },
      settle(ended) {
        if (!isKept) reservation.settle(ended === undefined ? NOTHING : costOf(ended, request, backend));
      },
    };
  }

  function read(reserved: Reserved, record: RequestRecord, request: ModelRequest, backend: string): Held | undefined {
    const { refusal } = reserved;
    if (refusal !== undefined) {
      record.quota = refusal.quota;
      throw new BudgetError(refusal, currency, wallTime());
    }
    const { reservation } = reserved;
    if (reservation === undefined) return undefined;
    record.quota = reservation.quota;
    return held(reservation, request, backend);
  }

  return {
    /** Sets aside what an attempt may cost. Undefined: no budget counts it. Throws a BudgetError, or rejects with it. */
    reserve(
      { caller, record }: RequestContext,
      request: ModelRequest,
      { backend }: BackendEntry,
    ): Eventually<Held | undefined> {
      const { name } = backend;
      if (!isCounted(caller) || isFree(request.operation)) return undefined; // no vendor bills it
      const spender = spenderOf(caller, request.model, name);
      const bound = budgets.isBoundWanted || caller?.carriesBudget ? boundOf(request, name) : ONE_REQUEST;
      const reserved = budgets.reserve(spender, bound);
      if (reserved instanceof Promise) return reserved.then((granted) => read(granted, record, request, name));
      return read(reserved, record, request, name);
    },
    /**
     * The same for an answer that a vendor's batch has given already: by what was set aside when the batch got the request, or
     * beside all limits where that is forgotten.
     * @param usageOf - what the answer has used, where it was translated
     */
    owe(
      { caller, record }: RequestContext,
      request: ModelRequest,
      { backend: { name } }: BackendEntry,
      kept: Reservation | undefined,
    ): Eventually<Held | undefined> {
      const owed = (reservation: Reservation | undefined): Held | undefined =>
        reservation && {
          seen: undefined,
          reservation,
          keep() {}, // it is read, never handed over
          settle(ended) {
            const usage = ended?.usage ?? record.usage;
            const spent = ended && costOf({ ...ended, usage: usage && { ...usage, isBatched: true } }, request, name);
            reservation.settle(spent ?? NOTHING);
          },
        };
      if (kept !== undefined) return owed(kept);
      if (!isCounted(caller)) return undefined;
      const reserved = budgets.reserve({ ...spenderOf(caller, request.model, name), isOwed: true }, NOTHING);
      const read = (told: Reserved) => (told.refusal === undefined ? owed(told.reservation) : undefined);
      return reserved instanceof Promise ? reserved.then(read) : read(reserved);
    },
    /** Notes what is left to the caller of an answer that no attempt was made for. */
    noteQuota({ caller, record }: RequestContext, { model }: ModelRequest): Eventually<void> {
      if (!isCounted(caller)) return undefined;
      const quota = budgets.quotaOf(spenderOf(caller, model, ""));
      if (!(quota instanceof Promise)) record.quota = quota;
      else {
        return quota.then((told) => {
          record.quota = told;
        });
      }
    },
  };
}

/** @param backend - empty where none was asked */
function spenderOf(caller: RequestContext["caller"], model: string, backend: string): Spender {
  const { keyId, userId, organizationId } = caller ?? {};
  return { keyId, userId, organizationId, model, backend };
}

const MAX_MODELS = 1_000;

const ONE_REQUEST: Amounts = { ...NOTHING, requests: 1 };

/** A vendor that has begun to work for a request bills it; one that refuses it, or cannot be reached, does not. */
export function isBilled(failure: UpstreamFailure | undefined, seen: TextCount | undefined): boolean {
  if (failure === undefined || (seen !== undefined && seen.tokens > 0)) return true;
  if (failure.kind === "timeout") return failure.phase !== "connect";
  return failure.kind === "aborted";
}

/** The bound that the client has set. */
export function askedOutput(body: JsonObject, operation: Operation): number | undefined {
  const places = clientProtocol(formatOf(operation)).settings?.max_output_tokens ?? [];
  for (const place of places) {
    const bound = memberAt(body, place);
    if (typeof bound === "number") return bound;
  }
  return undefined;
}

/** @param place - names of members, one inside the other, with dots between them */
function memberAt(body: JsonObject, place: string): unknown {
  if (!place.includes(".")) return body[place];
  return place.split(".").reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), body);
}
