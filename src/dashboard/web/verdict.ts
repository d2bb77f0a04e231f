// What is wrong with the gateway now, since when, what came before it, and what can be done: the head of the overview.

import type { BackendStatus } from "../../admin/backend-schemas.ts";
import type { ConfigVersion } from "../../admin/config-schemas.ts";
import type { AdminHealth } from "../../admin/health.ts";
import { clockTime, plural } from "./format.ts";

export interface GatewayProblem {
  tone: "bad" | "warn";
  text: string;
  /** The version of the configuration that came shortly before. */
  after?: ConfigVersion | undefined;
  /** Backends whose circuits can be reset. */
  circuits: readonly string[];
}

/** What was changed so long before may be why. */
const SHORTLY_MS = 10 * 60_000;
const MOST_NAMES = 5;

/** The worst first; empty where all is well. */
export function problemsOf(
  health: AdminHealth,
  backends: readonly BackendStatus[],
  versions: readonly ConfigVersion[],
): GatewayProblem[] {
  const serving = backends.filter(({ enabled, phase }) => enabled && phase === "active");
  const open = serving.filter(({ circuit }) => circuit !== "closed");
  const away = serving.filter(({ is_healthy, state }) => !is_healthy && state !== "unknown" && state !== "warming_up");
  const tone = health.status === "unhealthy" ? "bad" : "warn";
  const problems: GatewayProblem[] = [];
  if (backends.length === 0) {
    problems.push({ tone: "bad", text: "There is no backend yet, so no request can be answered.", circuits: [] });
  }
  if (open.length > 0) {
    const sinceMs = Math.min(
      ...open.flatMap(({ circuit_since }) => (circuit_since === null ? [] : Date.parse(circuit_since))),
    );
    const since = Number.isFinite(sinceMs) ? `, since ${clockTime(sinceMs).slice(0, 5)}` : "";
    const names = open.map(({ name }) => name);
    const text = `${plural(open.length, "circuit")} not closed${since}: ${listOf(names)}.`;
    problems.push({ tone, text, after: versionBefore(versions, sinceMs), circuits: names });
  }
  if (away.length > 0) {
    const [first] = away;
    const reason = away.length === 1 && first?.last_error ? ` (${first.last_error})` : "";
    const names = listOf(away.map(({ name }) => name));
    problems.push({ tone, text: `No answer to health checks: ${names}${reason}.`, circuits: [] });
  }
  const { backend_service: _told, ...others } = health.services;
  for (const { status, message } of Object.values(others)) {
    if (status === "healthy" || status === "disabled") continue;
    problems.push({ tone: status === "unhealthy" ? "bad" : "warn", text: message, circuits: [] });
  }
  return problems;
}

function versionBefore(versions: readonly ConfigVersion[], atMs: number): ConfigVersion | undefined {
  return versions.find(({ timestamp, source }) => {
    const changedMs = Date.parse(timestamp);
    // The configuration of a start is no change.
    return source !== "startup" && changedMs <= atMs && atMs - changedMs <= SHORTLY_MS;
  });
}

/** The first names, and how many more there are. */
export function listOf(names: readonly string[]): string {
  const more = names.length - MOST_NAMES;
  return more > 0 ? `${names.slice(0, MOST_NAMES).join(", ")} and ${more} more` : names.join(", ");
}
