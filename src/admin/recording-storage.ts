// What the storage of recordings throws, as an administrator is told of it.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Recordings } from "../recording/recordings.ts";
import type { AdminParts } from "./parts.ts";

/** Rejects with 503 where they cannot be opened. */
export async function openedRecordings(
  recordings: AdminParts["recordings"],
  isWanted?: true,
): Promise<Recordings | undefined> {
  return await inStore(() => recordings(isWanted));
}

/** What the storage throws becomes a 503 without any content of it. */
export function inStore<Result>(work: () => Result): Result {
  try {
    const result = work();
    return result instanceof Promise ? (result.catch(refuse) as Result) : result;
  } catch (error) {
    return refuse(error);
  }
}

function refuse(cause: unknown): never {
  if (cause instanceof GatewayError) throw cause;
  const message = "The recordings cannot be read at the moment; the log of the gateway says why.";
  throw new GatewayError(ERRORS.storageUnavailable, message, { cause });
}
