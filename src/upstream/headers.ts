// Headers of a request to a backend. An allow-list, not a block-list: what a client sends to the gateway, credentials
// and cookies above all, is not the backend's business.

import type { Backend } from "../backends/backend.ts";
import { conventionsOf, type Operation } from "../backends/kinds.ts";
import type { BackendAnswer } from "../backends/transport.ts";
import type { Settings } from "../config/sections/registry.ts";
import { passThrough } from "../protocols/registry.ts";
import { propagateTrace, type TraceContext } from "../tracing/trace-context.ts";

/** What the headers of an outgoing request depend on. */
export interface OutgoingHead {
  operation: Operation;
  clientHeaders: Headers;
  trace: TraceContext;
  headers?: Readonly<Record<string, string>> | undefined;
  translation?: unknown;
}

const FORWARDED = ["idempotency-key", "user-agent"] as const;

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
    if (value !== null) into[name] = value;
  }
}
