// --backup of a gateway under load, --restore somewhere else: the same keys, files, answers and costs; and everything that
// keeps a restore from doing harm.

import { afterAll, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import { type FinishedRun, GatewayProcess, ProcessGateway } from "../support/gateway-process.ts";
import { chat } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const root = realpathSync(mkdtempSync(join(tmpdir(), "signalbox-backups-")));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const FILE_KEY = "sekret-of-the-file";
const KEY_FILE_KEY = "sekret-of-the-key-file";
const PROMPT = "Answer like a sailor.";
const EVERY_SECOND = { persistence: { snapshot_interval_seconds: 1 } };

const as = (key: string): RequestInit => ({ headers: { authorization: `Bearer ${key}` } });

let folders = 0;
/** Where a machine of its own would be. */
function emptyFolder(): string {
  const folder = join(root, `${folders++}`);
  mkdirSync(join(folder, "home"), { recursive: true });
  return folder;
}

async function run(folder: string, ...args: string[]): Promise<FinishedRun> {
  const process = new GatewayProcess({ args }, folder);
  const finished = await process.finished();
  process.printed.check();
  return finished;
}

/** A gateway in a folder that a restore has filled. */
async function startIn(folder: string, config: ConfigDocument): Promise<ProcessGateway> {
  const ended = new GatewayProcess({ args: ["--version"] }, folder);
  await ended.finished();
  const gateway = new ProcessGateway(ended, "", { config });
  await gateway.restart();
  return gateway;
}

type Costs = { total_cost: number; keys: { key_id: string; requests: number }[] };
const requestsIn = ({ keys }: Costs) => keys.reduce((sum, { requests }) => sum + requests, 0);

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

test("a gateway under load, killed after its backup, goes on elsewhere with the same answers, keys and costs", async () => {
  const backend = bed.backend({ answer: chat("ahoy") });
  const config: ConfigDocument = {
    backends: [
      {
        name: "a",
        type: "vllm",
        url: backend.url,
        models: ["m"],
        model_configs: [{ id: "m", metadata: { pricing: { input_tokens: 1, output_tokens: 2 } } }],
      },
    ],
    api_keys: { mode: "blocking", keys: [{ key: FILE_KEY, id: "of-file" }], api_keys_file: "keys.yaml" },
    global_prompts: { default_file: "sailor.md" },
    metrics: EVERY_SECOND,
    logging: { access_log: false },
  };
  const gateway = await bed.process({
    config,
    files: {
      "keys.yaml": `keys: [{ key: ${KEY_FILE_KEY}, id: of-key-file }]`,
      "prompts/sailor.md": PROMPT,
      "prompts/unused.md": "Unused.",
    },
  });
  const admin = new AdminClient(gateway);
  const { secret } = await admin.ok("POST", "/admin/keys", { id: "of-api" });
  const keys = [FILE_KEY, KEY_FILE_KEY, secret as string];
  await admin.ok("PATCH", "/admin/config/retry", { max_attempts: 7 });
  const form = new FormData();
  form.append("purpose", "user_data");
  form.append("file", new Blob(["what was uploaded"]), "note.txt");
  const uploaded = await gateway.fetch("/v1/files", { method: "POST", body: form, ...as(FILE_KEY) });
  const { id } = (await uploaded.json()) as { id: string };

  let answered = 0;
  let isOver = false;
  const load = Array.from({ length: 4 }, async (_, index) => {
    while (!isOver) {
      const response = await gateway.chat({}, as(keys[index % keys.length] as string)).catch(() => undefined);
      await response?.text().catch(() => {});
      if (response?.status === 200) answered++;
    }
  });
  await waitFor("the load has begun", () => answered > 50);
  const before = answered;
  const backup = join(root, "under-load");
  const made = await run(gateway.folder, "--backup", backup, "--config", gateway.configPath);
  expect([made.exitCode, made.stderr]).toEqual([0, ""]);
  expect(made.stdout).toContain("written for this backup");
  const after = answered;
  gateway.process.kill("SIGKILL");
  isOver = true;
  await Promise.all(load);
  await gateway.process.finished();

  expect(statSync(backup).mode & 0o777).toBe(0o700);
  for (const path of filesBelow(backup)) expect([path, statSync(path).mode & 0o777]).toEqual([path, 0o600]);
  const manifest = JSON.parse(readFileSync(join(backup, "manifest.json"), "utf8"));
  const paths = (manifest.files as { path: string }[]).map(({ path }) => path);
  expect(paths).toEqual(
    expect.arrayContaining([
      "config/gateway.yaml",
      "config/keys.yaml",
      "config/prompts/sailor.md",
      "config/prompts/unused.md",
      "data/audit.db",
      "data/config.db",
      "data/files/files.db",
      "data/metrics.db",
      "data/stats.json",
    ]),
  );
  expect(paths.filter((path) => /-wal|-shm|lock|incoming/.test(path))).toEqual([]);

  const folder = emptyFolder();
  const restored = await run(folder, "--restore", backup, "--config", "gateway.yaml");
  expect([restored.exitCode, restored.stderr]).toEqual([0, ""]);
  await using next = await startIn(folder, config);
  const nextAdmin = new AdminClient(next);
  const costs = (await nextAdmin.get("/admin/stats/costs")) as unknown as Costs;
  expect(requestsIn(costs)).toBeGreaterThanOrEqual(before);
  expect(requestsIn(costs)).toBeLessThanOrEqual(after + load.length);
  expect(costs.keys.map(({ key_id }) => key_id).sort()).toEqual(["of-api", "of-file", "of-key-file"]);
  expect(await nextAdmin.get("/admin/config/retry")).toMatchObject({ config: { max_attempts: 7 } });
  expect(await nextAdmin.get("/admin/audit?operation=patchConfigSection")).toMatchObject({
    entries: [{ subject: "retry", changes: [{ section: "retry", field: "max_attempts", from: 3, to: 7 }] }],
  });
  expect((await nextAdmin.get("/admin/metrics/history?metric=signalbox_requests_total")).row_count).toBeGreaterThan(0);
  for (const key of keys) {
    const response = await next.chat({}, as(key));
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining("ahoy")]);
    expect(backend.lastRequest.body.toString()).toContain(PROMPT);
  }
  expect((await next.chat({}, as("sekret-unknown"))).status).toBe(401);
  const content = await next.fetch(`/v1/files/${id}/content`, as(FILE_KEY));
  expect(await content.text()).toBe("what was uploaded");
});

test("a restore that was cut off is refused by every start, and by a backup", async () => {
  const gateway = await bed.process({ config: { backends: [{ name: "a", type: "demo" }] } });
  await gateway.stop();
  const data = join(gateway.folder, "data");
  for (let file = 0; file < 30; file++) writeFileSync(join(data, `large-${file}`), new Uint8Array(1024 * 1024));
  const backup = join(root, "cut-off");
  const made = await run(gateway.folder, "--backup", backup, "--config", gateway.configPath);
  expect([made.exitCode, made.stdout.includes("no running gateway wrote newer ones")]).toEqual([0, true]);

  const folder = emptyFolder();
  const restore = new GatewayProcess({ args: ["--restore", backup, "--config", "gateway.yaml"] }, folder);
  await waitFor("some of it is there", () => existsSync(join(folder, "data", "large-1")), { intervalMs: 1 });
  restore.kill("SIGKILL");
  await restore.finished();
  writeFileSync(join(folder, "gateway.yaml"), gateway.configText({ backends: [{ name: "a", type: "demo" }] }));
  for (const args of [[], ["--mode", "stdio"], ["--backup", join(root, "half")]]) {
    const { exitCode, stderr } = await run(folder, "--config", "gateway.yaml", ...args);
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining("did not end; empty the folder and restore again")]);
  }
  const again = await run(folder, "--restore", backup, "--config", "gateway.yaml");
  expect([again.exitCode, again.stderr]).toEqual([1, expect.stringContaining("is not empty")]);
  rmSync(join(folder, "data"), { recursive: true });
  expect((await run(folder, "--restore", backup, "--config", "gateway.yaml")).exitCode).toBe(0);
  expect(existsSync(join(folder, "data", "restore.unfinished"))).toBe(false);
});

test("a backup needs neither a valid configuration nor its variables, and names them", async () => {
  const gateway = await bed.process({
    configText: "backends: [{ name: a, type: demo, api_key: '${VENDOR_KEY}' }]",
    environment: { VENDOR_KEY: "sekret-of-the-vendor" },
  });
  const backup = join(root, "variables");
  writeFileSync(
    gateway.configPath,
    "backends: [{ name: a, type: demo, api_key: '${VENDOR_KEY}' }]\nlogging: { level: 7 }",
  );
  const made = await run(gateway.folder, "--backup", backup, "--config", gateway.configPath);
  expect([made.exitCode, made.stderr, made.stdout]).toEqual([0, "", expect.stringContaining("VENDOR_KEY")]);
  const nowhere = await run(emptyFolder(), "--backup", join(root, "nothing"));
  expect([nowhere.exitCode, nowhere.stderr]).toEqual([1, expect.stringContaining("there is no data folder at")]);
});
