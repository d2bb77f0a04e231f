// Talks to the admin API of a gateway, and fails when any of its answers shows a secret.

import { type ErrorFields, expectErrorBody } from "./expect-error.ts";
import { SECRET_MARK } from "./printed.ts";

export interface AdminAnswer {
  status: number;
  headers: Headers;
  text: string;
  body: Record<string, unknown>;
}

export interface AdminRequest {
  /** As JSON; a text or bytes go out as they are. */
  body?: unknown;
  headers?: Record<string, string>;
  /** For answers that are meant to hold secrets. */
  showsSecrets?: boolean;
}

interface Target {
  fetch(path: string, init?: RequestInit): Promise<Response>;
}

export class AdminClient {
  readonly #target: Target;
  readonly #headers: Record<string, string>;

  constructor(target: Target, headers: Record<string, string> = {}) {
    this.#target = target;
    this.#headers = headers;
  }

  async send(method: string, path: string, { body, headers, showsSecrets }: AdminRequest = {}): Promise<AdminAnswer> {
    const isRaw = typeof body === "string" || body instanceof Uint8Array;
    const response = await this.#target.fetch(path, {
      method,
      headers: { "Content-Type": "application/json", ...this.#headers, ...headers },
      ...(body !== undefined && { body: isRaw ? (body as string) : JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!showsSecrets && text.includes(SECRET_MARK)) {
      throw new Error(`${method} ${path} shows a secret: ${text.slice(0, 2_000)}`);
    }
    const isJson = response.headers.get("content-type")?.includes("json") ?? false;
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : {} };
  }

  /** The body of an answer with status 200 or 201. */
  async ok(method: string, path: string, body?: unknown, more: AdminRequest = {}): Promise<Record<string, unknown>> {
    const answer = await this.send(method, path, { ...more, ...(body !== undefined && { body }) });
    if (answer.status > 201) throw new Error(`${method} ${path} answered ${answer.status}: ${answer.text}`);
    return answer.body;
  }

  get(path: string, more: AdminRequest = {}): Promise<Record<string, unknown>> {
    return this.ok("GET", path, undefined, more);
  }

  async refused(
    status: number,
    method: string,
    path: string,
    body?: unknown,
    more: AdminRequest = {},
  ): Promise<ErrorFields & { fields: string[] }> {
    const answer = await this.send(method, path, { ...more, ...(body !== undefined && { body }) });
    const error = expectErrorBody(answer, answer.text, status);
    const problems = (error.details?.validation_errors ?? []) as { field: string; error: string }[];
    return { ...error, fields: problems.map(({ field }) => field) };
  }

  async version(): Promise<number> {
    return (await this.get("/admin/config")).version as number;
  }
}
