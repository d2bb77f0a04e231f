// What becomes of the targets of a route: numbers side by side, a target that is worse and gets no more requests, and mirrors.

import { describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import { EventFollower } from "../support/event-follower.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatStream, failure } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

type Route = NonNullable<ConfigDocument["routes"]>[number];

const ROUTE: Route = {
  name: "smart",
  sticky: "none",
  targets: [
    { model: "big", weight: 50 },
    { model: "small", weight: 50, name: "canary" },
  ],
};

async function start(route: Route, more: Partial<ConfigDocument> = {}) {
  const main = bed.backend({ answer: chat("main") });
  const trial = bed.backend({ answer: chat("trial") });
  const gateway = await bed.gateway({
    config: {
      admin: { auth: { method: "none" } },
      retry: { max_attempts: 1 },
      health_checks: { enabled: false },
      circuit_breaker: { enabled: false },
      backends: [
        { name: "main", url: main.url, models: ["big"] },
        { name: "trial", url: trial.url, models: ["small", "new"] },
      ],
      routes: [route],
      ...more,
    },
  });
  return { main, trial, gateway, admin: new AdminClient(gateway) };
}

async function ask(gateway: Gateway, times: number, more: Record<string, unknown> = {}): Promise<void> {
  for (let index = 0; index < times; index++) await (await gateway.chat({ model: "smart", ...more })).text();
}

interface Arm {
  name: string;
  weight: number | null;
  requests: number;
  errors: number;
  is_main: boolean;
  is_mirror: boolean;
  error_share: { value: number };
  first_token_ms: { count: number } | null;
  compared: { error_share: { value: number; low: number; high: number } } | null;
}

const armsOf = async (admin: AdminClient) => (await admin.get("/admin/routes/smart")).arms as Arm[];

test("targets stand side by side, with how certain their difference is", async () => {
  const { gateway, trial, admin } = await start(ROUTE);
  trial.reset(failure(500));
  await ask(gateway, 20);
  const [main, canary] = (await armsOf(admin)) as [Arm, Arm];
  expect(main).toMatchObject({ name: "big", is_main: true, requests: 20, errors: 0, compared: null });
  expect(main.first_token_ms?.count).toBe(10);
  expect(canary).toMatchObject({ name: "canary", requests: 10, errors: 10, error_share: { value: 1 } });
  const { value, low, high } = canary.compared!.error_share;
  expect([value, low > 0.5, high >= value]).toEqual([1, true, true]);
  const metrics = await (await gateway.fetch("/metrics")).text();
  expect(metrics).toContain('signalbox_route_requests_total{route="smart",arm="canary",outcome="failed"} 10');
  expect(metrics).toContain('signalbox_route_requests_total{route="smart",arm="big",outcome="succeeded"} 20');
});

describe("rollback", () => {
  const trialed: Route = { ...ROUTE, rollback: { metric: "error_rate", min_requests: 10, window: "10m" } };

  test("takes the requests of a target that fails, as a version of the configuration", async () => {
    const { gateway, trial, admin } = await start(trialed);
    const events = await EventFollower.open(gateway);
    trial.reset(failure(500));
    const before = await admin.version();
    await ask(gateway, 24);
    await waitFor("the canary has weight 0", async () => (await armsOf(admin))[1]?.weight === 0);
    expect(await admin.version()).toBe(before + 1);
    const { history } = (await admin.get("/admin/config/history")) as {
      history: { source: string; description: string }[];
    };
    expect(history[0]).toMatchObject({ source: "rollback" });
    expect(history[0]?.description).toContain("canary of the route smart has weight 0");
    await events.next("the event", ({ event, data }) => event === "route" && data.arm === "canary");
    events.leave();
    const asked = trial.requests.length;
    await ask(gateway, 10);
    expect(trial.requests).toHaveLength(asked);
    // An operator tries it again: it is judged by its new requests alone.
    trial.reset(chat("trial"));
    await admin.ok("PUT", "/admin/routes/smart", { targets: trialed.targets });
    await ask(gateway, 30);
    expect((await armsOf(admin))[1]?.weight).toBe(50);
  });

  test("finds a target that is written as a variable of the environment", async () => {
    const main = bed.backend({ answer: chat("main") });
    const trial = bed.backend({ answer: failure(500) });
    const gateway = await bed.gateway({
      environment: { TRIAL_MODEL: "small" },
      config: {
        admin: { auth: { method: "none" } },
        retry: { max_attempts: 1 },
        health_checks: { enabled: false },
        circuit_breaker: { enabled: false },
        backends: [
          { name: "main", url: main.url, models: ["big"] },
          { name: "trial", url: trial.url, models: ["small"] },
        ],
        routes: [
          {
            ...trialed,
            targets: [{ model: "big" }, { model: "${TRIAL_MODEL}" }],
            // There is no other one beside it here: it keeps its weight.
            when: [{ has: "image", targets: [{ model: "${TRIAL_MODEL}" }] }],
          },
        ],
      },
    });
    const admin = new AdminClient(gateway);
    await ask(gateway, 24);
    await waitFor("the trial has weight 0", async () => (await armsOf(admin))[1]?.weight === 0);
    const { targets, when } = (await admin.get("/admin/routes/smart")) as Record<string, unknown>;
    expect({ targets, when }).toMatchObject({
      targets: [{ weight: 1 }, { model: "small", weight: 0 }],
      when: [{ targets: [{ model: "small", weight: 1 }] }],
    });
    // With its weight back it is judged afresh, though it had one in the other list all the time.
    trial.reset(chat("trial"));
    await admin.ok("PUT", "/admin/routes/smart", { targets: [{ model: "big" }, { model: "small" }] });
    await ask(gateway, 30);
    expect((await armsOf(admin))[1]?.weight).toBe(1);
  });

  test("leaves a target that is as good", async () => {
    const { gateway, admin } = await start(trialed);
    const before = await admin.version();
    await ask(gateway, 60);
    expect(await admin.version()).toBe(before);
  });
});

describe("a mirror", () => {
  const mirrored: Route = { ...ROUTE, targets: [{ model: "big" }], mirror: { model: "new", share: 1 } };

  test("gets copies, whose answers no client sees and whose numbers are kept", async () => {
    const { gateway, trial, admin } = await start(mirrored);
    const response = await gateway.chat({ model: "smart" });
    expect(await response.text()).toContain("main");
    await waitFor("the copy has come", () => trial.requests.length === 1);
    expect(trial.requests[0]?.json()).toMatchObject({ model: "new" });
    await waitFor("it is counted", async () => (await armsOf(admin))[1]?.requests === 1);
    expect((await armsOf(admin))[1]).toMatchObject({ name: "mirror:new", is_mirror: true, errors: 0 });
    const { requests } = (await admin.get("/admin/requests?arm=mirror:new")) as { requests: { request_id: string }[] };
    expect(requests.map(({ request_id }) => request_id)).toEqual([response.headers.get("x-request-id") as string]);
  });

  test("that hangs or fails costs the client nothing", async () => {
    const { gateway, main, trial, admin } = await start(mirrored);
    trial.reset({ hang: true });
    await ask(gateway, 5);
    await waitFor("the copies hang", () => trial.requests.length === 5);
    trial.reset(failure(500));
    main.reset(chatStream(["a"]));
    await ask(gateway, 2, { stream: true });
    await waitFor("failures are counted", async () => (await armsOf(admin))[1]?.errors === 2);
    expect((await armsOf(admin))[0]).toMatchObject({ requests: 7, errors: 0 });
  });

  test("gets no copy of a request that the cache answers", async () => {
    const { gateway, trial } = await start(mirrored, { response_cache: { enabled: true } });
    await ask(gateway, 3, { temperature: 0 });
    await waitFor("the first is copied", () => trial.requests.length === 1);
    await ask(gateway, 3, { temperature: 0 });
    expect(trial.requests).toHaveLength(1);
  });
});

test("changes are checked like the file", async () => {
  const { admin } = await start(ROUTE);
  const wrong = { name: "x", targets: [{ model: "m", backend: "absent" }] };
  expect((await admin.refused(400, "POST", "/admin/routes", wrong)).fields).toEqual(["targets[0].backend"]);
  const circle = { targets: [{ model: "other" }] };
  await admin.ok("POST", "/admin/routes", { name: "other", targets: [{ model: "smart" }] });
  expect((await admin.refused(400, "PUT", "/admin/routes/smart", circle)).message).toContain("circle");
  await admin.ok("DELETE", "/admin/routes/other");
  expect((await admin.get("/admin/routes")).total).toBe(1);
});
