// /v1/messages/batches: the Message Batches API in the shapes of Anthropic, as its SDK's resources/messages/batches has them.

import { referenceTo } from "../access/caller-reference.ts";
import {
  type Batches,
  type BatchesInUse,
  type BatchFault,
  FaultyInput,
  hasEnded,
  type StoredBatch,
} from "../batches/batch-store.ts";
import { BATCH_FORMATS } from "../batches/formats.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { FilesInUse, StoredFile } from "../files/file-store.ts";
import type { Deadlines } from "../lib/deadlines.ts";
import { ElementLines, ElementsFault } from "../lib/json-elements.ts";
import {
  at,
  type DescribedEndpoint,
  jsonAnswer,
  type Parameter,
  pathParameter,
  queryParameter,
} from "../openapi/operation.ts";
import { bodyPieces } from "../server/body-pieces.ts";
import type { Call } from "../server/endpoint.ts";
import type { BodyReader } from "../server/read-body.ts";
import { OF_BATCHES, openBatchesFor, unknownBatch } from "./batches.ts";
import { contentAnswer } from "./file-content.ts";
import { CONTENT_ANSWERS } from "./file-schemas.ts";
import {
  DeletedMessageBatch,
  MESSAGE_BATCH_SCHEMAS,
  MessageBatch,
  MessageBatchList,
  messageBatchRequest,
  messageBatchResult,
} from "./message-batch-schemas.ts";
import { messagesErrors } from "./messages.ts";

export interface MessageBatchParts {
  batches: BatchesInUse;
  files: FilesInUse;
  /** Takes memory for what is read of a body. */
  bodies: Pick<BodyReader, "hold">;
  deadlines: Deadlines;
  now(): number;
  /** Milliseconds since the Unix epoch. */
  wallTime(): number;
}

const PATH = "/v1/messages/batches";
const PATHS = [PATH, `/anthropic${PATH}`];
const ENDPOINT = "/v1/messages";
const JSON_LINES = "application/x-ndjson";

/** As the largest body of a single request, with its custom_id. */
const MAX_REQUEST_BYTES = 33 * 1024 * 1024;
/** The bytes of one request that stand in memory at the same time: as they are read, kept and parsed. */
const COPIES = 3;
const HELLO = [{ role: "user", content: "Hello!" }];
const PAGE = { usual: 20, most: 1000 };
/** As long as the vendor keeps them. */
const RESULTS_SECONDS = 29 * 86_400;

/** The headers of the client that its requests would have had. */
const KEPT_HEADERS = ["anthropic-version", "anthropic-beta"];
const keptHeaders = KEPT_HEADERS.map(
  (name): Parameter => ({ name, in: "header", description: "Holds for each request.", schema: { type: "string" } }),
);

const batchParameter = pathParameter("message_batch_id", "Id of a message batch.");

/** @param parts - of the process that keeps the configuration, which runs the batches */
export function messageBatchRoutes(parts: () => MessageBatchParts): DescribedEndpoint[] {
  const common = { tag: "Batches", access: "write", schemas: MESSAGE_BATCH_SCHEMAS, ...messagesErrors() } as const;
  const ofOne = { ...common, parameters: [batchParameter], errors: [...OF_BATCHES, 400] } as const;
  const one = (rest = "") => PATHS.map((path) => `${path}/{message_batch_id}${rest}`);
  return [
    ...at(PATHS, {
      ...common,
      method: "POST",
      id: "createMessageBatch",
      takesUploads: true,
      summary: "Create a batch of requests for messages",
      description: "Faults of params are results of single requests; whatever else is wrong refuses the batch.",
      parameters: keptHeaders,
      body: {
        schema: messageBatchRequest,
        example: { requests: [{ custom_id: "a", params: { model: "demo", max_tokens: 64, messages: HELLO } }] },
      },
      answers: [jsonAnswer(MessageBatch, "The batch, which runs.")],
      errors: [...OF_BATCHES, 400, 408, 413],
      handle: (call) => createBatch(call, parts()),
    }),
    ...at(PATHS, {
      ...common,
      method: "GET",
      id: "listMessageBatches",
      summary: "The caller's message batches, the newest first",
      parameters: [
        queryParameter("limit", "Most batches of a page.", {
          type: "integer",
          minimum: 1,
          maximum: PAGE.most,
          default: PAGE.usual,
        }),
        queryParameter("after_id", "Only batches behind this one."),
        queryParameter("before_id", "Only batches in front of this one."),
      ],
      answers: [jsonAnswer(MessageBatchList, "A page of batches.")],
      errors: [...OF_BATCHES, 400],
      handle: (call) => listBatches(call, parts()),
    }),
    ...at(one(), {
      ...ofOne,
      method: "GET",
      id: "getMessageBatch",
      summary: "A message batch, and how far it is",
      answers: [jsonAnswer(MessageBatch, "The batch.")],
      async handle(call) {
        const { batch } = await foundBatch(call, parts());
        return answerOf(call, batch, parts());
      },
    }),
    ...at(one(), {
      ...ofOne,
      method: "DELETE",
      id: "deleteMessageBatch",
      summary: "Delete a message batch that has ended, with its results",
      answers: [jsonAnswer(DeletedMessageBatch, "It is gone.")],
      handle: (call) => deleteBatch(call, parts()),
    }),
    ...at(one("/cancel"), {
      ...ofOne,
      method: "POST",
      id: "cancelMessageBatch",
      summary: "Cancel a message batch",
      description: "Requests that have a result keep it.",
      answers: [jsonAnswer(MessageBatch, "The batch, which ends within a moment.")],
      handle: (call) => cancelBatch(call, parts()),
    }),
    ...at(one("/results"), {
      ...ofOne,
      method: "GET",
      id: "getMessageBatchResults",
      summary: "The results of a message batch that has ended",
      description: "In no particular order.",
      answers: [
        { status: 200, description: "A result on each line.", events: messageBatchResult, eventsType: JSON_LINES },
        ...CONTENT_ANSWERS.filter(({ status }) => status !== 200),
      ],
      errors: [...ofOne.errors, 416],
      handle: (call) => resultsOf(call, parts()),
    }),
  ];
}

async function createBatch(call: Call, parts: MessageBatchParts): Promise<Response> {
  const { context, request } = call;
  const { store, owner } = await openBatchesFor(call, parts.batches);
  await requireFiles(parts);
  const sent = KEPT_HEADERS.flatMap((name) => {
    const value = request.headers.get(name);
    return value === null ? [] : [[name, value] as const];
  });
  try {
    const batch = await store.createOf(
      {
        owner,
        creator: referenceTo(context.caller),
        clientAddress: context.peerAddress(),
        format: "inline",
        endpoint: ENDPOINT,
        headers: Object.fromEntries(sent),
        outputSeconds: RESULTS_SECONDS,
      },
      requestLines(call, parts),
    );
    return answerOf(call, batch, parts);
  } catch (error) {
    throw error instanceof FaultyInput ? refusalOf(error.fault) : error;
  }
}

/** The requests of the body, each on a line. Throws GatewayError. */
async function* requestLines({ request, context }: Call, parts: MessageBatchParts): AsyncGenerator<Uint8Array, void> {
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity") {
    throw refusal("The request body", `is encoded as '${encoding.slice(0, 64)}'; send it uncompressed`);
  }
  const { batches, timeouts } = context.settings;
  const options = { ...parts, timeoutMs: timeouts.request_body, maxBytes: batches.max_bytes };
  const elements = new ElementLines("requests");
  let heldBytes = 0;
  try {
    for await (const bytes of bodyPieces(request, options)) {
      for (const piece of elements.read(bytes)) {
        if (elements.elementBytes > MAX_REQUEST_BYTES) throw requestTooLarge();
        if (elements.elementBytes > heldBytes) {
          parts.bodies.hold(context, (elements.elementBytes - heldBytes) * COPIES, context.settings);
          heldBytes = elements.elementBytes;
        }
        yield piece;
      }
    }
    elements.end();
  } catch (error) {
    throw error instanceof ElementsFault ? refusal("The request body", error.message) : error;
  }
}

async function listBatches(call: Call, parts: MessageBatchParts): Promise<Response> {
  const { store, owner } = await openBatchesFor(call, parts.batches);
  const query = new URL(call.request.url).searchParams;
  const { batches, hasMore } = await store.list(owner, {
    format: "inline",
    limit: readLimit(query),
    after: query.get("after_id") ?? undefined,
    before: query.get("before_id") ?? undefined,
  });
  const data = batches.map((batch) => toMessageBatch(call, batch, parts));
  const answer: MessageBatchList = {
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: hasMore,
  };
  return Response.json(answer, { headers: call.headers });
}

async function cancelBatch(call: Call, parts: MessageBatchParts): Promise<Response> {
  const { store, owner, batch } = await foundBatch(call, parts);
  if (hasEnded(batch)) throw refusal("message_batch_id", "names a batch that has ended; it cannot be cancelled");
  // One whose results are being written has nothing left to be cancelled.
  const cancelled = batch.status === "finalizing" ? batch : await store.cancel(owner, batch.id);
  if (cancelled === undefined) throw unknownBatch("message_batch_id");
  return answerOf(call, cancelled, parts);
}

async function deleteBatch(call: Call, parts: MessageBatchParts): Promise<Response> {
  const { store, owner, batch } = await foundBatch(call, parts);
  if (!hasEnded(batch)) {
    throw refusal("message_batch_id", "names a batch that has not ended: cancel it, or wait, and delete it then");
  }
  if (!(await store.remove(owner, batch.id))) throw unknownBatch("message_batch_id");
  const answer: DeletedMessageBatch = { id: batch.id, type: "message_batch_deleted" };
  return Response.json(answer, { headers: call.headers });
}

async function resultsOf(call: Call, parts: MessageBatchParts): Promise<Response> {
  const { owner, batch } = await foundBatch(call, parts);
  if (!hasEnded(batch)) {
    throw refusal(
      "message_batch_id",
      "names a batch that has not ended: its results come when processing_status is 'ended'",
    );
  }
  const store = await requireFiles(parts);
  const { resultsOwner } = BATCH_FORMATS[batch.format];
  const { outputFileId: id } = batch;
  const file: StoredFile | undefined = id === undefined ? undefined : await store.find(resultsOwner(owner), id);
  if (file === undefined) {
    throw new GatewayError(ERRORS.batchNotFound, "message_batch_id: this batch has no results any more.");
  }
  return contentAnswer(call, store, { ...file, mediaType: JSON_LINES });
}

/** Throws 404 also for batches of another API. */
async function foundBatch(
  call: Call,
  parts: MessageBatchParts,
): Promise<{ store: Batches; owner: string; batch: StoredBatch }> {
  const { store, owner } = await openBatchesFor(call, parts.batches);
  const batch = await store.find(owner, call.parameters.message_batch_id ?? "");
  if (batch?.format !== "inline") throw unknownBatch("message_batch_id");
  return { store, owner, batch };
}

/** Which keep the results. */
function requireFiles({ files }: MessageBatchParts): NonNullable<ReturnType<FilesInUse>> {
  const opening = files();
  if (opening !== undefined) return opening;
  const message = "Batches need the store of files for their results, which is switched off (files.enabled).";
  throw new GatewayError(ERRORS.routeNotFound, message);
}

function readLimit(query: URLSearchParams): number {
  const text = query.get("limit");
  if (text === null) return PAGE.usual;
  if (/^\d{1,9}$/.test(text) && Number(text) >= 1 && Number(text) <= PAGE.most) return Number(text);
  throw refusal("limit", `must be an integer from 1 to ${PAGE.most}`);
}

/** In the vendor's spelling of places: requests.0.custom_id. */
function refusalOf({ code, message, param, line }: BatchFault): GatewayError {
  if (code === "empty_file") return refusal("requests", "must have at least one request");
  if (line === undefined) return new GatewayError(ERRORS.payloadTooLarge, message);
  const place = `requests.${line - 1}`;
  return new GatewayError(ERRORS.invalidRequest, `${place}: ${message}`, {
    param: param === undefined ? place : `${place}.${param}`,
  });
}

function refusal(param: string, fault: string): GatewayError {
  return new GatewayError(ERRORS.invalidRequest, `${param} ${fault}.`, { param });
}

function requestTooLarge(): GatewayError {
  const message = `A request of the batch is larger than the ${MAX_REQUEST_BYTES} bytes that one may have.`;
  return new GatewayError(ERRORS.payloadTooLarge, message, { param: "requests" });
}

function answerOf(call: Call, batch: StoredBatch, parts: MessageBatchParts): Response {
  return Response.json(toMessageBatch(call, batch, parts), { headers: call.headers });
}

function toMessageBatch(call: Call, batch: StoredBatch, { wallTime }: MessageBatchParts): MessageBatch {
  const { total, completed, unanswered = 0, status, cancellingAt } = batch;
  const endedAt = batch.completedAt ?? batch.expiredAt ?? batch.cancelledAt ?? batch.failedAt;
  const isCancelled = status === "cancelled";
  const archivedAt = endedAt === undefined ? undefined : endedAt + RESULTS_SECONDS;
  const isArchived = archivedAt !== undefined && archivedAt * 1000 <= wallTime();
  const hasResults = batch.outputFileId !== undefined && !isArchived;
  return {
    id: batch.id,
    type: "message_batch",
    processing_status: hasEnded(batch) ? "ended" : status === "cancelling" ? "canceling" : "in_progress",
    // As the vendor's: they leave `processing` when the whole batch ends.
    request_counts: hasEnded(batch)
      ? {
          processing: 0,
          succeeded: completed,
          errored: total - completed - unanswered,
          canceled: isCancelled ? unanswered : 0,
          expired: isCancelled ? 0 : unanswered,
        }
      : { processing: total, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
    created_at: rfc3339(batch.createdAt),
    expires_at: rfc3339(batch.expiresAt),
    cancel_initiated_at: momentOf(cancellingAt),
    ended_at: momentOf(endedAt),
    archived_at: isArchived ? rfc3339(archivedAt) : null,
    results_url: hasResults ? `${originOf(call.request)}${ownPath(call)}/${batch.id}/results` : null,
  };
}

/** As the client knows the gateway, where proxies in front say so. */
function originOf({ headers, url }: Request): string {
  const { protocol, host } = new URL(url);
  const forwarded = headers.get("x-forwarded-proto")?.toLowerCase();
  const scheme = forwarded === "https" || forwarded === "http" ? `${forwarded}:` : protocol;
  return `${scheme}//${host}`;
}

/** The path of batches that the client has asked by. */
function ownPath({ context: { path } }: Call): string {
  return PATHS.find((known) => path.startsWith(known)) ?? PATH;
}

function momentOf(unixSeconds: number | undefined): string | null {
  return unixSeconds === undefined ? null : rfc3339(unixSeconds);
}

function rfc3339(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString().replace(".000Z", "Z");
}
