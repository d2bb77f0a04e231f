// Errors for a folder of batches that cannot be used.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { isFull } from "../files/storage-trouble.ts";

/** A refusal stays what it is; neither the place of the folder nor what the file system said goes to the client. */
export function batchTrouble(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (isFull(error)) {
    const message = "The storage for batches is full: ask the operator for more room (batches.path).";
    return new GatewayError(ERRORS.storageFull, message, { cause: error });
  }
  const message =
    "The storage for batches cannot be used at the moment. Try again later; the operator finds the reason in the log.";
  return new GatewayError(ERRORS.storageUnavailable, message, { cause: error });
}

export function guarded<Result>(task: () => Result): Result {
  try {
    return task();
  } catch (error) {
    throw batchTrouble(error);
  }
}
