// Rate limits: per client, key, backend and for all; exact under concurrency; told in headers and body as specified
// (specification, Errors and Limits).

import { beforeEach, describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { expectError } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat } from "../support/openai-answers.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend({ answer: chat("a") });
const other = bed.backend({ answer: chat("b") });

beforeEach(() => {
  backend.reset();
  other.reset();
});

type Limits = NonNullable<NonNullable<ConfigDocument["rate_limiting"]>["limits"]>;

const WIDE = { requests_per_second: 100_000, burst_capacity: 100_000 };
const NO_LIMITS = { per_client: WIDE, per_backend: WIDE, per_api_key: WIDE, global: WIDE };

/** One limit at a time: all others are out of the way. */
function start(
  limits: Limits,
  {
    server,
    api_keys,
    ...more
  }: { server?: object; api_keys?: ConfigDocument["api_keys"]; [key: string]: unknown } = {},
): Promise<Gateway> {
  return startGateway({
    config: {
      ...(server && { server }),
      ...(api_keys && { api_keys }),
      health_checks: { enabled: false },
      retry: { base_delay: "1ms" },
      rate_limiting: { enabled: true, limits: { ...NO_LIMITS, ...limits }, ...more },
      backends: [
        { name: "a", url: backend.url, models: ["m", "both"] },
        { name: "b", url: other.url, models: ["both"] },
      ],
    },
  });
}

const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });

async function statusOf(gateway: Gateway, headers: Record<string, string> = {}, model = "m"): Promise<number> {
  const response = await gateway.chat({ model }, { headers });
  await response.text();
  return response.status;
}

interface Count {
  admitted: number;
  refused: number;
  elapsedMs: number;
}

/** Requests at once. */
async function fire(
  gateway: Gateway,
  count: number,
  headers: (index: number) => Record<string, string> = () => ({}),
  model = "m",
): Promise<Count> {
  const startedMs = performance.now();
  const statuses = await Promise.all(
    Array.from({ length: count }, (_, index) => statusOf(gateway, headers(index), model)),
  );
  const admitted = statuses.filter((status) => status === 200).length;
  const refused = statuses.filter((status) => status === 429).length;
  expect(admitted + refused).toBe(count);
  return { admitted, refused, elapsedMs: performance.now() - startedMs };
}

/** The first refusal: a machine that halts between two requests lets a token be earned. */
async function refusalOf(gateway: Gateway, headers: Record<string, string> = {}): Promise<Response> {
  for (;;) {
    const response = await gateway.chat({}, { headers });
    if (response.status === 429) return response;
    await response.text();
  }
}

/** The burst, and not one more than the time has earned. */
function expectExactly({ admitted, elapsedMs }: Count, burst: number, perSecond: number): void {
  expect(admitted).toBeGreaterThanOrEqual(burst);
  expect(admitted).toBeLessThanOrEqual(burst + Math.floor((elapsedMs / 1000) * perSecond));
}

describe("per client", () => {
  test("only the refusal speaks of the limit, unless headers are asked for on success too", async () => {
    await using gateway = await start({ per_client: { requests_per_second: 1, burst_capacity: 1 } });
    const limitHeaders = (response: Response) =>
      [...response.headers.keys()].filter((name) => /^x-ratelimit-[a-z]+$/.test(name)).toSorted();
    const admitted = await gateway.chat();
    await admitted.text();
    expect([admitted.status, limitHeaders(admitted)]).toEqual([200, []]);
    expect(limitHeaders(await refusalOf(gateway))).toEqual([
      "x-ratelimit-limit",
      "x-ratelimit-remaining",
      "x-ratelimit-reset",
    ]);
  });

  test("headers count down, and the refusal has the specified body and headers", async () => {
    const limits = { per_client: { requests_per_second: 1, burst_capacity: 3 } };
    await using gateway = await start(limits, { headers_on_success: true });
    const startedMs = Date.now();
    const remaining: (string | null)[] = [];
    for (let index = 0; index < 3; index++) {
      const response = await gateway.chat();
      expect(response.status).toBe(200);
      expect(response.headers.get("x-ratelimit-limit")).toBe("3");
      expect(response.headers.get("retry-after")).toBeNull();
      remaining.push(response.headers.get("x-ratelimit-remaining"));
      await response.text();
    }
    if (Date.now() - startedMs < 900) expect(remaining).toEqual(["2", "1", "0"]);
    const response = await refusalOf(gateway);
    const error = await expectError(response, 429);
    expect(error).toMatchObject({ type: "rate_limit_exceeded", code: "rate_limit_exceeded" });
    const details = error.details as { limit: number; window: string; retry_after: number; reset_at: string };
    expect(Object.keys(details).sort()).toEqual(["limit", "reset_at", "retry_after", "window"]);
    expect(details.limit).toBe(3);
    expect(details.window).toBe("3s");
    expect(details.retry_after).toBe(1);
    expect(response.headers.get("x-ratelimit-limit")).toBe("3");
    expect(response.headers.get("x-ratelimit-remaining")).toBe("0");
    expect(response.headers.get("retry-after")).toBe(String(details.retry_after));
    const reset = Number(response.headers.get("x-ratelimit-reset"));
    expect(reset).toBe(Date.parse(details.reset_at) / 1000);
    expect(reset).toBeGreaterThanOrEqual(Math.floor(Date.now() / 1000));
    expect(reset).toBeLessThanOrEqual(Math.ceil(Date.now() / 1000) + 4);
  });

  test("after Retry-After a request is admitted", async () => {
    await using gateway = await start({ per_client: { requests_per_second: 1, burst_capacity: 1 } });
    await fire(gateway, 3);
    await Bun.sleep(1_050);
    expect(await statusOf(gateway)).toBe(200);
  });

  test("200 requests at once: exactly the burst is admitted, and only these reach the backend", async () => {
    await using gateway = await start({ per_client: { requests_per_second: 1, burst_capacity: 50 } });
    const count = await fire(gateway, 200);
    expectExactly(count, 50, 1);
    expect(backend.requests).toHaveLength(count.admitted);
    await gateway.waitUntilIdle();
  });

  test("health, readiness and the admin API are not limited; the model list is", async () => {
    await using gateway = await start({ per_client: { requests_per_second: 1, burst_capacity: 1 } });
    for (const path of ["/health", "/readyz", "/admin/backends"]) {
      for (let count = 0; count < 5; count++) expect((await gateway.fetch(path)).status).toBe(200);
    }
    await waitFor("the model list is refused", async () => (await gateway.fetch("/v1/models")).status === 429);
  });

  test("a request that is invalid counts too, so that it cannot be used to hammer", async () => {
    await using gateway = await start({ per_client: { requests_per_second: 1, burst_capacity: 2 } });
    const startedMs = performance.now();
    const statuses = await Promise.all(
      Array.from({ length: 6 }, () =>
        gateway.post("/v1/chat/completions", "{broken").then((response) => response.status),
      ),
    );
    const admitted = statuses.filter((status) => status === 400).length;
    const refused = statuses.filter((status) => status === 429).length;
    expect(admitted + refused).toBe(6);
    expectExactly({ admitted, refused, elapsedMs: performance.now() - startedMs }, 2, 1);
  });
});

describe("X-Forwarded-For", () => {
  const from = (address: string) => ({ "X-Forwarded-For": address });

  test("is believed from a trusted proxy: each client has its own limit", async () => {
    await using gateway = await start(
      { per_client: { requests_per_second: 1, burst_capacity: 5 } },
      { server: { trusted_proxies: ["127.0.0.0/8"] } },
    );
    const startedMs = performance.now();
    const counts = await Promise.all(
      ["198.51.100.1", "198.51.100.2", "2001:db8::1"].map((address) => fire(gateway, 20, () => from(address))),
    );
    for (const count of counts) expectExactly(count, 5, 1);
    // What stands left of the first address that is no trusted proxy was written by the client itself.
    const disguised = await fire(gateway, 20, (index) => from(`203.0.113.${index}, 198.51.100.1`));
    expect(disguised.admitted).toBeLessThanOrEqual(Math.ceil((performance.now() - startedMs) / 1000));
    // A client with IPv6 has a whole /64.
    const spread = await fire(gateway, 20, (index) => from(`2001:db8::${index + 2}`));
    expect(spread.admitted).toBeLessThanOrEqual(Math.ceil((performance.now() - startedMs) / 1000));
  });

  test("is not believed from anyone else", async () => {
    await using gateway = await start({ per_client: { requests_per_second: 1, burst_capacity: 5 } });
    expectExactly(await fire(gateway, 40, (index) => from(`198.51.100.${index}`)), 5, 1);
  });

  test("the whitelist holds addresses and ranges", async () => {
    await using gateway = await start(
      {
        per_client: { requests_per_second: 1, burst_capacity: 2 },
        global: { requests_per_second: 1, burst_capacity: 4 },
      },
      { server: { trusted_proxies: ["127.0.0.1"] }, whitelist: ["198.51.100.7", "10.0.0.0/8", "2001:db8:1::/48"] },
    );
    for (const address of ["198.51.100.7", "10.1.2.3", "2001:db8:1::9"]) {
      expect((await fire(gateway, 30, () => from(address))).refused).toBe(0);
    }
    const response = await gateway.chat({}, { headers: from("10.1.2.3") });
    await response.text();
    expect(response.headers.get("x-ratelimit-limit")).toBeNull();
    expectExactly(await fire(gateway, 30, () => from("198.51.100.8")), 2, 1);
  });
});

describe("keys", () => {
  const keys = [
    { key: "sk-sekret-slow", id: "slow", rate_limit: 5 },
    { key: "sk-sekret-fast", id: "fast", rate_limit: 60 },
    { key: "sk-sekret-plain", id: "plain" },
  ];

  test("rate_limit of a key is per minute, for each key by itself, also while rate_limiting is off", async () => {
    await using gateway = await startGateway({
      config: {
        health_checks: { enabled: false },
        api_keys: { keys },
        backends: [{ name: "a", url: backend.url, models: ["m"] }],
      },
    });
    expectExactly(await fire(gateway, 50, () => bearer("sk-sekret-slow")), 5, 5 / 60);
    const response = await refusalOf(gateway, bearer("sk-sekret-slow"));
    const error = await expectError(response, 429);
    expect(error.details).toMatchObject({ limit: 5, window: "60s" });
    expect(Number(response.headers.get("retry-after"))).toBeLessThanOrEqual(12);
    expect(JSON.stringify(error)).not.toContain("sekret");
    expectExactly(await fire(gateway, 100, () => bearer("sk-sekret-fast")), 60, 1);
    expect((await fire(gateway, 50, () => bearer("sk-sekret-plain"))).refused).toBe(0);
    expect((await fire(gateway, 20)).refused).toBe(0);
  });

  test("per_api_key holds for keys without a limit of their own", async () => {
    await using gateway = await start(
      { per_api_key: { requests_per_second: 1, burst_capacity: 3 } },
      { api_keys: { keys } },
    );
    expectExactly(await fire(gateway, 20, () => bearer("sk-sekret-plain")), 3, 1);
    expectExactly(await fire(gateway, 20, () => bearer("sk-sekret-slow")), 5, 1);
    expect((await fire(gateway, 20)).refused).toBe(0);
  });

  test("bypass_keys pass every limit but those of backends", async () => {
    await using gateway = await start(
      {
        per_client: { requests_per_second: 1, burst_capacity: 2 },
        global: { requests_per_second: 1, burst_capacity: 2 },
      },
      { api_keys: { keys }, bypass_keys: ["sk-sekret-slow"] },
    );
    expect((await fire(gateway, 40, () => bearer("sk-sekret-slow"))).refused).toBe(0);
    expectExactly(await fire(gateway, 20, () => bearer("sk-sekret-plain")), 2, 1);
  });

  test("a refused request takes nothing from any limit", async () => {
    await using gateway = await start(
      { per_client: { requests_per_second: 1, burst_capacity: 10 } },
      { api_keys: { keys: [{ key: "sk-sekret-slow", rate_limit: 1 }] } },
    );
    await fire(gateway, 100, () => bearer("sk-sekret-slow"));
    expect((await fire(gateway, 20)).admitted).toBeGreaterThanOrEqual(9);
  });
});

test("global holds for all clients together", async () => {
  await using gateway = await start(
    { global: { requests_per_second: 1, burst_capacity: 30 } },
    { server: { trusted_proxies: ["127.0.0.1"] } },
  );
  expectExactly(await fire(gateway, 200, (index) => ({ "X-Forwarded-For": `198.51.100.${index}` })), 30, 1);
});

describe("per backend", () => {
  const limits = { per_backend: { requests_per_second: 1, burst_capacity: 10 } };

  test("a full backend passes the request on to another; when all are full it is 429", async () => {
    await using gateway = await start(limits);
    const count = await fire(gateway, 100, () => ({}), "both");
    expectExactly(count, 20, 2);
    for (const { requests } of [backend, other]) expect(requests.length).toBeGreaterThanOrEqual(10);
    expect(backend.requests.length + other.requests.length).toBe(count.admitted);
    await fire(gateway, 10, () => ({}), "both");
    const response = await gateway.chat({ model: "both" });
    if (response.status === 429) {
      const error = await expectError(response, 429);
      expect(error).toMatchObject({
        type: "rate_limit_exceeded",
        details: { limit: 10, window: "10s", retry_after: 1 },
      });
      expect(response.headers.get("x-ratelimit-limit")).toBe("10");
      expect(response.headers.get("x-ratelimit-remaining")).toBe("0");
      expect(response.headers.get("retry-after")).toBe("1");
    } else {
      await response.text();
    }
    await gateway.waitUntilIdle();
    for (const { circuit } of await gateway.backends()) expect(circuit).toBe("closed");
  });

  test("only one backend is full: the model of the other goes on", async () => {
    await using gateway = await start(limits);
    expectExactly(await fire(gateway, 40), 10, 1);
    expect((await fire(gateway, 10, () => ({}), "both")).admitted).toBeGreaterThanOrEqual(10);
    expect(other.requests.length).toBeGreaterThanOrEqual(9);
  });
});

test("switched off, nothing is limited and no header speaks of limits", async () => {
  await using gateway = await start({ global: { requests_per_second: 1, burst_capacity: 1 } }, { enabled: false });
  expect((await fire(gateway, 100)).refused).toBe(0);
  const response = await gateway.chat();
  await response.text();
  expect([...response.headers.keys()].filter((name) => name.startsWith("x-ratelimit"))).toEqual([]);
});

test("a thousand strangers at once each have their own limit", async () => {
  await using gateway = await start(
    { per_client: { requests_per_second: 1, burst_capacity: 1 } },
    { server: { trusted_proxies: ["127.0.0.1"] } },
  );
  const address = (index: number) => ({ "X-Forwarded-For": `10.${(index >> 8) & 255}.${index & 255}.1` });
  expect((await fire(gateway, 1_000, address)).refused).toBe(0);
});
