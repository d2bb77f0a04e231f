import { expect, test } from "bun:test";
import type { BackendStatus } from "../../admin/backend-schemas.ts";
import type { ConfigVersion } from "../../admin/config-schemas.ts";
import type { AdminHealth } from "../../admin/health.ts";
import { clockTime } from "./format.ts";
import { problemsOf } from "./verdict.ts";

const AT = Date.UTC(2026, 10, 25, 5, 31);
const at = (ms: number) => new Date(ms).toISOString();

const backendOf = (name: string, changes: Partial<BackendStatus> = {}) =>
  ({
    ...{ name, enabled: true, phase: "active", is_healthy: true, state: "ready" },
    ...{ circuit: "closed", circuit_since: null, last_error: null },
    ...changes,
  }) as BackendStatus;

const healthOf = (changes: Partial<AdminHealth> = {}) =>
  ({
    status: "degraded",
    services: { backend_service: { status: "degraded", message: "told by the backends" } },
    ...changes,
  }) as unknown as AdminHealth;

const versionOf = (version: number, timestamp: string) => ({ version, timestamp }) as ConfigVersion;

test("open circuits are told with the first one's time and the change that came shortly before", () => {
  const backends = [
    backendOf("a", { circuit: "open", circuit_since: at(AT + 60_000) }),
    backendOf("b", { circuit: "half_open", circuit_since: at(AT) }),
    backendOf("c"),
  ];
  const versions = [versionOf(7, at(AT + 1)), versionOf(6, at(AT - 60_000)), versionOf(5, at(AT - 120_000))];
  expect(problemsOf(healthOf(), backends, versions)).toEqual([
    {
      tone: "warn",
      text: `2 circuits not closed, since ${clockTime(AT).slice(0, 5)}: a, b.`,
      after: versions[1],
      circuits: ["a", "b"],
    },
  ]);
  expect(problemsOf(healthOf(), backends, [versionOf(5, at(AT - 3_600_000))])[0]?.after).toBeUndefined();
  const start = { ...versionOf(1, at(AT - 1)), source: "startup" };
  expect(problemsOf(healthOf(), backends, [start])[0]?.after).toBeUndefined();
});

test("backends that are away are named, those that are disabled, drained or not checked yet are none", () => {
  const away = { is_healthy: false, state: "down" } as const;
  const backends = [
    backendOf("a", { ...away, last_error: "connection refused" }),
    backendOf("b", { ...away, enabled: false }),
    backendOf("c", { ...away, phase: "draining" }),
    backendOf("d", { is_healthy: false, state: "unknown" }),
  ];
  expect(problemsOf(healthOf({ status: "unhealthy" }), backends, [])).toEqual([
    { tone: "bad", text: "No answer to health checks: a (connection refused).", circuits: [] },
  ]);
  const many = Array.from({ length: 7 }, (_, index) => backendOf(`b${index}`, away));
  expect(problemsOf(healthOf(), many, [])[0]?.text).toBe("No answer to health checks: b0, b1, b2, b3, b4 and 2 more.");
});

test("other parts of the gateway tell their trouble themselves; without trouble there is none", () => {
  const services = {
    backend_service: { status: "healthy", message: "" },
    storage_service: { status: "degraded", message: "The disk is full." },
    health_service: { status: "disabled", message: "off" },
  };
  expect(problemsOf(healthOf({ services } as never), [backendOf("a")], [])).toEqual([
    { tone: "warn", text: "The disk is full.", circuits: [] },
  ]);
  expect(problemsOf(healthOf(), [], [])[0]?.text).toBe("There is no backend yet, so no request can be answered.");
});
