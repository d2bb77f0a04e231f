// The error for a client whose turn fails: the words of the gateway where they are meant for it, else that something broke.

import { compact } from "../lib/json.ts";
import type { Logger } from "../logging/logger.ts";
import { RPC, RpcError } from "./rpc-error.ts";

/** The members that GatewayError and the failures of turns share. */
interface RefusalWords extends Error {
  status: number;
  type: string;
  code?: unknown;
  param?: unknown;
  details?: unknown;
  requestId?: unknown;
}

export function turnRefusal(error: unknown, sessionId: string, log: Logger): RpcError {
  if (error instanceof RpcError) return error;
  if (!isTold(error)) {
    log.error({ err: error, sessionId }, "a turn has failed");
    return new RpcError(
      RPC.internal,
      "Something went wrong; the log says what.",
      { reason: "internal_error", sessionId },
      error,
    );
  }
  const { message, status, type, code, cause } = error;
  // The gateway's own refusal knows more than the turn's, which it may be the cause of.
  const { param, details, requestId } = isTold(cause) ? cause : error;
  const data = compact({ reason: type, status, type, code, param, details, requestId, sessionId });
  return new RpcError(RPC.internal, message, { ...data, reason: type }, error);
}

function isTold(error: unknown): error is RefusalWords {
  if (!(error instanceof Error)) return false;
  const { status, type } = error as Partial<RefusalWords>;
  return typeof status === "number" && typeof type === "string";
}
