// What npm install makes of the sources for starts (bin/bundle), and when a start runs the sources instead.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SERVICE_NAME, VERSION } from "../../src/names.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
const ROOT = join(import.meta.dir, "..", "..");
const OF_SOURCE = "9.9.9";
const outer = mkdtempSync(join(tmpdir(), "signalbox-bundle-"));
const folder = join(outer, "checkout");
const command = join(folder, "bin", "signalbox");
const names = join(folder, "src", "names.ts");

beforeAll(() => {
  for (const part of ["bin", "src", "package.json"]) cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  expect(Bun.spawnSync(["sh", join(folder, "bin", "bundle")]).exitCode).toBe(0);
  // From now on bundle and sources tell different versions; the file is as old as it was.
  writeFileSync(names, readFileSync(names, "utf8").replace(VERSION, OF_SOURCE));
  utimesSync(names, 1, 1);
});

afterAll(() => rmSync(outer, { recursive: true, force: true }));

function told(path = command): { version: string; complaints: string } {
  const { stdout, stderr } = Bun.spawnSync(["sh", path, "--version"]);
  return { version: stdout.toString(), complaints: stderr.toString() };
}
const BUNDLED = { version: `${SERVICE_NAME} ${VERSION}\n`, complaints: "" };
const SOURCE = { version: `${SERVICE_NAME} ${OF_SOURCE}\n`, complaints: "" };

test("a start runs the bundle, with its workers and its dashboard", async () => {
  expect(told()).toEqual(BUNDLED);
  const backend = bed.backend();
  const gateway = await bed.process({
    command: [command],
    config: {
      server: { bind_address: "127.0.0.1:0", workers: 2 },
      backends: [{ name: "b", url: backend.url, models: ["m"] }],
    },
  });
  expect((await gateway.chat()).status).toBe(200);
  const { workers } = (await (await gateway.fetch("/admin/workers")).json()) as { workers: { state: string }[] };
  expect(workers.map(({ state }) => state)).toEqual(["running", "running"]);
  const page = await (await gateway.fetch("/dashboard")).text();
  const script = await gateway.fetch(`/${/"(dashboard\/main-\w+\.js)"/.exec(page)?.[1]}`);
  expect(script.status).toBe(200);
  await gateway.close();
});

test("bytecode that cannot be read is left aside", () => {
  writeFileSync(join(folder, "dist", "start", "main.js.jsc"), "no bytecode");
  expect(told()).toEqual(BUNDLED);
});

test("a folder that was moved runs its sources", () => {
  const moved = join(outer, "moved");
  renameSync(folder, moved);
  expect(told(join(moved, "bin", "signalbox"))).toEqual(SOURCE);
  renameSync(moved, folder);
  expect(told()).toEqual(BUNDLED);
});

test("sources of which one has changed run themselves, until they are bundled again", () => {
  utimesSync(names, new Date(), new Date());
  expect(told()).toEqual(SOURCE);
  writeFileSync(names, readFileSync(names, "utf8").replace(OF_SOURCE, VERSION));
  expect(Bun.spawnSync(["sh", join(folder, "bin", "bundle")]).exitCode).toBe(0);
  expect(told()).toEqual(BUNDLED);
});

test("sources that cannot be bundled run themselves, and the installation succeeds", () => {
  rmSync(join(folder, "dist"), { recursive: true });
  writeFileSync(join(folder, "dist"), "no folder");
  const run = Bun.spawnSync(["sh", join(folder, "bin", "bundle")]);
  expect({ exitCode: run.exitCode, words: run.stderr.toString() }).toEqual({
    exitCode: 0,
    words: expect.stringContaining("starts run the sources"),
  });
  expect(told()).toEqual(BUNDLED); // the sources tell this version again
});
