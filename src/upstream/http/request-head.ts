// A request as it goes over the wire: its lines are checked, because one line too many is another request.

import type { TransportRequest } from "../../backends/transport.ts";
import { SERVICE_NAME, VERSION } from "../../names.ts";
import { unsendable } from "./http-error.ts";
import type { Target } from "./target.ts";

/** A request that is ready to be sent, more than once if need be. */
export interface OutgoingRequest {
  readonly isHead: boolean;
  /** Every line up to the empty one, as Latin-1. */
  readonly head: string;
  readonly body: Uint8Array | string | undefined;
  readonly bodyBytes: number;
}

const METHOD = /^[A-Z]+$/;
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const NOT_IN_VALUES = /[^\t\x20-\x7e\x80-\xff]/;

/** Whether a header can have this value (RFC 9110, section 5.5). */
export function isHeaderValue(value: string): boolean {
  return !NOT_IN_VALUES.test(value);
}

/** What the connection itself decides; not what a client or a configuration says. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  "content-length",
  "expect",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Those that announce a body even where there is none (RFC 9110, section 8.6). */
const WITH_BODY: ReadonlySet<string> = new Set(["PATCH", "POST", "PUT"]);

const ACCEPT = "accept: */*\r\n";
const USER_AGENT = `user-agent: ${SERVICE_NAME}/${VERSION}\r\n`;

/** @throws HttpError (unsendable) if a header, the method or the path cannot be sent */
export function writeRequest(target: Target, pathAndQuery: string, request: TransportRequest): OutgoingRequest {
  const { method, headers, body } = request;
  let head = `${METHOD.test(method) ? method : refuse("the method")} ${target.path(pathAndQuery)} HTTP/1.1\r\n`;
  if (headers.host === undefined) head += target.hostLine;
  if (headers["user-agent"] === undefined) head += USER_AGENT;
  if (headers.accept === undefined) head += ACCEPT;
  if (headers.authorization === undefined) head += target.authorizationLine;
  for (const name in headers) {
    const value = headers[name] as string;
    if (!NAME.test(name)) refuse("the name of a header");
    if (!isHeaderValue(value)) refuse(`the value of the header ${name}`);
    if (!OF_CONNECTION.has(name)) head += `${name}: ${value}\r\n`;
  }
  let bodyBytes = 0;
  if (body !== undefined) bodyBytes = typeof body === "string" ? Buffer.byteLength(body) : body.length;
  if (bodyBytes > 0 || WITH_BODY.has(method)) head += `content-length: ${bodyBytes}\r\n`;
  return { isHead: method === "HEAD", head: `${head}\r\n`, body, bodyBytes };
}

function refuse(what: string): never {
  throw unsendable(`${what} has characters that it may not`);
}
