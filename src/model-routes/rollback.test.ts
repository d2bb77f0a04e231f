// A target that is worse loses its weight by a change of the configuration, on a real store.

import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../config/compile/load.ts";
import { openConfigStore } from "../config/store/open-store.ts";
import type { RouteArm } from "../stats/request-record.ts";
import { createRollbackPart } from "./rollback.ts";

const FILE = `
routes:
  - name: r
    targets: [{model: main, weight: 9}, {model: trial}]
    rollback: {metric: error_rate}
`;
const WORSE = { route: "r", arm: "trial", main: "main", metric: "error_rate", value: 1, compared: 0 } as const;
const log = { info() {}, warn() {}, error() {} };
const clock = { now: () => 1_000, wallTime: () => 1_000 };

async function openStore(folder: string) {
  writeFileSync(join(folder, "config.yaml"), FILE);
  const loaded = await loadConfig({ path: join(folder, "config.yaml"), env: {}, cwd: folder, clock });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const { snapshot, fileHash } = loaded;
  const around = { env: {}, home: undefined, checks: [], readers: [], clock, log, ignoreSaved: false };
  const opened = await openConfigStore({ snapshot, fileHash, ...around });
  if (!opened.ok) throw new Error("the store cannot be opened");
  return opened.store;
}

test("a target that is judged twice before it loses its weight is told of once", async () => {
  const folder = mkdtempSync(join(tmpdir(), "rollback-"));
  const store = await openStore(folder);
  const told: unknown[] = [];
  let judge: (arms: readonly RouteArm[]) => void = () => {};
  const { follow } = createRollbackPart(store.current, {
    store,
    book: { watch: (saw) => (judge = saw), worseIn: () => [WORSE], keepOnly() {}, startAgain() {} },
    log,
    rolledBack: (change) => told.push(change),
    now: clock.now,
  });
  judge([WORSE]);
  follow(store.current); // something else has changed meanwhile
  judge([WORSE]);
  await store.edit(() => ({ sections: {}, mode: "merge", source: "api", description: "" }));
  expect(told).toEqual([WORSE]);
  expect(store.current.settings.routes[0]?.targets.map(({ weight }) => weight)).toEqual([9, 0]);
  store.close();
  rmSync(folder, { recursive: true });
});
