// The data folder: nobody but its owner reads what is in it, and one that cannot be written is told.

import { expect, test } from "bun:test";
import { chmodSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { AdminClient } from "../support/admin-client.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

const modeOf = (path: string): string | undefined =>
  // A journal of SQLite may go between a look at the folder and one at the file.
  statSync(path, { throwIfNoEntry: false })?.mode.toString(8).slice(-3);

const EVERY_SECOND = { persistence: { snapshot_interval_seconds: 1 } };

test("everything in it is for its owner only, also what was open before", async () => {
  const gateway = await bed.process({ config: { backends: [], metrics: EVERY_SECOND } });
  const data = join(gateway.folder, "data");
  const modes = () => {
    const found = readdirSync(data).map((name) => [name, modeOf(join(data, name))]);
    return Object.fromEntries(found.filter(([, mode]) => mode !== undefined));
  };
  const hasHistory = () => "metrics.db-wal" in modes() || undefined;
  await waitFor("a sample was written", hasHistory);
  expect(modeOf(data)).toBe("700");
  for (const [name, mode] of Object.entries(modes())) expect([name, mode]).toEqual([name, "600"]);

  await gateway.stop();
  expect(modes()).toMatchObject({ "stats.json": "600", "metrics.db": "600", "config.db": "600" });
  for (const name of readdirSync(data)) chmodSync(join(data, name), 0o644);
  await gateway.restart();
  await waitFor("another sample was written", hasHistory);
  await gateway.stop();
  expect(modes()).toMatchObject({ "stats.json": "600", "metrics.db": "600", "config.db": "600" });
});

test("one that cannot be written is degraded in /admin/health, and healthy again once it can", async () => {
  const backend = bed.backend();
  const config = {
    backends: [{ name: "a", url: backend.url, models: ["m"] }],
    metrics: EVERY_SECOND,
    admin: { stats: { persistence: { snapshot_interval: "1s" } } },
  };
  // A file where the folder should be; permissions do not stop root.
  const gateway = await bed.process({ config, files: { data: "" } });
  const admin = new AdminClient(gateway);
  const storage = async () => {
    const { status, services } = await admin.get("/admin/health");
    return [status, (services as Record<string, { status: string; message: string }>).storage_service] as const;
  };
  const data = join(gateway.folder, "data");
  expect(await storage()).toEqual([
    "degraded",
    { status: "degraded", message: expect.stringContaining(`${data}/config.db cannot be used`) },
  ]);
  await waitFor("statistics and metrics are told too", async () => {
    const message = (await storage())[1]?.message ?? "";
    return /stats\.json cannot be written/.test(message) && /metrics\.db cannot be written/.test(message);
  });
  expect((await gateway.chat()).status).toBe(200);
  await waitFor("requests are told too", async () => {
    return /requests\.db cannot be written/.test((await storage())[1]?.message ?? "");
  });
  rmSync(data);
  await gateway.restart();
  expect(await storage()).toEqual(["healthy", { status: "healthy", message: "The data folder can be written." }]);
});
