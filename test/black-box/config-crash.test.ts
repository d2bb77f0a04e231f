// Kills the gateway at random moments of a stream of changes: the next start finds the old configuration or the new one,
// whole, and a history without a gap.

import { expect, test } from "bun:test";
import { renameSync, writeFileSync } from "node:fs";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { type ProcessGateway, startGatewayProcess } from "../support/gateway-process.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

createTestBed();

/** 5 with npm test; the release was tried with 200. */
const ROUNDS = Number(process.env.SIGNALBOX_CRASH_ROUNDS ?? 5);
const KEPT_VERSIONS = 100;
/** A round changes for this long at most before the process is killed. */
const LONGEST_RUN_MS = 300;
const START: ConfigDocument = { backends: [{ name: "a", type: "demo" }], logging: { access_log: false } };

const send = (gateway: ProcessGateway, method: string, path: string, body: object): Promise<Response> =>
  gateway.fetch(path, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

/** What the settings say in version `version`: two sections that only change together, in every second version. */
const delayOf = (version: number): string => `${version}s`;
const pairOf = (version: number): string => `${version - (version % 2)}s`;

/** The change that makes this version. */
function change(gateway: ProcessGateway, version: number): Promise<Response> {
  const delay = delayOf(version);
  if (version % 2 === 1) return send(gateway, "PATCH", "/admin/config/retry", { max_delay: delay });
  const content = JSON.stringify({ retry: { max_delay: delay }, timeouts: { request: delay, first_byte: delay } });
  return send(gateway, "POST", "/admin/config/import", { format: "json", content, merge: true });
}

/** Changes one after the other until the process is gone; returns the last version that was answered. */
async function changeUntilKilled(gateway: ProcessGateway, from: number): Promise<number> {
  let answered = from;
  const killed = Promise.withResolvers<void>();
  const ended = gateway.process.finished();
  for (;;) {
    const response = await change(gateway, answered + 1).catch(() => undefined);
    const body = response && ((await response.json().catch(() => undefined)) as { version: number } | undefined);
    if (body === undefined) break;
    if (response?.status !== 200) throw new Error(`${response?.status} ${JSON.stringify(body)}`);
    expect(body.version).toBe(answered + 1);
    answered = body.version;
    // After the first answer, so that every round has changed something.
    if (answered === from + 1)
      setTimeout(() => killed.resolve(gateway.process.kill("SIGKILL")), Math.random() * LONGEST_RUN_MS);
  }
  await killed.promise;
  await ended;
  return answered;
}

interface History {
  history: { version: number; source: string; sections_changed: string[]; rollback_available: boolean }[];
  total_entries: number;
  current_version: number;
}

async function read<Body>(gateway: ProcessGateway, path: string): Promise<Body> {
  const response = await gateway.fetch(path);
  expect(response.status).toBe(200);
  return (await response.json()) as Body;
}

async function configOf(gateway: ProcessGateway, section: string): Promise<Record<string, unknown>> {
  return (await read<{ config: Record<string, unknown> }>(gateway, `/admin/config/${section}`)).config;
}

/** Returns the current version, after a check that nothing is missing before it. */
async function checkHistory(gateway: ProcessGateway): Promise<number> {
  const { history, total_entries, current_version } = await read<History>(gateway, "/admin/config/history?limit=100");
  const kept = Math.min(current_version, KEPT_VERSIONS);
  expect(total_entries).toBe(kept);
  expect(history.map(({ version }) => version)).toEqual(Array.from({ length: kept }, (_, at) => current_version - at));
  for (const { version, source, sections_changed } of history) {
    if (version === 1) expect(source).toBe("startup");
    else if (version % 2 === 1) expect([source, sections_changed]).toEqual(["api", ["retry"]]);
    else expect([source, sections_changed.toSorted()]).toEqual(["import", ["retry", "timeouts"]]);
  }
  return current_version;
}

test(
  `${ROUNDS} kills during changes through the admin API`,
  async () => {
    await using gateway = await startGatewayProcess({ config: START });
    let version = 1;
    let found = { old: 0, new: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      const answered = await changeUntilKilled(gateway, version);
      await gateway.restart();
      version = await checkHistory(gateway);
      // The change that was not answered happened as a whole or not at all; one that was answered has happened.
      expect([answered, answered + 1]).toContain(version);
      found = version === answered ? { ...found, old: found.old + 1 } : { ...found, new: found.new + 1 };
      expect(await configOf(gateway, "retry")).toMatchObject({ max_delay: delayOf(version) });
      const pair = pairOf(version);
      expect(await configOf(gateway, "timeouts")).toMatchObject({ request: pair, first_byte: pair });
      expect((await gateway.backends()).map(({ name }) => name)).toEqual(["a"]);
    }
    // An old version is whole, too.
    const target = Math.max(2, version - 20);
    expect((await send(gateway, "POST", `/admin/config/rollback/${target}`, {})).status).toBe(200);
    expect(await configOf(gateway, "retry")).toMatchObject({ max_delay: delayOf(target) });
    console.log(`${ROUNDS} kills, ${version} versions: ${found.old} times the old one, ${found.new} times the new one`);
  },
  20_000 + ROUNDS * 5_000,
);

test(
  "kills during edits of the file: the file as it is runs after the next start",
  async () => {
    await using gateway = await startGatewayProcess({ config: START });
    const rounds = Math.ceil(ROUNDS / 3);
    for (let round = 1, edit = 1; round <= rounds; round++) {
      const ended = gateway.process.finished();
      setTimeout(() => gateway.process.kill("SIGKILL"), 50 + Math.random() * 200);
      for (; !gateway.process.hasExited; edit++) {
        const text = gateway.configText({ ...START, retry: { max_delay: delayOf(edit + 1) } });
        writeFileSync(`${gateway.configPath}.new`, text);
        renameSync(`${gateway.configPath}.new`, gateway.configPath);
        await Bun.sleep(Math.random() * 120); // edits come at any moment of the one before
      }
      await ended;
      await gateway.restart();
      expect(await configOf(gateway, "retry")).toMatchObject({ max_delay: delayOf(edit) });
      const { history, current_version } = await read<History>(gateway, "/admin/config/history?limit=100");
      expect(history.map((entry) => entry.version)).toEqual(
        Array.from({ length: Math.min(current_version, KEPT_VERSIONS) }, (_, at) => current_version - at),
      );
      expect(history.slice(0, -1).every(({ source }) => source === "file_reload")).toBe(true);
    }
    // And it is followed from there.
    gateway.writeConfig({ ...START, retry: { max_delay: "77s" } });
    await waitFor("the edit is in force", async () => (await configOf(gateway, "retry")).max_delay === "77s");
  },
  20_000 + ROUNDS * 5_000,
);
