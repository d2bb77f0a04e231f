// The walks that ARCHITECTURE.md describes are those that requests take.

import { expect, test } from "bun:test";
import { join } from "node:path";
import { describedWalks } from "./walks/page.ts";

test("five requests enter the rooms that ARCHITECTURE.md names, in that order; else run: sh bin/bun test/architecture/walks/record.ts --write", async () => {
  const recorder = Bun.spawn([process.execPath, join(import.meta.dir, "walks", "record.ts")], { stderr: "pipe" });
  const [recorded, errors] = await Promise.all([recorder.stdout.text(), recorder.stderr.text()]);
  expect(errors).toBe("");
  expect(await describedWalks()).toEqual(JSON.parse(recorded));
}, 60_000);
