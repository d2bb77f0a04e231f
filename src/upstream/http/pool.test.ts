import { expect, test } from "bun:test";
import { startRawServer } from "../../../test/support/raw-server.ts";
import { startSilentHost } from "../../../test/support/silent-host.ts";
import { waitFor, within } from "../../../test/support/wait-for.ts";
import { createHostLookup } from "./host-lookup.ts";
import { Pool } from "./pool.ts";

function poolAt(port: number, { maxIdle = 4, now = (): number => 0 } = {}) {
  const told: string[] = [];
  const pool = new Pool({
    address: { hostname: "127.0.0.1", port },
    maxIdle,
    scratch: Buffer.alloc(100),
    lookup: createHostLookup(now),
    now,
    onIdle: () => told.push("idle"),
    onEmpty: () => told.push("empty"),
  });
  return { pool, told };
}

test("those who ask at one time whether the origin answers share one connection, which is kept", async () => {
  await using server = await startRawServer({});
  const { pool, told } = poolAt(server.port);
  const first = pool.probe();
  expect(pool.probe()).toBe(first);
  await within("the connection stands", first);
  expect([pool.open, pool.idleCount, told]).toEqual([1, 1, ["idle"]]);
  pool.distrust();
  expect([pool.open, pool.idleCount, told]).toEqual([0, 0, ["idle", "empty"]]);
});

test("an attempt without an answer is given up, and the next one is another", async () => {
  await using host = await startSilentHost();
  if (host === undefined) return;
  const { pool, told } = poolAt(Number(new URL(host.url).port));
  const first = pool.probe();
  expect(await Promise.race([first.then(() => "settled"), Bun.sleep(50).then(() => "silent")])).toBe("silent");
  pool.giveProbeUp();
  expect([pool.open, told]).toEqual([0, ["empty"]]);
  expect(pool.probe()).not.toBe(first);
  pool.giveProbeUp();
});

test("a refused connection takes with it those that wait", async () => {
  const server = await startRawServer({});
  const { pool } = poolAt(server.port);
  await within("a connection", pool.probe());
  const [kept] = server.connections;
  // The port closes, and what is open stays.
  await within("the listener is closed", server.stopListening());
  const refused = pool.connect();
  await within("a refusal", refused.settled());
  expect([pool.open, pool.idleCount]).toEqual([0, 0]);
  await waitFor("the backend sees it", () => kept?.end === "fin");
  await server[Symbol.asyncDispose]();
});

test("what expires is what has waited longest", async () => {
  await using server = await startRawServer({});
  let nowMs = 0;
  const { pool } = poolAt(server.port, { now: () => nowMs });
  for (nowMs = 1; nowMs <= 3; nowMs++) await within("a connection", pool.connect().settled());
  expect(pool.idleCount).toBe(3);
  pool.expire(0);
  expect(pool.idleCount).toBe(3);
  pool.expire(2);
  expect(pool.idleCount).toBe(1);
  expect(pool.take()?.idleSinceMs).toBe(3);
});
