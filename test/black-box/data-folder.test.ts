// The data folder: nobody but its owner reads what is in it.

import { expect, test } from "bun:test";
import { chmodSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

const EVERY_SECOND = { persistence: { snapshot_interval_seconds: 1 } };

test("everything in it is for its owner only, also what was open before", async () => {
  const gateway = await bed.gateway({ config: { backends: [], metrics: EVERY_SECOND } });
  const data = join(gateway.folder, "data");
  const modes = () => Object.fromEntries(readdirSync(data).map((name) => [name, modeOf(join(data, name))]));
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
