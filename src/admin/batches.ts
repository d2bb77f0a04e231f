// /admin/batches: the batches of all callers, how far each is, and what it has cost. What is in them is none of the administrator's
// business.

import { type BatchesInUse, hasEnded, type StoredBatch } from "../batches/batch-store.ts";
import { currencyOf } from "../config/sections/currency.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import {
  component,
  count,
  described,
  flag,
  list,
  number,
  oneOfTexts,
  orNull,
  schemasOf,
  shape,
  text,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, pathParameter, queryParameter } from "../openapi/operation.ts";
import { adminGroup, answer } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import { badParameter, queryOf, readNumber } from "./query.ts";

const PAGE = { usual: 50, most: 500 };
const NANOS = 1e9;

export const BatchRecord = component(
  "BatchRecord",
  shape({
    id: text,
    owner: described(text, "organization:<id>, user:<id>, key:<id>, or anonymous."),
    endpoint: described(text, "The path that every request is asked at."),
    model: described(orNull(text), "Of the first request."),
    status: oneOfTexts(
      "validating",
      "in_progress",
      "finalizing",
      "cancelling",
      "completed",
      "failed",
      "expired",
      "cancelled",
    ),
    has_ended: flag,
    total: count,
    completed: count,
    failed: described(count, "Those without an answer are among them once the batch has ended."),
    at_vendors: described(count, "Requests that batches of vendors have."),
    vendor_batches: described(
      list(shape({ id: described(text, "The vendor's own."), backend: text, requests: count })),
      "Batches of vendors that have requests of it, or had them: the latest 100.",
    ),
    per_second: described(orNull(number), "Requests with a result, since the batch began to run."),
    remaining_seconds: described(orNull(count), "At this rate."),
    input_tokens: count,
    output_tokens: count,
    cost: described(number, "By the prices of the time of each answer."),
    created_at: time,
    expires_at: time,
    ended_at: orNull(time),
  }),
);
export type BatchRecord = ValueOf<typeof BatchRecord>;

export const BatchRecordList = component(
  "BatchRecordList",
  shape({
    enabled: flag,
    currency: text,
    batches: described(list(BatchRecord), "The newest first."),
    next: described(orNull(text), "The cursor of the next page."),
  }),
);
export type BatchRecordList = ValueOf<typeof BatchRecordList>;

const endpoint = adminGroup("Observation", schemasOf(BatchRecord, BatchRecordList));
const batchId = pathParameter("id", "Id of a batch.");

export function batchRoutes({
  batches,
  settings,
  clock,
}: Pick<AdminParts, "batches" | "settings" | "clock">): DescribedEndpoint[] {
  const recordOf = (batch: StoredBatch) => toRecord(batch, clock.wallTime() / 1000);
  return [
    endpoint("GET /admin/batches", {
      id: "listAllBatches",
      role: "viewer",
      summary: "The batches of all callers, and how far they are",
      parameters: [
        queryParameter("limit", "Most batches of a page.", {
          ...{ type: "integer", minimum: 1, maximum: PAGE.most, default: PAGE.usual },
        }),
        queryParameter("cursor", "next of the page before."),
      ],
      answers: [jsonAnswer(BatchRecordList, "A page of batches.")],
      errors: [503],
      async handle(call) {
        const query = queryOf(call);
        const limit = readNumber(query, "limit", 1) ?? PAGE.usual;
        if (limit > PAGE.most) throw badParameter("limit", `at most ${PAGE.most}`);
        const opening = batches();
        const currency = currencyOf(settings());
        if (opening === undefined) return answer(call, { enabled: false, currency, batches: [], next: null });
        const page = await (await opening).listAll({ limit, after: query.get("cursor") ?? undefined });
        const next = page.hasMore ? (page.batches.at(-1)?.id ?? null) : null;
        return answer(call, { enabled: true, currency, batches: page.batches.map(recordOf), next });
      },
    }),
    endpoint("GET /admin/batches/{id}", {
      id: "getAnyBatch",
      role: "viewer",
      summary: "One batch, and how far it is",
      parameters: [batchId],
      answers: [jsonAnswer(BatchRecord, "The batch.")],
      errors: [503],
      async handle(call) {
        const { batch } = await requireBatch(batches, call.parameters.id);
        return answer(call, recordOf(batch));
      },
    }),
    endpoint("POST /admin/batches/{id}/cancel", {
      id: "cancelAnyBatch",
      role: "operator",
      summary: "Cancel a batch",
      description: "Requests that have a result keep it.",
      parameters: [batchId],
      answers: [jsonAnswer(BatchRecord, "The batch, which is cancelled within a moment.")],
      errors: [409, 503],
      async handle(call) {
        const { id } = call.parameters;
        const { store, batch } = await requireBatch(batches, id);
        const { status } = batch;
        const cancelled = await store.cancel(batch.owner, id);
        if (cancelled === undefined) throw unknownBatch();
        if (cancelled.status !== status) {
          const change = { section: "batch", field: "status", from: status, to: cancelled.status };
          call.deed = { subject: id, changes: [change] };
        }
        return answer(call, recordOf(cancelled));
      },
    }),
  ];
}

async function requireBatch(batches: BatchesInUse, id: string) {
  const opening = batches();
  if (opening === undefined)
    throw new GatewayError(ERRORS.routeNotFound, "Batches are switched off (batches.enabled).");
  const store = await opening;
  const batch = await store.findAny(id);
  if (batch === undefined) throw unknownBatch();
  return { store, batch };
}

function unknownBatch(): GatewayError {
  return new GatewayError(ERRORS.batchNotFound, "id: there is no such batch.", { param: "id" });
}

/** @param now - Unix time in seconds */
function toRecord(batch: StoredBatch, now: number): BatchRecord {
  const { id, owner, endpoint: path, model = null, status, total, completed, failed, sums, inProgressAt } = batch;
  const { atVendors = 0, vendorBatches = [] } = batch;
  const endedAt = batch.completedAt ?? batch.expiredAt ?? batch.cancelledAt ?? batch.failedAt;
  const done = completed + failed - (batch.unanswered ?? 0);
  const seconds = inProgressAt === undefined ? undefined : Math.max((endedAt ?? now) - inProgressAt, 1);
  const perSecond = seconds === undefined ? null : done / seconds;
  const isRunning = status === "in_progress" && perSecond !== null && perSecond > 0;
  return {
    ...{ id, owner, endpoint: path, model, status, total, completed, failed },
    has_ended: hasEnded(batch),
    at_vendors: atVendors,
    vendor_batches: vendorBatches.map(({ id: of, backend, lines }) => ({ id: of, backend, requests: lines })),
    per_second: perSecond,
    remaining_seconds: isRunning ? Math.ceil((total - done) / perSecond) : null,
    input_tokens: sums.input,
    output_tokens: sums.output,
    cost: sums.cost / NANOS,
    created_at: timeOf(batch.createdAt),
    expires_at: timeOf(batch.expiresAt),
    ended_at: endedAt === undefined ? null : timeOf(endedAt),
  };
}

function timeOf(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString();
}
