// Errors and log lines for a storage of files that does not do what it should.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";

/** Codes of the file system, of SQLite, which tells a quota by the last one, and of S3 servers: there is no room. */
const FULL = /^(ENOSPC|EDQUOT|EFBIG|SQLITE_FULL|SQLITE_IOERR_WRITE)|QuotaExceeded$|StorageFull$/;

export function isFull(error: unknown): boolean {
  return FULL.test(codeOf(error) ?? "");
}

/** A refusal stays what it is; neither the place of the storage nor what it said goes to the client. */
export function storageTrouble(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (isFull(error)) {
    const message =
      "The storage for files is full: delete files that are no longer needed, or ask the operator for more room " +
      "(files.path).";
    return new GatewayError(ERRORS.storageFull, message, { cause: error });
  }
  const message =
    "The storage for files cannot be used at the moment. Try again later; the operator finds the reason in the log.";
  return new GatewayError(ERRORS.storageUnavailable, message, { cause: error });
}

/** The reason for the log. */
export function reasonOf(error: unknown): string {
  return codeOf(error) ?? (error instanceof Error ? error.message : "unknown error");
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === "string" ? code : undefined;
}

/** Of a file that is listed: its content was removed from the storage by hand. */
export function vanished(id: string): GatewayError {
  const message = `The content of ${id} is no longer in the storage for files. Delete the file and upload it again.`;
  return new GatewayError(ERRORS.storageUnavailable, message);
}
