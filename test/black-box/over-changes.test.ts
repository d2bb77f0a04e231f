// What goes on over a change of the settings, and what is made anew.

import { afterEach, expect, spyOn, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { FakeBackend } from "../support/fake-backend.ts";
import { startInProcess } from "../support/in-process.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(document: ConfigDocument = {}) {
  const gateway = await startInProcess({ config: document });
  cleanups.push(() => gateway.close());
  return {
    fetch: (path: string, init?: RequestInit) => gateway.fetch(path, init),
    read: async (path: string) => (await (await gateway.fetch(path)).json()) as Record<string, unknown>,
    async change(sections: ConfigDocument) {
      const result = await gateway.store.apply({ sections, mode: "replace", source: "api" });
      expect(result).toMatchObject({ ok: true, value: { applied: true } });
    },
  };
}

test("the CPU is measured since the last time somebody asked: the admin endpoints outlive the settings", async () => {
  const { read, change } = await start();
  const cpu = spyOn(process, "cpuUsage").mockReturnValue({ user: 10_000_000, system: 0 });
  const uptime = spyOn(process, "uptime").mockReturnValue(100);
  cleanups.push(
    () => cpu.mockRestore(),
    () => uptime.mockRestore(),
  );
  const percent = async () => (await read("/admin/health")).metrics as { cpu_usage_percent: number };
  expect(await percent()).toMatchObject({ cpu_usage_percent: 10 });
  await change({ logging: { level: "error", access_log: false } });
  cpu.mockReturnValue({ user: 15_000_000, system: 0 });
  uptime.mockReturnValue(110);
  expect(await percent()).toMatchObject({ cpu_usage_percent: 50 });
});

test("answers stay when the bounds of the cache change, and are gone when it is switched off", async () => {
  using backend = new FakeBackend({ models: ["m"] });
  const backends = [{ name: "a", type: "vllm", url: backend.url }];
  const { fetch, read, change } = await start({ backends, response_cache: { enabled: true } });
  const body = JSON.stringify({ model: "m", temperature: 0, messages: [{ role: "user", content: "hi" }] });
  const ask = async () => (await fetch("/v1/chat/completions", { method: "POST", body })).headers.get("x-cache");
  expect([await ask(), await ask()]).toEqual(["MISS", "HIT"]);
  await change({ logging: { level: "error", access_log: false } });
  expect(await ask()).toBe("HIT");
  await change({ response_cache: { enabled: true, capacity: 1, ttl: "1h" } });
  expect(await read("/admin/response-cache")).toMatchObject({ enabled: true, entries: 1, capacity: 1 });
  expect(await ask()).toBe("HIT");
  await change({ response_cache: { enabled: false } });
  expect(await read("/admin/response-cache")).toEqual({ enabled: false });
  expect(await ask()).toBeNull();
  await change({ response_cache: { enabled: true } });
  expect(await ask()).toBe("MISS");
});
