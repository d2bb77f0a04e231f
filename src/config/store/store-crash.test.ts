// Kills a process at random moments during a stream of changes: what is found is the old version or the new one, whole.

import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../compile/load.ts";
import { openConfigStore } from "./open-store.ts";
import type { ConfigStore } from "./store.ts";

const ROUNDS = Number(process.env.SIGNALBOX_CRASH_ROUNDS ?? 8);

async function open(folder: string): Promise<{ store: ConfigStore; resumed: boolean }> {
  const loaded = await loadConfig({ path: join(folder, "config.yaml"), env: {}, cwd: folder });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const log = { info() {}, warn() {}, error() {} };
  const clock = { now: () => performance.now(), wallTime: () => Date.now() };
  const { snapshot, fileHash } = loaded;
  const opened = await openConfigStore({
    snapshot,
    fileHash,
    env: {},
    home: undefined,
    checks: [],
    readers: [],
    clock,
    log,
  });
  if (!opened.ok) throw new Error(JSON.stringify(opened.problems));
  return opened;
}

/** Runs in the child: changes two sections in one version, and tells each version when it is answered. */
const CHILD = `
  import { loadConfig } from ${JSON.stringify(join(import.meta.dir, "../compile/load.ts"))};
  import { openConfigStore } from ${JSON.stringify(join(import.meta.dir, "open-store.ts"))};
  import { writeSync } from "node:fs";
  const folder = process.argv.at(-1);
  const loaded = await loadConfig({ path: folder + "/config.yaml", env: {}, cwd: folder });
  const log = { info() {}, warn() {}, error() {} };
  const clock = { now: () => performance.now(), wallTime: () => Date.now() };
  const { snapshot, fileHash } = loaded;
  const { store } = await openConfigStore({ snapshot, fileHash, env: {}, home: undefined, checks: [], readers: [], clock, log });
  for (;;) {
    const delay = (store.current.version + 1) + "s";
    const change = { sections: { retry: { max_delay: delay }, timeouts: { request: delay } }, mode: "merge", source: "api" };
    const result = await store.apply(change);
    if (!result.ok) throw new Error(JSON.stringify(result.error));
    writeSync(1, result.value.version + "\\n");
  }
`;

/** The last version that was answered before the process was killed. */
async function runAndKill(folder: string, delayMs: number): Promise<number> {
  const child = Bun.spawn([process.execPath, "-e", CHILD, "--", folder], { stdout: "pipe", stderr: "inherit" });
  let output = "";
  let isKilled = false;
  for await (const chunk of child.stdout) {
    output += Buffer.from(chunk).toString();
    if (isKilled) continue;
    isKilled = true;
    setTimeout(() => child.kill("SIGKILL"), delayMs);
  }
  await child.exited;
  const answered = output.split("\n").slice(0, -1).map(Number);
  return answered.at(-1) ?? 0;
}

test(
  `${ROUNDS} kills`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "config-crash-"));
    try {
      writeFileSync(join(folder, "config.yaml"), "retry: {max_delay: 1s}\ntimeouts: {request: 1s}\n");
      let previous = 0;
      for (let round = 0; round < ROUNDS; round++) {
        const answered = await runAndKill(folder, Math.random() * 40);
        const { store, resumed } = await open(folder);
        const { version, document } = store.current;
        expect(resumed).toBe(true);
        expect(answered).toBeGreaterThan(previous);
        expect([answered, answered + 1]).toContain(version);
        expect(document).toEqual({ retry: { max_delay: `${version}s` }, timeouts: { request: `${version}s` } });
        const { entries, total } = store.history.page({ limit: 100 });
        expect(total).toBe(Math.min(version, 100));
        expect(entries.map((entry) => entry.version)).toEqual(
          Array.from({ length: total }, (_, index) => version - index),
        );
        for (const entry of entries.slice(0, 5)) {
          expect(store.history.version(entry.version)?.document.retry).toEqual({ max_delay: `${entry.version}s` });
        }
        store.close();
        previous = version;
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
  10_000 + ROUNDS * 3_000,
);
