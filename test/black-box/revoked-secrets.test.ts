// A secret that was rotated away or deleted stays refused, whatever else is edited, rolled back, imported or restarted, until
// the file gives its place another value.

import { expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import type { Gateway } from "../support/gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const LEAKED = "sekret-leaked";
const DELETED = "sekret-deleted";

async function statusOf(gateway: Gateway, key: string): Promise<number> {
  const response = await gateway.chat({ model: "m" }, { headers: { authorization: `Bearer ${key}` } });
  await response.text();
  return response.status;
}

test("a rotated and a deleted secret stay refused through an edit, a rollback, an import and a restart", async () => {
  const backend = bed.backend();
  const config: ConfigDocument = {
    backends: [{ name: "a", type: "vllm", url: backend.url, models: ["m"] }],
    api_keys: {
      mode: "blocking",
      keys: [
        { id: "team", key: LEAKED },
        { id: "guest", key: DELETED },
      ],
    },
  };
  const gateway = await bed.gateway({ config });
  const admin = new AdminClient(gateway);
  const rotated = await admin.ok("POST", "/admin/keys/team/rotate", { overlap: "0s" });
  const secret = rotated.secret as string;
  await admin.ok("DELETE", "/admin/keys/guest");
  await admin.ok("POST", "/admin/backends", { name: "b", type: "vllm", url: backend.url, models: ["m"] });
  const statuses = async () => [
    await statusOf(gateway, LEAKED),
    await statusOf(gateway, DELETED),
    await statusOf(gateway, secret),
  ];
  expect(await statuses()).toEqual([401, 401, 200]);
  const version = async () => (await admin.get("/admin/config/history")).current_version as number;

  // A colleague edits another line.
  const edited = { ...config, logging: { level: "debug" as const } };
  const before = await version();
  gateway.writeConfig(edited);
  await waitFor("the edit is in force", async () => (await version()) > before);
  expect(await statuses()).toEqual([401, 401, 200]);
  expect(await admin.get("/admin/backends/b")).toMatchObject({ name: "b" });

  const back = await admin.ok("POST", "/admin/config/rollback/1");
  expect(back.warnings).toEqual([
    expect.stringContaining("api_keys.keys.team.key is left out"),
    expect.stringContaining("api_keys.keys.guest.key is left out"),
  ]);
  expect(await statuses()).toEqual([401, 401, 200]);
  expect(JSON.stringify(back)).not.toContain("sekret");

  const { api_keys } = config;
  const imported = await admin.ok("POST", "/admin/config/import", {
    content: JSON.stringify({ api_keys }),
    format: "json",
  });
  expect(imported.validation).toMatchObject({ warnings: back.warnings });
  expect(await statuses()).toEqual([401, 401, 200]);

  await gateway.restart();
  expect(await statuses()).toEqual([401, 401, 200]);

  // The API refuses it with the field, and the file may name it again after it has named another.
  const refused = await admin.send("POST", "/admin/keys", { body: { id: "again", key: LEAKED } });
  expect(refused.status).toBe(400);
  expect(JSON.stringify(refused.body)).toContain("was revoked");
  for (const key of ["sekret-other", LEAKED]) {
    const earlier = await version();
    gateway.writeConfig({ ...edited, api_keys: { mode: "blocking", keys: [{ id: "team", key }] } });
    await waitFor("the edit is in force", async () => (await version()) > earlier);
    expect(await statusOf(gateway, key)).toBe(200);
  }
});
