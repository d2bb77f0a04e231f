// Changes of the configuration that overlap: whoever reads its files last does not bring old settings back.

import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "../../test/support/wait-for.ts";
import { loadConfig } from "../config/compile/load.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import { contentHash } from "../config/files/read-text.ts";
import { openConfigStore } from "../config/store/open-store.ts";
import type { ConfigStore } from "../config/store/store.ts";
import { systemClock } from "../lib/clock.ts";
import { silentLogger } from "../logging/logger.ts";
import { createModelMetadata } from "../models/metadata.ts";
import { followConfiguration, type ReadFacts } from "./follow-configuration.ts";

const folder = mkdtempSync(join(tmpdir(), "follow-configuration-"));
const cleanups: (() => void)[] = [() => rmSync(folder, { recursive: true, force: true })];
afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup();
});

async function openStore(): Promise<ConfigStore> {
  const path = join(folder, "config.yaml");
  writeFileSync(path, "retry: {max_attempts: 1}\nlogging: {level: error}\n");
  const loaded = await loadConfig({ path, env: {}, cwd: folder });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const { snapshot, fileHash } = loaded;
  const log = silentLogger();
  const opened = await openConfigStore({
    snapshot,
    fileHash,
    env: {},
    home: undefined,
    checks: [],
    clock: systemClock,
    log,
  });
  if (!opened.ok) throw new Error(JSON.stringify(opened.problems));
  return opened.store;
}

test("an edited prompt file that is read slowly does not undo a change that came meanwhile", async () => {
  const store = await openStore();
  const prompt = join(folder, "prompt.md");
  writeFileSync(prompt, "one");
  const facts: ReadFacts = {
    metadata: createModelMetadata({ backends: [], external: [] }),
    promptFiles: new Map(),
    files: new Map([[prompt, contentHash(Buffer.from("one"))]]),
  };
  const edited: ReadFacts = { ...facts, files: new Map([[prompt, contentHash(Buffer.from("two"))]]) };
  const applied: number[] = [];
  const reads: { snapshot: ConfigSnapshot; finish(): void }[] = [];
  const follower = followConfiguration({
    store,
    fileHash: undefined,
    facts,
    readFacts: (snapshot) => new Promise((resolve) => void reads.push({ snapshot, finish: () => resolve(edited) })),
    fleet: { models: { served: () => undefined }, firstChecks: Promise.resolve() },
    telemetry: { events: { configReloaded() {} } },
    apply: ({ settings }) => void applied.push(settings.retry.max_attempts),
    clock: systemClock,
    log: silentLogger(),
  });
  cleanups.push(
    () => store.close(),
    () => follower.stop(),
  );
  await follower.check();
  writeFileSync(prompt, "two");
  await waitFor("the prompt is read", () => reads.length === 1);

  const change = { sections: { retry: { max_attempts: 2 } }, mode: "merge" as const, source: "api" };
  const answered = store.apply(change);
  await waitFor("the change is followed", () => reads.length === 2);
  reads[1]?.finish();
  expect((await answered).ok).toBe(true);
  reads[0]?.finish();
  await follower.check();
  expect(reads.map(({ snapshot }) => snapshot.version)).toEqual([1, 2]);
  expect(applied.at(-1)).toBe(2);
});
