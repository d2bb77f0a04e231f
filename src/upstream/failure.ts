// How an attempt at a backend can fail, and which failures may be retried.

import { CERTIFICATE_CODE } from "../backends/control-request.ts";
import { CredentialError } from "../backends/credentials/credential.ts";
import type { Medium } from "../generation/intake.ts";
import type { Failure } from "../generation/result.ts";
import { clientsErrorBody, standardError } from "./error-body.ts";
import { requestFault, requestFaultBehind401 } from "./request-fault.ts";

export type UpstreamFailure =
  /** No connection stood: the request cannot have reached the model. */
  | { kind: "connect"; message: string }
  /** The connection broke before anything of the answer was used. */
  | { kind: "reset"; message: string }
  | {
      kind: "timeout";
      phase: TimeoutPhase;
      message: string;
      /** The time ended while the client had to catch up, and the backend was not read. */
      byClient?: true;
    }
  /** The backend answered with an error, in HTTP or inside a 200 answer. */
  | {
      kind: "status";
      status: number;
      body: Uint8Array;
      retryAfterMs: number | undefined;
      headers: Record<string, string>;
      /** The account behind the request has nothing left: the backend is well, and asking again does not help. */
      isSpent?: true;
      /** What the model does not take of the request. */
      lacks?: Medium | "media" | undefined;
    }
  /** The backend answered something that is no answer of its protocol. */
  | { kind: "invalid-response"; message: string }
  /** The backend ended its stream with an error event, which the client got as it came. */
  | { kind: "told-in-stream"; told?: StatusFailure | undefined }
  /** The client left. */
  | { kind: "aborted" };

/** What vendors call an account without money or quota; the status is that of a rate limit. */
const SPENT_CODES: ReadonlySet<unknown> = new Set(["insufficient_quota", "billing_hard_limit_reached"]);

/**
 * The failure behind an error that a backend reported inside a 200 answer, in the words of its decoder.
 * @param param - the field at fault, where the client's format is the backend's
 */
export function toldFailure({ message, status, type, code, retryAfterMs }: Failure, param?: string): StatusFailure {
  const error = { message, type: type ?? typeOf(status), code: code ?? status, ...(param !== undefined && { param }) };
  return withFault({
    kind: "status",
    status: usualStatus(status),
    body: new TextEncoder().encode(JSON.stringify({ error })),
    retryAfterMs,
    headers: retryAfterMs === undefined ? {} : { "retry-after": String(Math.ceil(retryAfterMs / 1000)) },
    ...((SPENT_CODES.has(code) || SPENT_CODES.has(type)) && { isSpent: true }),
  });
}

/**
 * The same failure, and as 400 where the backend's words say that the request is at fault, and its status does not.
 * @param hasChosen - whether headers of the client went along that choose an organisation
 */
export function withFault(failure: StatusFailure, hasChosen = false): StatusFailure {
  const { status, body, retryAfterMs } = failure;
  if (status === 429 || retryAfterMs !== undefined) return failure;
  const { message } = standardError(status, body);
  const isCredential = isCredentialRefusal(failure);
  const fault = isCredential ? requestFaultBehind401(message, hasChosen) : requestFault(message);
  if (fault === undefined) return failure;
  const { lacks, code } = fault;
  if (status < 500 && !isCredential) return lacks === undefined ? failure : { ...failure, lacks };
  return { ...failure, status: 400, body: clientsErrorBody(message, code), lacks };
}

function typeOf(status: number): string {
  if (status === 429) return "rate_limit_exceeded";
  return status < 500 ? "invalid_request_error" : "backend_error";
}

/** 529 is Anthropic's "overloaded", for which everyone else has 503. */
export function usualStatus(status: number): number {
  return status === 529 ? 503 : status;
}

export type StatusFailure = Extract<UpstreamFailure, { kind: "status" }>;

export type TimeoutPhase = "connect" | "first_byte" | "between_chunks" | "request";

/** `statusCodes`: the answers that are retried. */
export function isRetryable(failure: UpstreamFailure, statusCodes: readonly number[]): boolean {
  switch (failure.kind) {
    case "connect":
    case "reset":
    case "invalid-response":
      return true;
    case "timeout":
      return failure.phase !== "request"; // the time for the whole request is used up
    case "status":
      return statusCodes.includes(failure.status) && failure.isSpent !== true;
    case "told-in-stream":
    case "aborted":
      return false;
  }
}

/**
 * The backend does not accept the gateway's own credential: the client's never gets there (headers.ts). Its operator has
 * to see to it, not the client.
 */
export function isCredentialRefusal(failure: UpstreamFailure): boolean {
  return failure.kind === "status" && (failure.status === 401 || failure.status === 403);
}

/** What a backend says with these statuses concerns the gateway's account there: no client can do anything about it. */
const OF_ACCOUNT: ReadonlySet<number> = new Set([401, 402, 403, 429]);

export function isOfAccount(status: number): boolean {
  return OF_ACCOUNT.has(status);
}

/** A short word for logs and counters, e.g. "status_429", "timeout_first_byte". */
export function failureLabel(failure: UpstreamFailure): string {
  if (failure.kind === "status") return `status_${failure.status}`;
  if (failure.kind === "timeout") return `timeout_${failure.phase}`;
  return failure.kind.replaceAll("-", "_");
}

const CONNECT_CODES: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EADDRNOTAVAIL",
  "ENOENT",
  "EACCES",
  "EPROTO", // TLS spoken to a port that does not
  "FailedToOpenSocket",
  "ConnectionRefused",
]);

/** The failure behind what fetch or a body read threw. */
export function toFailure(error: unknown, backendName: string): UpstreamFailure {
  if (error instanceof CredentialError) {
    const message = `Backend '${backendName}' was not asked, because the gateway has no credential for it; the gateway's operator has to mend it.`;
    return { kind: "connect", message };
  }
  const code = errorCode(error);
  if (CONNECT_CODES.has(code) || CERTIFICATE_CODE.test(code)) {
    return { kind: "connect", message: `Could not connect to backend '${backendName}' (${code}).` };
  }
  return {
    kind: "reset",
    message: `Backend '${backendName}' broke the connection before its answer was complete (${code}).`,
  };
}

/** The stable code of a runtime error; messages are not shown, as they may hold addresses with credentials. */
function errorCode(error: unknown): string {
  if (error instanceof Error) {
    const code = (error as Error & { code?: unknown }).code;
    return typeof code === "string" ? code : error.name;
  }
  return "unknown error";
}

/** Milliseconds of a Retry-After header: seconds or an HTTP date (RFC 9110, section 10.2.3). */
export function parseRetryAfter(value: string | null, wallTimeMs: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d+(\.\d+)?$/.test(value.trim())) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - wallTimeMs);
}
