// Errors of Bedrock by the names of their exceptions. Source: the service model in @aws-sdk/client-bedrock-runtime 3.1164
// (dist-es/schemas), and the common errors of AWS services.
//
// A refusal has the name in the header x-amzn-errortype, and a body {message}; a stream that breaks off has a frame of the
// type "exception". upstream/amazon-answer.ts makes one form of both, which Messages clients understand as well:
// {type: "error", error: {type, code, message}}, where the code is the name.

import type { Failure } from "../../generation/result.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { nonEmptyText, objectOf } from "../reading.ts";

interface ExceptionRule {
  status: number;
  type: string;
}

const INVALID: ExceptionRule = { status: 400, type: "invalid_request_error" };
const REFUSED: ExceptionRule = { status: 403, type: "permission_error" };
const LIMITED: ExceptionRule = { status: 429, type: "rate_limit_error" };
const BUSY: ExceptionRule = { status: 503, type: "overloaded_error" };
/** The model failed, not the request; 424 would tell a client that it is to blame. */
const FAILED: ExceptionRule = { status: 502, type: "api_error" };

/** Where a status differs from that of the vendor, the gateway's one says who is to act. */
const EXCEPTIONS: ReadonlyMap<string, ExceptionRule> = new Map([
  ["ValidationException", INVALID],
  ["ConflictException", { status: 409, type: "conflict_error" }],
  ["ResourceNotFoundException", { status: 404, type: "not_found_error" }],
  ["AccessDeniedException", REFUSED],
  ["UnrecognizedClientException", REFUSED],
  ["InvalidSignatureException", REFUSED],
  ["SignatureDoesNotMatch", REFUSED],
  ["IncompleteSignatureException", REFUSED],
  ["MissingAuthenticationTokenException", REFUSED],
  ["ExpiredTokenException", REFUSED],
  ["OptInRequired", REFUSED],
  ["ThrottlingException", LIMITED],
  ["TooManyRequestsException", LIMITED],
  ["ServiceQuotaExceededException", LIMITED],
  ["ModelNotReadyException", BUSY],
  ["ServiceUnavailableException", BUSY],
  ["ModelTimeoutException", { status: 504, type: "timeout_error" }],
  ["ModelErrorException", FAILED],
  ["ModelStreamErrorException", FAILED],
  ["InternalServerException", { status: 500, type: "api_error" }],
  ["InternalFailure", { status: 500, type: "api_error" }],
]);

/** "com.amazon#ThrottlingException:http://…" and "throttlingException" are ThrottlingException. */
function exceptionName(told: string): string {
  const name = (told.split(":")[0] ?? "").replace(/^.*#/, "");
  return name.charAt(0).toUpperCase() + name.slice(1);
}

/**
 * The status of an error.
 * @param told - the name as a header says it; "" where there is none
 * @param status - of the answer; 0 inside a stream
 */
export function statusOfException(told: string, status: number): number {
  return EXCEPTIONS.get(exceptionName(told))?.status ?? (status >= 400 ? status : 502);
}

/** An error in the one form. The parameters are those of statusOfException(). */
export function exceptionAs(told: string, status: number, detail: unknown): JsonObject {
  const { message, Message, __type: type } = objectOf(detail);
  const code = exceptionName(told === "" ? (nonEmptyText(type) ?? "") : told);
  const known = statusOfException(code, status);
  const words = nonEmptyText(message) ?? nonEmptyText(Message) ?? `The backend reported ${code || `status ${known}`}.`;
  const kind = EXCEPTIONS.get(code)?.type ?? typeOf(known);
  return { type: "error", error: { type: kind, message: words, ...(code !== "" && { code }) } };
}

function typeOf(status: number): string {
  if (status === 429) return LIMITED.type;
  return status < 500 ? INVALID.type : FAILED.type;
}

/** Reads the one form; proxies answer with text or HTML. */
export function decodeError(status: number, body: unknown): Failure {
  const told = isObject(body) ? (body.error ?? body) : undefined;
  const { type, code, message } = objectOf(told);
  const known = EXCEPTIONS.get(nonEmptyText(code) ?? "")?.status;
  const certain = known ?? (status >= 400 ? status : 502);
  return {
    message: nonEmptyText(message) ?? nonEmptyText(told) ?? `The backend answered with status ${certain}.`,
    status: certain,
    ...compact({ type: nonEmptyText(type), code: nonEmptyText(code) }),
  };
}
