// A batch that begins, and refusals of what cannot be done with one.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { randomLetters } from "../lib/random-letters.ts";
import { type NewBatch, NO_SUMS, type StoredBatch } from "./batch-store.ts";
import { BATCH_FORMATS } from "./formats.ts";

const ID_LENGTH = 24;
const WINDOW_SECONDS = 86_400;

export function newId({ format }: Pick<NewBatch, "format">): string {
  return `${BATCH_FORMATS[format].idPrefix}${randomLetters(ID_LENGTH)}`;
}

/** @param createdAt - Unix time in seconds */
export function newBatch(facts: NewBatch, createdAt: number): StoredBatch {
  return {
    ...facts,
    id: newId(facts),
    status: "validating",
    faults: [],
    total: 0,
    completed: 0,
    failed: 0,
    sums: NO_SUMS,
    createdAt,
    expiresAt: createdAt + WINDOW_SECONDS,
  };
}

export function tooManyOpen(most: number): GatewayError {
  const message =
    `There are ${most} batches that are not finished, as many as batches.max_open allows. ` +
    "Cancel one, or wait until one is finished.";
  return new GatewayError(ERRORS.rateLimited, message);
}

export function cannotCancel({ status }: StoredBatch): GatewayError {
  return new GatewayError(ERRORS.conflict, `A batch with the status '${status}' cannot be cancelled.`);
}
