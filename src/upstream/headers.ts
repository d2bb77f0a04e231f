// Headers of a request to a backend. An allow-list, not a block-list: what a client sends to the gateway, credentials
// and cookies above all, is not the backend's business.

import type { Backend } from "../backends/backend.ts";
import { conventionsOf, type Operation } from "../backends/operations.ts";
import type { BackendAnswer } from "../backends/transport.ts";
import type { Settings } from "../config/sections/registry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { passThrough } from "../protocols/registry.ts";
import { propagateTrace, type TraceContext } from "../tracing/trace-context.ts";
import { isHeaderValue } from "./http/request-head.ts";

/** What the headers of an outgoing request depend on. */
export interface OutgoingHead {
  operation: Operation;
  clientHeaders: Headers;
  trace: TraceContext;
  headers?: Readonly<Record<string, string>> | undefined;
  translation?: unknown;
}

const USER_AGENT = "user-agent";
/** Names the version that a body of the Messages format is written for. */
export const VERSION = "anthropic-version";
/** Names what of the format is not for everyone yet. */
export const BETAS = "anthropic-beta";
const FORWARDED = ["idempotency-key", USER_AGENT] as const;
/** Servers take lines of 8 KiB and heads of 16 KiB at least; some only close the connection on longer ones. */
const MAX_VALUE_LENGTH = 2048;

/** @throws GatewayError 400 for a header of the client that cannot be sent on */
export function upstreamHeaders(
  backend: Backend,
  { clientHeaders, trace, operation, translation, headers: formatHeaders }: OutgoingHead,
  settings: Settings,
): Record<string, string> {
  const headers: Record<string, string> = { ...backend.baseHeaders };
  copyHeaders(FORWARDED, clientHeaders, headers);
  copyHeaders(backend.settings.forward_headers, clientHeaders, headers);
  propagateTrace(trace, settings.tracing, headers);
  if (formatHeaders !== undefined) Object.assign(headers, formatHeaders);
  // The client's own body goes with the version it was written for.
  const ofFormat = translation === undefined ? passThrough(conventionsOf(operation)).headers : undefined;
  if (ofFormat !== undefined) copyHeaders(ofFormat, clientHeaders, headers);
  if (backend.kind.versionInBody) delete headers[VERSION];
  if (backend.kind.betasInBody) delete headers[BETAS];
  return backend.ownHeaders === undefined ? headers : Object.assign(headers, backend.ownHeaders);
}

/** The backend's headers that the client gets besides the gateway's own. */
export function forwardedResponseHeaders(
  backend: Backend,
  answer: Pick<BackendAnswer, "header">,
  into: Record<string, string>,
): void {
  for (const name of backend.kind.responseHeaders) {
    const value = answer.header(name);
    if (value !== null) into[name] = value;
  }
}

function copyHeaders(names: readonly string[], from: Headers, into: Record<string, string>): void {
  for (const name of names) {
    const value = from.get(name);
    if (value === null) continue;
    if (value.length <= MAX_VALUE_LENGTH && isHeaderValue(value)) into[name] = value;
    // Without it, the request means the same. Without any of the others it would be another request.
    else if (name !== USER_AGENT) throw unsendable(name);
  }
}

function unsendable(name: string): GatewayError {
  const message = `The header ${name} cannot be sent on to a backend: its value must have at most ${MAX_VALUE_LENGTH} characters, none of them a control character.`;
  return new GatewayError(ERRORS.invalidRequest, message, { param: name });
}
