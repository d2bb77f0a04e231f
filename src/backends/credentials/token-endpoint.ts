// What went wrong at an endpoint that hands out access tokens, in words that hold no secret.

import { isObject, parseJson } from "../../lib/json.ts";
import { CredentialError } from "./credential.ts";

/** An answer is some kilobytes long. */
const MAX_TOKEN_ANSWER_BYTES = 256 * 1024;

/** RFC 6749, section 5.2, and what Google and Microsoft say there; an error code is a word and never a secret. */
const ERROR_CODE = /^[A-Za-z][A-Za-z0-9_]{1,60}$/;

/** The endpoint has answered with an error. */
export function refusedToken(issuer: string, status: number, answer: unknown): CredentialError {
  const { error } = isObject(answer) ? answer : {};
  const code = isObject(error) ? error.status : error;
  const named = typeof code === "string" && ERROR_CODE.test(code) ? ` (${code})` : "";
  return new CredentialError(`no access token: ${issuer} answered HTTP ${status}${named}`);
}

/** The endpoint could not be asked. Messages of the runtime may quote addresses and headers, codes do not. */
export function unreachableIssuer(issuer: string, error: unknown): CredentialError {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  if (name === "TimeoutError" || name === "AbortError") {
    return new CredentialError(`no access token: ${issuer} did not answer in time`);
  }
  const known = typeof code === "string" && ERROR_CODE.test(code) ? ` (${code})` : "";
  return new CredentialError(`no access token: ${issuer} could not be asked${known}`);
}

/** The JSON of an answer with status 200, read within bounds; throws CredentialError for any other. */
export async function readTokenAnswer(issuer: string, response: Response): Promise<Record<string, unknown>> {
  const answer = parseJson(await readBounded(issuer, response));
  if (!response.ok) throw refusedToken(issuer, response.status, answer);
  if (!isObject(answer))
    throw new CredentialError(`no access token: ${issuer} answered something that is no JSON object`);
  return answer;
}

/** The same answer, read whole within bounds, for a reader that has none. */
export async function boundedAnswer(issuer: string, response: Response): Promise<Response> {
  const { status, statusText, headers } = response;
  return new Response(await readBounded(issuer, response), { status, statusText, headers });
}

async function readBounded(issuer: string, response: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of response.body ?? []) {
    bytes += piece.byteLength;
    if (bytes > MAX_TOKEN_ANSWER_BYTES) throw new CredentialError(`no access token: ${issuer} answered too much`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}
