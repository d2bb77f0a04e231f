// The audit of the admin API: who did what, before and after, and what was refused (docs/admin-api.md).

import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { systemClock } from "../../src/lib/clock.ts";
import type { Gateway } from "../support/gateway.ts";
import { startInProcess } from "../support/in-process.ts";
import { failure } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const TOKEN = "sekret-admin-token";
const auth = { Authorization: `Bearer ${TOKEN}` };
const start = () =>
  bed.gateway({
    awaitHealth: false,
    config: { admin: { auth: { method: "bearer_token", token: TOKEN, max_failed_attempts: 1_000 } } },
  });

interface Entry extends Record<string, unknown> {
  changes: { section: string; field: string; from: unknown; to: unknown }[] | null;
}

async function audit(gateway: Gateway, query = ""): Promise<{ entries: Entry[]; next: number | null }> {
  const response = await gateway.fetch(`/admin/audit${query}`, { headers: auth });
  expect(response.status).toBe(200);
  return (await response.json()) as { entries: Entry[]; next: number | null };
}

const patch = (gateway: Gateway, section: string, config: object) =>
  gateway.fetch(`/admin/config/${section}`, { method: "PATCH", headers: auth, body: JSON.stringify({ config }) });

test("a change has its author, its operation, its fields before and after, and a line in the log", async () => {
  const gateway = await start();
  expect((await patch(gateway, "retry", { max_attempts: 2 })).status).toBe(200);
  expect((await patch(gateway, "retry", { max_attempts: -1 })).status).toBe(400);
  const { entries } = await audit(gateway);
  expect(entries).toMatchObject([
    { status: 400, outcome: "failed", changes: null },
    {
      name: "admin token",
      role: "admin",
      sign_in_method: "bearer_token",
      address: "127.0.0.1",
      method: "PATCH",
      path: "/admin/config/retry",
      subject: "retry",
      status: 200,
      outcome: "done",
      changes: [{ section: "retry", field: "max_attempts", from: 3, to: 2 }],
    },
  ]);
  const lines = gateway.printed.logEntries.filter(({ msg }) => msg === "audit");
  expect(lines).toMatchObject([
    { name: "admin token", role: "admin", operation: "patchConfigSection", subject: "retry", outcome: "done" },
    { operation: "patchConfigSection", status: 400, outcome: "failed" },
  ]);
});

test("secrets are masked, reads are left out, and reads of secrets are not", async () => {
  const gateway = await start();
  await patch(gateway, "web_search", { provider: "brave", api_key: "sekret-of-search" });
  await gateway.fetch("/admin/config", { headers: auth });
  await gateway.fetch("/admin/config/full?include_sensitive=true", { headers: auth });
  const { entries } = await audit(gateway);
  expect(entries.map(({ method, path }) => `${method} ${path}`)).toEqual([
    "GET /admin/config/full",
    "PATCH /admin/config/web_search",
  ]);
  expect(JSON.stringify(entries)).not.toContain("sekret");
});

test("refused attempts are recorded, five of an address in a minute", async () => {
  const gateway = await start();
  for (let times = 0; times < 20; times++) {
    const refused = await gateway.fetch("/admin/config", { headers: { Authorization: "Bearer sekret-wrong" } });
    expect(refused.status).toBe(401);
  }
  const { entries } = await audit(gateway, "?outcome=refused");
  expect(entries).toHaveLength(5);
  expect(entries[0]).toMatchObject({ name: null, role: null, status: 401, path: "/admin/config", repeats: 1 });
});

test("filters, pages and CSV", async () => {
  const gateway = await start();
  for (const max_attempts of [2, 3, 4]) await patch(gateway, "retry", { max_attempts });
  const first = await audit(gateway, "?limit=2");
  expect(first.entries).toHaveLength(2);
  const second = await audit(gateway, `?limit=2&cursor=${first.next}`);
  expect(second).toMatchObject({ entries: [{ outcome: "done" }], next: null });
  expect((await audit(gateway, "?name=other")).entries).toEqual([]);
  expect((await audit(gateway, "?since=2099-01-01T00:00:00Z")).entries).toEqual([]);
  const table = await gateway.fetch("/admin/audit?format=csv", { headers: auth });
  expect(table.headers.get("content-type")).toContain("text/csv");
  expect((await table.text()).split("\r\n")).toHaveLength(5);
});

test("a change of a key of the key store has its fields before and after, whatever version the configuration has", async () => {
  const gateway = await start();
  const send = async (method: string, path: string, body?: object) => {
    const options = { method, headers: auth, ...(body !== undefined && { body: JSON.stringify(body) }) };
    expect((await gateway.fetch(path, options)).ok).toBe(true);
  };
  await send("POST", "/admin/keys", { id: "a", key: "sekret-of-a-key", rate_limit: 5 });
  // Version 2 of the configuration is of the file, so that no answer takes its changes.
  writeFileSync(
    gateway.configPath,
    readFileSync(gateway.configPath, "utf8").replace("{", '{ "retry": { "max_attempts": 2 },'),
  );
  await waitFor("the edit is a version", async () => {
    const response = await gateway.fetch("/admin/config", { headers: auth });
    return response.headers.get("etag") === '"2"';
  });
  await send("PUT", "/admin/keys/a", { rate_limit: 6 });
  await send("POST", "/admin/keys/a/rotate", {});
  await send("DELETE", "/admin/keys/a");
  const { entries } = await audit(gateway);
  expect(entries.map(({ operation }) => operation)).toEqual(["deleteKey", "rotateKey", "updateKey", "createKey"]);
  const [removed, rotated, changed, added] = entries.map(({ changes }) => changes);
  expect(changed).toEqual([{ section: "api_keys", field: "keys.a.rate_limit", from: 5, to: 6 }]);
  for (const changes of [removed, rotated, added]) expect(changes).toMatchObject([{ section: "api_keys" }]);
  expect(JSON.stringify(entries)).not.toContain("sekret");
});

test("dry_run=false is a change, and its fields are recorded", async () => {
  const gateway = await start();
  const body = JSON.stringify({ config: { max_attempts: 2 } });
  await gateway.fetch("/admin/config/retry?dry_run=false", { method: "PATCH", headers: auth, body });
  expect((await audit(gateway)).entries).toMatchObject([
    { changes: [{ section: "retry", field: "max_attempts", to: 2 }] },
  ]);
});

describe("a change that makes no version of the configuration", () => {
  const send = (gateway: Gateway, method: string, path: string, body?: object) =>
    gateway.fetch(path, { method, headers: auth, ...(body !== undefined && { body: JSON.stringify(body) }) });

  test("of a key in the key store has its fields before and after, and no secret", async () => {
    const gateway = await start();
    expect((await send(gateway, "POST", "/admin/keys", { id: "intern", key: "sekret-of-intern" })).status).toBe(201);
    expect((await send(gateway, "PUT", "/admin/keys/intern", { rate_limit: 7 })).status).toBe(200);
    expect((await send(gateway, "PUT", "/admin/keys/intern?dry_run=true", { rate_limit: 9 })).status).toBe(200);
    expect((await send(gateway, "POST", "/admin/keys/intern/rotate", {})).status).toBe(200);
    expect((await send(gateway, "DELETE", "/admin/keys/intern")).status).toBe(200);
    const { entries } = await audit(gateway);
    const of = (operation: string) => entries.filter((entry) => entry.operation === operation);
    const mask = "********";
    expect(of("createKey")).toMatchObject([
      { subject: "intern", changes: [{ section: "api_keys", field: "keys.intern", from: null, to: { key: mask } }] },
    ]);
    expect(of("updateKey")).toMatchObject([
      { subject: "intern", changes: null },
      { subject: "intern", changes: [{ section: "api_keys", field: "keys.intern.rate_limit", from: null, to: 7 }] },
    ]);
    expect(of("rotateKey")).toMatchObject([{ changes: [{ field: "keys.intern.key", from: mask, to: mask }] }]);
    expect(of("deleteKey")).toMatchObject([{ changes: [{ field: "keys.intern", to: null }] }]);
    expect(JSON.stringify(entries)).not.toContain("sekret");
  });

  test("of a circuit has its state before and after; others have their subject", async () => {
    const backend = bed.backend({ answer: failure(503, "no memory") });
    const gateway = await bed.gateway({
      awaitHealth: false,
      config: {
        admin: { auth: { method: "bearer_token", token: TOKEN } },
        health_checks: { enabled: false },
        backends: [{ name: "one", url: backend.url, models: ["m"] }],
        circuit_breaker: { enabled: true, failure_threshold: 1, timeout: "1h" },
        retry: { max_attempts: 1 },
        response_cache: { enabled: true },
      },
    });
    await gateway.chat({ model: "m" });
    expect((await send(gateway, "POST", "/admin/backends/one/circuit/reset")).status).toBe(200);
    expect((await send(gateway, "DELETE", "/admin/response-cache?model=m")).status).toBe(200);
    expect((await send(gateway, "PUT", "/admin/backends/one/weight", { weight: 7 })).status).toBe(200);
    expect((await send(gateway, "POST", "/admin/stats/reset")).status).toBe(200);
    const { entries } = await audit(gateway);
    expect(entries).toMatchObject([
      { operation: "resetStatistics", subject: null, changes: null },
      { operation: "setBackendWeight", subject: "one", changes: [{ field: "one.weight", from: 1, to: 7 }] },
      { operation: "clearResponseCache", subject: "m", changes: null },
      { subject: "one", changes: [{ section: "circuit", field: "state", from: "open", to: "closed" }] },
    ]);
  });
});

test("an attempt that the role does not allow has the name and the role of who made it", async () => {
  const tokens = [
    { name: "vera", token: "sekret-viewer", role: "viewer" as const },
    { name: "ann", token: TOKEN, role: "admin" as const },
  ];
  const gateway = await bed.gateway({
    awaitHealth: false,
    config: { admin: { auth: { method: "bearer_token", tokens } } },
  });
  const headers = { Authorization: "Bearer sekret-viewer" };
  expect((await gateway.fetch("/admin/stats/reset", { method: "POST", headers })).status).toBe(403);
  expect((await audit(gateway)).entries).toMatchObject([
    { name: "vera", role: "viewer", operation: "resetStatistics", status: 403, outcome: "refused" },
  ]);
});

describe("refused attempts", () => {
  const wrong = (gateway: Gateway, address: string) =>
    gateway.fetch("/admin/config", { headers: { Authorization: "Bearer sekret-wrong", "X-Forwarded-For": address } });
  const startBehindProxy = () =>
    startInProcess({
      awaitHealth: false,
      config: {
        server: { trusted_proxies: ["127.0.0.1"] },
        admin: { auth: { method: "bearer_token", token: TOKEN, max_failed_attempts: 1_000 } },
      },
    });

  test("beyond five of an address become one entry with their number", async () => {
    const gateway = await startBehindProxy();
    try {
      for (let times = 0; times < 12; times++) await wrong(gateway, "192.0.2.1");
      await wrong(gateway, "192.0.2.2");
      await gateway.restart();
      const { entries } = await audit(gateway, "?outcome=refused");
      expect(entries.map(({ address, repeats }) => [address, repeats])).toEqual([
        ["192.0.2.1", 7],
        ["192.0.2.2", 1],
        ...Array.from({ length: 5 }, () => ["192.0.2.1", 1]),
      ]);
    } finally {
      await gateway.close();
    }
  });

  test("of more than a hundred addresses within a minute share one entry", async () => {
    const gateway = await startBehindProxy();
    try {
      for (let number = 1; number <= 120; number++) await wrong(gateway, `192.0.2.${number}`);
      await gateway.restart();
      const { entries } = await audit(gateway, "?outcome=refused&limit=1000");
      expect(entries).toHaveLength(101);
      expect(entries[0]).toMatchObject({ address: null, repeats: 20 });
    } finally {
      await gateway.close();
    }
  });
});

test("entries older than the retention go", async () => {
  let aheadMs = 0;
  const clock = { now: systemClock.now, wallTime: () => systemClock.wallTime() + aheadMs };
  const config = { admin: { auth: { method: "bearer_token" as const, token: TOKEN } } };
  const gateway = await startInProcess({ awaitHealth: false, config }, clock);
  try {
    await patch(gateway, "retry", { max_attempts: 2 });
    expect((await audit(gateway)).entries).toHaveLength(1);
    aheadMs = 366 * 86_400_000;
    await patch(gateway, "retry", { max_attempts: 4 });
    expect((await audit(gateway)).entries).toMatchObject([{ changes: [{ from: 2, to: 4 }] }]);
  } finally {
    await gateway.close();
  }
});

test("a file that cannot be written stops nothing; the log and the health say so", async () => {
  const gateway = await bed.gateway({
    awaitHealth: false,
    files: { "data/blocked": "a file where a folder would be" },
    config: {
      admin: { auth: { method: "bearer_token", token: TOKEN }, audit: { path: "./data/blocked/audit.db" } },
    },
  });
  expect((await patch(gateway, "retry", { max_attempts: 2 })).status).toBe(200);
  const told = gateway.printed.logEntries.filter(({ msg }) => msg === "audit" || msg === "the audit cannot be written");
  expect(told.map(({ msg }) => msg)).toEqual(["audit", "the audit cannot be written"]);
  const health = await (await gateway.fetch("/admin/health", { headers: auth })).text();
  expect(health).toContain("blocked/audit.db");
  expect((await gateway.fetch("/admin/audit", { headers: auth })).status).toBe(503);
});

test("with workers there is one audit, whichever of them is asked", async () => {
  const gateway = await bed.process({
    awaitHealth: false,
    config: { server: { workers: 2 }, admin: { auth: { method: "bearer_token", token: TOKEN } } },
  });
  for (let times = 0; times < 6; times++) await patch(gateway, "retry", { max_attempts: 2 + (times % 2) });
  await gateway.fetch("/admin/config", { headers: { Authorization: "Bearer sekret-wrong" } });
  const { entries } = await audit(gateway);
  expect(entries).toHaveLength(7);
  expect(entries).toMatchObject([
    { outcome: "refused" },
    { changes: [{ from: 2, to: 3 }] },
    { changes: [{ from: 3, to: 2 }] },
    ...entries.slice(3),
  ]);
});
