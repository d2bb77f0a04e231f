// Pieces of the control plane's own requests to backends: headers, deadline, bounded reading, failure texts, and a limit
// on how many begin at once. Health checks and model lists share them.

import { type Backend, credentialHeader } from "./backend.ts";
import { CredentialError } from "./credentials/credential.ts";
import type { BackendCall } from "./transport.ts";

/** Headers in lower case, so that the operator's own replace ours whatever their letter case. */
export function controlHeaders(backend: Backend, hasBody: boolean): Record<string, string> {
  const headers: Record<string, string> = { accept: "application/json", "accept-encoding": "identity" };
  if (hasBody) headers["content-type"] = "application/json";
  const credential = credentialHeader(backend);
  const layers = [Object.entries(backend.kind.headers), credential ? [credential] : []];
  for (const [name, value] of [...layers.flat(), ...Object.entries(backend.settings.headers)]) {
    headers[name.toLowerCase()] = value;
  }
  return headers;
}

/** Ends calls after a time, or as soon as the whole control plane stops. */
export function callDeadline(timeoutMs: number, stop: AbortSignal) {
  let present: BackendCall | undefined;
  let expired = false;
  const abort = () => present?.abort();
  const timer = setTimeout(() => {
    expired = true;
    abort();
  }, timerMs(timeoutMs));
  stop.addEventListener("abort", abort, { once: true });
  return {
    /** The call that is ended; another one takes its place. */
    watch(call: BackendCall): BackendCall {
      present = call;
      if (expired || stop.aborted) abort();
      return call;
    },
    get expired(): boolean {
      return expired;
    },
    /** Must be called when the calls are over: it stops the timer. */
    close(): void {
      clearTimeout(timer);
      stop.removeEventListener("abort", abort);
    },
  };
}

/** A timer that is asked to wait longer than 2^31 ms fires at once instead. */
export function timerMs(delayMs: number): number {
  return Math.min(Math.max(0, delayMs), 2 ** 31 - 1);
}

const FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection closed by the backend before it answered",
  EPIPE: "connection closed by the backend before it answered",
  ENOENT: "the unix socket does not exist",
  EACCES: "permission denied on the unix socket",
  ENOTFOUND: "the host name cannot be resolved",
  EAI_AGAIN: "the host name cannot be resolved at the moment",
  ETIMEDOUT: "the connection timed out",
  EHOSTUNREACH: "no route to the host",
  ENETUNREACH: "no route to the network",
  EPROTO: "the TLS handshake failed; does the backend speak TLS on this port?",
  Malformed_HTTP_Response: "the answer is not HTTP",
};

export const CERTIFICATE_CODE = /CERT|SELF_SIGNED|ISSUER|ALTNAME|SIGNATURE/;

/** Describes the failure. It uses codes only: the runtime's messages may quote addresses and header values. */
export function failureText(error: unknown): string {
  if (error instanceof CredentialError) return error.message;
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code !== "string") return "the request could not be sent";
  const known = Object.hasOwn(FAILURES, code) ? FAILURES[code] : undefined;
  if (known !== undefined) return known;
  if (CERTIFICATE_CODE.test(code)) return `the TLS certificate is not accepted (${code})`;
  return `the request failed (${code})`;
}

/** Describes a status that no rule accepts, with its most likely reason. */
export function statusText(backend: Backend, status: number): string {
  if (status === 401 || status === 403) {
    return `HTTP ${status} (${refusalHint(backend)})`;
  }
  return status >= 300 && status < 400 ? `HTTP ${status} (redirects are not followed)` : `HTTP ${status}`;
}

function refusalHint({ apiKey, hasCredential, kind }: Backend): string {
  if (hasCredential) return "the credential is refused";
  if (apiKey !== undefined) return "the api_key is refused";
  const variable = kind.environment?.keys[0];
  const example = variable === undefined ? "" : ` (api_key: \${${variable}})`;
  return `it wants an api_key, none is configured${example}`;
}

/**
 * Lets `limit` pieces of work begin per `spacingMs`. It limits beginnings, not running work: backends that hang until
 * their deadline must not hold up the checks of all others.
 */
export function createPacer(limit = 64, spacingMs = 50) {
  const waiting: (() => void)[] = [];
  let started = 0;
  let timer: Timer | undefined;
  let closed = false;

  function open(): void {
    const begun = waiting.splice(0, limit);
    for (const begin of begun) begin();
    started = begun.length;
    timer = started > 0 ? setTimeout(open, spacingMs) : undefined;
  }

  return {
    enter(): Promise<void> {
      if (closed) return Promise.resolve();
      if (started < limit) {
        started++;
        timer ??= setTimeout(open, spacingMs);
        return Promise.resolve();
      }
      return new Promise((resolve) => {
        waiting.push(resolve);
      });
    },
    /** Lets everyone in, now and from now on: what stops does not want to wait. */
    close(): void {
      closed = true;
      clearTimeout(timer);
      for (const begin of waiting.splice(0)) begin();
    },
  };
}
