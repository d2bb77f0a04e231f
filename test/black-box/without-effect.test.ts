// A setting that does nothing says so: at the start, after an edit of the file, and in every answer that touches it.

import { expect, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

const SAID = "server.worker_memory_limit has no effect while server.workers is 1";
const LIMIT = 2 ** 30;
const OF_FILES = "files.s3.bucket has no effect while files.storage is local";

test("in the log at the start and after an edit", async () => {
  const gateway = await bed.gateway({
    config: { backends: [], server: { workers: 1, worker_memory_limit: LIMIT } },
    awaitHealth: false,
  });
  const told = () => gateway.printed.logEntries.filter(({ level }) => level === "warn").map(({ msg }) => msg);
  expect(told()).toContain(SAID);
  gateway.writeConfig({ backends: [], files: { s3: { bucket: "b" } }, admin: { auth: { token: "sekret-token" } } });
  await waitFor("the edit is told", () => told().includes(OF_FILES));
  expect(told()).toContain("admin.auth.token has no effect while admin.auth.method is none");
  await gateway.restart();
  expect(told()).toContain(OF_FILES);
});

test("in every answer to a change of its section, and in no other", async () => {
  const gateway = await bed.gateway({
    config: { backends: [], server: { workers: 1, worker_memory_limit: LIMIT } },
    awaitHealth: false,
  });
  const admin = new AdminClient(gateway);
  const content = JSON.stringify({ server: { workers: 1, worker_memory_limit: LIMIT } });
  const doors: [string, string, unknown][] = [
    ["PATCH", "/admin/config/server", { shutdown_timeout: "20s" }],
    ["PUT", "/admin/config/server", { worker_memory_limit: LIMIT }],
    ["PUT", "/admin/config/server?dry_run=true", { worker_memory_limit: 2 * LIMIT }],
    ["PATCH", "/admin/config/server?apply=false", { worker_memory_limit: 2 * LIMIT }],
    ["POST", "/admin/config/apply", {}],
    ["POST", "/admin/config/validate", { section: "server", config: { worker_memory_limit: 3 * LIMIT } }],
    ["POST", "/admin/config/import", { format: "json", content, dry_run: true }],
    ["POST", "/admin/config/rollback/1", {}],
  ];
  for (const [method, path, body] of doors) {
    const { warnings } = await admin.ok(method, path, body);
    expect([method, path, warnings]).toEqual([method, path, expect.arrayContaining([SAID])]);
  }
  const imported = await admin.ok("POST", "/admin/config/import", { format: "json", content });
  expect(imported.validation).toMatchObject({ warnings: expect.arrayContaining([SAID]) });
  expect((await admin.ok("PATCH", "/admin/config/retry", { max_attempts: 5 })).warnings).toEqual([]);
});
