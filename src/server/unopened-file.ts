// The runtime opens a file of an answer only when it sends it, and asks here when that fails: then the file was deleted a
// moment before, or the disk refuses.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { errorResponse, toGatewayError } from "./error-response.ts";

/** The runtime does not say which request it was: the answer has an id of its own. */
export function answerForUnopenedFile(thrown: unknown): Response {
  return errorResponse(refusalOf(thrown), crypto.randomUUID(), {});
}

function refusalOf(thrown: unknown): GatewayError {
  const code = (thrown as { code?: unknown } | null | undefined)?.code;
  if (code === "ENOENT") {
    return new GatewayError(ERRORS.fileNotFound, "file_id: the file was deleted a moment ago.", { param: "file_id" });
  }
  if (typeof code !== "string") return toGatewayError(thrown);
  return new GatewayError(ERRORS.storageUnavailable, "The content cannot be read at the moment. Try again later.");
}
