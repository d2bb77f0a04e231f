// A refusal on the wire: its code, its words, and data by which programs can tell it.

import type { JsonObject } from "../lib/json.ts";

/** Codes of JSON-RPC 2.0; -32001 and -32002 are Signalbox's own, -32800 is ACP's. */
export const RPC = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  notInitialized: -32002,
  application: -32001,
  cancelled: -32800,
} as const;

export class RpcError extends Error {
  override readonly name = "RpcError";
  readonly code: number;
  /** Has a `reason`, one word for programs. */
  readonly data: JsonObject;

  constructor(code: number, message: string, data: JsonObject & { reason: string }, cause?: unknown) {
    super(message, { cause });
    this.code = code;
    this.data = data;
  }
}

/** The client has taken its request back. */
export function requestCancelled(): RpcError {
  return new RpcError(RPC.cancelled, "The request was cancelled.", { reason: "request_cancelled" });
}

/** `message` names the field and says what to do. */
export function invalidParams(message: string, sessionId?: string): RpcError {
  return new RpcError(RPC.invalidParams, message, { reason: "invalid_params", ...(sessionId && { sessionId }) });
}

export function sessionNotFound(sessionId: string): RpcError {
  const message = `There is no session "${shortened(sessionId)}": list them with session/list, or make one with session/new.`;
  return new RpcError(RPC.application, message, { reason: "session_not_found", sessionId: shortened(sessionId) });
}

export function sessionBusy(sessionId: string): RpcError {
  const message = "A prompt is running in this session: wait for its answer, or cancel it with session/cancel.";
  return new RpcError(RPC.invalidRequest, message, { reason: "session_busy", sessionId });
}

/** A client's text may be as long as a line; an answer repeats only its beginning. */
export function shortened(text: string, maxLength = 100): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength).toWellFormed()}...`;
}
