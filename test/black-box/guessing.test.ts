// Guesses of API keys and of the password of /metrics cost the client its tokens, and only the client.

import { expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import type { Gateway } from "../support/gateway.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();
const KEY = "sekret-key-of-a-client";

/** Three requests of a client, and the next a second later. */
const FEW = { requests_per_second: 1, burst_capacity: 3 };
const MANY = { requests_per_second: 100_000, burst_capacity: 100_000 };

function start(more: ConfigDocument = {}): Promise<Gateway> {
  return startGateway({
    config: {
      backends: [{ name: "b", url: backend.url, models: ["m"] }],
      server: { trusted_proxies: ["127.0.0.1"] },
      api_keys: { mode: "blocking", keys: [{ key: KEY, id: "k" }] },
      metrics: { auth: { enabled: true, username: "ann", password: "sekret-password" } },
      rate_limiting: { enabled: true, limits: { per_client: FEW, per_api_key: MANY, global: FEW } },
      ...more,
    },
  });
}

const from = (address: string, key?: string): Record<string, string> => ({
  "x-forwarded-for": address,
  ...(key !== undefined && { authorization: `Bearer ${key}` }),
});
const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString("base64")}` });

/** How many of the requests were refused with 401 before 429 came. */
async function guesses(ask: () => Promise<Response>): Promise<number> {
  for (let count = 0; count < 50; count++) {
    const response = await ask();
    await response.text();
    if (response.status === 429) {
      expect(response.headers.get("retry-after")).toMatch(/^\d+$/);
      return count;
    }
    expect(response.status).toBe(401);
  }
  return Number.POSITIVE_INFINITY;
}

/** A token is earned each second, so that on a busy machine the right credentials may come just after one. */
function refusedAfter(guess: () => Promise<Response>, right: () => Promise<Response>): Promise<unknown> {
  return waitFor("the right credentials find no token", async () => {
    expect(await guesses(guess)).toBeLessThan(10);
    const response = await right();
    await response.text();
    return response.status === 429;
  });
}

test.each([
  ["unknown", "sekret-unknown-key"],
  ["missing", undefined],
])("%s keys take the tokens of their client, not those of all", async (_which, key) => {
  await using gateway = await start();
  const ask = (sent: string | undefined) => () => gateway.chat({}, { headers: from("192.0.2.1", sent) });
  await refusedAfter(ask(key), ask(KEY));
  expect((await gateway.chat({}, { headers: from("192.0.2.2", KEY) })).status).toBe(200);
});

test("wrong passwords of /metrics take tokens too, and without one none is looked at", async () => {
  await using gateway = await start();
  const ask = (address: string, text: string) =>
    gateway.fetch("/metrics", { headers: { ...from(address), ...basic(text) } });
  await refusedAfter(
    () => ask("192.0.2.1", "ann:wrong"),
    () => ask("192.0.2.1", "ann:sekret-password"),
  );
  for (let count = 0; count < 10; count++) {
    expect((await ask("192.0.2.2", "ann:sekret-password")).status).toBe(200);
  }
});

test("without credentials of its own /metrics is never limited", async () => {
  await using gateway = await start({ metrics: {} });
  expect(await guesses(() => gateway.chat({}, { headers: from("192.0.2.1") }))).toBeLessThan(10);
  expect((await gateway.fetch("/metrics", { headers: from("192.0.2.1") })).status).toBe(200);
});

test("without rate_limiting wrong keys are 401, however many", async () => {
  await using gateway = await start({ rate_limiting: {} });
  expect(await guesses(() => gateway.chat({}, { headers: from("192.0.2.1", "sekret-unknown") }))).toBe(
    Number.POSITIVE_INFINITY,
  );
});

test("X-Forwarded-For of a peer that is no trusted proxy is told once", async () => {
  await using gateway = await start({ server: { trusted_proxies: ["192.0.2.200"] } });
  for (let count = 1; count <= 3; count++) await gateway.chat({}, { headers: from(`192.0.2.${count}`, KEY) });
  const warnings = gateway.printed.logEntries.filter(({ msg }) => /X-Forwarded-For/.test(String(msg)));
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatchObject({ address: "127.0.0.1", level: "warn" });
});
