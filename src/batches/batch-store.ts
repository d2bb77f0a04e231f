// What a batch is, and what keeps batches: one store for every API that they are created by. Everything is asked for by the
// owner (access/owner.ts) and the id: another owner's batch is as unknown as one that never was.

import type { CallerReference } from "../access/caller-reference.ts";

/** The API that a batch belongs to: how its lines are written and read (formats.ts). */
export type BatchFormatName = "files" | "inline";

type BatchStatus =
  | "validating"
  | "in_progress"
  | "finalizing"
  | "cancelling"
  | "completed"
  | "failed"
  | "expired"
  | "cancelled";

/** Nothing happens to a batch any more that has one of these. */
const ENDED: readonly BatchStatus[] = ["completed", "failed", "expired", "cancelled"];

export function hasEnded({ status }: Pick<StoredBatch, "status">): boolean {
  return ENDED.includes(status);
}

/** What is wrong with the input, or with one line of it. */
export interface BatchFault {
  code: string;
  message: string;
  param?: string | undefined;
  /** Counted from 1. */
  line?: number | undefined;
}

/** Lines that came with the request for a batch: nothing of it stays. */
export class FaultyInput extends Error {
  readonly fault: BatchFault;

  constructor(fault: BatchFault) {
    super(fault.message);
    this.fault = fault;
  }
}

/** Times are Unix times in seconds. */
export interface StoredBatch {
  /** A beginning that the format knows, and 24 letters and digits. */
  id: string;
  owner: string;
  /** As whom the lines are asked. */
  creator: CallerReference;
  /** Of the client that created it, for limits by address; undefined on a unix socket. */
  clientAddress?: string | undefined;
  format: BatchFormatName;
  /** The path that every line is asked at, such as /v1/chat/completions. */
  endpoint: string;
  inputFileId?: string | undefined;
  /** Of lines that several gateways share: their folder in the bucket, and how many there are. */
  segments?: { folder: string; count: number } | undefined;
  /** Unix time in milliseconds, for the order of those that several gateways share. */
  createdAtMs?: number | undefined;
  /** Of the client that created it, sent with each line. */
  headers?: Readonly<Record<string, string>> | undefined;
  status: BatchStatus;
  metadata?: Readonly<Record<string, string>> | undefined;
  /** After this time the files of results are removed; undefined: files.retention. */
  outputSeconds?: number | undefined;
  /** Of the first line. */
  model?: string | undefined;
  faults: readonly BatchFault[];
  outputFileId?: string | undefined;
  errorFileId?: string | undefined;
  /** Lines. Completed and failed ones have a result. */
  total: number;
  completed: number;
  failed: number;
  /** Failed ones that have no answer: the batch has ended before. */
  unanswered?: number | undefined;
  sums: LineSums;
  /** Lines that batches of vendors have, of those that have no result. */
  atVendors?: number;
  /** The latest of these batches. */
  vendorBatches?: readonly VendorBatch[];
  createdAt: number;
  /** The end of the completion window. */
  expiresAt: number;
  inProgressAt?: number | undefined;
  finalizingAt?: number | undefined;
  completedAt?: number | undefined;
  failedAt?: number | undefined;
  expiredAt?: number | undefined;
  cancellingAt?: number | undefined;
  cancelledAt?: number | undefined;
}

/** A batch at a vendor, of lines of this one. */
export interface VendorBatch {
  /** The vendor's own. */
  id: string;
  backend: string;
  lines: number;
}

/** What a client gives. */
export type NewBatch = Pick<
  StoredBatch,
  | "owner"
  | "creator"
  | "clientAddress"
  | "format"
  | "endpoint"
  | "inputFileId"
  | "headers"
  | "metadata"
  | "outputSeconds"
>;

export interface BatchQuery {
  format: BatchFormatName;
  /** From 1 to 1,000. */
  limit: number;
  /** The id of the batch that the page begins behind; of an unknown one it is as if it were not given. */
  after?: string | undefined;
  /** The same for the batch that the page ends before, at the nearest. */
  before?: string | undefined;
}

/** Of all owners and formats. */
export type AnyBatchQuery = Pick<BatchQuery, "limit" | "after">;

export interface BatchPage {
  /** The newest first. */
  batches: readonly StoredBatch[];
  hasMore: boolean;
}

/** What one line has used, or all of them. */
export interface LineSums {
  input: number;
  cachedInput: number;
  output: number;
  reasoning: number;
  /** By the prices of the time of each answer, in 10^-9 of the currency's unit. */
  cost: number;
}

export const NO_SUMS: Readonly<LineSums> = { input: 0, cachedInput: 0, output: 0, reasoning: 0, cost: 0 };

export interface BatchLine {
  /** Its place among the lines that can be asked, counted from 0. */
  position: number;
  customId: string;
  /** The body of the request, read when it is asked. */
  body: Blob;
  /** It was begun before, and a crash left it without a result. */
  isAskedAgain: boolean;
}

/** What the gateway has answered to a line. */
export interface LineAnswer {
  status: number;
  requestId: string;
  /** JSON on one line. */
  body: string;
  /** The request is as it should be, and another time it will be answered. */
  isOutage: boolean;
  /** How long it asked to wait. */
  retryAfterMs: number | undefined;
  sums: LineSums;
}

export interface LineResult {
  isError: boolean;
  /** A line of a file of results, without its end. */
  text: string;
}

export interface Batches {
  /** When it resolves, a crash does not lose the batch. Rejects with 429 where the owner has too many, and with 503. */
  create(facts: NewBatch): Promise<StoredBatch>;
  /**
   * The same for one whose lines come with the request. Rejects with FaultyInput for lines that cannot be asked, and as the
   * lines do.
   */
  createOf(facts: NewBatch, lines: AsyncIterable<Uint8Array>): Promise<StoredBatch>;
  find(owner: string, id: string): Promise<StoredBatch | undefined>;
  list(owner: string, query: BatchQuery): Promise<BatchPage>;
  /** Undefined where find() finds nothing. Rejects with 409 where it has ended, and with 503. */
  cancel(owner: string, id: string): Promise<StoredBatch | undefined>;
  /** Of one that has ended. False where find() finds nothing. Rejects with 503. */
  remove(owner: string, id: string): Promise<boolean>;
}

/** For operators: the batches of all owners. */
export interface AllBatches extends Batches {
  listAll(query: AnyBatchQuery): Promise<BatchPage>;
  findAny(id: string): Promise<StoredBatch | undefined>;
}

/** Those of the current configuration, opened when they are first asked for; undefined while batches.enabled is false. */
export type BatchesInUse = () => Promise<AllBatches> | undefined;
