// Notifications: what receivers get, how it is signed, repeated and bounded, and which addresses are refused
// (docs/notifications.md).

import { afterAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { chat, failure } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();
const receivers: Receiver[] = [];
afterAll(() => {
  for (const receiver of receivers) receiver.stop();
});

interface Received {
  headers: Headers;
  body: string;
}
interface Receiver {
  url: string;
  received: Received[];
  stop(): void;
}
type Targets = NonNullable<ConfigDocument["notifications"]>;

function receiverOf(
  answer: (request: Received, count: number) => Response | Promise<Response> = () => new Response("ok"),
): Receiver {
  const received: Received[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 60,
    async fetch(request) {
      const told = { headers: request.headers, body: await request.text() };
      received.push(told);
      return answer(told, received.length);
    },
  });
  const receiver = {
    url: `http://127.0.0.1:${server.port}/hook/sekret-path`,
    received,
    stop: () => void server.stop(true),
  };
  receivers.push(receiver);
  return receiver;
}

const SECRET = "sekret-of-the-webhook";

function configOf(notifications: Targets, more: ConfigDocument = {}): ConfigDocument {
  return {
    backends: [{ name: "one", url: backend.url, models: ["m"] }],
    health_checks: { enabled: false },
    ...more,
    notifications,
  };
}

const start = (targets: Targets, more?: ConfigDocument) => bed.gateway({ config: configOf(targets, more) });

const change = { method: "PATCH", body: JSON.stringify({ config: { max_attempts: 2 } }) };

async function rowOf(gateway: Awaited<ReturnType<typeof start>>) {
  const { notifications } = (await (await gateway.fetch("/admin/notifications")).json()) as {
    notifications: Record<string, unknown>[];
  };
  return notifications[0] as Record<string, unknown>;
}

describe("a webhook", () => {
  test("gets the event with a signature of Standard Webhooks", async () => {
    const receiver = receiverOf();
    const gateway = await start([
      {
        name: "ops",
        url: receiver.url,
        events: ["config_changed"],
        secret: SECRET,
        allow_private: true,
        headers: { "X-Team": "sekret-a" },
      },
    ]);
    expect((await gateway.fetch("/admin/config/retry", change)).status).toBe(200);
    await waitFor("the event", () => receiver.received.length === 1);
    const { headers, body } = receiver.received[0] as Received;
    const told = JSON.parse(body);
    expect(told).toMatchObject({
      type: "config_changed",
      data: { version: 2, previous_version: 1, sections: ["retry"] },
    });
    expect(told.id).toBe(headers.get("webhook-id"));
    expect(Number.isNaN(Date.parse(told.time))).toBe(false);
    expect(headers.get("x-team")).toBe("sekret-a");
    const signed = `${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.${body}`;
    expect(headers.get("webhook-signature")).toBe(`v1,${createHmac("sha256", SECRET).update(signed).digest("base64")}`);
    await waitFor("the delivery", async () => (await rowOf(gateway)).delivered === 1);
    expect(await (await gateway.fetch("/metrics")).text()).toContain(
      'signalbox_notifications_total{target="ops",outcome="delivered"} 1',
    );
    expect(await (await gateway.fetch("/admin/config/notifications")).text()).not.toContain("sekret");
  });

  test("that answers 500 gets the event again, with the same id, and counts it once", async () => {
    const receiver = receiverOf((_, count) => new Response("later", { status: count === 1 ? 500 : 200 }));
    const gateway = await start([{ name: "ops", url: receiver.url, events: ["config_changed"], allow_private: true }]);
    await gateway.fetch("/admin/config/retry", change);
    await waitFor("the delivery", async () => (await rowOf(gateway)).delivered === 1);
    expect(receiver.received).toHaveLength(2);
    const [first, second] = receiver.received.map(({ headers }) => headers.get("webhook-id"));
    expect(second).toBe(first as string);
    expect(await rowOf(gateway)).toMatchObject({
      failed: 0,
      waiting: 0,
      last_error: { message: "the receiver answered with HTTP 500" },
    });
  });

  test("of Slack gets a text", async () => {
    backend.answer = chat("x", { usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } });
    const receiver = receiverOf();
    const gateway = await start(
      [{ name: "slack", url: receiver.url, events: ["budget"], format: "slack", allow_private: true }],
      { budgets: { rules: [{ id: "requests", limit: { requests: 1 }, window: "month", warn_at: [] }] } },
    );
    await (await gateway.chat({ model: "m" })).text();
    await waitFor("the event", () => receiver.received.length === 1);
    const { text } = JSON.parse((receiver.received[0] as Received).body);
    expect(text).toContain("The budget requests is spent to 100 %: 1 of 1 (requests).");
  });

  test("hears of a backend that is down and ready again, and of a refused edit of the file", async () => {
    const flaky = bed.backend();
    const receiver = receiverOf();
    const gateway = await start(
      [
        {
          name: "ops",
          url: receiver.url,
          events: ["backend_down", "backend_up", "config_refused"],
          allow_private: true,
        },
      ],
      {
        backends: [{ name: "flaky", url: flaky.url, models: ["m"] }],
        health_checks: { interval: "100ms", unhealthy_threshold: 1, healthy_threshold: 1 },
      },
    );
    const types = () => receiver.received.map(({ body }) => JSON.parse(body).type);
    const healthy = flaky.probeAnswer;
    flaky.probeAnswer = { status: 500, body: "{}" };
    await waitFor("backend_down", () => types().includes("backend_down"));
    flaky.probeAnswer = healthy;
    await waitFor("backend_up", () => types().includes("backend_up"));
    writeFileSync(gateway.configPath, "retry: {max_attempts: -1}\n");
    await waitFor("config_refused", () => types().includes("config_refused"));
  });

  test("hears of a circuit that opens, and of one that closes", async () => {
    const failing = bed.backend({ answer: failure(503, "no memory") });
    const receiver = receiverOf();
    const gateway = await start(
      [{ name: "ops", url: receiver.url, events: ["circuit_open", "circuit_closed"], allow_private: true }],
      {
        backends: [{ name: "failing", url: failing.url, models: ["m"] }],
        circuit_breaker: { enabled: true, failure_threshold: 1, timeout: "1h" },
        retry: { max_attempts: 1 },
      },
    );
    expect((await gateway.chat({ model: "m" })).status).toBe(503);
    await waitFor("circuit_open", () => receiver.received.length === 1);
    await gateway.fetch("/admin/backends/failing/circuit/reset", { method: "POST" });
    await waitFor("circuit_closed", () => receiver.received.length === 2);
    expect(receiver.received.map(({ body }) => JSON.parse(body))).toMatchObject([
      { type: "circuit_open", data: { backend: "failing", from: "closed", to: "open" } },
      { type: "circuit_closed", data: { backend: "failing", from: "open", to: "closed" } },
    ]);
  });

  test("hears of storage that cannot be used", async () => {
    const receiver = receiverOf();
    const gateway = await bed.gateway({
      files: { "data/blocked": "a file where a folder would be" },
      config: configOf([{ name: "ops", url: receiver.url, events: ["storage_problem"], allow_private: true }], {
        admin: { audit: { path: "./data/blocked/audit.db" } },
      }),
    });
    await gateway.fetch("/admin/config/retry", change);
    await waitFor("storage_problem", () => receiver.received.length > 0);
    const told = JSON.parse((receiver.received[0] as Received).body);
    expect(told).toMatchObject({ type: "storage_problem" });
    expect(told.data.problem).toContain("blocked/audit.db");
  });

  test("with a secret in the form of Standard Webhooks gets a signature by its bytes", async () => {
    const bytes = Buffer.from("sekret-of-24-bytes-long!");
    const receiver = receiverOf();
    const gateway = await start([
      { name: "ops", url: receiver.url, secret: `whsec_${bytes.toString("base64")}`, allow_private: true },
    ]);
    expect(await (await gateway.fetch("/admin/notifications/ops/test", { method: "POST" })).json()).toMatchObject({
      delivered: true,
    });
    const { headers, body } = receiver.received[0] as Received;
    const signed = `${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.${body}`;
    expect(headers.get("webhook-signature")).toBe(`v1,${createHmac("sha256", bytes).update(signed).digest("base64")}`);
  });

  test("that asks for time with Retry-After gets it", async () => {
    const times: number[] = [];
    const receiver = receiverOf((_, count) => {
      times.push(performance.now());
      return count === 1 ? new Response("busy", { status: 429, headers: { "Retry-After": "3" } }) : new Response("ok");
    });
    const gateway = await start([{ name: "ops", url: receiver.url, events: ["config_changed"], allow_private: true }]);
    await gateway.fetch("/admin/config/retry", change);
    await waitFor("the delivery", async () => (await rowOf(gateway)).delivered === 1);
    expect(times).toHaveLength(2);
    expect((times[1] as number) - (times[0] as number)).toBeGreaterThanOrEqual(2_990);
  });

  test("gets one delivery of each event from a gateway with workers", async () => {
    const failing = bed.backend({ answer: failure(503, "no memory") });
    const receiver = receiverOf();
    const events = ["circuit_open" as const, "config_changed" as const];
    const gateway = await bed.process({
      config: configOf([{ name: "ops", url: receiver.url, events, allow_private: true }], {
        server: { workers: 2 },
        backends: [{ name: "failing", url: failing.url, models: ["m"] }],
        circuit_breaker: { enabled: true, failure_threshold: 1, timeout: "1h" },
        retry: { max_attempts: 1 },
      }),
    });
    await Promise.all(Array.from({ length: 12 }, async () => (await gateway.chat({ model: "m" })).text()));
    await gateway.fetch("/admin/config/retry", change);
    const types = () => receiver.received.map(({ body }) => JSON.parse(body).type).sort();
    await waitFor("both events", () => types().includes("circuit_open") && types().includes("config_changed"));
    // An event that comes later than a second copy of the others would.
    await gateway.fetch("/admin/notifications/ops/test", { method: "POST" });
    await waitFor("the test", () => types().includes("test"));
    expect(types()).toEqual(["circuit_open", "config_changed", "test"]);
  });

  test("that is slow delays no request, and no other receiver", async () => {
    const released = Promise.withResolvers<void>();
    const slow = receiverOf(async () => {
      await released.promise;
      return new Response("ok");
    });
    const quick = receiverOf();
    const gateway = await start([
      { name: "slow", url: slow.url, events: ["config_changed"], allow_private: true },
      { name: "quick", url: quick.url, events: ["config_changed"], allow_private: true },
    ]);
    await gateway.fetch("/admin/config/retry", change);
    await waitFor("both", () => slow.received.length === 1 && quick.received.length === 1);
    backend.answer = chat("x");
    expect((await gateway.chat({ model: "m" })).status).toBe(200);
    expect((await rowOf(gateway)).delivered).toBe(0);
    released.resolve();
    await waitFor("the delivery", async () => (await rowOf(gateway)).delivered === 1);
  });
});

describe("the fence", () => {
  test("refuses an inner address without allow_private, in words that help", async () => {
    const receiver = receiverOf();
    const gateway = await start([{ name: "ops", url: receiver.url }]);
    const told = await (await gateway.fetch("/admin/notifications/ops/test", { method: "POST" })).json();
    expect(told).toMatchObject({ delivered: false, status: null });
    expect((told as { error: string }).error).toContain("allow_private: true");
    expect(receiver.received).toEqual([]);
  });

  test("lets only the file open an inner address", async () => {
    const receiver = receiverOf();
    const gateway = await start([{ name: "ops", url: receiver.url, allow_private: true }]);
    const put = (target: object) =>
      gateway.fetch("/admin/config/notifications", { method: "PUT", body: JSON.stringify({ config: [target] }) });
    const moved = await put({ name: "ops", url: "http://127.0.0.1:9/other", allow_private: true });
    expect(moved.status).toBe(400);
    expect(await moved.text()).toContain("allow_private");
    expect((await put({ name: "ops", url: "********", allow_private: true, events: ["budget"] })).status).toBe(200);
  });

  test("does not follow a redirect", async () => {
    const inner = receiverOf();
    const receiver = receiverOf(() => new Response(null, { status: 307, headers: { Location: inner.url } }));
    const gateway = await start([{ name: "ops", url: receiver.url, allow_private: true }]);
    const told = await (await gateway.fetch("/admin/notifications/ops/test", { method: "POST" })).json();
    expect(told).toMatchObject({
      delivered: false,
      status: 307,
      error: "the receiver answered with HTTP 307, which is not followed",
    });
    expect(inner.received).toEqual([]);
  });
});

test("a test event says what the receiver answered, without the secrets that it sends back", async () => {
  const receiver = receiverOf(
    ({ body }) => new Response(`thanks for ${JSON.parse(body).type} at sekret-path ${receiver.url} ${SECRET}`),
  );
  const gateway = await start([
    { name: "ops", url: receiver.url, secret: SECRET, allow_private: true, events: ["budget"] },
  ]);
  const told = (await (await gateway.fetch("/admin/notifications/ops/test", { method: "POST" })).json()) as {
    answer: string;
  };
  expect(told).toMatchObject({ delivered: true, status: 200, error: null });
  expect(told.answer).toContain("thanks for test");
  expect(told.answer).not.toContain(SECRET);
  expect(told.answer).not.toContain("/hook/sekret-path");
  expect((await gateway.fetch("/admin/notifications/other/test", { method: "POST" })).status).toBe(404);
});

test("a key that ends soon is told", async () => {
  const receiver = receiverOf();
  const keys = [{ key: "sekret-of-a-key", id: "short", expires_at: new Date(Date.now() + 3_600_000).toISOString() }];
  await start([{ name: "ops", url: receiver.url, events: ["key_expiring"], allow_private: true }], {
    api_keys: { keys },
  });
  await waitFor("the event", () => receiver.received.length === 1);
  expect(JSON.parse((receiver.received[0] as Received).body).data).toMatchObject({ key: "short", within_days: 1 });
});

test("names, urls and headers that cannot be used are refused by their field", async () => {
  const gateway = await start([]);
  const refusedBy = async (target: object) => {
    const response = await gateway.fetch("/admin/config/notifications", {
      method: "PUT",
      body: JSON.stringify({ config: [target] }),
    });
    return `${response.status} ${await response.text()}`;
  };
  expect(await refusedBy({ name: "a", url: "ftp://x.example" })).toMatch(/^400 .*url/s);
  expect(await refusedBy({ name: "a", url: "http://user:pass@x.example" })).toMatch(/^400 .*without credentials/s);
  expect(await refusedBy({ name: "a", url: "https://x.example", headers: { Host: "y" } })).toMatch(/^400 .*headers/s);
  expect(await refusedBy({ name: "a", url: "https://x.example", events: [] })).toMatch(/^400 .*events/s);
});
