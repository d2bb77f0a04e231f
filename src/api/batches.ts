// /v1/batches: the Batch API in the shapes of OpenAI.

import { referenceTo } from "../access/caller-reference.ts";
import { ownerOf } from "../access/owner.ts";
import type { Batches, BatchesInUse, NewBatch, StoredBatch } from "../batches/batch-store.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { FilesInUse } from "../files/file-store.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import { type DescribedEndpoint, jsonAnswer, pathParameter, queryParameter } from "../openapi/operation.ts";
import type { Call } from "../server/endpoint.ts";
import { parseSmallBody } from "../server/parse-body.ts";
import { BATCH_ENDPOINTS, BATCH_SCHEMAS, BatchList, BatchObject, batchRequest } from "./batch-schemas.ts";
import { openFiles, requireFile } from "./file-access.ts";

interface BatchApiParts {
  batches: BatchesInUse;
  files: FilesInUse;
}

const MAX_BODY_BYTES = 64 * 1024;
const PAGE = { usual: 20, most: 100 };
const METADATA = { pairs: 16, keyLength: 64, valueLength: 512 };
/** OpenAI's bounds of output_expires_after. */
const EXPIRY_SECONDS = { minimum: 3600, maximum: 30 * 86_400 };

export const OF_BATCHES = [401, 403, 404, 429, 500, 503];

const batchParameter = pathParameter("batch_id", "Id of a batch.");

/** @param parts - of the process that keeps the configuration, which runs the batches */
export function batchRoutes(parts: () => BatchApiParts): DescribedEndpoint[] {
  const common = { tag: "Batches", access: "write", schemas: BATCH_SCHEMAS } as const;
  return [
    {
      ...common,
      method: "POST",
      path: "/v1/batches",
      id: "createBatch",
      summary: "Create a batch from an uploaded file of requests",
      body: {
        schema: batchRequest,
        example: { input_file_id: "file-abc", endpoint: BATCH_ENDPOINTS[0], completion_window: "24h" },
      },
      answers: [jsonAnswer(BatchObject, "The batch, whose lines are checked next.")],
      errors: [...OF_BATCHES, 400, 408, 413],
      async handle(call) {
        const { batches, files } = parts();
        const { store } = await openBatchesFor(call, batches);
        const bytes = await call.readBody(MAX_BODY_BYTES);
        const asked = readBatch(parseSmallBody(bytes, call.request.headers.get("content-encoding")));
        const access = await openFiles(call, files);
        const { purpose } = await requireFile(access, asked.inputFileId);
        if (purpose !== "batch")
          throw refusal("input_file_id", `names a file with the purpose '${purpose}', not 'batch'`);
        const { caller } = call.context;
        const batch = await store.create({
          ...asked,
          owner: access.owner,
          creator: referenceTo(caller),
          clientAddress: call.context.peerAddress(),
          format: "files",
        });
        return Response.json(toBatchObject(batch), { headers: call.headers });
      },
    },
    {
      ...common,
      method: "GET",
      path: "/v1/batches",
      id: "listBatches",
      summary: "The caller's batches, the newest first",
      parameters: [
        queryParameter("limit", "Most batches of a page.", {
          type: "integer",
          minimum: 1,
          maximum: PAGE.most,
          default: PAGE.usual,
        }),
        queryParameter("after", "Only batches behind this one."),
      ],
      answers: [jsonAnswer(BatchList, "A page of batches.")],
      errors: [...OF_BATCHES, 400],
      async handle(call) {
        const { store, owner } = await openBatchesFor(call, parts().batches);
        const query = new URL(call.request.url).searchParams;
        const after = query.get("after") ?? undefined;
        const page = await store.list(owner, { format: "files", limit: readLimit(query), after });
        const data = page.batches.map(toBatchObject);
        const answer: BatchList = {
          object: "list",
          data,
          first_id: data[0]?.id ?? null,
          last_id: data.at(-1)?.id ?? null,
          has_more: page.hasMore,
        };
        return Response.json(answer, { headers: call.headers });
      },
    },
    {
      ...common,
      method: "GET",
      path: "/v1/batches/{batch_id}",
      id: "getBatch",
      summary: "A batch, and how far it is",
      parameters: [batchParameter],
      answers: [jsonAnswer(BatchObject, "The batch.")],
      errors: OF_BATCHES,
      async handle(call) {
        const { store, owner } = await openBatchesFor(call, parts().batches);
        const id = call.parameters.batch_id ?? "";
        const batch = await store.find(owner, id);
        if (batch === undefined || batch.format !== "files") throw unknownBatch();
        return Response.json(toBatchObject(batch), { headers: call.headers });
      },
    },
    {
      ...common,
      method: "POST",
      path: "/v1/batches/{batch_id}/cancel",
      id: "cancelBatch",
      summary: "Cancel a batch",
      description: "Lines that have a result keep it.",
      parameters: [batchParameter],
      answers: [jsonAnswer(BatchObject, "The batch, which is cancelled within a moment.")],
      errors: [...OF_BATCHES, 409],
      async handle(call) {
        const { store, owner } = await openBatchesFor(call, parts().batches);
        const id = call.parameters.batch_id ?? "";
        if ((await store.find(owner, id))?.format !== "files") throw unknownBatch();
        const batch = await store.cancel(owner, id);
        if (batch === undefined) throw unknownBatch();
        return Response.json(toBatchObject(batch), { headers: call.headers });
      },
    },
  ];
}

/** Throws 404 while batches are switched off. */
export async function openBatchesFor(
  { context }: Pick<Call, "context">,
  batches: BatchesInUse,
): Promise<{ store: Batches; owner: string }> {
  const opening = batches();
  if (opening === undefined) {
    throw new GatewayError(ERRORS.routeNotFound, "The Batch API is switched off (batches.enabled).");
  }
  return { store: await opening, owner: ownerOf(context.caller) };
}

/** The words do not depend on whether another owner has such a batch. */
export function unknownBatch(param = "batch_id"): GatewayError {
  return new GatewayError(ERRORS.batchNotFound, `${param}: there is no such batch.`, { param });
}

type AskedBatch = Pick<NewBatch, "endpoint" | "metadata" | "outputSeconds"> & { inputFileId: string };

function readBatch(body: JsonObject): AskedBatch {
  const inputFileId = textOf(body, "input_file_id");
  const endpoint = textOf(body, "endpoint");
  if (!(BATCH_ENDPOINTS as readonly string[]).includes(endpoint)) {
    throw refusal("endpoint", `must be one of ${BATCH_ENDPOINTS.join(", ")}`);
  }
  if (textOf(body, "completion_window") !== "24h") throw refusal("completion_window", "must be '24h'");
  return {
    inputFileId,
    endpoint,
    metadata: readMetadata(body.metadata),
    outputSeconds: readExpiry(body.output_expires_after),
  };
}

function textOf(body: JsonObject, param: string): string {
  const value = body[param];
  if (value === undefined || value === null) {
    throw new GatewayError(ERRORS.missingParameter, `${param} is missing.`, { param });
  }
  if (typeof value !== "string") throw refusal(param, "must be a text");
  return value;
}

function readMetadata(value: unknown): NewBatch["metadata"] {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw refusal("metadata", "must be an object of texts");
  const pairs = Object.entries(value);
  const { pairs: mostPairs, keyLength, valueLength } = METADATA;
  if (pairs.length > mostPairs) throw refusal("metadata", `must have at most ${mostPairs} pairs`);
  for (const [key, text] of pairs) {
    if (key.length > keyLength) throw refusal("metadata", `must have keys of at most ${keyLength} characters`);
    if (typeof text !== "string" || text.length > valueLength) {
      throw refusal("metadata", `must have texts of at most ${valueLength} characters as values`);
    }
  }
  return value as Record<string, string>;
}

function readExpiry(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw refusal("output_expires_after", "must be an object with anchor and seconds");
  if (value.anchor !== "created_at") throw refusal("output_expires_after.anchor", "must be 'created_at'");
  const { minimum, maximum } = EXPIRY_SECONDS;
  const { seconds } = value;
  if (typeof seconds === "number" && Number.isInteger(seconds) && seconds >= minimum && seconds <= maximum) {
    return seconds;
  }
  throw refusal("output_expires_after.seconds", `must be an integer from ${minimum} to ${maximum}`);
}

function readLimit(query: URLSearchParams): number {
  const text = query.get("limit");
  if (text === null) return PAGE.usual;
  if (/^\d{1,9}$/.test(text) && Number(text) >= 1 && Number(text) <= PAGE.most) return Number(text);
  throw refusal("limit", `must be an integer from 1 to ${PAGE.most}`);
}

function refusal(param: string, fault: string): GatewayError {
  return new GatewayError(ERRORS.invalidRequest, `${param} ${fault}.`, { param });
}

function toBatchObject(batch: StoredBatch): BatchObject {
  const { faults, sums } = batch;
  return {
    id: batch.id,
    object: "batch",
    endpoint: batch.endpoint as BatchObject["endpoint"],
    model: batch.model ?? null,
    errors: faults.length === 0 ? null : { object: "list", data: faults.map(toBatchError) },
    input_file_id: batch.inputFileId ?? "",
    completion_window: "24h",
    status: batch.status,
    output_file_id: batch.outputFileId ?? null,
    error_file_id: batch.errorFileId ?? null,
    created_at: batch.createdAt,
    in_progress_at: batch.inProgressAt ?? null,
    expires_at: batch.expiresAt,
    finalizing_at: batch.finalizingAt ?? null,
    completed_at: batch.completedAt ?? null,
    failed_at: batch.failedAt ?? null,
    expired_at: batch.expiredAt ?? null,
    cancelling_at: batch.cancellingAt ?? null,
    cancelled_at: batch.cancelledAt ?? null,
    request_counts: { total: batch.total, completed: batch.completed, failed: batch.failed },
    usage: {
      input_tokens: sums.input,
      input_tokens_details: { cached_tokens: sums.cachedInput },
      output_tokens: sums.output,
      output_tokens_details: { reasoning_tokens: sums.reasoning },
      total_tokens: sums.input + sums.output,
    },
    metadata: batch.metadata ?? null,
  };
}

function toBatchError({ code, message, param, line }: StoredBatch["faults"][number]) {
  return { code, message, param: param ?? null, line: line ?? null };
}
