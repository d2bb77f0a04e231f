// Where the time of a request went, as the header Server-Timing tells it (https://www.w3.org/TR/server-timing/).

import type { RequestRecord } from "../stats/request-record.ts";

export const SERVER_TIMING = "Server-Timing";

/**
 * As far as it is known when the head of the answer leaves. `runningMs`: what the attempt has taken whose stream goes on.
 * Waits between attempts are the gateway's.
 */
export function serverTiming(
  { backendMs, queuedMs, stream, isShared }: RequestRecord,
  totalMs: number,
  runningMs = 0,
): string {
  const firstToken = stream && runningMs > 0 ? `, first-token;dur=${tenths(totalMs)}` : "";
  // The time of another request's call is not this one's.
  if (isShared) return `shared;dur=${tenths(totalMs)}${firstToken}`;
  const queue = queuedMs > 0 ? `, queue;dur=${tenths(queuedMs)}` : "";
  if (backendMs === undefined && runningMs === 0) return `gateway;dur=${tenths(totalMs - queuedMs)}${queue}`;
  const spentMs = (backendMs ?? 0) + runningMs;
  const ownMs = Math.max(0, totalMs - spentMs - queuedMs);
  return `gateway;dur=${tenths(ownMs)}${queue}, backend;dur=${tenths(spentMs)}${firstToken}`;
}

/** With one decimal at most. Whole numbers become text for a fraction of what broken ones cost. */
function tenths(durationMs: number): string {
  const count = Math.round(durationMs * 10);
  const tenth = count % 10;
  const whole = (count - tenth) / 10;
  return tenth === 0 ? `${whole}` : `${whole}.${tenth}`;
}
