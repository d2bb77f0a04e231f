// What a start and a first answer must not load: each of these modules costs every gateway time and memory, and most
// gateways never need them (docs/decisions/0039-what-a-start-loads.md).

import { expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import type { ProcessGateway } from "../support/gateway-process.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";
import { root, sourceFiles, sourceText } from "./source-files.ts";

const TOLD = "loaded.json";
const bed = createTestBed();
const backend = bed.backend();

/** Files of src, and what they are asked for with. */
const LATER: ReadonlyMap<string, string> = new Map([
  ["admin/routes.ts", "/admin/health"],
  ["admin/config-write.ts", "/admin/health"],
  ["openapi/document.ts", "/openapi.json"],
  ["openapi/section-schemas.ts", "/openapi.json"],
  ["dashboard/routes.ts", "/admin/health"],
  ["dashboard/bundle.ts", "/dashboard"],
]);

/** For backends and files that this gateway does not have. */
const NEVER = [
  "demo/backend.ts",
  "demo/requests.ts",
  "config/files/toml-document.ts",
  "config/files/json-document.ts",
  "response-cache/tiered.ts",
  "response-cache/far-tier.ts",
  "object-storage/bucket.ts",
  "kv-index/kv-index.ts",
  "kv-index/event-sources.ts",
  "pipeline/prompt-prefixes.ts",
  "routing/strategies/prefix-index.ts",
  "redis/redis.ts",
  "response-cache/redis.ts",
  "rate-limit/shared-limiter.ts",
  "workers/primary.ts",
  "workers/worker.ts",
  "otlp/exporter.ts",
];

/** What one process needs of several: to know that it is none of them. */
const OF_WORKERS = ["workers/mark.ts"];

/** They bring Node's streams with them; the runtime has what the gateway needs of them. */
const HEAVY =
  /(?<!^import type .*)from "node:(?:crypto|http|https|net|stream|tls|tty|worker_threads)"|process\.(?:stdout|stderr|stdin)\.\w+/gm;
/** Commands that print something and end, and a start that failed. */
const PRINTS = ["main.ts", "runtime/commands.ts"];

/** Paths below src, and whole paths of everything else. */
async function loadedBy(gateway: ProcessGateway): Promise<string[]> {
  const file = join(gateway.folder, TOLD);
  rmSync(file, { force: true });
  process.kill(gateway.process.pid, "SIGUSR2");
  await waitFor("the gateway tells what it has loaded", () => existsSync(file));
  return (JSON.parse(readFileSync(file, "utf8")) as string[]).map((path) => relative(join(root, "src"), path));
}

async function heavyImports(files: readonly string[]): Promise<string[]> {
  const own = files.filter((file) => sourceFiles.includes(file) && !PRINTS.includes(file));
  const texts = await Promise.all(own.map(sourceText));
  return texts.flatMap((text, index) => [...text.matchAll(HEAVY)].map(([found]) => `${own[index]}: ${found}`));
}

test("a start and a first answer load what they need, and the rest comes when it is asked for", async () => {
  const gateway = await bed.process({
    // A bundle is one module.
    command: [join(root, "bin/bun"), join(root, "src/main.ts")],
    config: { backends: [{ name: "a", url: backend.url, models: ["m"] }] },
    environment: {
      BUN_OPTIONS: `--preload ${join(import.meta.dir, "../support/tell-loaded.ts")}`,
      TELL_LOADED_TO: TOLD,
    },
    // The status of the backends is asked for at the admin API, which is not to be loaded yet.
    awaitHealth: false,
  });
  expect((await gateway.chat({})).status).toBe(200);

  const atFirst = await loadedBy(gateway);
  expect(atFirst).toContain("pipeline/generate.ts");
  expect(atFirst.filter((path) => path.startsWith("workers/"))).toEqual(OF_WORKERS);
  expect([...LATER.keys(), ...NEVER].filter((file) => atFirst.includes(file))).toEqual([]);
  expect(await heavyImports(atFirst)).toEqual([]);

  for (const path of LATER.values()) expect((await fetch(gateway.url + path)).status).toBe(200);
  expect(await loadedBy(gateway)).toEqual(expect.arrayContaining([...LATER.keys()]));
});

/** What an editor would wait for though its first question needs none of it. */
const BEHIND_THE_FIRST_ANSWER = [
  "runtime/gateway.ts",
  "runtime/serve.ts",
  "runtime/data-plane.ts",
  "fleet/fleet.ts",
  "discovery/discover.ts",
  "pipeline/generate.ts",
  "upstream/send.ts",
  "server/handler.ts",
  "admin/routes.ts",
];

/** Files of src that are loaded with these, because one imports the other. */
async function loadedWith(files: readonly string[]): Promise<ReadonlySet<string>> {
  const loaded = new Set(files);
  for (const file of loaded) {
    const text = await sourceText(file);
    for (const [, named] of text.matchAll(/^(?:import|export) (?!type )[^;]*?from "(\.[^"]+\.ts)"/gm)) {
      loaded.add(join(dirname(file), named as string));
    }
  }
  return loaded;
}

test("an agent can answer its editor before any of a gateway is loaded", async () => {
  const loaded = await loadedWith(["main.ts", "agent-mode/run.ts"]);
  expect([...loaded]).toContain("config/compile/load.ts");
  expect(BEHIND_THE_FIRST_ANSWER.filter((file) => loaded.has(file))).toEqual([]);
  expect(await heavyImports([...loaded])).toEqual([]);
});
