// Room for the audit: what goes first when its file is full.

import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AuditEntry, createAuditStore } from "./audit-store.ts";

const folder = mkdtempSync(join(tmpdir(), "signalbox-audit-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const MAX_BYTES = 1_048_576;

const entry = (more: Partial<AuditEntry>): AuditEntry => ({
  ...{
    atMs: 1,
    name: null,
    role: null,
    signInMethod: null,
    address: "192.0.2.1",
    method: "GET",
    path: "/admin/config",
  },
  ...{ operation: null, subject: null, status: 200, outcome: "done", repeats: 1, changes: null },
  ...more,
});

test("a full file gives up refused attempts first, then the oldest entries, and takes every new one", () => {
  const warnings: string[] = [];
  const path = join(folder, "audit.db");
  const log = { warn: (_: object, message: string) => void warnings.push(message) };
  const audit = createAuditStore({ path, maxBytes: MAX_BYTES, log });
  const deed = entry({ name: "ann", changes: "x".repeat(1_000) });
  for (let count = 0; count < 100; count++) audit.add(deed);
  for (let count = 0; count < 20_000; count++) audit.add(entry({ outcome: "refused", status: 401, path: `/${count}` }));
  expect(audit.find({ outcome: "done", limit: 1_000 })).toHaveLength(100);
  const refused = audit.find({ outcome: "refused", limit: 100_000 });
  expect(refused.length).toBeWithin(1_000, 20_000);
  expect(refused[0]?.path).toBe("/19999");
  for (let count = 0; count < 2_000; count++) audit.add({ ...deed, path: `/deed/${count}` });
  expect(audit.find({ outcome: "refused", limit: 1 })).toEqual([]);
  expect(audit.find({ limit: 1 })).toMatchObject([{ path: "/deed/1999" }]);
  audit.close();
  expect(Bun.file(path).size).toBeLessThanOrEqual(2 * MAX_BYTES);
  expect(warnings).toEqual([]);
});
