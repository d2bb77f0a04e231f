// The packed tarball, installed as users do it, and the executable: in folders that hold nothing of the repository.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { INSTALL_TIMEOUT_MS } from "../../scripts/npm-programs.ts";
import { runBounded } from "../../scripts/run-bounded.ts";
import { smoke } from "./smoke.ts";

const ROOT = join(import.meta.dir, "..", "..");

const folder = realpathSync(mkdtempSync(join(tmpdir(), "signalbox-installed-")));
const tarball = () => join(folder, readdirSync(folder).find((name) => name.endsWith(".tgz")) ?? "no tarball");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** npm's cache and settings are those of whoever runs the tests; the folders of what is installed are not. */
const environment = Object.fromEntries(
  Object.entries(process.env).flatMap(([name, value]) =>
    value === undefined || /^npm_|_API_KEY$|^SIGNALBOX_/.test(name) ? [] : [[name, value]],
  ),
);

function emptyFolder(name: string): string {
  const path = join(folder, name);
  mkdirSync(path);
  return path;
}

async function npm(cwd: string, ...words: string[]): Promise<string> {
  const command = ["npm", ...words, "--no-audit", "--no-fund", "--loglevel=error"];
  const { exitCode, stdout, stderr } = await runBounded(command, { cwd, environment, timeoutMs: INSTALL_TIMEOUT_MS });
  if (exitCode !== 0) throw new Error(`npm ${words.join(" ")} exited ${exitCode}:\n${stderr}`);
  return stdout;
}

beforeAll(async () => {
  await npm(ROOT, "pack", "--pack-destination", folder);
}, INSTALL_TIMEOUT_MS);

/** What the command sees: no variable leads it to this repository. */
const bare = { PATH: process.env.PATH ?? "" };

test(
  "npm install -g of the tarball, and its removal",
  async () => {
    const prefix = emptyFolder("prefix");
    await npm(
      emptyFolder("anywhere"),
      "install",
      "--global",
      "--prefix",
      prefix,
      "--omit=dev",
      "--prefer-offline",
      tarball(),
    );
    const command = join(prefix, "bin", "signalbox");
    await smoke({ command: [command], folder: emptyFolder("global-run"), environment: bare });
    await npm(folder, "uninstall", "--global", "--prefix", prefix, "signalbox");
    expect(existsSync(command)).toBe(false);
    expect(existsSync(join(prefix, "lib", "node_modules", "signalbox"))).toBe(false);
  },
  INSTALL_TIMEOUT_MS,
);

test(
  "npm install of the tarball, then npx signalbox",
  async () => {
    const project = emptyFolder("project");
    await npm(project, "install", "--omit=dev", "--prefer-offline", "--ignore-scripts", tarball());
    const installed = readdirSync(join(project, "node_modules")).filter((name) => !name.startsWith("."));
    expect(installed).toContain("signalbox");
    expect(installed).not.toContain("typescript");
    await smoke({ command: ["npx", "--no-install", "signalbox"], folder: project, environment, byTerminal: true });
  },
  INSTALL_TIMEOUT_MS,
);

test(
  "the executable of npm run build",
  async () => {
    const build = Bun.spawn([process.execPath, "scripts/build.ts", `--outfile=${join(folder, "built")}`], {
      cwd: ROOT,
      stdio: ["ignore", "ignore", "inherit"],
    });
    expect(await build.exited).toBe(0);
    const alone = emptyFolder("executable");
    copyFileSync(join(folder, "built"), join(alone, "signalbox"));
    await smoke({ command: [join(alone, "signalbox")], folder: alone, environment: { PATH: "/nowhere" } });
  },
  INSTALL_TIMEOUT_MS,
);

test(
  "the SBOM names every package that an installation has, and none of the tests",
  async () => {
    const file = join(folder, "signalbox.cdx.json");
    const script = Bun.spawn([process.execPath, "scripts/sbom.ts", file], {
      cwd: ROOT,
      stdio: ["ignore", "ignore", "inherit"],
    });
    expect(await script.exited).toBe(0);
    const { metadata, components } = (await Bun.file(file).json()) as {
      metadata: { component: { name: string } };
      components: { name: string; version: string }[];
    };
    expect(metadata.component.name).toBe("signalbox");
    const { packages } = (await Bun.file(join(ROOT, "package-lock.json")).json()) as {
      packages: Record<string, { version: string; dev?: boolean }>;
    };
    const installed = Object.entries(packages).flatMap(([path, { version, dev }]) =>
      path === "" || dev ? [] : [`${path.slice(path.lastIndexOf("node_modules/") + 13)}@${version}`],
    );
    expect(components.map(({ name, version }) => `${name}@${version}`).sort()).toEqual(installed.sort());
  },
  INSTALL_TIMEOUT_MS,
);

test("where musl stands beside glibc, the command takes the Bun that npm has brought", async () => {
  const script = 'ls() { return 0; }; . "$1/bin/find-bun.sh"; find_bun "$1/bin"; echo "$bun"';
  const { exitCode, stdout } = await runBounded(["sh", "-c", script, "sh", ROOT], {
    cwd: folder,
    environment: bare,
    timeoutMs: 10_000,
  });
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/node_modules\/(@oven\/bun-|bun\/)/);
});
