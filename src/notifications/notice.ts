// One event as a receiver gets it: its JSON or its text for Slack, and the signature of both.

import { hostname } from "node:os";
import type { NotificationEvent, NotificationTarget } from "../config/sections/notifications.ts";
import { SERVICE_NAME, VERSION } from "../names.ts";

export interface Happened {
  type: NotificationEvent | "test";
  /** The backend, the key, the version: events of one type about one subject are told once within a time. */
  subject: string;
  data: object;
  /** One sentence. */
  text: string;
}

export interface Notice extends Happened {
  /** The same for every attempt, so that a receiver can tell a repeat. */
  id: string;
  atMs: number;
}

const gateway = { name: SERVICE_NAME, version: VERSION, host: hostname() };

export function bodyOf({ id, type, atMs, data, text }: Notice, format: NotificationTarget["format"]): string {
  if (format === "slack") return JSON.stringify({ text: escaped(`${gateway.name} on ${gateway.host}: ${text}`) });
  return JSON.stringify({ id, type, time: new Date(atMs).toISOString(), gateway, data });
}

/** The headers of Standard Webhooks (standardwebhooks.com). */
export function signatureHeaders(
  { id }: Pick<Notice, "id">,
  body: string,
  nowMs: number,
  secret: string | undefined,
): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1000));
  const headers = { "webhook-id": id, "webhook-timestamp": timestamp };
  if (secret === undefined) return headers;
  const signed = new Bun.CryptoHasher("sha256", keyOf(secret)).update(`${id}.${timestamp}.${body}`).digest("base64");
  return { ...headers, "webhook-signature": `v1,${signed}` };
}

const ENCODED = "whsec_";

function keyOf(secret: string): Buffer {
  return secret.startsWith(ENCODED) ? Buffer.from(secret.slice(ENCODED.length), "base64") : Buffer.from(secret);
}

/** Names of backends and keys must not become links or mentions. */
function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
