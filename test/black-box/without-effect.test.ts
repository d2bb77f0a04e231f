// A setting that does nothing says so: at the start, after an edit of the file, and in every answer that touches it.

import { expect, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

const SAID = "server.workers is kept, but this version does nothing with it";
const OF_FILES = "files.s3.bucket has no effect while files.storage is local";

test("in the log at the start and after an edit", async () => {
  const gateway = await bed.gateway({ config: { backends: [], server: { workers: 4 } }, awaitHealth: false });
  const told = () => gateway.process.logEntries.filter(({ level }) => level === "warn").map(({ msg }) => msg);
  expect(told()).toContain(SAID);
  gateway.writeConfig({ backends: [], files: { s3: { bucket: "b" } }, admin: { auth: { token: "sekret-token" } } });
  await waitFor("the edit is told", () => told().includes(OF_FILES));
  expect(told()).toContain("admin.auth.token has no effect while admin.auth.method is none");
  await gateway.restart();
  expect(told()).toContain(OF_FILES);
});

test("in every answer to a change of its section, and in no other", async () => {
  const gateway = await bed.gateway({ config: { backends: [], server: { workers: 4 } }, awaitHealth: false });
  const admin = new AdminClient(gateway);
  const content = JSON.stringify({ server: { workers: 4 } });
  const doors: [string, string, unknown][] = [
    ["PATCH", "/admin/config/server", { shutdown_timeout: "20s" }],
    ["PUT", "/admin/config/server", { workers: 4 }],
    ["PUT", "/admin/config/server?dry_run=true", { workers: 3 }],
    ["PATCH", "/admin/config/server?apply=false", { workers: 3 }],
    ["POST", "/admin/config/apply", {}],
    ["POST", "/admin/config/validate", { section: "server", config: { workers: 2 } }],
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
