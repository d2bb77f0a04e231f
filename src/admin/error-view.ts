// The errors that clients were answered with lately, as the admin API tells them (GET /admin/errors/…).

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { ErrorRecorder, KeptError } from "../stats/error-recorder.ts";
import { badParameter, type StatsWindow } from "./query.ts";

const DEFAULT_LIMIT = 50;

/** Throws 400 for a limit that makes no sense. */
export function recentErrors(recorder: ErrorRecorder, query: URLSearchParams) {
  const text = query.get("limit") ?? String(DEFAULT_LIMIT);
  if (!/^\d{1,6}$/.test(text) || Number(text) < 1) throw badParameter("limit", "a whole number from 1");
  const found = recorder.recent({ type: query.get("type") ?? undefined, backend: query.get("backend") ?? undefined });
  return { errors: found.slice(0, Number(text)).map(errorRow), total: found.length };
}

/** Takes either id of the request; throws 404. */
export function errorById(recorder: ErrorRecorder, requestId: string) {
  const record = recorder.find(requestId);
  if (record !== undefined) return errorRow(record);
  throw new GatewayError(
    ERRORS.routeNotFound,
    "No error of this request is known. The newest are kept; GET /admin/errors/recent lists them.",
  );
}

export function errorStats(recorder: ErrorRecorder, { name, ms }: StatsWindow) {
  const { total, types, statuses, backends } = recorder.counts(ms);
  return { total, by_type: types, by_status: statuses, by_backend: backends, window: name };
}

export function errorRow(record: KeptError) {
  const { id, requestId, timeMs, status, type, code, message, model, backend, attempts } = record;
  const { keyId, userId, organizationId, clientAddress, endedBy } = record;
  return {
    id,
    request_id: requestId,
    timestamp: new Date(timeMs).toISOString(),
    status,
    type,
    code,
    message,
    model: model || null,
    backend: backend ?? null,
    key_id: keyId ?? null,
    user_id: userId ?? null,
    organization_id: organizationId ?? null,
    client: clientAddress ?? null,
    ended_by: endedBy ?? null,
    attempts: attempts.map(({ durationMs, ...attempt }) => ({
      ...attempt,
      ...(durationMs !== undefined && { duration_ms: durationMs }),
    })),
  };
}
