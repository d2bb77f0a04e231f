// GET /admin/health: how the gateway and its parts are doing; 503 when it can serve no request.

import type { Settings } from "../config/sections/registry.ts";
import type { BackendState } from "../fleet/status.ts";
import { VERSION } from "../names.ts";
import {
  count,
  described,
  namedShape,
  number,
  oneOfTexts,
  schemasOf,
  shape,
  text,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer } from "../openapi/operation.ts";
import { adminGroup, answer, toTimestamp } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";

export type BackendHealth = Pick<BackendState, "drain" | "askable" | "circuit" | "models"> & {
  backend: Pick<BackendState["backend"], "enabled">;
};

type HealthParts = Pick<AdminParts, "collector" | "settings" | "clock" | "storageProblems"> & {
  backendStates(): { configured: readonly BackendHealth[] };
  /** Tests give their own. */
  usage?: () => ProcessUsage;
};

export interface ProcessUsage {
  memoryBytes: number;
  /** User and system time since the process began. */
  cpuMs: number;
  uptimeMs: number;
}

type HealthStatus = (typeof STATUSES)[number];

interface ServiceHealth {
  status: HealthStatus | "disabled";
  message: string;
}

/** This share of failed requests is more than bad luck. */
const HIGH_ERROR_RATE = 0.5;
/** Fewer requests than this within the last one to two minutes say nothing. */
const TELLING_REQUESTS = 10;
/** Between two measurements of the CPU. */
const CPU_SPACING_MS = 1_000;

const SERVICES = ["backend", "model", "proxy", "health", "storage"];
const STATUSES = ["healthy", "degraded", "unhealthy"] as const;

const ServiceHealth = namedShape("ServiceHealth", { status: oneOfTexts(...STATUSES, "disabled"), message: text });
export const AdminHealth = namedShape("AdminHealth", {
  status: oneOfTexts(...STATUSES),
  version: text,
  uptime: described(count, "Seconds."),
  timestamp: time,
  services: shape(Object.fromEntries(SERVICES.map((name) => [`${name}_service`, ServiceHealth]))),
  metrics: shape({
    requests_per_second: number,
    error_rate: number,
    memory_usage_mb: number,
    cpu_usage_percent: described(number, "Of one core."),
  }),
});
export type AdminHealth = ValueOf<typeof AdminHealth>;

const SCHEMAS = schemasOf(AdminHealth, ServiceHealth);

const endpoint = adminGroup("Observation", SCHEMAS);

export function healthRoutes(parts: HealthParts): DescribedEndpoint[] {
  const { collector, settings, clock, backendStates, storageProblems, usage = processUsage } = parts;
  const cpuPercent = createCpuMeter();
  return [
    endpoint("GET /admin/health", {
      id: "getAdminHealth",
      role: "viewer",
      summary: "Health of the gateway and of its parts",
      answers: [jsonAnswer(AdminHealth, "Healthy or degraded."), jsonAnswer(AdminHealth, "Unhealthy.", 503)],
      handle(call) {
        const load = collector.load();
        const used = usage();
        const services = {
          ...backendServices(backendStates().configured),
          proxy_service: proxyService(load),
          health_service: healthService(settings()),
          storage_service: storageService(storageProblems()),
        };
        const status = overall(Object.values(services));
        const body = {
          status,
          version: VERSION,
          uptime: collector.uptimeSeconds,
          timestamp: toTimestamp(clock.wallTime()),
          services,
          metrics: {
            requests_per_second: round(load.requestsPerSecond, 2),
            error_rate: round(load.errorRate, 4),
            memory_usage_mb: round(used.memoryBytes / (1024 * 1024), 1),
            cpu_usage_percent: round(cpuPercent(used), 1),
          },
        };
        return answer(call, body, { status: status === "unhealthy" ? 503 : 200 });
      },
    }),
  ];
}

function overall(services: readonly ServiceHealth[]): HealthStatus {
  const has = (status: HealthStatus): boolean => services.some((service) => service.status === status);
  return has("unhealthy") ? "unhealthy" : has("degraded") ? "degraded" : "healthy";
}

function backendServices(configured: readonly BackendHealth[]) {
  const serving = configured.filter(({ backend, drain }) => backend.enabled && drain === undefined);
  const available = serving.filter(({ askable }) => askable);
  const troubled = available.filter(({ circuit }) => circuit !== "closed");
  const models = new Set(available.flatMap((row) => row.models));
  return {
    backend_service: {
      status: available.length === 0 ? "unhealthy" : isWhole(serving, available, troubled) ? "healthy" : "degraded",
      message: backendMessage(serving, available, troubled),
    },
    model_service: {
      status: models.size === 0 ? "unhealthy" : "healthy",
      message: models.size === 0 ? "No model can be served." : `Models that can be served: ${models.size}.`,
    },
  } satisfies Record<string, ServiceHealth>;
}

type Rows = readonly BackendHealth[];

function isWhole(serving: Rows, available: Rows, troubled: Rows): boolean {
  return available.length === serving.length && troubled.length === 0;
}

function backendMessage(serving: Rows, available: Rows, troubled: Rows): string {
  if (serving.length === 0) return "No backend is enabled.";
  const circuits = troubled.length === 0 ? "" : ` Circuits that are not closed: ${troubled.length}.`;
  return `Backends that can be asked: ${available.length} of ${serving.length}.${circuits}`;
}

function proxyService({ requests, errorRate }: { requests: number; errorRate: number }): ServiceHealth {
  const share = `${round(errorRate * 100, 1)} % of the latest requests failed.`;
  if (requests >= TELLING_REQUESTS && errorRate >= HIGH_ERROR_RATE) return { status: "degraded", message: share };
  return { status: "healthy", message: errorRate === 0 ? "Requests are answered." : share };
}

function healthService({ health_checks: { enabled } }: Settings): ServiceHealth {
  if (enabled) return { status: "healthy", message: "Backends are checked." };
  return { status: "disabled", message: "Health checks are off: every enabled backend counts as available." };
}

/** Requests are answered without it; this reports what would be lost before it is. */
function storageService(problems: readonly string[]): ServiceHealth {
  if (problems.length === 0) return { status: "healthy", message: "The data folder can be written." };
  return { status: "degraded", message: `${problems.map((problem) => problem.replace(/\.$/, "")).join("; ")}.` };
}

/** Of one core, since the last request for it, or since the start. */
function createCpuMeter(): (usage: ProcessUsage) => number {
  let last = { cpuMs: 0, uptimeMs: 0 };
  let percent = 0;
  return ({ cpuMs, uptimeMs }) => {
    const passedMs = uptimeMs - last.uptimeMs;
    if (passedMs >= CPU_SPACING_MS || last.uptimeMs === 0) {
      percent = (100 * (cpuMs - last.cpuMs)) / Math.max(1, passedMs);
      last = { cpuMs, uptimeMs };
    }
    return percent;
  };
}

function processUsage(): ProcessUsage {
  const { user, system } = process.cpuUsage();
  return {
    memoryBytes: process.memoryUsage.rss(),
    cpuMs: (user + system) / 1000,
    uptimeMs: process.uptime() * 1000,
  };
}

function round(value: number, digits: number): number {
  const factor = 10 ** digits;
  return Math.round(value * factor) / factor;
}
