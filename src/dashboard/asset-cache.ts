// Keeps the bundled files of the dashboard between starts, in the cache folder of the user: to read them takes a few milliseconds,
// to make them a quarter of a second.

import { lstat, mkdir, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { replaceFile } from "../lib/replace-file.ts";
import type { Assets } from "./asset.ts";
import { packAssets, unpackAssets } from "./pack.ts";

const WEB = join(import.meta.dir, "web");
const PACKAGES: readonly string[] = ["preact", "@preact/signals", "@preact/signals-core", "uplot"];

const NAME = /^dashboard-\w+\.assets$/;
/** Files of other versions: two of them may run on one machine by turns. */
const MOST_KEPT = 3;

const OWNER_ONLY_FOLDER = 0o700;
const OWNER_ONLY_FILE = 0o600;
const WRITABLE_BY_OTHERS = 0o022;

/** As the XDG base directory specification says; without a home, a folder of this user below the temporary one. */
export function cacheFolder(env: Readonly<Record<string, string | undefined>>): string {
  const { XDG_CACHE_HOME: cacheHome, HOME: home } = env;
  if (cacheHome !== undefined && isAbsolute(cacheHome)) return join(cacheHome, "signalbox");
  if (home !== undefined && isAbsolute(home)) return join(home, ".cache", "signalbox");
  return join(tmpdir(), `signalbox-${process.getuid?.() ?? "cache"}`);
}

/** A cache that cannot be read or written is no error: the files are made, and live in memory. */
export async function keptAssets(folder: string, make: () => Promise<Assets>): Promise<Assets> {
  const name = `dashboard-${await sourceKey()}.assets`;
  const kept = await read(folder, name).catch(() => undefined);
  if (kept !== undefined) return kept;
  const assets = await make();
  await write(folder, name, assets).catch(() => {});
  return assets;
}

/** Changes with everything that the files are made of: the sources, the packages, and the bundler. */
async function sourceKey(): Promise<string> {
  const hasher = new Bun.CryptoHasher("sha256");
  hasher.update(Bun.revision);
  const sources = [...new Bun.Glob("**/*.{ts,tsx,css,json}").scanSync(WEB)].map((file) => join(WEB, file)).sort();
  const packages = PACKAGES.map((name) => Bun.resolveSync(`${name}/package.json`, WEB));
  for (const file of [join(import.meta.dir, "bundle.ts"), ...sources, ...packages]) {
    const content = await Bun.file(file).bytes();
    hasher.update(`${file.slice(import.meta.dir.length)} ${content.length}\n`).update(content);
  }
  return hasher.digest("hex").slice(0, 32);
}

async function read(folder: string, name: string): Promise<Assets | undefined> {
  // The files are scripts that run for an administrator: only this user may have written them.
  if (!(await isOurs(folder)) || !(await isOurs(join(folder, name)))) return undefined;
  return unpackAssets(await Bun.file(join(folder, name)).text());
}

async function write(folder: string, name: string, assets: Assets): Promise<void> {
  await mkdir(folder, { recursive: true, mode: OWNER_ONLY_FOLDER });
  if (!(await isOurs(folder))) return;
  await replaceFile(join(folder, name), packAssets(assets), OWNER_ONLY_FILE);
  const others = (await readdir(folder)).filter((each) => NAME.test(each) && each !== name);
  const aged = await Promise.all(
    others.map(async (each) => ({ path: join(folder, each), changedMs: (await lstat(join(folder, each))).mtimeMs })),
  );
  const old = aged.sort((a, b) => b.changedMs - a.changedMs).slice(MOST_KEPT - 1);
  await Promise.all(old.map(({ path }) => rm(path, { force: true })));
}

async function isOurs(path: string): Promise<boolean> {
  const { uid, mode } = await lstat(path);
  return uid === process.getuid?.() && (mode & WRITABLE_BY_OTHERS) === 0;
}
