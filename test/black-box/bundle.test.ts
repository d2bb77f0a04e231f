// What npm install makes of the sources for starts (bin/bundle), and when a start runs the sources instead.

import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
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
const madeIn = join(folder, "dist", "start", "made-in");
const LOCK = join(folder, "package-lock.json");

beforeAll(() => {
  for (const part of ["bin", "src", "package.json", "package-lock.json"]) {
    cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  }
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  expect(makeBundle().exitCode).toBe(0);
  // From now on bundle and sources name different versions.
  writeFileSync(names, readFileSync(names, "utf8").replace(VERSION, OF_SOURCE));
});

beforeEach(() => {
  if (existsSync(madeIn)) passForNewest();
});

afterAll(() => rmSync(outer, { recursive: true, force: true }));

function makeBundle(): { exitCode: number; words: string } {
  const { exitCode, stderr } = Bun.spawnSync(["sh", join(folder, "bin", "bundle")]);
  return { exitCode, words: stderr.toString() };
}

/** The bundle is taken as newer than all that was changed. */
function passForNewest(): void {
  const later = Date.now() / 1000 + 3600;
  utimesSync(madeIn, later, later);
}

/** By the clock of the file system, which is coarser than that of the process. */
function passForMadeNow(): void {
  writeFileSync(madeIn, readFileSync(madeIn));
}

function versionOf(path = command): { version: string; complaints: string } {
  const { stdout, stderr } = Bun.spawnSync(["sh", path, "--version"]);
  return { version: stdout.toString(), complaints: stderr.toString() };
}
const BUNDLED = { version: `${SERVICE_NAME} ${VERSION}\n`, complaints: "" };
const SOURCE = { version: `${SERVICE_NAME} ${OF_SOURCE}\n`, complaints: "" };

test("a start runs the bundle, with its workers and its dashboard", async () => {
  expect(versionOf()).toEqual(BUNDLED);
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
  expect(versionOf()).toEqual(BUNDLED);
});

test("a folder that was moved runs its sources", () => {
  const moved = join(outer, "moved");
  renameSync(folder, moved);
  expect(versionOf(join(moved, "bin", "signalbox"))).toEqual(SOURCE);
  renameSync(moved, folder);
  expect(versionOf()).toEqual(BUNDLED);
});

test("a source that was replaced after the bundle was made runs, even where the file says that it is older", () => {
  passForMadeNow();
  expect(versionOf()).toEqual(BUNDLED);
  const text = readFileSync(names);
  rmSync(names);
  writeFileSync(names, text);
  utimesSync(names, 1, 1); // as rsync and tar do
  utimesSync(join(folder, "src"), 1, 1);
  expect(versionOf()).toEqual(SOURCE);
});

test("sources run when a dependency has changed, its name or only the lock", () => {
  for (const file of [LOCK, join(folder, "package.json")]) {
    passForMadeNow();
    expect(versionOf()).toEqual(BUNDLED);
    writeFileSync(file, readFileSync(file));
    expect(versionOf()).toEqual(SOURCE);
  }
});

test("npm install bundles again what has changed", () => {
  passForMadeNow();
  expect(versionOf()).toEqual(BUNDLED);
  writeFileSync(names, readFileSync(names));
  expect(versionOf()).toEqual(SOURCE);
  expect(makeBundle()).toEqual({ exitCode: 0, words: "" });
  writeFileSync(names, readFileSync(names, "utf8").replace(OF_SOURCE, VERSION));
  passForNewest();
  expect(versionOf()).toEqual(SOURCE); // the version that the bundle has now
});

test("sources that cannot be bundled run, the installation succeeds, and says why there is no bundle", () => {
  writeFileSync(names, `${readFileSync(names, "utf8")}\nimport "./nowhere.ts";\n`);
  const failed = makeBundle();
  expect(failed.exitCode).toBe(0);
  expect(failed.words).toContain("starts run the sources");
  expect(failed.words).toContain("nowhere.ts");
  rmSync(join(folder, "dist"), { recursive: true });
  writeFileSync(join(folder, "dist"), "no folder");
  writeFileSync(names, readFileSync(names, "utf8").replace('\nimport "./nowhere.ts";\n', ""));
  const refused = makeBundle();
  expect(refused.exitCode).toBe(0);
  expect(refused.words).toContain("starts run the sources");
  expect(versionOf()).toEqual(BUNDLED); // the sources have this version again
  rmSync(join(folder, "dist"));
});
