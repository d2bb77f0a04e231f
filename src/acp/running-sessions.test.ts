// The registry of sessions: what processes tell, and what readers believe.

import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "../../test/support/wait-for.ts";
import type { SessionRecord } from "./parts.ts";
import { readRunningSessions, tellSessions } from "./running-sessions.ts";

let dataDir: string;
let folder: string;
let warnings: string[];
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "running-sessions-"));
  folder = join(dataDir, "acp", "running");
  mkdirSync(folder, { recursive: true });
  warnings = [];
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const log = { warn: (_fields: object, message: string) => void warnings.push(message) };
const tell = (heartbeatMs?: number) =>
  tellSessions({ dataDir, log, ...(heartbeatMs !== undefined && { heartbeatMs }) });
const session = (sessionId: string, updatedAt = "2026-01-01T00:00:00.000Z"): SessionRecord => ({
  sessionId,
  createdAt: "2026-01-01T00:00:00.000Z",
  updatedAt,
  mode: "code",
  model: "m",
  historyLength: 2,
  isBusy: false,
});
const ids = async () => (await readRunningSessions(dataDir)).map(({ sessionId }) => sessionId);
const onlyFile = () => join(folder, readdirSync(folder)[0] as string);

/** What a process has told, as if another one had. */
function disguise(change: Record<string, unknown>): void {
  const path = onlyFile();
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), ...change }));
}

test("what is told is read, newest first, in files that nobody else can read", async () => {
  const [one, other] = [tell(), tell()];
  one.tell([session("a")]);
  other.tell([session("b", "2026-01-02T00:00:00.000Z")]);
  await waitFor("both are told", async () => (await ids()).length === 2 || undefined);
  expect(await readRunningSessions(dataDir)).toEqual([
    { ...session("b", "2026-01-02T00:00:00.000Z"), pid: process.pid },
    { ...session("a"), pid: process.pid },
  ]);
  expect(readdirSync(folder).map((name) => statSync(join(folder, name)).mode & 0o777)).toEqual([0o600, 0o600]);
  await one.stop();
  expect(await ids()).toEqual(["b"]);
  await other.stop();
  expect(readdirSync(folder)).toEqual([]);
});

test("many changes at once end with the last one; none leaves no file", async () => {
  const telling = tell();
  telling.tell([]);
  expect(readdirSync(folder)).toEqual([]);
  for (let count = 0; count < 100; count++) telling.tell([session(`s${count}`)]);
  await waitFor("the last one is told", async () => (await ids()).join() === "s99" || undefined);
  telling.tell([]);
  await waitFor("nothing is left", () => readdirSync(folder).length === 0 || undefined);
  await telling.stop();
});

test("a stop right behind a change leaves nothing", async () => {
  const telling = tell();
  telling.tell([session("a")]);
  await telling.stop();
  expect(readdirSync(folder)).toEqual([]);
});

test.each([
  ["whose process is gone", { pid: 0x7fffffff }],
  ["whose pid is another process's by now", { began: "1" }],
])("a file %s is removed", async (_, change) => {
  const telling = tell();
  telling.tell([session("a")]);
  await waitFor("it is told", async () => (await ids()).length === 1 || undefined);
  disguise(change);
  expect(await ids()).toEqual([]);
  expect(readdirSync(folder)).toEqual([]);
  await telling.stop();
});

test("one of another machine counts as long as it is touched now and then", async () => {
  const telling = tell();
  telling.tell([session("a")]);
  await waitFor("it is told", async () => (await ids()).length === 1 || undefined);
  disguise({ place: "elsewhere", pid: 0x7fffffff });
  expect(await ids()).toEqual(["a"]);
  const longAgo = new Date(Date.now() - 60_000);
  utimesSync(onlyFile(), longAgo, longAgo);
  expect(await ids()).toEqual([]);
  expect(readdirSync(folder)).toEqual([]);
  await telling.stop();
});

test("a process that was taken for dead is back with its next heartbeat", async () => {
  const telling = tell(5);
  telling.tell([session("a")]);
  await waitFor("it is told", async () => (await ids()).length === 1 || undefined);
  rmSync(onlyFile());
  await waitFor("it is told again", async () => (await ids()).length === 1 || undefined);
  await telling.stop();
});

test("what is no such file is left alone, and a folder that is not there is empty", async () => {
  const name = `1-${crypto.randomUUID()}.json`;
  const files = { [name]: "{", "notes.json": "{}", [`2-${crypto.randomUUID()}.json`]: '{"format":2}' };
  for (const [path, text] of Object.entries(files)) writeFileSync(join(folder, path), text);
  expect(await ids()).toEqual([]);
  expect(readdirSync(folder).sort()).toEqual(Object.keys(files).sort());
  expect(await readRunningSessions(join(dataDir, "nowhere"))).toEqual([]);
});

test("without a data folder nothing is told until there is one", async () => {
  const later = join(dataDir, "later");
  const telling = tellSessions({ dataDir: later, log, heartbeatMs: 5 });
  telling.tell([session("a")]);
  await Bun.sleep(20);
  expect(readdirSync(dataDir)).toEqual(["acp"]);
  mkdirSync(later);
  await waitFor("it is told", async () => (await readRunningSessions(later)).length === 1 || undefined);
  await telling.stop();
  expect(warnings).toEqual([]);
});

test("a folder that cannot be written is told once", async () => {
  rmSync(folder, { recursive: true });
  writeFileSync(folder, "");
  const telling = tell();
  telling.tell([session("a")]);
  telling.tell([session("b")]);
  await waitFor("it is told", () => warnings.length > 0 || undefined);
  telling.tell([session("c")]);
  await telling.stop();
  expect(warnings).toHaveLength(1);
});
