// The configuration store on real SQLite: changes, refusals, staging, history, rollback, restart.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { changesReloadClass } from "../change/capability.ts";
import type { Result } from "../change/change.ts";
import { MASK } from "../change/mask.ts";
import { loadConfig } from "../compile/load.ts";
import { toFieldProblem } from "../values/problems.ts";
import type { Mapping } from "../values/values.ts";
import type { ConfigLog } from "./listeners.ts";
import { openConfigStore } from "./open-store.ts";
import type { ConfigStore } from "./store.ts";

const SECRET = "sk-very-secret-1";
const FILE = `
backends:
  - {name: one, type: vllm, url: "http://127.0.0.1:1", api_key: ${SECRET}}
  - {name: two, type: vllm, url: "http://127.0.0.1:2", api_key: "\${KEY_TWO}"}
retry: {max_attempts: 3}
`;

let folder: string;
let lines: { level: string; message: string; fields: Record<string, unknown> }[];
let stores: ConfigStore[];
let nowMs: number;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "config-store-"));
  lines = [];
  stores = [];
  nowMs = 1_000;
  writeFile(FILE);
});

afterEach(() => {
  for (const store of stores) store.close();
  rmSync(folder, { recursive: true, force: true });
});

function writeFile(text: string): void {
  writeFileSync(join(folder, "config.yaml"), text);
}

const line = (level: string) => (fields: object, message: string) =>
  void lines.push({ level, message, fields: fields as Record<string, unknown> });
const log: ConfigLog = { info: line("info"), warn: line("warn"), error: line("error") };
const clock = { now: () => nowMs, wallTime: () => nowMs++ };

async function tryOpen({
  env = {},
  ignoreSaved = false,
}: {
  env?: Record<string, string>;
  ignoreSaved?: boolean;
} = {}) {
  const environment = { KEY_TWO: "sk-two-secret", ...env };
  const loaded = await loadConfig({ path: join(folder, "config.yaml"), env: environment, cwd: folder, clock });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const result = await openConfigStore({
    snapshot: loaded.snapshot,
    fileHash: loaded.fileHash,
    env: environment,
    home: undefined,
    checks: [],
    readers: [],
    clock,
    log,
    ignoreSaved,
  });
  if (result.ok) stores.push(result.store);
  return result;
}

async function open(options: Parameters<typeof tryOpen>[0] = {}): Promise<ConfigStore> {
  const result = await tryOpen(options);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.store;
}

/** As after the end of the process. */
function close(store: ConfigStore): void {
  store.close();
  stores = stores.filter((other) => other !== store);
}

function value<Value>(result: Result<Value>): Value {
  if (!result.ok) throw new Error(JSON.stringify(result.error));
  return result.value;
}

const patch = (sections: Mapping, more: object = {}) => ({ sections, mode: "merge" as const, source: "api", ...more });
const put = (sections: Mapping, more: object = {}) => ({ ...patch(sections, more), mode: "replace" as const });

describe("a change", () => {
  test("makes one version, tells what differs, and is seen by readers and listeners", async () => {
    const store = await open();
    expect(store.current.version).toBe(1);
    const heard: unknown[] = [];
    store.subscribe(
      (snapshot, previous, changes) => void heard.push([previous.version, snapshot.version, changes.length]),
    );
    const change = value(await store.apply(patch({ retry: { max_attempts: 5, max_delay: "20s" } }, { user: "ann" })));
    expect(change).toMatchObject({
      version: 2,
      previousVersion: 1,
      applied: true,
      sections: ["retry"],
    });
    expect(changesReloadClass(change.changes)).toBe("immediate");
    expect(change.changes.map(({ field, from, to }) => [field, from, to])).toEqual([
      ["max_attempts", 3, 5],
      ["max_delay", "10s", "20s"],
    ]);
    expect(change.current).toMatchObject({ retry: { max_attempts: 5, base_delay: "100ms" } });
    expect(store.current.settings.retry).toMatchObject({ max_attempts: 5, max_delay: 20_000 });
    expect(heard).toEqual([[1, 2, 2]]);
    expect(store.history.page().entries[0]).toMatchObject({
      version: 2,
      source: "api",
      user: "ann",
      sectionsChanged: ["retry"],
    });
  });

  test("null removes a key, replace removes what is not named, other spellings reach the same key", async () => {
    const store = await open();
    value(await store.apply(patch({ circuit_breaker: { reset_timeout: "5s", failure_threshold: 9 } })));
    value(await store.apply(patch({ circuit_breaker: { timeout_seconds: 7, failure_threshold: null } })));
    expect(store.current.document.circuit_breaker).toEqual({ timeout: 7 });
    value(await store.apply(put({ circuit_breaker: { failure_threshold: 2 } })));
    expect(store.current.document.circuit_breaker).toEqual({ failure_threshold: 2 });
    value(await store.apply(patch({ admin: { auth: { max_history_entries: 7 } } })));
    expect(store.current.settings.admin.max_history_entries).toBe(7);
  });

  test("that changes nothing makes no version, also with defaults written out", async () => {
    const store = await open();
    const shown = store.view();
    const change = value(await store.apply(put(shown)));
    expect(change).toMatchObject({ applied: false, version: 1, changes: [] });
    expect(store.history.page().total).toBe(1);
  });

  test("as a dry run changes nothing", async () => {
    const store = await open();
    const change = value(await store.apply(patch({ retry: { max_attempts: 9 } }, { dryRun: true })));
    expect(change).toMatchObject({ applied: false, version: 1, sections: ["retry"] });
    expect(store.current.settings.retry.max_attempts).toBe(3);
  });

  test("keeps masked secrets, and shows none", async () => {
    const store = await open();
    const view = store.view({ sections: ["backends"] }) as { backends: Mapping[] };
    expect(JSON.stringify(view)).not.toContain("secret");
    expect(view.backends.map(({ api_key }) => api_key)).toEqual([MASK, `\${KEY_TWO}`]);
    const change = value(await store.apply(put({ backends: view.backends.map((entry) => ({ ...entry, weight: 7 })) })));
    expect(JSON.stringify(change)).not.toContain("secret");
    expect(store.current.settings.backends.map(({ api_key, weight }) => [api_key, weight])).toEqual([
      [SECRET, 7],
      ["sk-two-secret", 7],
    ]);
    expect(JSON.stringify(store.history.version(2))).not.toContain("very-secret");
    expect(JSON.stringify(store.view({ includeSensitive: true }))).toContain(SECRET);
    expect(JSON.stringify(lines)).not.toContain("secret");
  });

  test("of fields that are read at start waits for a restart", async () => {
    const store = await open();
    const change = value(await store.apply(patch({ server: { bind_address: "127.0.0.1:9", shutdown_timeout: "9s" } })));
    expect(change.applied).toBe(true);
    expect(changesReloadClass(change.changes)).toBe("requires_restart");
    expect(change.warnings).toEqual(["server.bind_address takes effect after a restart"]);
    expect(store.current.settings.server).toMatchObject({ bind_address: "127.0.0.1:8080", shutdown_timeout: 9_000 });
    expect(store.current.pendingRestart).toEqual(["server.bind_address"]);
    close(store);
    const next = await open();
    expect(next.current.settings.server.bind_address).toBe("127.0.0.1:9");
    expect(next.current.pendingRestart ?? []).toEqual([]);
  });

  test("of the way to backends waits for a restart, too", async () => {
    const store = await open();
    const server = { upstream_client: "fetch", connection_pool_size: 7 };
    const { warnings } = value(await store.apply(patch({ server })));
    const fields = ["server.upstream_client", "server.connection_pool_size"];
    expect(warnings).toEqual(fields.map((field) => `${field} takes effect after a restart`));
    expect(store.current.settings.server).toMatchObject({ upstream_client: "sockets", connection_pool_size: 100 });
    close(store);
    expect((await open()).current.settings.server).toMatchObject(server);
  });

  test("warns where the environment wins, and where nothing happens", async () => {
    const store = await open({ env: { SIGNALBOX_LOGGING__LEVEL: "debug" } });
    const { warnings } = value(
      await store.apply(patch({ logging: { level: "warn" }, server: { worker_memory_limit: 2 ** 30 } })),
    );
    expect(warnings).toHaveLength(2);
    expect(warnings.join()).toContain("SIGNALBOX_LOGGING__LEVEL");
    expect(warnings.join()).toContain("has no effect");
    expect(store.current.settings.logging.level).toBe("debug");
  });

  test("is not stopped by a listener that throws", async () => {
    const store = await open();
    store.subscribe(() => {
      throw new Error("no");
    });
    store.subscribe(() => {
      throw new Error("again");
    });
    const { warnings, applied } = value(await store.apply(patch({ retry: { max_attempts: 4 } })));
    expect(applied).toBe(true);
    expect(warnings).toHaveLength(2);
    expect(lines.filter(({ level }) => level === "error")).toHaveLength(2);
  });

  test("nobody can alter the snapshot", async () => {
    const store = await open();
    expect(() => {
      (store.current.settings.retry as { max_attempts: number }).max_attempts = 99;
    }).toThrow();
  });
});

describe("refusals name the field and make no version", () => {
  const cases: [string, Mapping, object][] = [
    ["a value", { retry: { max_attempts: 0 } }, { field: "retry.max_attempts", value: 0 }],
    ["an unknown key", { retry: { max_atempts: 1 } }, { field: "retry.max_atempts" }],
    ["another spelling", { circuit_breaker: { reset_timeout: "soon" } }, { field: "circuit_breaker.reset_timeout" }],
    ["a secret", { admin: { auth: { method: "bearer", token: "short" } } }, { field: "admin.auth.token" }],
    ["a contradiction", { admin: { auth: { method: "basic" } } }, { field: "admin.auth.username" }],
    [
      "a backend that is not",
      { circuit_breaker: { backends: { nine: {} } } },
      { field: "circuit_breaker.backends.nine" },
    ],
    ["an unset variable", { api_keys: { keys: [{ key: `\${NOT_SET}` }] } }, { field: "api_keys.keys[0].key" }],
    ["the folder", { server: { data_dir: "/elsewhere" } }, { field: "server.data_dir" }],
    ["a prototype", { model_aliases: JSON.parse('{"__proto__": "a"}') }, { field: "model_aliases" }],
    ["a huge number", { retry: { max_attempts: 1e300 } }, { field: "retry.max_attempts" }],
    ["deep nesting", { retry: JSON.parse(`${'{"a":'.repeat(9_999)}1${"}".repeat(9_999)}`) }, { field: "" }],
    [
      "two spellings",
      { circuit_breaker: { timeout: "1s", reset_timeout: "2s" } },
      { field: "circuit_breaker.reset_timeout" },
    ],
    ["no mapping", { retry: [1] }, { field: "retry" }],
    ["a masked secret of nobody", { admin: { auth: { token: MASK } } }, { field: "admin.auth.token" }],
  ];
  for (const [name, sections, expected] of cases) {
    test(name, async () => {
      const store = await open();
      for (const each of [patch(sections), put(sections)]) {
        const change = { ...each, elevated: true }; // what only administrators may change can be wrong, too
        const result = await store.apply(change);
        if (result.ok || result.error.kind !== "validation") throw new Error(JSON.stringify(result));
        expect(result.error.problems.map(toFieldProblem)[0]).toMatchObject(expected);
        expect(JSON.stringify(result)).not.toContain("short");
        const checked = value(await store.validate(change));
        expect(checked.valid).toBe(false);
        expect(checked.problems.map(toFieldProblem)[0]).toMatchObject(expected);
      }
      expect(store.current.version).toBe(1);
      expect(store.history.page().total).toBe(1);
    });
  }

  test("an unknown section, a version that never was, a stale base", async () => {
    const store = await open();
    const unknown = await store.apply(patch({ retries: {} }));
    expect(unknown).toMatchObject({ ok: false, error: { kind: "unknown_section", requested: "retries" } });
    expect(await store.history.rollback(77)).toMatchObject({ error: { kind: "unknown_version", version: 77 } });
    expect(await store.history.rollback(1, { sections: ["nine"] })).toMatchObject({
      error: { kind: "unknown_section" },
    });
    expect(await store.apply(patch({ retry: {} }, { baseVersion: 9 }))).toMatchObject({
      error: { kind: "conflict", expectedVersion: 9, currentVersion: 1 },
    });
    expect(store.current.version).toBe(1);
  });
});

test("50 writers at once: no lost update, no gap", async () => {
  const store = await open();
  const seen: number[] = [];
  store.subscribe((snapshot) => void seen.push(snapshot.version));
  const results = await Promise.all(
    Array.from({ length: 50 }, (_, index) =>
      store.apply(patch({ timeouts: { models: { [`m${index}`]: { request: "5s" } } } })),
    ),
  );
  const versions = results.map((result) => value(result).version).sort((one, other) => one - other);
  expect(versions).toEqual(Array.from({ length: 50 }, (_, index) => index + 2));
  expect(seen).toEqual(versions);
  expect(Object.keys(store.current.settings.timeouts.models)).toHaveLength(50);
  expect(
    store.history
      .page({ limit: 100 })
      .entries.map(({ version }) => version)
      .reverse(),
  ).toEqual([1, ...versions]);
});

test("with the same base version only one of many writers wins", async () => {
  const store = await open();
  const results = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      store.apply(patch({ retry: { max_attempts: index + 4 > 20 ? 1 : index + 4 } }, { baseVersion: 1 })),
    ),
  );
  expect(results.filter(({ ok }) => ok)).toHaveLength(1);
  expect(store.current.version).toBe(2);
});

describe("staging", () => {
  test("collects sections, applies them as one version, and forgets them", async () => {
    const store = await open();
    value(await store.staging.stage(patch({ retry: { max_attempts: 4 } }, { user: "ann" })));
    value(await store.staging.stage(patch({ retry: { max_delay: "5s" } })));
    value(await store.staging.stage(put({ logging: { level: "warn" } })));
    expect(store.current.version).toBe(1);
    expect(store.staging.list().map(({ section, changes, conflict }) => [section, changes.length, conflict])).toEqual([
      ["retry", 2, false],
      ["logging", 1, false],
    ]);
    const change = value(await store.staging.apply({ source: "api" }));
    expect(change).toMatchObject({ version: 2, applied: true, sections: ["logging", "retry"].sort().reverse() });
    expect(store.staging.list()).toEqual([]);
    expect(await store.staging.apply({ source: "api" })).toMatchObject({ error: { kind: "nothing_staged" } });
  });

  test("a section that someone else changed meanwhile is a conflict, unless forced", async () => {
    const store = await open();
    value(await store.staging.stage(patch({ retry: { max_attempts: 4 } })));
    value(await store.apply(patch({ retry: { max_delay: "5s" } })));
    expect(store.staging.list()[0]?.conflict).toBe(true);
    // A patch of what is staged does not hide it.
    value(await store.staging.stage(patch({ retry: { jitter: false } })));
    expect(await store.staging.apply({ source: "api" })).toMatchObject({
      error: { kind: "conflict", expectedVersion: 1, currentVersion: 2, sections: ["retry"] },
    });
    value(await store.staging.apply({ source: "api", force: true }));
    expect(store.current.document.retry).toEqual({ max_attempts: 4, jitter: false });
  });

  test("survives a restart, refuses what is invalid, and can be discarded", async () => {
    const store = await open();
    expect(await store.staging.stage(patch({ retry: { max_attempts: 0 } }))).toMatchObject({
      error: { kind: "validation" },
    });
    const staged = value(await store.staging.stage(patch({ circuit_breaker: { backends: { later: {} } } })));
    expect(staged.warnings[0]).toContain("there is no backend of this name");
    close(store);
    const next = await open();
    expect(next.staging.list().map(({ section }) => section)).toEqual(["circuit_breaker"]);
    expect(await next.staging.apply({ source: "api" })).toMatchObject({ error: { kind: "validation" } });
    expect(value(await next.staging.discard())).toEqual(["circuit_breaker"]);
    expect(next.staging.list()).toEqual([]);
  });
});

describe("history", () => {
  test("pages, filters by section, and keeps as many as it should", async () => {
    const store = await open();
    value(await store.apply(patch({ admin: { max_history_entries: 10 } })));
    for (let index = 1; index <= 15; index++) value(await store.apply(patch({ retry: { max_attempts: index } })));
    const all = store.history.page({ limit: 100 });
    expect(all.total).toBe(10);
    const newest = store.current.version;
    expect(all.entries.map(({ version }) => version)).toEqual(Array.from({ length: 10 }, (_, index) => newest - index));
    expect(store.history.page({ limit: 2, offset: 3 }).entries.map(({ version }) => version)).toEqual([
      newest - 3,
      newest - 4,
    ]);
    expect(store.history.page({ section: "logging" })).toEqual({ entries: [], total: 0 });
    expect(store.history.page({ section: "retry" }).total).toBe(10);
  });

  test("a rollback is a new version with the old content, of all sections or of some", async () => {
    const store = await open();
    value(await store.apply(patch({ retry: { max_attempts: 7 }, logging: { level: "warn" } })));
    const dry = value(await store.history.rollback(1, { dryRun: true }));
    expect(dry).toMatchObject({ applied: false, version: 2, sections: ["retry", "logging"] });
    value(await store.history.rollback(1, { sections: ["logging"], user: "bob" }));
    expect(store.current).toMatchObject({
      version: 3,
      settings: { retry: { max_attempts: 7 }, logging: { level: "info" } },
    });
    value(await store.history.rollback(1));
    expect(store.current.version).toBe(4);
    expect(store.view({ includeDefaults: false })).toEqual(store.history.version(1)?.document as Mapping);
    expect(store.history.page().entries[0]).toMatchObject({ source: "rollback", description: "rollback to version 1" });
    expect(value(await store.history.rollback(4)).version).toBe(5);
  });
});

describe("restart", () => {
  test("resumes the newest version while the file is unchanged", async () => {
    const store = await open();
    value(await store.apply(patch({ retry: { max_attempts: 8 } })));
    close(store);
    const next = await open();
    expect(next.current).toMatchObject({ version: 2, settings: { retry: { max_attempts: 8 } } });
    expect(next.current.document).not.toEqual({});
    expect(JSON.stringify(next.current.document)).toContain(`\${KEY_TWO}`);
  });

  test("an edited file is merged, and the log and the history name what it replaced", async () => {
    const store = await open();
    value(await store.apply(patch({ retry: { max_attempts: 8, jitter: false }, logging: { level: "warn" } })));
    close(store);
    writeFile(FILE.replace("max_attempts: 3", "max_attempts: 4, max_delay: 9s"));
    const next = await open();
    expect(next.current).toMatchObject({
      version: 3,
      settings: { retry: { max_attempts: 4, jitter: false, max_delay: 9_000 }, logging: { level: "warn" } },
    });
    const [newest] = next.history.page().entries;
    expect(newest).toMatchObject({ source: "file_reload", sectionsChanged: ["retry"] });
    expect(newest?.changes.map(({ field, replaced = false }) => [field, replaced])).toEqual([
      ["max_attempts", true],
      ["max_delay", false],
    ]);
    expect(lines.find(({ level }) => level === "warn")?.fields).toMatchObject({ fields: ["retry.max_attempts"] });
    close(next);
    const last = await open();
    expect(last.current).toMatchObject({ version: 3, settings: { retry: { jitter: false } } });
  });

  test("of an earlier release, which did not keep the file, loses no change of the API", async () => {
    const store = await open();
    value(await store.apply(patch({ logging: { level: "warn" } })));
    close(store);
    const { Database } = await import("bun:sqlite");
    const sqlite = new Database(join(folder, "data/config.db"));
    sqlite.run("DELETE FROM state WHERE key = 'file_document'");
    sqlite.close();
    writeFile(FILE.replace("max_attempts: 3", "max_attempts: 4"));
    expect((await open()).current.settings).toMatchObject({ retry: { max_attempts: 4 }, logging: { level: "warn" } });
  });

  test("an edit that changes nothing keeps the version", async () => {
    close(await open());
    writeFile(`# a comment\n${FILE}`);
    const store = await open();
    expect(store.current.version).toBe(1);
    value(await store.apply(patch({ retry: { max_attempts: 8 } })));
    close(store);
    expect((await open()).current.version).toBe(2);
  });

  test("--ignore-saved starts from the file", async () => {
    const store = await open();
    value(await store.apply(patch({ retry: { max_attempts: 8 } })));
    close(store);
    const next = await open({ ignoreSaved: true });
    expect(next.current).toMatchObject({ version: 3, settings: { retry: { max_attempts: 3 } } });
    expect(next.history.version(2)?.document.retry).toEqual({ max_attempts: 8 });
  });

  test("a kept version that cannot run any more is told", async () => {
    const store = await open();
    writeFileSync(join(folder, "keys.yaml"), "keys: []");
    value(await store.apply(patch({ api_keys: { api_keys_file: "keys.yaml" } })));
    close(store);
    rmSync(join(folder, "keys.yaml"));
    const result = await tryOpen();
    expect(result).toMatchObject({ ok: false, version: 2, problems: [{ file: join(folder, "keys.yaml") }] });
  });
});

describe("storage", () => {
  test("nobody else may read it", async () => {
    await open();
    expect(statSync(join(folder, "data/config.db")).mode & 0o077).toBe(0);
  });

  test("SIGNALBOX_DATA_DIR names the folder", async () => {
    await open({ env: { SIGNALBOX_DATA_DIR: join(folder, "elsewhere") } });
    expect(statSync(join(folder, "elsewhere/config.db")).isFile()).toBe(true);
  });

  test.each(["a file in its place", "a damaged database"])(
    "%s: the gateway runs, changes of the API are refused",
    async (kind) => {
      if (kind.includes("file")) writeFileSync(join(folder, "data"), "x");
      else {
        close(await open());
        writeFileSync(join(folder, "data/config.db"), "not a database".repeat(1_000));
        rmSync(join(folder, "data/config.db-wal"), { force: true });
      }
      const store = await open();
      expect(store.storageProblem).toContain("config.db");
      expect(lines.some(({ level }) => level === "error")).toBe(true);
      for (const result of [
        await store.apply(patch({ retry: { max_attempts: 8 } })),
        await store.staging.stage(patch({ retry: { max_attempts: 8 } })),
      ]) {
        expect(result).toMatchObject({ ok: false, error: { kind: "storage" } });
      }
      expect(store.current.settings.retry.max_attempts).toBe(3);
      // An edit of the file needs no database.
      const change = value(await store.applyFile({ retry: { max_attempts: 6 } }, { hash: "other" }));
      expect(change).toMatchObject({ applied: true, version: 2 });
      expect(store.current.settings.retry.max_attempts).toBe(6);
    },
  );

  test("a database that is locked for a while refuses changes, keeps edits of the file, and heals", async () => {
    const store = await open();
    const { Database } = await import("bun:sqlite");
    const other = new Database(join(folder, "data/config.db"));
    other.run("BEGIN IMMEDIATE");
    expect(await store.apply(patch({ retry: { max_attempts: 8 } }))).toMatchObject({ error: { kind: "storage" } });
    expect(value(await store.applyFile({ retry: { max_attempts: 6 } }, { hash: "new" })).version).toBe(2);
    other.run("ROLLBACK");
    other.close();
    expect(value(await store.apply(patch({ logging: { level: "warn" } }))).version).toBe(3);
    expect(store.history.page().entries.map(({ version, source }) => [version, source])).toEqual([
      [3, "api"],
      [2, "file_reload"],
      [1, "startup"],
    ]);
  });

  test("two processes on one folder cannot overwrite each other", async () => {
    const one = await open();
    const other = await open();
    value(await one.apply(patch({ retry: { max_attempts: 8 } })));
    expect(await other.apply(patch({ retry: { max_attempts: 9 } }))).toMatchObject({ error: { kind: "storage" } });
    expect(other.current.version).toBe(1);
  });
});
