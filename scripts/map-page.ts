// The page docs/map.md: every source file with the first sentence of its opening comment, below the purpose of its room.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOMS } from "./rooms.ts";

const ROOT = join(import.meta.dir, "..");
export const MAP_PAGE = join(ROOT, "docs", "map.md");

const HEAD = `# Map of the source

Every file of \`src\` with the first sentence of its opening comment, and the folders beside \`src\`. \`sh bin/bun scripts/map.ts\` writes this
page, so nothing is edited here; a test fails when it is stale. The purpose of a room comes from the table in
[ARCHITECTURE.md](../ARCHITECTURE.md#rooms), in its order. Unit tests stand beside their file as \`*.test.ts\`.`;

/** What the folders beside src are for; each has one. */
const FOLDERS: Readonly<Record<string, string>> = {
  bench: "`npm run bench`, comparisons of two source trees, and measurements of single subjects",
  "bench/relays": "relays of a few lines each, one for every layer that a request passes",
  bin: "the command, and the pinned Bun for the scripts of `package.json`",
  deploy: "files for operators; `README.md` explains them",
  "deploy/caddy": "TLS in front, by Caddy",
  "deploy/compose": "Signalbox with Prometheus and Grafana, for Docker Compose",
  "deploy/docker": "the container image",
  "deploy/grafana": "the Grafana dashboard",
  "deploy/helm": "the Helm chart, with rendered examples",
  "deploy/nginx": "TLS in front, by nginx",
  "deploy/prometheus": "recording rules and alerts, with their tests",
  "deploy/systemd": "the systemd unit",
  examples: "what the documentation shows",
  "examples/library": "the programs of docs/library.md, which `test/packages/installed.test.ts` runs",
  "examples/hooks": "the hooks of docs/hooks.md, which `test/black-box/hook-examples.test.ts` runs",
  scripts: "what `npm run check`, `npm test` and `npm run build` run, and the writers of generated pages",
  test: "tests of more than one file",
  "test/acp": "an agent from its editor's side: turns, sessions, tool servers, deaths",
  "test/agents": "Codex and Claude Code as clients",
  "test/architecture": "the rules of ARCHITECTURE.md and of the documentation",
  "test/attacks": "disguised paths, smuggled requests, hostile headers and links",
  "test/black-box": "the running command in front of scripted backends, one file per subject",
  "test/clients": "official SDKs as clients, and the examples of the documentation",
  "test/dashboard": "the dashboard in a real Chromium, and the script that takes the pictures of `docs/images`",
  "test/deploy": "what `deploy` holds, read by the programs that it is for",
  "test/fuzz": "uploads with random changes",
  "test/mcp": "the reference server of MCP, and servers whose owner dies",
  "test/packages": "the npm tarball and the executable, installed in empty folders",
  "test/prometheus": "a real Prometheus scrapes the gateway",
  "test/proxies": "attacks through real nginx and HAProxy",
  "test/redis": "real Redis servers that are killed, paused or slow, and two gateways that share one",
  "test/simulation": "thousands of requests in virtual time with seeded faults; invariants after every event",
  "test/support": "scripted backends, gateway processes, raw HTTP clients, strict servers of four formats",
  "test/torture": "the HTTP client in front of a server that does anything to its connections",
  "test/translation": "every client format with every backend format, in front of strict servers",
};

export function renderMap(): string {
  const files = filesOf("src/**/*.{ts,tsx}").filter((file) => !/\.test\.tsx?$/.test(file));
  const rooms = ROOMS.map(({ name, purpose }) => renderRoom(name, purpose, files));
  const folders = foldersBeside().map((folder) => {
    const purpose = FOLDERS[folder];
    if (purpose === undefined) throw new Error(`scripts/map-page.ts does not say what ${folder} is for`);
    return `- \`${folder}\`: ${purpose}`;
  });
  return `${[HEAD, ...rooms, "## Beside src", folders.join("\n")].join("\n\n")}\n`;
}

function renderRoom(name: string, purpose: string, files: readonly string[]): string {
  const folder = `src/${name}/`;
  const inside = files.filter((file) => file.startsWith(folder));
  const lines = inside.map((file) => `- \`${file.slice(folder.length)}\`: ${openingSentence(file)}`);
  return [
    `## src/${name}`,
    `${purpose[0]?.toUpperCase()}${purpose.slice(1)}.`,
    ...(inside.length > 0 ? [lines.join("\n")] : []),
  ].join("\n\n");
}

/** Folders that hold files or folders of files, without those of tests below the second level. */
function foldersBeside(): string[] {
  const files = filesOf("{bench,bin,deploy,examples,scripts,test}/**");
  return [...new Set(files.flatMap((file) => [file.split("/")[0] ?? "", folderOf(file)]))].sort();
}

function folderOf(file: string): string {
  return file.split("/").slice(0, -1).slice(0, 2).join("/");
}

function filesOf(pattern: string): string[] {
  return [...new Bun.Glob(pattern).scanSync({ cwd: ROOT })].sort();
}

function openingSentence(file: string): string {
  const [comment = ""] = /^(?:\/\/.*\n)+/.exec(readFileSync(join(ROOT, file), "utf8")) ?? [];
  const text = comment
    .replaceAll(/^\/\/ ?/gm, "")
    .replaceAll("\n", " ")
    .trim();
  const [sentence] = /^.*?[.!?](?= [A-Z`"*]|$)/.exec(text) ?? [text];
  return sentence.replaceAll("<", "&lt;").replaceAll("*", "\\*");
}
