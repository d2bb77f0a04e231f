// The access log: one line for each request that is over.

import type { Settings } from "../config/sections/registry.ts";
import { type LineLevel, type Logger, lineWriter } from "../logging/logger.ts";
import type { RequestContext } from "../pipeline/context.ts";
import { MAX_CODE_LENGTH } from "../pipeline/observe.ts";
import { isFailure } from "../stats/outcome.ts";
import type { RequestRecord } from "../stats/request-record.ts";

interface AccessFacts {
  status: number;
  durationMs: number;
  /** Why the request failed; for failures of the gateway and of backends. */
  reason: string | undefined;
  client: string | undefined;
}

export type AccessLog = ReturnType<typeof createAccessLog>;

const MAX_LOGGED_PATH_LENGTH = 200;

export function createAccessLog({ access_log }: Settings["logging"], log: Logger) {
  const logLine = lineWriter(log, "request");
  return {
    /** False for a line that would not be written, so that it need not be built. */
    takes: (level: LineLevel) => (access_log || level === "warn") && log.isLevelEnabled(level),
    /** @param bug - an unexpected exception; logged at any level */
    write(level: LineLevel, context: RequestContext, facts: AccessFacts, bug: unknown): void {
      const fields = fieldsOf(context, facts);
      if (bug === undefined) logLine(level, fields);
      else log.error({ ...fields, err: bug }, "unexpected error");
    },
  };
}

/** Members that are undefined do not appear in the line. */
function fieldsOf(
  { id, method, path, caller, record }: RequestContext,
  { status, durationMs, reason, client }: AccessFacts,
): object {
  const { stream, attempts, backendMs, firstByteMs } = record;
  const isFailed = isFailure(record.outcome);
  return {
    method,
    path: path.length > MAX_LOGGED_PATH_LENGTH ? path.slice(0, MAX_LOGGED_PATH_LENGTH) : path,
    status,
    duration_ms: rounded(durationMs),
    gateway_ms: backendMs === undefined ? undefined : rounded(Math.max(0, durationMs - backendMs)),
    first_token_ms: stream && firstByteMs !== undefined ? rounded(firstByteMs) : undefined,
    model: record.shownModel || undefined,
    fallback_model: record.answeredBy,
    route: record.route,
    arm: record.arm,
    stream: stream || undefined,
    backend: record.backend,
    attempts: attempts > 1 ? attempts : undefined,
    prompt_tokens: record.promptTokens,
    completion_tokens: record.completionTokens,
    failure: record.lastFailure,
    code: status >= 400 ? codeOf(record) : undefined,
    reason: isFailed ? reason : undefined,
    backend_error: isFailed ? lastWords(record) : undefined,
    ended_by: isFailed ? record.endedBy : undefined,
    client,
    key: caller?.keyId,
    user: caller?.userId ?? record.endUser,
    organization: caller?.organizationId,
    request_id: id,
    id: record.id,
  };
}

/** Cut, because a backend may have written it. */
function codeOf({ error }: RequestRecord): string | number | undefined {
  const code = error?.code ?? undefined;
  return typeof code === "string" ? code.slice(0, MAX_CODE_LENGTH) : code;
}

/** The message of the backend that was asked last. */
function lastWords({ steps }: RequestRecord): string | undefined {
  const last = steps.findLast((step) => step.kind === "attempt");
  return last?.status === undefined ? undefined : last.detail;
}

function rounded(durationMs: number): number {
  return Math.round(durationMs * 10) / 10;
}
