// Changes of the configuration that overlap: whoever reads its files last does not bring old settings back.

import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "../../test/support/wait-for.ts";
import type { AttachmentReader } from "../config/compile/attachments.ts";
import { loadConfig } from "../config/compile/load.ts";
import { contentHash } from "../config/files/read-text.ts";
import { followConfigFile } from "../config/store/file-reload.ts";
import { openConfigStore } from "../config/store/open-store.ts";
import type { ConfigStore } from "../config/store/store.ts";
import { systemClock } from "../lib/clock.ts";
import { silentLogger } from "../logging/logger.ts";
import { followConfiguration } from "./follow-configuration.ts";
import { namedFileReaders } from "./named-files.ts";

let folder: string;
const cleanups: (() => void)[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "follow-configuration-"));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
});
afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup();
});

async function openStore(readers: AttachmentReader[]): Promise<ConfigStore> {
  const path = join(folder, "config.yaml");
  writeFileSync(path, "retry: {max_attempts: 1}\nlogging: {level: error}\n");
  const surroundings = { env: {}, home: undefined, checks: [], readers };
  const loaded = await loadConfig({ ...surroundings, path, cwd: folder });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const { snapshot, fileHash } = loaded;
  const opened = await openConfigStore({
    ...surroundings,
    snapshot,
    fileHash,
    clock: systemClock,
    log: silentLogger(),
  });
  if (!opened.ok) throw new Error(JSON.stringify(opened.problems));
  return opened.store;
}

test("an edited prompt file that is read slowly does not undo a change that came meanwhile", async () => {
  const prompt = join(folder, "prompt.md");
  writeFileSync(prompt, "one");
  const reads: { maxAttempts: number; finish(): void }[] = [];
  const read = (text: string) => ({
    promptFiles: new Map([["prompt.md", text]]),
    files: new Map([[prompt, contentHash(Buffer.from(text))]]),
  });
  let isSlow = false;
  const reader: AttachmentReader = ({ retry }) =>
    isSlow
      ? new Promise((resolve) => {
          reads.push({ maxAttempts: retry.max_attempts, finish: () => resolve(read("two")) });
        })
      : Promise.resolve(read("one"));
  const store = await openStore([reader]);
  const applied: { maxAttempts: number; text: string | undefined }[] = [];
  const log = silentLogger();
  const reloader = followConfigFile({ store, fileHash: undefined, clock: systemClock, log });
  const fleet = { models: { served: () => undefined }, firstChecks: Promise.resolve() };
  const unfollow = followConfiguration(
    store,
    ({ settings, attachments }) =>
      void applied.push({ maxAttempts: settings.retry.max_attempts, text: attachments.promptFiles.get("prompt.md") }),
    fleet,
    log,
  );
  cleanups.push(
    () => store.close(),
    () => {
      unfollow();
      reloader.stop();
    },
  );
  await reloader.check();
  isSlow = true;
  writeFileSync(prompt, "two");
  await waitFor("the prompt is read", () => reads.length === 1);

  const change = { sections: { retry: { max_attempts: 2 } }, mode: "merge" as const, source: "api" };
  const answered = store.apply(change);
  reads[0]?.finish();
  await waitFor("the change is checked", () => reads.length === 2);
  reads[1]?.finish();
  expect((await answered).ok).toBe(true);
  await reloader.check();
  expect(reads.map(({ maxAttempts }) => maxAttempts)).toEqual([1, 2]);
  expect(applied.at(-1)).toEqual({ maxAttempts: 2, text: "two" });
});

test("a prompt that is written while a change reads the files is in force after it", async () => {
  const reading = Promise.withResolvers<void>();
  const prompts = (text: string) => ({ promptFiles: new Map([["prompt.md", text]]) });
  let isSlow = false;
  const store = await openStore([async () => (isSlow ? reading.promise.then(() => prompts("one")) : prompts("one"))]);
  cleanups.push(() => store.close());
  isSlow = true;
  const changed = store.apply({ sections: { retry: { max_attempts: 2 } }, mode: "merge", source: "api" });
  const attached = store.attach(prompts("two"));
  reading.resolve();
  await Promise.all([changed, attached]);
  expect(store.current).toMatchObject({ version: 2, settings: { retry: { max_attempts: 2 } } });
  expect(store.current.attachments.promptFiles.get("prompt.md")).toBe("two");
});

test("while the file of --model-metadata cannot be read, its facts stay, and other files are those of the change", async () => {
  const option = join(folder, "facts.yaml");
  writeFileSync(option, "models: [{id: m}]");
  writeFileSync(join(folder, "prompt.md"), "Be brief.");
  const store = await openStore([...namedFileReaders(option)]);
  cleanups.push(() => store.close());
  rmSync(option);
  const sections = { global_prompts: { prompts_dir: ".", default_file: "prompt.md" } };
  expect(await store.apply({ sections, mode: "merge", source: "api" })).toMatchObject({ ok: true });
  const { promptFiles, metadata, files, problem } = store.current.attachments;
  expect([...promptFiles]).toEqual([["prompt.md", "Be brief."]]);
  expect(metadata.map(({ id }) => id)).toEqual(["m"]);
  expect([...files.keys()].sort()).toEqual([join(folder, "data/facts/models.json"), option, join(folder, "prompt.md")]);
  expect(problem).toContain("--model-metadata");
});
