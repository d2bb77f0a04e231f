// A guest in the data folder of a gateway: it reads what is kept, follows what changes, and leaves everything as it is.

import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "../../../test/support/wait-for.ts";
import { loadConfig } from "../compile/load.ts";
import { openGuestStore } from "./open-guest-store.ts";
import { openConfigStore } from "./open-store.ts";

let folder: string;
let cleanups: (() => void)[];
let warnings: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "guest-store-"));
  cleanups = [];
  warnings = [];
  writeFileSync(join(folder, "config.yaml"), "retry: {max_attempts: 3}\n");
});

afterEach(() => {
  for (const cleanup of cleanups.reverse()) cleanup();
  rmSync(folder, { recursive: true, force: true });
});

const tell = (_fields: object, message: string) => void warnings.push(message);
const log = { info() {}, warn: tell, error: tell };
const clock = { now: () => 1, wallTime: () => 1 };

async function parts(more: { ignoreSaved?: boolean } = {}) {
  const common = { env: {}, home: undefined, checks: [], readers: [], clock, log };
  const loaded = await loadConfig({ ...common, path: join(folder, "config.yaml"), cwd: folder });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return { ...common, snapshot: loaded.snapshot, fileHash: loaded.fileHash, ...more };
}

async function openGateway() {
  const opened = await openConfigStore(await parts());
  if (!opened.ok) throw new Error(JSON.stringify(opened.problems));
  cleanups.push(() => opened.store.close());
  return opened.store;
}

async function openGuest(more: { ignoreSaved?: boolean } = {}) {
  const opened = await openGuestStore(await parts(more));
  if (!opened.ok) throw new Error(JSON.stringify(opened.problems));
  cleanups.push(() => opened.store.close());
  return opened;
}

const attempts = (store: { current: { settings: { retry: { max_attempts: number } } } }) =>
  store.current.settings.retry.max_attempts;

const change = (max_attempts: number) => ({
  sections: { retry: { max_attempts } },
  mode: "merge" as const,
  source: "api",
});

test("without a gateway there is the file, and nothing is written", async () => {
  const { store, resumed } = await openGuest();
  expect([attempts(store), resumed]).toEqual([3, false]);
  expect(await store.follow({ retry: { max_attempts: 4 } })).toMatchObject({ ok: true });
  expect(attempts(store)).toBe(4);
  expect(readdirSync(folder)).toEqual(["config.yaml"]);
  expect(warnings).toEqual([]);
});

test("what was changed through the API counts, merged with edits of the file, unless it is not to count", async () => {
  const gateway = await openGateway();
  await gateway.apply(change(7));
  const { store, resumed } = await openGuest();
  expect([attempts(store), resumed, store.current.version]).toEqual([7, true, 2]);
  expect(attempts((await openGuest({ ignoreSaved: true })).store)).toBe(3);
  writeFileSync(join(folder, "config.yaml"), "retry: {max_attempts: 5}\n");
  expect(attempts((await openGuest()).store)).toBe(5);
  await gateway.apply({ ...change(7), sections: { logging: { level: "warn" } } });
  expect((await openGuest()).store.current.settings).toMatchObject({
    retry: { max_attempts: 5 },
    logging: { level: "warn" },
  });
  // The gateway goes on as if nobody had been there.
  expect(await gateway.apply(change(8))).toMatchObject({ ok: true, value: { version: 4 } });
});

test("changes are followed, in both directions of time", async () => {
  const gateway = await openGateway();
  const { store, followSaved } = await openGuest();
  cleanups.push(followSaved(10));
  await gateway.apply(change(7));
  await waitFor("the change is followed", () => attempts(store) === 7 || undefined);
  await gateway.history.rollback(1);
  await waitFor("the rollback is followed", () => attempts(store) === 3 || undefined);
  expect(warnings).toEqual([]);
});

test("what is made behind an edit of the file waits until the guest has read that edit", async () => {
  const gateway = await openGateway();
  const { store, followSaved } = await openGuest();
  cleanups.push(followSaved(5));
  await gateway.applyFile({ retry: { max_attempts: 5 } }, { hash: "edited" });
  await gateway.apply(change(9));
  await Bun.sleep(50);
  expect(attempts(store)).toBe(3);
  await store.applyFile({ retry: { max_attempts: 5 } }, { hash: "edited" });
  await waitFor("the change is followed", () => attempts(store) === 9 || undefined);
});

test("a database that is none is told once, and the file counts", async () => {
  const path = join(folder, "data", "config.db");
  await openGateway().then((store) => store.close());
  cleanups = [];
  writeFileSync(path, "nothing of the kind, but long enough to be looked at ".repeat(20));
  const before = readFileSync(path, "utf8");
  const { store } = await openGuest();
  expect(attempts(store)).toBe(3);
  expect(warnings).toEqual(["what a gateway has kept of its configuration cannot be read"]);
  expect(readFileSync(path, "utf8")).toBe(before);
});
