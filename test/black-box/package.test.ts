// The package as npm sees it: scripts and signals, the lock, and what the tarball holds.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageJson from "../../package.json";
import { within } from "../support/wait-for.ts";

const ROOT = join(import.meta.dir, "..", "..");

type Wanted = Record<string, string>;
interface LockedPackage {
  version?: string;
  integrity?: string;
  engines?: { node?: string };
  dependencies?: Wanted;
  devDependencies?: Wanted;
  optionalDependencies?: Wanted;
  peerDependencies?: Wanted;
  peerDependenciesMeta?: Record<string, { optional?: boolean }>;
}
const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
  packages: Record<string, LockedPackage>;
};

function wantedBy(locked: LockedPackage): Wanted {
  const { dependencies, devDependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = locked;
  const peers = Object.entries(peerDependencies ?? {}).filter(([name]) => !peerDependenciesMeta?.[name]?.optional);
  return { ...dependencies, ...devDependencies, ...optionalDependencies, ...Object.fromEntries(peers) };
}

/** Where the package at a place finds another one: below itself, or below one of those that it lies in. */
function placeOf(name: string, place: string): string | undefined {
  for (let folder = place; ; folder = folder.slice(0, Math.max(folder.lastIndexOf("/node_modules/"), 0))) {
    const candidate = `${folder === "" ? "" : `${folder}/`}node_modules/${name}`;
    if (candidate in lock.packages) return candidate;
    if (folder === "") return undefined;
  }
}

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-package-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function isUp(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/health`)).ok;
  } catch {
    return false;
  }
}

/** The address that the banner of the start names. */
async function addressIn(output: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of output) {
    text += decoder.decode(chunk, { stream: true });
    const url = /listens on (http:\S+)/.exec(text)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error(`there is no address in: ${text}`);
}

test("npm start passes SIGTERM on: the gateway ends in order and its port is free", async () => {
  const npm = Bun.spawn(["npm", "start"], {
    cwd: ROOT,
    env: {
      ...process.env,
      HOME: folder,
      SIGNALBOX_DATA_DIR: join(folder, "data"),
      SIGNALBOX_SERVER__BIND_ADDRESS: "127.0.0.1:0",
      SIGNALBOX_DISCOVERY_PORTS: "none",
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const log = new Response(npm.stderr).text();
  let url = "";
  try {
    url = await within("the banner names the address", addressIn(npm.stdout), 30_000);
    expect(await isUp(url)).toBe(true);
  } finally {
    npm.kill("SIGTERM");
  }
  expect(await within("npm ends", npm.exited)).toBe(0);
  expect(await isUp(url)).toBe(false);
  expect(await within("the gateway lets go of its log", log)).toContain("stopped");
});

describe("the lock", () => {
  test("names every package that one of its packages wants, those of other platforms too, so that npm ci takes it", () => {
    const missing = Object.entries(lock.packages).flatMap(([place, locked]) =>
      Object.keys(wantedBy(locked)).flatMap((name) =>
        placeOf(name, place) === undefined ? [`${place}: ${name}`] : [],
      ),
    );
    expect(missing).toEqual([]);
  });

  test("has the versions of package.json, and a checksum for every package", () => {
    const { "": own, ...others } = lock.packages;
    const { dependencies, devDependencies } = packageJson as LockedPackage;
    expect({ dependencies: own?.dependencies, devDependencies: own?.devDependencies }).toEqual({
      dependencies,
      devDependencies,
    });
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
      expect(lock.packages[`node_modules/${name}`]?.version).toBe(version);
    }
    expect(Object.keys(others).filter((place) => others[place]?.integrity === undefined)).toEqual([]);
  });

  test("asks for no newer Node than package.json promises", () => {
    const promised = packageJson.engines.node.replace(">=", "");
    const newer = Object.entries(lock.packages).filter(
      ([, { engines }]) => engines?.node !== undefined && !Bun.semver.satisfies(`${promised}.0.0`, engines.node),
    );
    expect(newer.map(([place, { engines }]) => `${place} wants ${engines?.node}`)).toEqual([]);
  });
});

describe("the tarball", () => {
  let files: string[] = [];

  beforeAll(async () => {
    // Without the declarations that prepack makes: test/packages has a tarball with them.
    const pack = Bun.spawn(["npm", "pack", "--ignore-scripts", "--json", "--pack-destination", folder], {
      cwd: ROOT,
      env: { ...process.env, HOME: folder },
      stderr: "ignore",
    });
    const [{ filename, files: packed }] = (await new Response(pack.stdout).json()) as [
      { filename: string; files: { path: string }[] },
    ];
    files = packed.map(({ path }) => path);
    mkdirSync(join(folder, "unpacked"));
    const tar = Bun.spawn(["tar", "-xzf", join(folder, filename), "-C", join(folder, "unpacked")]);
    expect(await tar.exited).toBe(0);
  });

  test("holds the documentation, what is needed to deploy it, and no tests", () => {
    for (const path of [
      "docs/configuration.md",
      "docs/index.md",
      "deploy/systemd/signalbox.service",
      "ARCHITECTURE.md",
    ]) {
      expect(files).toContain(path);
    }
    // Screenshots are for readers of the repository.
    expect(files.filter((path) => path.startsWith("docs/images/"))).toEqual([]);
    expect(files).toContain("src/main.ts");
    expect(files.filter((path) => /\.test\.|^test\/|^bench\//.test(path))).toEqual([]);
  });

  test("runs once its dependencies are there", async () => {
    const unpacked = join(folder, "unpacked", "package");
    symlinkSync(join(ROOT, "node_modules"), join(unpacked, "node_modules"));
    expect(existsSync(join(unpacked, "package-lock.json"))).toBe(false);
    const run = Bun.spawn(["sh", join(unpacked, "bin", "signalbox"), "--generate-config"], { stderr: "pipe" });
    expect(await new Response(run.stdout).text()).toContain("bind_address");
    expect(await new Response(run.stderr).text()).toBe("");
    expect(await run.exited).toBe(0);
  });
});
