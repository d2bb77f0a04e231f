// One health check of one backend: which request is sent, and what its answer means.

import type { Backend } from "../backends/backend.ts";
import { versionQuery } from "../backends/backend.ts";
import { callDeadline, controlHeaders, failureText, statusText } from "../backends/control-request.ts";
import type { BackendAnswer, BackendCall, Transport } from "../backends/transport.ts";
import { readWholeBody } from "../backends/whole-body.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Clock } from "../lib/clock.ts";
import { formatDuration } from "../lib/duration.ts";
import type { ProbeVerdict } from "./state-machine.ts";

export interface ProbeOutcome {
  verdict: ProbeVerdict;
  /** Time to the status line of the answer that decided. */
  latencyMs: number;
  /** Why the backend is not healthy; undefined when it is. Holds no secrets. */
  reason: string | undefined;
}

/** The reason as clients may know it: the paths of a probe are the operator's business. */
export function withoutPaths(reason: string): string {
  return reason.replace(/ for \/.*$/s, "");
}

export type ProbePlan = ReturnType<typeof probePlan>;

interface ProbeParts {
  transport: Transport;
  clock: Clock;
  /** Aborts when the checker stops. */
  stop: AbortSignal;
}

/** Bodies up to this size are read, which keeps the connection for the next check; larger ones are given up. */
const DRAIN_LIMIT_BYTES = 256 * 1024;
/** The status has decided already; a body that trickles must not hold the verdict back. */
const DRAIN_LIMIT_MS = 500;

/** Priorities: the backend's health_check, then health_checks.endpoint, then the probe of the kind. */
export function probePlan(backend: Backend, settings: Settings["health_checks"]) {
  const override = backend.settings.health_check;
  const usual = backend.kind.probe;
  const path = override.endpoint ?? settings.endpoint ?? usual.path;
  // Method, body and statuses of the kind belong to the kind's own path; another path is a plain GET.
  const isUsual = path === usual.path;
  const fallbacks = override.fallback_endpoints ?? (isUsual ? usual.fallbackPaths : []);
  const method = override.method ?? (isUsual ? usual.method : "GET");
  const suffix = versionQuery(backend);
  return {
    method,
    /** The first path, then those tried when the one before answered 404. */
    paths: [...new Set([path, ...fallbacks])].map((each) => withQuery(each, suffix)),
    body: method === "POST" ? (bodyText(override.body) ?? (isUsual ? usual.body : undefined)) : undefined,
    acceptStatus: override.accept_status ?? (isUsual ? usual.acceptStatus : [200]),
    warmupStatus: override.warmup_status ?? usual.warmupStatus,
    timeoutMs: override.timeout ?? settings.timeout,
  };
}

function withQuery(path: string, query: string): string {
  return query !== "" && path.includes("?") ? `${path}&${query.slice(1)}` : path + query;
}

function bodyText(body: string | Record<string, unknown> | undefined): string | undefined {
  return typeof body === "object" ? JSON.stringify(body) : body;
}

/** Never rejects. The deadline covers all paths together. */
export async function probeBackend(backend: Backend, plan: ProbePlan, tools: ProbeParts): Promise<ProbeOutcome> {
  const { clock } = tools;
  const deadline = callDeadline(plan.timeoutMs, tools.stop);
  let startedMs = clock.now();
  const outcome = (verdict: ProbeVerdict, reason: string | undefined): ProbeOutcome => ({
    verdict,
    latencyMs: clock.now() - startedMs,
    reason,
  });
  try {
    let missing = "";
    for (const path of plan.paths) {
      startedMs = clock.now();
      const { method, body } = plan;
      const request = { method, headers: controlHeaders(backend, body !== undefined), body };
      const call = deadline.watch(tools.transport(backend, path, request));
      const answer = await call.answer;
      const { status } = answer;
      const answered = outcome("failed", undefined);
      await drain(call, answer);
      if (plan.acceptStatus.includes(status)) return { ...answered, verdict: "healthy" };
      if (plan.warmupStatus.includes(status)) {
        return { ...answered, verdict: "warming", reason: `HTTP ${status}: the backend is still loading` };
      }
      if (status !== 404) return { ...answered, reason: `${statusText(backend, status)} for ${shownPath(path)}` };
      missing += `${missing && ", "}${shownPath(path)}`;
    }
    return outcome("failed", `HTTP 404 for ${missing}`);
  } catch (error) {
    if (deadline.expired) return outcome("failed", `no answer within ${formatDuration(plan.timeoutMs)}`);
    return outcome("failed", tools.stop.aborted ? "the check was stopped" : failureText(error));
  } finally {
    deadline.close();
  }
}

/** A query may carry a key of its own. */
function shownPath(path: string): string {
  return path.replace(/\?.*/, "");
}

/** Takes the body off the connection, so that no socket is left behind. */
async function drain(call: BackendCall, answer: BackendAnswer): Promise<void> {
  const timer = setTimeout(() => call.abort(), DRAIN_LIMIT_MS);
  try {
    const body = await readWholeBody(answer, DRAIN_LIMIT_BYTES);
    if (body === undefined) call.abort();
  } catch {
    return; // A body that breaks off changes no verdict: the status line has arrived.
  } finally {
    clearTimeout(timer);
  }
}
