// Edits of real files, in every way that editors and Kubernetes have.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  appendFileSync,
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "../../../test/support/wait-for.ts";
import type { AttachmentReader } from "../compile/attachments.ts";
import { loadConfig } from "../compile/load.ts";
import { contentHash } from "../files/read-text.ts";
import { type FileReloader, type FileReloaderParts, followConfigFile } from "./file-reload.ts";
import { openConfigStore } from "./open-store.ts";
import type { ConfigStore } from "./store.ts";

let folder: string;
let path: string;
let store: ConfigStore;
let reloader: FileReloader | undefined;
let logged: string[];

const clock = { now: () => performance.now(), wallTime: () => Date.now() };
const attempts = (count: number) => `retry: {max_attempts: ${count}}\n`;
/** Without the poll, so that what is seen was seen by the watch. */
const WATCH_ONLY = { pollMs: 60_000, graceMs: 200 };

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "config-reload-"));
  path = join(folder, "config.yaml");
  logged = [];
  writeFileSync(path, attempts(1));
});

afterEach(() => {
  reloader?.stop();
  reloader = undefined;
  store.close();
  rmSync(folder, { recursive: true, force: true });
});

async function start(
  timing: FileReloaderParts["timing"] = WATCH_ONLY,
  editBetween?: () => void,
  readers: AttachmentReader[] = [],
) {
  const surroundings = { env: {}, home: undefined, checks: [], readers };
  const loaded = await loadConfig({ ...surroundings, path, cwd: folder });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const note = (fields: object, message: string) => void logged.push(`${message} ${JSON.stringify(fields)}`);
  const log = { info() {}, warn: note, error: note };
  const { snapshot, fileHash } = loaded;
  const opened = await openConfigStore({ ...surroundings, snapshot, fileHash, clock, log });
  if (!opened.ok) throw new Error(JSON.stringify(opened.problems));
  store = opened.store;
  editBetween?.();
  reloader = followConfigFile({ store, clock, log, fileHash, timing: { debounceMs: 50, ...timing } });
  await reloader.check();
}

const isAt = (count: number) =>
  waitFor(`max_attempts is ${count}`, () => store.current.settings.retry.max_attempts === count, {
    explain: () => JSON.stringify([reloader?.status(), logged]),
  });

function replaceAtomically(text: string): void {
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}

describe("an edit becomes a version", () => {
  const edits: [string, () => void][] = [
    ["written in place", () => writeFileSync(path, attempts(2))],
    ["replaced by a rename", () => replaceAtomically(attempts(2))],
    [
      "moved away and written anew",
      () => {
        renameSync(path, `${path}~`);
        writeFileSync(path, attempts(2));
      },
    ],
    [
      "written in pieces",
      () => {
        truncateSync(path, 0);
        setTimeout(() => appendFileSync(path, "retry:\n"), 20);
        setTimeout(() => appendFileSync(path, "  max_attempts: 2\n"), 40);
      },
    ],
    [
      "missing for a moment",
      () => {
        unlinkSync(path);
        setTimeout(() => writeFileSync(path, attempts(2)), 120);
      },
    ],
    ["of the same length", () => writeFileSync(path, attempts(2))],
  ];
  test.each(edits)("%s", async (_name, edit) => {
    await start();
    edit();
    await isAt(2);
    expect(store.current.version).toBe(2);
    expect(store.history.page().entries[0]).toMatchObject({
      version: 2,
      source: "file_reload",
      sectionsChanged: ["retry"],
    });
    expect(reloader?.status()).toMatchObject({ enabled: true, path, failures: 0, reloads: 1, lastFailure: undefined });
    // And again: the watch follows the new file.
    replaceAtomically(attempts(3));
    await isAt(3);
  });

  test("by a swap of symbolic links, as Kubernetes does with a ConfigMap", async () => {
    const version = (name: string, count: number) => {
      mkdirSync(join(folder, name));
      writeFileSync(join(folder, name, "config.yaml"), attempts(count));
    };
    unlinkSync(path);
    version("..2024_1", 1);
    symlinkSync("..2024_1", join(folder, "..data"));
    symlinkSync("..data/config.yaml", path);
    await start();
    for (const count of [2, 3]) {
      version(`..2024_${count}`, count);
      symlinkSync(`..2024_${count}`, join(folder, "..data_tmp"));
      renameSync(join(folder, "..data_tmp"), join(folder, "..data"));
      rmSync(join(folder, `..2024_${count - 1}`), { recursive: true });
      await isAt(count);
    }
    expect(store.current.version).toBe(3);
  });

  test("seen by the poll where nothing is reported: the folder itself is replaced", async () => {
    const inner = join(folder, "inner");
    mkdirSync(inner);
    path = join(inner, "config.yaml");
    writeFileSync(path, attempts(1));
    await start({ pollMs: 100, graceMs: 2_000 });
    renameSync(inner, `${inner}.old`);
    mkdirSync(inner);
    writeFileSync(path, attempts(2));
    await isAt(2);
  });

  test("made between reading the file and watching it", async () => {
    await start(WATCH_ONLY, () => writeFileSync(path, attempts(2)));
    await isAt(2);
    // And put back as it was, which the watch itself has seen at its first look.
    writeFileSync(path, attempts(1));
    await isAt(1);
  });

  test("100 edits in a row end with the last one", async () => {
    await start();
    for (let index = 0; index < 100; index++) {
      replaceAtomically(attempts((index % 19) + 2));
      await Bun.sleep(3);
    }
    replaceAtomically(attempts(20));
    await isAt(20);
    expect(reloader?.status().failures).toBe(0);
  });
});

test("an empty file is a configuration to start with, and no edit as long as it stays so", async () => {
  writeFileSync(path, "");
  await start({ pollMs: 20, graceMs: 100 });
  for (let count = 0; count < 3; count++) await reloader?.check();
  expect(reloader?.status()).toMatchObject({ reloads: 0, failures: 0 });
  writeFileSync(path, attempts(2));
  await isAt(2);
  writeFileSync(path, "# Everything as it is by default.\n{}\n");
  await isAt(3);
});

test.each(["", " \n\n"])("a file that is emptied (%j) for longer than a moment is refused", async (nothing) => {
  await start({ pollMs: 20, graceMs: 100 });
  writeFileSync(path, nothing);
  await waitFor("the failure is known", () => reloader?.status().failures === 1);
  expect(reloader?.status().lastFailure?.problems).toEqual(["is empty; write {} for the defaults"]);
  expect(store.current).toMatchObject({ version: 1, settings: { retry: { max_attempts: 1 } } });
  writeFileSync(path, attempts(2));
  await isAt(2);
});

describe("a broken file changes nothing and is told", () => {
  test.each([
    ["syntax", "retry: {max_attempts: 1", "line 1"],
    ["a value", "\nretry: {max_attempts: 0}", "line 2: retry.max_attempts: must be at least 1"],
    ["an unknown section", "retri: {}", "did you mean"],
    ["no text", Buffer.from([0xff, 0xfe]), "UTF-8"],
  ])("%s", async (_name, content, reason) => {
    await start();
    writeFileSync(path, content);
    await waitFor("the failure is known", () => reloader?.status().failures === 1);
    expect(reloader?.status().lastFailure?.problems.join()).toContain(reason);
    expect(logged.join()).toContain("refused");
    expect(store.current).toMatchObject({ version: 1, settings: { retry: { max_attempts: 1 } } });
    writeFileSync(path, attempts(2));
    await isAt(2);
    expect(reloader?.status()).toMatchObject({ lastFailure: undefined, failures: 1, reloads: 1 });
  });

  test("a file that stays away, after one rest", async () => {
    await start({ pollMs: 60_000, graceMs: 1_000 });
    unlinkSync(path);
    const startedMs = performance.now();
    await waitFor("the failure is known", () => reloader?.status().failures === 1);
    expect(performance.now() - startedMs).toBeWithin(1_000, 2_000);
    expect(reloader?.status().lastFailure?.problems.join()).toContain("there is no such file");
    expect(store.current.version).toBe(1);
  });
});

describe("a file that is caught half written is not refused", () => {
  /** Nothing is seen but by the looks of the test itself, and nothing ever rests long enough. */
  const BY_HAND = { debounceMs: 60_000, pollMs: 60_000, graceMs: 60_000 };
  const half = (count: number) => attempts(count).slice(0, -2);

  /** The first look sees that it was written, the second one that it rests. */
  async function lookAtRest(): Promise<void> {
    await reloader?.check();
    await reloader?.check();
  }

  const nothingIsTold = () => {
    expect(reloader?.status()).toMatchObject({ failures: 0, lastFailure: undefined });
    expect(logged).toEqual([]);
  };

  test.each([
    ["syntax", half(12)],
    ["a value", "retry:\n  max_attempts: 0"],
    ["a character", Buffer.from([0x23, 0xc3])],
  ])("%s", async (_what, written) => {
    await start(BY_HAND);
    writeFileSync(path, written);
    await lookAtRest();
    await lookAtRest();
    nothingIsTold();
    writeFileSync(path, attempts(12));
    await lookAtRest();
    nothingIsTold();
    expect(store.current).toMatchObject({ version: 2, settings: { retry: { max_attempts: 12 } } });
    expect(reloader?.status().reloads).toBe(1);
  });

  test("nor is a file of keys", async () => {
    writeFileSync(path, "api_keys: {api_keys_file: keys.yaml}\n");
    const keys = join(folder, "keys.yaml");
    writeFileSync(keys, "keys: [{key: sk-first-key}]\n");
    await start(BY_HAND);
    writeFileSync(keys, "keys: [{key: sk-first-key}, {key: sk-se");
    await lookAtRest();
    nothingIsTold();
    writeFileSync(keys, "keys: [{key: sk-first-key}, {key: sk-second-key}]\n");
    await lookAtRest();
    nothingIsTold();
    expect(store.current.settings.api_keys.keys).toHaveLength(2);
  });

  test("put back as it was, it changes nothing", async () => {
    await start(BY_HAND);
    writeFileSync(path, half(12));
    await lookAtRest();
    writeFileSync(path, attempts(1));
    await lookAtRest();
    nothingIsTold();
    expect(store.current.version).toBe(1);
  });

  test("unless it stays so", async () => {
    await start({ ...WATCH_ONLY, graceMs: 300 });
    const startedMs = performance.now();
    writeFileSync(path, half(12));
    await lookAtRest();
    nothingIsTold();
    await waitFor("the failure is known", () => reloader?.status().failures === 1);
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(300);
    for (let count = 0; count < 3; count++) await lookAtRest();
    expect(reloader?.status().failures).toBe(1);
    expect(logged).toHaveLength(1);
  });

  const rhythms: [string, () => Promise<void>][] = [
    ["with rests", lookAtRest],
    ["without a rest", async () => await reloader?.check()],
  ];
  test.each(rhythms)("unless it is wrong and written all the time, %s", async (_rhythm, look) => {
    await start({ ...WATCH_ONLY, graceMs: 100 });
    const startedMs = performance.now();
    let edits = 0;
    const edit = () => writeFileSync(path, `# ${"x".repeat(++edits)}\n${half(12)}`);
    edit();
    await lookAtRest();
    await waitFor("the failure is known", async () => {
      edit();
      await look();
      return reloader?.status().failures === 1;
    });
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(300);
    expect(edits).toBeGreaterThan(3);
    writeFileSync(path, attempts(12));
    await isAt(12);
  });
});

test("a file that is empty for a moment, twice, is not taken for an empty one", async () => {
  await start({ debounceMs: 60_000, pollMs: 60_000, graceMs: 200 });
  truncateSync(path, 0);
  for (let look = 0; look < 2; look++) await reloader?.check();
  const emptySinceMs = performance.now();
  for (let edits = 0; performance.now() - emptySinceMs < 250; edits++) {
    writeFileSync(path, `# ${"x".repeat(edits)}\n${attempts(2)}`);
    await reloader?.check();
  }
  truncateSync(path, 0);
  for (let look = 0; look < 2; look++) await reloader?.check();
  writeFileSync(path, attempts(2));
  for (let look = 0; look < 2; look++) await reloader?.check();
  expect(store.current).toMatchObject({ version: 2, settings: { retry: { max_attempts: 2 } } });
});

test("a file that is written anew between the look at it and the reading is not taken half written", async () => {
  const pipe = join(folder, "pipe");
  const byHand = { debounceMs: 60_000, pollMs: 60_000, graceMs: 60_000 };
  await start(byHand, undefined, [async () => ({ files: new Map([[pipe, "missing"]]) })]);
  writeFileSync(path, attempts(2));
  expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
  await reloader?.check();
  // The next look has seen the whole file when it comes to the pipe, where it has to wait.
  const looked = reloader?.check();
  const writer = await waitFor("the look has come to the pipe", () => {
    try {
      return openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
    } catch {
      return undefined;
    }
  });
  truncateSync(path, 0);
  unlinkSync(pipe);
  closeSync(writer);
  await looked;
  expect(store.current.version).toBe(1);
  writeFileSync(path, attempts(2));
  for (let look = 0; look < 2; look++) await reloader?.check();
  expect(store.current).toMatchObject({ version: 2, settings: { retry: { max_attempts: 2 } } });
  expect(reloader?.status()).toMatchObject({ reloads: 1, failures: 0 });
});

describe("an edit leaves alone what was changed through the API", () => {
  const change = { sections: { retry: { max_delay: "3s" } }, mode: "merge" as const, source: "api" };

  test("unless it changes the same field, which the log names", async () => {
    await start();
    expect((await store.apply(change)).ok).toBe(true);
    writeFileSync(path, attempts(2));
    await isAt(2);
    expect(store.current).toMatchObject({ version: 3, document: { retry: { max_attempts: 2, max_delay: "3s" } } });
    expect(logged).toEqual([]);
    writeFileSync(path, "retry: {max_attempts: 3, max_delay: 4s}\n");
    await isAt(3);
    expect(store.current.document.retry).toEqual({ max_attempts: 3, max_delay: "4s" });
    expect(logged.join()).toContain('"fields":["retry.max_delay"]');
  });

  test("also where it changes nothing: then it is what the next edit is compared with", async () => {
    await start();
    expect((await store.apply(change)).ok).toBe(true);
    writeFileSync(path, `${attempts(1)}# the same, with a word more\n`);
    await waitFor("the edit is known", () => reloader?.status().reloads === 1);
    writeFileSync(path, "retry: {max_attempts: 1, max_delay: 3s}\n");
    await waitFor("the edit is known", () => reloader?.status().reloads === 2);
    expect(store.current.version).toBe(2);
    writeFileSync(path, attempts(2));
    await isAt(2);
    expect(store.current.document.retry).toEqual({ max_attempts: 2 });
  });

  test("and has to be valid without it", async () => {
    await start({ pollMs: 20, graceMs: 100 });
    const backends = [{ name: "api", type: "demo", models: ["m"] }];
    expect((await store.apply({ ...change, sections: { backends } })).ok).toBe(true);
    writeFileSync(path, `${attempts(2)}circuit_breaker:\n  backends: {api: {failure_threshold: 3}}\n`);
    await waitFor("the failure is known", () => reloader?.status().failures === 1);
    expect(reloader?.status().lastFailure?.problems.join()).toContain(
      "line 3: circuit_breaker.backends.api: there is no backend of this name",
    );
    expect(store.current.version).toBe(2);
  });
});

test("a broken file that is put back as it was undoes nothing", async () => {
  await start();
  const change = { sections: { retry: { max_delay: "3s" } }, mode: "merge" as const, source: "api" };
  expect((await store.apply(change)).ok).toBe(true);
  writeFileSync(path, "retry: {max_attempts: 0}");
  await waitFor("the failure is known", () => reloader?.status().failures === 1);
  writeFileSync(path, attempts(1));
  await waitFor("it is repaired", () => reloader?.status().reloads === 1);
  expect(reloader?.status().lastFailure).toBeUndefined();
  expect(store.current).toMatchObject({ version: 2, document: { retry: { max_attempts: 1, max_delay: "3s" } } });
});

describe("a further file that was edited between its reading and the first look at it", () => {
  const hashOf = (text: string) => contentHash(new TextEncoder().encode(text));

  test("is told, once", async () => {
    const prompt = join(folder, "prompt.md");
    writeFileSync(prompt, "edited");
    let inUse = hashOf("as it was read at the start");
    let reads = 0;
    const reader: AttachmentReader = async () => {
      if (reads++ > 0) inUse = hashOf("edited");
      return { files: new Map([[prompt, inUse]]) };
    };
    await start({ debounceMs: 5, pollMs: 20, graceMs: 20 }, undefined, [reader]);
    await waitFor("the edit is told", () => reads > 1);
    for (let look = 0; look < 3; look++) await reloader?.check();
    expect(reads).toBe(2);
    expect(store.current.attachments.files).toEqual(new Map([[prompt, hashOf("edited")]]));
  });

  test("is told once also when it cannot be used, and again when it is repaired", async () => {
    const prompt = join(folder, "prompt.md");
    writeFileSync(prompt, "broken");
    const told: string[] = [];
    let isRead = false;
    const reader: AttachmentReader = async () => {
      if (isRead) told.push(readFileSync(prompt, "utf8"));
      const first = { files: new Map([[prompt, hashOf("as it was read at the start")]]) };
      const read = isRead ? { problem: "no" } : first;
      isRead = true;
      return read;
    };
    await start({ debounceMs: 5, pollMs: 20, graceMs: 20 }, undefined, [reader]);
    await waitFor("the edit is told", () => told.length > 0);
    for (let look = 0; look < 3; look++) await reloader?.check();
    writeFileSync(prompt, "repaired");
    await waitFor("the repair is told", () => told.length > 1);
    expect(told).toEqual(["broken", "repaired"]);
  });

  test("so it is with a file of keys", async () => {
    writeFileSync(path, "api_keys: {api_keys_file: keys.yaml}\n");
    const keys = join(folder, "keys.yaml");
    writeFileSync(keys, "keys: [{key: sk-first-key}]\n");
    await start(WATCH_ONLY, () => writeFileSync(keys, "keys: []\n"));
    await waitFor("the key is gone", () => store.current.settings.api_keys.keys.length === 0);
  });
});

test("a file of keys is followed too", async () => {
  writeFileSync(path, "api_keys: {api_keys_file: keys.yaml}\n");
  const keys = join(folder, "keys.yaml");
  writeFileSync(keys, "keys: [{key: sk-first-key}]\n");
  await start();
  writeFileSync(keys, "keys: [{key: sk-first-key}, {key: sk-second-key}]\n");
  await waitFor("the key is known", () => store.current.settings.api_keys.keys.length === 2);
  expect(store.history.page().entries[0]).toMatchObject({ version: 2, sectionsChanged: ["api_keys"] });
  writeFileSync(keys, "keys: [{key: short}]\n");
  await waitFor("the failure is known", () => reloader?.status().failures === 1);
  expect(JSON.stringify([reloader?.status(), logged])).not.toContain("sk-");
  expect(store.current.settings.api_keys.keys).toHaveLength(2);
});
