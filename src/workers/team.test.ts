// Members that are processes of their own, which speak as workers do.

import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "../../test/support/wait-for.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import { systemClock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import { createTeam, type Team } from "./team.ts";

const SIZE = 2;
/** Says yes to everything; to the start only while there is no file `hold` beside it. */
const SCRIPT = `
import { existsSync } from "node:fs";
process.on("disconnect", () => process.exit(1));
process.on("message", async (items) => {
  for (const { kind, id, name } of items) {
    if (name === "drain") process.exit(0);
    if (kind !== "call") continue;
    while (name === "start" && existsSync(import.meta.dir + "/hold")) await Bun.sleep(5);
    process.send([{ kind: "answer", id, value: name === "start" ? {} : true }]);
  }
});
`;

let folder: string;
let runtime: string;
let team: Team;
let told: string[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "team-"));
  runtime = join(folder, "bun");
  symlinkSync(process.execPath, runtime);
  const script = join(folder, "worker.ts");
  writeFileSync(script, SCRIPT);
  told = [];
  const note = ({ reason }: { reason?: string }) => void told.push(reason ?? "");
  const fleet = { facts: () => [], board: { entries: [] }, draining: [], circuits: {} };
  team = createTeam({
    size: SIZE,
    command: [runtime, script],
    env: process.env,
    owners: { fleet, kvIndex: { image: () => undefined } } as never,
    snapshot: () => ({ settings: { server: { shutdown_timeout: 0 } } }) as unknown as ConfigSnapshot,
    fixed: { socket: join(folder, "primary.sock") } as never,
    clock: systemClock,
    log: { info() {}, warn: note, error: note } as unknown as Logger,
  });
  expect(await team.start()).toBeUndefined();
}, 60_000);

afterEach(async () => {
  await team.drain(0);
  rmSync(folder, { recursive: true, force: true });
});

const count = (state: string) => team.rows().filter((row) => row.state === state).length;

function killOne(): void {
  process.kill(team.rows()[0]?.pid as number, "SIGKILL");
}

test("a worker that cannot be started is tried again, and does not end the primary", async () => {
  rmSync(runtime);
  killOne();
  await waitFor("a start fails", () => told.some((reason) => reason.startsWith("a worker could not be started: ")));
  expect(await team.restart()).toBe(0);
  expect(count("running")).toBe(1);
  symlinkSync(process.execPath, runtime);
  await waitFor("it is replaced", () => count("running") === SIZE, { timeoutMs: 20_000 });
  expect(team.restarts()).toMatchObject({ crash: 1, request: 0 });
}, 60_000);

test("a worker that dies while another one is started in its place is replaced once", async () => {
  writeFileSync(join(folder, "hold"), "");
  const restarted = team.restart();
  await waitFor("others are starting", () => count("starting") === SIZE);
  killOne();
  await waitFor("it is gone", () => count("running") === SIZE - 1);
  rmSync(join(folder, "hold"));
  expect(await restarted).toBe(SIZE);
  await waitFor("those before have ended", () => count("draining") === 0);
  expect(team.rows().map(({ state }) => state)).toEqual(["running", "running"]);
  expect(team.restarts()).toMatchObject({ crash: 1, request: 1 });
}, 60_000);

test("an end while others are being started says nothing of failures", async () => {
  writeFileSync(join(folder, "hold"), "");
  const restarted = team.restart();
  await waitFor("others are starting", () => count("starting") === SIZE);
  await team.drain(0);
  expect(await restarted).toBe(0);
  expect(told).toEqual([]);
}, 60_000);
