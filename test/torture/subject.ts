// The client under test, as the tests ask it: one request at one address.

import { type Backend, toBackend } from "../../src/backends/backend.ts";
import type { BackendCall, Transport } from "../../src/backends/transport.ts";
import { type ConfigDocument, documentSchema } from "../../src/config/sections/registry.ts";
import type { BackendTls } from "../../src/upstream/backend-tls.ts";
import { createSocketClient, type SocketClientOptions } from "../../src/upstream/http/socket-client.ts";

export type BackendInput = NonNullable<ConfigDocument["backends"]>[number];

export interface Question {
  method?: string;
  path?: string;
  headers?: Record<string, string>;
  body?: Uint8Array | string;
}

export function backendAt(url: string, more: Partial<BackendInput> = {}): Backend {
  const { backends } = documentSchema.parse({ backends: [{ name: "engine", url, ...more }] });
  return toBackend(backends[0] as (typeof backends)[number]);
}

/** A POST with a small body, unless the question says otherwise. */
export function ask(transport: Transport, backend: Backend, question: Question = {}): BackendCall {
  const { method = "POST", path = "/v1/chat/completions", headers } = question;
  const body = "body" in question ? question.body : method === "POST" ? '{"model":"m"}' : undefined;
  return transport(backend, path, {
    method,
    headers: { "content-type": "application/json", "accept-encoding": "identity", ...headers },
    body,
  });
}

export interface TestClient {
  transport: Transport;
  /** Closes what is open. */
  close(): void;
}

export interface ClientParts extends Partial<SocketClientOptions> {
  /** For all backends. */
  tls?: BackendTls;
}

/** Unless a test says otherwise. */
export const MAX_IDLE = 32;

export function newClient({ tls, ...options }: ClientParts = {}): TestClient {
  const client = createSocketClient({ maxIdle: MAX_IDLE, ...(tls !== undefined && { tlsOf: () => tls }), ...options });
  return { transport: (...call) => client.call(...call), close: () => client.close() };
}
