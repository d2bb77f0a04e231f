// What can go wrong between the gateway and a backend's socket, as errors with the codes that fetch gives them.

/** Its message is for people who debug; what clients and operators read is made of the code. */
export class HttpError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

const UNSENDABLE = "ERR_INVALID_HTTP_HEADER";

/** The request has what no request may have: the backend was not asked. */
export function unsendable(what: string): HttpError {
  return new HttpError(UNSENDABLE, `A request cannot be sent: ${what}.`);
}

export function isUnsendable(error: unknown): boolean {
  return error instanceof HttpError && error.code === UNSENDABLE;
}

/** The backend's answer is not HTTP/1.1 as RFC 9112 has it. */
export function malformed(what: string): never {
  throw new HttpError("Malformed_HTTP_Response", `The answer is malformed: ${what}.`);
}

/** The connection ended before the answer did. */
export function connectionReset(): HttpError {
  return new HttpError("ECONNRESET", "The connection was closed before the answer was complete.");
}

/** The gateway itself gave the call up. */
export function callAborted(): HttpError {
  return new HttpError("ABORT_ERR", "The call was aborted.");
}
