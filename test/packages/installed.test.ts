// The packed tarball, installed as users do it, and the executable: in folders that hold nothing of the repository.

import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { INSTALL_TIMEOUT_MS } from "../../scripts/npm-programs.ts";
import { runBounded } from "../../scripts/run-bounded.ts";
import { copyExecutable } from "../support/executable.ts";
import { FakeBackend } from "../support/fake-backend.ts";
import { chat, chatStream } from "../support/openai-answers.ts";
import { readSnippets } from "../support/snippets.ts";
import { ConsumerProject } from "./consumer.ts";
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

/** What the declarations must refuse, and what they must know. */
const TYPED = `
import { ConfigurationError, createGateway, type GenerationResult } from "signalbox";

const gateway = await createGateway({ config: { backends: [{ name: "a", url: "http://127.0.0.1:1", weight: 2 }] } });
// @ts-expect-error: a backend has a name
await createGateway({ config: { backends: [{ url: "http://127.0.0.1:1" }] } });
// @ts-expect-error: not a section
await createGateway({ config: { backend: [] } });
// @ts-expect-error: a message has parts
gateway.generate({ model: "m", messages: [{ role: "user", content: "hi" }] });
export const result: GenerationResult = await gateway.generate({ model: "m", messages: [] }).result();
export const isOurs = (error: unknown): string[] =>
  error instanceof ConfigurationError ? error.problems.map(({ field }) => field) : [];
`;

test(
  "a project uses the tarball as a library, under strict, and its examples run",
  async () => {
    const project = await ConsumerProject.make(emptyFolder("consumer"), tarball());
    writeFileSync(join(project.folder, "src", "typed.ts"), TYPED);
    const shown = (await readSnippets()).filter(
      ({ language, code }) => language === "ts" && /from "signalbox/.test(code),
    );
    expect(shown.length).toBeGreaterThan(0);
    for (const [index, { code }] of shown.entries())
      writeFileSync(join(project.folder, "src", `shown-${index}.ts`), code);
    copyFileSync(join(import.meta.dir, "hook-consumer.ts"), join(project.folder, "src", "hook-consumer.ts"));
    expect(await project.typeProblems()).toEqual([]);

    const streaming = new FakeBackend({ models: ["m"], answer: chatStream(["hel", "lo"]) });
    const plain = new FakeBackend({ models: ["m"], answer: chat("hello") });
    try {
      const run = (file: string, { url }: FakeBackend) =>
        project.succeed([process.execPath, join("src/library", file)], { ENGINE_URL: url });
      expect(await run("generate.ts", streaming)).toMatch(/^hello\nstop, \w+ tokens\n$/);
      expect(await run("openai-sdk.ts", plain)).toBe("hello\n");
      for (const [file, path] of Object.entries({ "bun-serve.ts": "/v1", "hono.ts": "/models/v1", "h3.ts": "/v1" })) {
        const child = Bun.spawn([process.execPath, join("src/library", file)], {
          cwd: project.folder,
          // Killed, it leaves its temporary folder.
          env: { ...process.env, PORT: "0", ENGINE_URL: plain.url, TMPDIR: project.folder },
          stdio: ["ignore", "pipe", "inherit"],
        });
        try {
          const url = (await firstLine(child.stdout)).replace("listening on ", "").replace(/\/$/, "");
          const answer = await fetch(`${url}${path}/chat/completions`, {
            method: "POST",
            body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] }),
          });
          expect([file, answer.status, await answer.text()]).toEqual([file, 200, expect.stringContaining("hello")]);
          expect(await (await fetch(`${url}/about`)).text()).toBe("ours");
        } finally {
          child.kill();
          await child.exited;
        }
      }
    } finally {
      streaming.stop();
      plain.stop();
    }
    const request = join(project.folder, "request.json");
    writeFileSync(request, JSON.stringify({ model: "none", messages: [{ role: "user", content: "hi" }] }));
    const command = ["sh", "node_modules/signalbox/bin/signalbox", "--test-hook", "src/hook-consumer.ts", request];
    expect(JSON.parse(await project.succeed(command))).toMatchObject({ verdict: "refuse", code: "no_model" });
    const inNode = await project.run(["node", "--input-type=module", "-e", 'import "signalbox"']);
    expect(inNode.stderr).toContain("signalbox is a library for Bun");
  },
  INSTALL_TIMEOUT_MS,
);

async function firstLine(output: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  for await (const bytes of output) {
    text += new TextDecoder().decode(bytes);
    if (text.includes("\n")) break;
  }
  return text.split("\n", 1)[0] as string;
}

test(
  "the executable of npm run build",
  async () => {
    const alone = emptyFolder("executable");
    await copyExecutable(join(alone, "signalbox"));
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
