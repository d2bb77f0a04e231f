import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { expectError } from "../../test/support/expect-error.ts";
import { type ServedRoutes, serveRoutes, settingsOf } from "../../test/support/serve-routes.ts";
import { INSTRUMENTS } from "../metrics/instruments.ts";
import { EXPOSITION_TYPE, MetricsRegistry } from "../metrics/registry.ts";
import { metricsRoutes } from "./metrics.ts";

const registry = new MetricsRegistry();
registry.counter(INSTRUMENTS.retries, "m", "b").value = 3;

let written: object = {};
let served: ServedRoutes;
let unmeasured: ServedRoutes;
beforeAll(async () => {
  const settings = () => settingsOf({ metrics: written });
  served = await serveRoutes(metricsRoutes({ registry, settings }));
  unmeasured = await serveRoutes(metricsRoutes({ registry: undefined, settings }));
});
afterAll(() => Promise.all([served.stop(), unmeasured.stop()]));
beforeEach(() => {
  written = {};
});

const basic = (text: string) => ({ headers: { Authorization: `Basic ${Buffer.from(text).toString("base64")}` } });

describe("GET /metrics", () => {
  test("answers in the text format of Prometheus", async () => {
    const response = await served.fetch("/metrics");
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe(EXPOSITION_TYPE);
    expect(response.headers.get("x-request-id")).not.toBeNull();
    const text = await response.text();
    expect(text).toContain('\nsignalbox_retries_total{model="m",backend="b"} 3\n');
    expect(text.endsWith("\n")).toBe(true);
  });

  test("takes HEAD, and nothing else", async () => {
    expect((await served.fetch("/metrics", { method: "HEAD" })).status).toBe(200);
    const response = await served.fetch("/metrics", { method: "POST" });
    expect(response.headers.get("allow")).toBe("GET, HEAD");
    await expectError(response, 405);
  });

  test("is 404 while switched off, whoever asks", async () => {
    written = { enabled: false, auth: { enabled: true, username: "u", password: "sekret" } };
    expect((await expectError(await served.fetch("/metrics"), 404)).message).toContain("metrics.enabled");
    written = {};
    await expectError(await unmeasured.fetch("/metrics"), 404);
  });
});

describe("credentials of its own", () => {
  test.each([
    ["none", {}],
    ["an empty header", { headers: { Authorization: "" } }],
    ["another scheme", { headers: { Authorization: "Bearer sekret" } }],
    ["no base64", { headers: { Authorization: "Basic ???" } }],
    ["another user", basic("v:sekret:1")],
    ["another password", basic("u:sekret:2")],
    ["half a password", basic("u:sekret")],
    ["more than the password", basic("u:sekret:1x")],
    ["the user alone", basic("u")],
    ["nothing between", basic("usekret:1")],
  ])("%s: 401 with a challenge", async (_, init) => {
    written = { auth: { enabled: true, username: "u", password: "sekret:1" } };
    const response = await served.fetch("/metrics", init);
    expect(response.headers.get("www-authenticate")).toStartWith("Basic ");
    const error = await expectError(response, 401);
    expect(error.type).toBe("authentication_error");
    expect(error.message).not.toContain("sekret");
  });

  test("the right ones, with a password of any letters", async () => {
    for (const password of ["sekret:1", "sekret \u00fc\u{1f511}"]) {
      written = { auth: { enabled: true, username: "u", password } };
      expect((await served.fetch("/metrics", basic(`u:${password}`))).status).toBe(200);
    }
  });

  test("without configured credentials nobody has the right ones", async () => {
    written = { auth: { enabled: true } };
    await expectError(await served.fetch("/metrics", basic(":")), 401);
    await expectError(await served.fetch("/metrics", basic("undefined:undefined")), 401);
  });

  test("a change holds for the next request", async () => {
    expect((await served.fetch("/metrics")).status).toBe(200);
    written = { auth: { enabled: true, username: "u", password: "sekret" } };
    await expectError(await served.fetch("/metrics"), 401);
  });
});
