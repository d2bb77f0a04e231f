// What goes on over a change of the settings, and what is made anew.

import { afterEach, expect, test } from "bun:test";
import { settingsOf } from "../../test/support/serve-routes.ts";
import { createKeyIdentity } from "../access/key-identity.ts";
import { healthRoutes, type ProcessUsage } from "../admin/health.ts";
import { createTransport } from "../backends/transport.ts";
import type { Settings } from "../config/sections/registry.ts";
import { Fleet } from "../fleet/fleet.ts";
import { systemClock } from "../lib/clock.ts";
import { silentLogger } from "../logging/logger.ts";
import { createModelMetadata } from "../models/metadata.ts";
import { serveTargets } from "../server/request-target.ts";
import { StatsCollector } from "../stats/collector.ts";
import { createDataPlane, type DataPlaneOptions } from "./data-plane.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function start(settings: Settings, adminRoutes: DataPlaneOptions["adminRoutes"]) {
  const transport = createTransport(async () => new Response(""));
  const common = { settings, transport, clock: systemClock, log: silentLogger() };
  const fleet = new Fleet(common);
  const facts = { metadata: createModelMetadata({ backends: [], external: [] }), promptFiles: new Map() };
  const data = createDataPlane({
    ...common,
    ...facts,
    fleet,
    env: {},
    identify: createKeyIdentity(() => "salt"),
    reporter: { begun() {}, attempted() {}, finished() {} },
    adminDoor: { admit: () => ({ name: undefined, elevated: true }) },
    adminRoutes,
  });
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", ...serveTargets(data.paths, data.handle) });
  cleanups.push(
    () => server.stop(true),
    () => fleet.stop(),
  );
  return {
    data,
    update: (document: object) => data.update({ ...facts, settings: settingsOf(document) }),
    fetch: (path: string) => fetch(`http://127.0.0.1:${server.port}${path}`),
  };
}

test("the CPU is measured since the last time somebody asked, also when the settings have changed in between", async () => {
  let usage: ProcessUsage = { memoryBytes: 1, cpuMs: 10_000, uptimeMs: 100_000 };
  const settings = settingsOf();
  const gateway = start(settings, () =>
    healthRoutes({
      collector: new StatsCollector({ settings: settings.admin.stats, clock: systemClock }),
      settings: () => settings,
      clock: systemClock,
      storageProblems: () => [],
      backendStatus: () => ({ backends: [] }),
      usage: () => usage,
    }),
  );
  const percent = async () => {
    const { metrics } = (await (await gateway.fetch("/admin/health")).json()) as { metrics: Record<string, number> };
    return metrics.cpu_usage_percent;
  };
  expect(await percent()).toBe(10);
  gateway.update({ logging: { access_log: false } });
  usage = { ...usage, cpuMs: 15_000, uptimeMs: 110_000 };
  expect(await percent()).toBe(50);
});

test("the endpoints of the fleet plane are made once, whatever the settings become", () => {
  let made = 0;
  const gateway = start(settingsOf(), () => {
    made++;
    return [];
  });
  for (const access_log of [false, true]) gateway.update({ logging: { access_log } });
  expect(made).toBe(1);
});

test("the cache is kept while its section is the same, and made anew, or gone, when it is not", () => {
  const { data, update } = start(settingsOf({ response_cache: { enabled: true } }), () => []);
  const { cache } = data;
  expect(cache).toBeDefined();
  update({ response_cache: { enabled: true }, logging: { access_log: false } });
  expect(data.cache).toBe(cache as NonNullable<typeof cache>);
  update({ response_cache: { enabled: true, capacity: 1 } });
  expect([data.cache === undefined, data.cache === cache]).toEqual([false, false]);
  update({});
  expect(data.cache).toBeUndefined();
});
