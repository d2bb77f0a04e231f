// The platforms that executables are built for, and the Bun of each: the package of the lock, by its checksum there.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "..");
const CACHE = join(ROOT, "node_modules", ".cache", "runtimes");

/** Platform -> what the bundler calls it, and the package with its Bun. */
export const PLATFORMS = {
  "linux-x64": { target: "bun-linux-x64", package: "@oven/bun-linux-x64" },
  "linux-arm64": { target: "bun-linux-arm64", package: "@oven/bun-linux-aarch64" },
  "linux-x64-musl": { target: "bun-linux-x64-musl", package: "@oven/bun-linux-x64-musl" },
  "linux-arm64-musl": { target: "bun-linux-arm64-musl", package: "@oven/bun-linux-aarch64-musl" },
  "darwin-x64": { target: "bun-darwin-x64", package: "@oven/bun-darwin-x64" },
  "darwin-arm64": { target: "bun-darwin-arm64", package: "@oven/bun-darwin-aarch64" },
} as const;

export type Platform = keyof typeof PLATFORMS;

interface LockedPackage {
  version: string;
  integrity: string;
}

/**
 * The path of the platform's Bun executable. What is not in node_modules comes from npm, which may have it in its cache;
 * the bundler's own download knows no checksum.
 */
export async function runtimeOf(platform: Platform): Promise<string> {
  const name = PLATFORMS[platform].package;
  const installed = join(ROOT, "node_modules", name, "bin", "bun");
  if (existsSync(installed)) return installed;
  const { version, integrity } = lockedPackage(name);
  const folder = join(CACHE, `${name.slice(name.indexOf("/") + 1)}-${version}`);
  const runtime = join(folder, "package", "bin", "bun");
  if (existsSync(runtime)) return runtime;
  // Half a download must not look like a whole one.
  const unfinished = `${folder}.${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  try {
    const packed = await output(
      ["npm", "pack", "--json", "--prefer-offline", "--loglevel=error", `${name}@${version}`],
      unfinished,
    );
    const tarball = join(unfinished, tarballIn(packed));
    const sum = `sha512-${createHash("sha512").update(readFileSync(tarball)).digest("base64")}`;
    if (sum !== integrity) throw new Error(`${name}@${version} is not the package of package-lock.json: ${sum}`);
    await output(["tar", "-xzf", tarball, "package/bin/bun"], unfinished);
    rmSync(tarball);
    rmSync(folder, { recursive: true, force: true });
    renameSync(unfinished, folder);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return runtime;
}

/** npm 10 lists what it packed, npm 12 names it by package. */
function tarballIn(packed: string): string {
  const told = JSON.parse(packed) as { filename: string }[] | Record<string, { filename: string }>;
  return (Object.values(told)[0] as { filename: string }).filename;
}

function lockedPackage(name: string): LockedPackage {
  const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
    packages: Record<string, LockedPackage>;
  };
  const locked = lock.packages[`node_modules/${name}`];
  if (locked === undefined) throw new Error(`package-lock.json has no ${name}`);
  return locked;
}

async function output(command: string[], cwd: string): Promise<string> {
  const child = Bun.spawn(command, { cwd, stdio: ["ignore", "pipe", "inherit"] });
  const text = await new Response(child.stdout).text();
  const exitCode = await child.exited;
  if (exitCode !== 0) throw new Error(`${command.join(" ")} exited ${exitCode}`);
  return text;
}
