// The bundled files that are kept between starts: read back, made again where they are not trusted, and never in the way.

import { afterAll, beforeEach, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Assets } from "./asset.ts";
import { cacheFolder, keptAssets } from "./asset-cache.ts";

const root = mkdtempSync(join(tmpdir(), "signalbox-assets-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const file = { type: "text/javascript", plain: bytes("plain"), gzip: bytes("gzip"), br: bytes("br") };
const ASSETS: Assets = {
  script: "main-1.js",
  ownScript: "me-1.js",
  theme: "theme-1.js",
  style: "style-1.css",
  files: new Map([["main-1.js", file]]),
};

let folder: string;
let made: number;
let count = 0;
beforeEach(() => {
  folder = join(root, String(count++), "signalbox");
  made = 0;
});

async function ask(): Promise<Assets> {
  return await keptAssets(folder, async () => {
    made++;
    return ASSETS;
  });
}

test("are made once, and read by the next start", async () => {
  expect(await ask()).toEqual(ASSETS);
  expect(await ask()).toEqual(ASSETS);
  expect(made).toBe(1);
  const [name = ""] = readdirSync(folder);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
});

test("a folder or a file that others may write, or that is a link, is not trusted", async () => {
  await ask();
  const [name = ""] = readdirSync(folder);
  const path = join(folder, name);
  chmodSync(path, 0o666);
  await ask();
  expect(made).toBe(2);
  chmodSync(folder, 0o777);
  await ask();
  expect(made).toBe(3);
  chmodSync(folder, 0o700);
  rmSync(path);
  const elsewhere = join(root, "elsewhere.assets");
  writeFileSync(elsewhere, "{}");
  symlinkSync(elsewhere, path);
  await ask();
  expect(made).toBe(4);
  await ask();
  expect(made).toBe(4); // the link gave way to a file
});

test("a file that is broken is made again", async () => {
  await ask();
  const [name = ""] = readdirSync(folder);
  writeFileSync(join(folder, name), '{"script":');
  expect(await ask()).toEqual(ASSETS);
  expect(made).toBe(2);
});

test("a folder that cannot be made is no error", async () => {
  mkdirSync(join(folder, ".."), { recursive: true });
  writeFileSync(folder, "a file stands in the way");
  expect(await ask()).toEqual(ASSETS);
  expect(await ask()).toEqual(ASSETS);
  expect(made).toBe(2);
});

test("files of older versions are removed, and nothing else", async () => {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const name of ["dashboard-a.assets", "dashboard-b.assets", "dashboard-c.assets", "notes.txt"]) {
    writeFileSync(join(folder, name), "");
  }
  await ask();
  const names = readdirSync(folder);
  expect(names.filter((name) => name.endsWith(".assets")).length).toBe(3);
  expect(names).toContain("notes.txt");
});

test("the folder is that of the XDG specification", () => {
  expect(cacheFolder({ XDG_CACHE_HOME: "/caches", HOME: "/home/ann" })).toBe("/caches/signalbox");
  expect(cacheFolder({ XDG_CACHE_HOME: "relative", HOME: "/home/ann" })).toBe("/home/ann/.cache/signalbox");
  expect(cacheFolder({})).toStartWith(join(tmpdir(), "signalbox-"));
});
