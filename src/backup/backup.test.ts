// Backups on real folders and databases: what is copied, what is refused, and that a refusal writes nothing.

import { Database } from "bun:sqlite";
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  watch,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { readManifest } from "./manifest.ts";
import { openBackup, restoreBackup } from "./restore-backup.ts";
import { restoreMark, unfinishedRestore } from "./unfinished-restore.ts";
import { type BackupSource, writeBackup } from "./write-backup.ts";

const root = mkdtempSync(join(tmpdir(), "backup-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const ABOUT = { version: "1.2.3", created_at: "2026-05-01T12:00:00.000Z", statistics_of: null };

let place = "";
let source: BackupSource;
let backup = "";
let rounds = 0;

function write(path: string, content: string | Uint8Array): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
}

beforeEach(() => {
  place = join(root, `${rounds++}`);
  const home = join(place, "home");
  const dataDir = join(home, "data");
  backup = join(place, "backup");
  const configFile = write(join(home, "config.yaml"), "server: {}\n");
  write(join(dataDir, "stats.json"), '{"format":1}');
  write(join(dataDir, "files/contents/ab/file-abc"), "content");
  write(join(dataDir, "files/files.lock"), "");
  write(join(dataDir, "files/incoming/half"), "half");
  write(join(dataDir, "acp/running/1-x.json"), "{}");
  write(join(dataDir, ".0b1e.tmp"), "half");
  source = { dataDir, baseDir: home, configFile, namedFiles: [], otherData: [], variables: [] };
});

const restoredInto = (folder: string) => ({
  dataDir: join(folder, "data"),
  baseDir: folder,
  configFile: join(folder, "config.yaml"),
});

async function restore(folder = join(place, "there")) {
  return await restoreBackup(backup, await openBackup(backup), restoredInto(folder));
}

describe("writeBackup", () => {
  test("copies what lasts, and neither locks nor what is on its way", async () => {
    const { manifest } = await writeBackup(backup, source, ABOUT);
    expect(manifest.files.map(({ path }) => path)).toEqual([
      "data/stats.json",
      "data/files/contents/ab/file-abc",
      "config/config.yaml",
    ]);
    expect(await readManifest(backup)).toEqual(manifest);
    await restore();
    expect(readFileSync(join(place, "there/data/files/contents/ab/file-abc"), "utf8")).toBe("content");
    expect(readFileSync(join(place, "there/config.yaml"), "utf8")).toBe("server: {}\n");
  });

  test("a database that is being written to is one moment of it, whatever it is called", async () => {
    const path = join(source.dataDir, "requests.of-a-later-version");
    using sqlite = new Database(path);
    sqlite.run("PRAGMA journal_mode = WAL");
    sqlite.run("PRAGMA user_version = 7");
    sqlite.run("CREATE TABLE t (a)");
    sqlite.run("INSERT INTO t VALUES (1)");
    sqlite.run("BEGIN IMMEDIATE");
    sqlite.run("INSERT INTO t VALUES (2)");
    await writeBackup(backup, source, ABOUT);
    sqlite.run("COMMIT");
    expect(readdirSync(join(backup, "data")).sort()).toEqual(["files", "requests.of-a-later-version", "stats.json"]);
    await restore();
    using copy = new Database(join(place, "there/data/requests.of-a-later-version"));
    expect(copy.query("SELECT a FROM t").all()).toEqual([{ a: 1 }]);
    expect(copy.query("PRAGMA user_version").get()).toEqual({ user_version: 7 });
  });

  test("a damaged database is copied as it is, and told", async () => {
    const path = write(join(source.dataDir, "metrics.db"), `SQLite format 3\0${"x".repeat(5_000)}`);
    const { damaged } = await writeBackup(backup, source, ABOUT);
    expect(damaged).toEqual([path]);
    await restore();
    expect(readFileSync(join(place, "there/data/metrics.db"), "utf8")).toBe(readFileSync(path, "utf8"));
  });

  test("links are followed once, and files of other places are kept apart", async () => {
    const far = write(join(place, "far/ca.pem"), "PEM");
    const statistics = write(join(place, "far/stats.json"), "{}");
    symlinkSync(source.dataDir, join(source.dataDir, "loop"));
    symlinkSync(join(place, "far"), join(source.dataDir, "far"));
    const { manifest } = await writeBackup(backup, { ...source, namedFiles: [far], otherData: [statistics] }, ABOUT);
    expect(manifest.files.map(({ path }) => path).filter((path) => /loop|far|elsewhere/.test(path))).toEqual([
      "data/far/ca.pem",
      "data/far/stats.json",
      "elsewhere/0/stats.json",
      "elsewhere/1/ca.pem",
    ]);
    expect(manifest.elsewhere).toEqual([
      { path: "elsewhere/0/stats.json", from: statistics },
      { path: "elsewhere/1/ca.pem", from: far },
    ]);
  });

  test("refuses a folder that has something in it, and one in the data folder", async () => {
    write(join(backup, "mine"), "");
    await expect(writeBackup(backup, source, ABOUT)).rejects.toThrow("is not empty");
    await expect(writeBackup(join(source.dataDir, "backup"), source, ABOUT)).rejects.toThrow("lies in the data folder");
    expect(readdirSync(backup)).toEqual(["mine"]);
  });
});

describe("restoreBackup", () => {
  const change = async (edit: (manifest: Record<string, unknown>) => void) => {
    const path = join(backup, "manifest.json");
    const manifest = JSON.parse(readFileSync(path, "utf8"));
    edit(manifest);
    writeFileSync(path, JSON.stringify(manifest));
  };

  test.each<[string, () => unknown, string]>([
    ["without a manifest", () => rmSync(join(backup, "manifest.json")), "is no backup, or one that was not finished"],
    ["of a later format", () => change((manifest) => Object.assign(manifest, { format: 2 })), "newer version"],
    [
      "with a file that changed",
      () => write(join(backup, "data/stats.json"), '{"format":2}'),
      "not what was backed up",
    ],
    ["without one of its files", () => rmSync(join(backup, "config/config.yaml")), "is missing"],
    ["with a link for a file", () => link("data/stats.json"), "is missing"],
    ["that leads out", () => change(({ files }) => leadOut(files)), "damaged"],
  ])("writes nothing of a backup %s", async (_, damage, message) => {
    await writeBackup(backup, source, ABOUT);
    await damage();
    await expect(restore()).rejects.toThrow(message);
    expect(existsSync(join(place, "there"))).toBe(false);
  });

  const leadOut = (files: unknown) => Object.assign((files as object[])[0] as object, { path: "data/../../x" });
  const link = (path: string) => {
    rmSync(join(backup, path));
    symlinkSync(join(source.dataDir, "stats.json"), join(backup, path));
  };

  test("refuses a folder that has something in it, and overwrites no file beside it", async () => {
    await writeBackup(backup, source, ABOUT);
    const full = join(place, "full");
    write(join(full, "data/mine"), "");
    await expect(restore(full)).rejects.toThrow("is not empty");
    expect(readdirSync(full)).toEqual(["data"]);

    const there = join(place, "there");
    write(join(there, "config.yaml"), "server: { }\n");
    mkdirSync(join(there, "data/lost+found"), { recursive: true });
    expect(await restore(there)).toEqual({ kept: [{ path: join(there, "config.yaml"), isSame: false }] });
    expect(readFileSync(join(there, "config.yaml"), "utf8")).toBe("server: { }\n");
  });

  test("a file that changes meanwhile leaves nothing behind; the mark is there as long as it is not whole", async () => {
    const { manifest } = await writeBackup(backup, source, ABOUT);
    write(join(backup, "data/files/contents/ab/file-abc"), "changed");
    const target = restoredInto(join(place, "there"));
    mkdirSync(join(target.dataDir, "lost+found"), { recursive: true });
    const restored = restoreBackup(backup, manifest, target);
    let wasMarked = true;
    const watcher = watch(target.dataDir, () => {
      wasMarked &&= readdirSync(target.dataDir).length <= 1 || existsSync(restoreMark(target.dataDir));
    });
    await expect(restored).rejects.toThrow("has changed during the restore");
    watcher.close();
    expect(wasMarked).toBe(true);
    expect(readdirSync(target.dataDir)).toEqual(["lost+found"]);
    expect(unfinishedRestore(target.dataDir)).toBeUndefined();
  });
});
