// npm run build: one self-contained executable. Without options for this platform, as dist/signalbox; with
// --target=<platform> for another one, with --target=all for all of them, as dist/signalbox-<platform>. --outfile=… names it.

import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { bundleAssets } from "../src/dashboard/bundle.ts";
import { packAssets } from "../src/dashboard/pack.ts";
import { PLATFORMS, type Platform, runtimeOf } from "./platform-runtimes.ts";

/** The program that loads what was linked for glibc. */
const GLIBC_LOADERS: Record<string, string> = {
  x64: "/lib64/ld-linux-x86-64.so.2",
  arm64: "/lib/ld-linux-aarch64.so.1",
};

const option = (name: string) => process.argv.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3);
const wanted = option("target")?.replace(/^bun-/, "");
const outfile = option("outfile");

if (wanted === undefined) await build(outfile ?? "dist/signalbox");
else if (wanted === "all") for (const platform of Object.keys(PLATFORMS) as Platform[]) await buildFor(platform);
else if (Object.hasOwn(PLATFORMS, wanted)) await buildFor(wanted as Platform);
else fail(`--target: expected all or one of ${Object.keys(PLATFORMS).join(", ")}`);

async function buildFor(platform: Platform): Promise<void> {
  const target = wanted === "all" ? undefined : outfile;
  await build(target ?? `dist/signalbox-${platform}`, platform === thisPlatform() ? undefined : platform);
}

async function build(outfile: string, platform?: Platform): Promise<void> {
  mkdirSync(dirname(outfile), { recursive: true });
  // The dashboard is bundled now: an executable has neither its sources nor a reason to do so.
  const embedded = mkdtempSync(join(tmpdir(), "signalbox-build-"));
  const assets = join(embedded, "dashboard.assets");
  writeFileSync(assets, packAssets(await bundleAssets()));
  const command = [
    process.execPath,
    "build",
    "src/main.ts",
    assets,
    "--compile",
    "--minify-whitespace",
    "--minify-syntax",
    `--outfile=${outfile}`,
  ];
  // Compiled ahead, a start takes half the CPU time. The engine that runs here does it for itself only.
  if (platform === undefined) command.push("--bytecode", "--format=esm");
  else {
    command.push(`--target=${PLATFORMS[platform].target}`, `--compile-executable-path=${await runtimeOf(platform)}`);
  }
  const child = Bun.spawn(command, { stdio: ["ignore", "inherit", "inherit"] });
  const exitCode = await child.exited;
  rmSync(embedded, { recursive: true });
  if (exitCode !== 0) process.exit(exitCode);
  chmodSync(outfile, 0o755);
  console.log(`built ${outfile}`);
}

function thisPlatform(): string {
  const isMusl = process.platform === "linux" && !existsSync(GLIBC_LOADERS[process.arch] ?? "");
  return `${process.platform}-${process.arch}${isMusl ? "-musl" : ""}`;
}

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
