// GET /admin/events: what happens, told as it happens, to those who may know it and as long as they may.

import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import { EventFollower } from "../support/event-follower.ts";
import { expectError } from "../support/expect-error.ts";
import { chat, failure } from "../support/openai-answers.ts";
import { RawConnection } from "../support/raw-http.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const TOKEN = "sekret-token";
const bearer = (token = TOKEN) => ({ Authorization: `Bearer ${token}` });
const config = { backends: [{ name: "a", type: "demo", models: ["m"] }] };

test("tells of requests, health, circuits and configurations", async () => {
  const backend = bed.backend({ answer: chat("x") });
  const config: ConfigDocument = {
    backends: [{ name: "gpu-1", type: "vllm", url: backend.url, models: ["m"] }],
    retry: { max_attempts: 1 },
    circuit_breaker: { failure_threshold: 2 },
    health_checks: { interval: "200ms", unhealthy_threshold: 1 },
  };
  const gateway = await bed.gateway({ config });
  const admin = new AdminClient(gateway);
  const follower = await EventFollower.open(gateway);
  expect(follower.response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  expect(follower.response.headers.get("cache-control")).toBe("no-store");
  expect(follower.text).toStartWith("retry: 2000\n: ");

  const answer = await gateway.chat({}, { headers: { "X-Request-ID": "mine" } });
  await answer.text();
  const { data } = await follower.next("a request", ({ event }) => event === "request");
  expect(data).toMatchObject({
    total: 1,
    failed: 0,
    refused: 0,
    client_left: 0,
    omitted: 0,
    prompt_tokens: 3,
    completion_tokens: 2,
    requests: [{ id: answer.headers.get("x-signalbox-request-id"), request_id: "mine", model: "m", status: 200 }],
  });
  // The same as the list says.
  expect((await admin.get("/admin/requests")).requests).toEqual(data.requests);

  backend.answer = failure(503);
  for (let count = 0; count < 2; count++) await (await gateway.chat()).text();
  expect((await follower.next("the circuit", ({ event }) => event === "circuit")).data).toMatchObject({
    backend: "gpu-1",
    from: "closed",
    to: "open",
  });
  await follower.next("the failures", ({ event, data }) => event === "request" && (data.failed as number) > 0);

  await admin.ok("PATCH", "/admin/config/logging", { level: "debug" });
  expect((await follower.next("the configuration", ({ event }) => event === "config")).data).toMatchObject({
    version: 2,
    previous_version: 1,
    sections: ["logging"],
    replaced: [],
  });
  gateway.writeConfig({ ...config, logging: { level: "warn" } });
  const isEdit = ({ event, data }: { event: string; data: Record<string, unknown> }) =>
    event === "config" && data.version === 3;
  expect((await follower.next("the edit of the file", isEdit)).data).toMatchObject({ replaced: ["logging.level"] });

  backend.stop();
  const down = await follower.next("its health", ({ event }) => event === "health");
  expect(down.data).toMatchObject({ backend: "gpu-1", from: "ready", reason: expect.any(String) });
  const ids = follower.events.map(({ id }) => id);
  expect(ids).toEqual(ids.map((_, index) => index + 1));
  follower.leave();
});

test("under load, requests are told together: every one is counted, and a few are named, failures first", async () => {
  const backend = bed.backend({ answer: chat("x") });
  const gateway = await bed.gateway({
    config: {
      backends: [{ name: "a", type: "vllm", url: backend.url, models: ["m"] }],
      circuit_breaker: { enabled: false },
      retry: { max_attempts: 1 },
    },
  });
  const [one, two] = [await EventFollower.open(gateway), await EventFollower.open(gateway)];
  const ask = async (body: Record<string, unknown>) => await (await gateway.chat(body)).text();
  const asked = Array.from({ length: 100 }, (_, index) => ask({ model: index % 20 === 0 ? "unknown" : "m" }));
  await Promise.all(asked);
  const batches = () => one.events.filter(({ event }) => event === "request").map(({ data }) => data);
  const sum = (member: string) => batches().reduce((total, data) => total + (data[member] as number), 0);
  await waitFor("all are counted", () => sum("total") === 100);
  expect(sum("refused")).toBe(5);
  expect(batches().length).toBeLessThan(50);
  let omitted = 0;
  for (const { requests, total, refused, omitted: left } of batches() as Record<string, never>[]) {
    const rows = requests as unknown as { outcome: string }[];
    expect(rows.length).toBe(Math.min(total as unknown as number, 10));
    expect(rows.filter(({ outcome }) => outcome === "refused").length).toBe(refused as unknown as number);
    omitted += left as unknown as number;
  }
  expect(omitted).toBeGreaterThan(0);
  // Everybody is told the same.
  expect(two.events).toEqual(one.events);
  for (const follower of [one, two]) follower.leave();
});

test("there are 256 listeners at most; one that leaves makes room, and HEAD takes none", async () => {
  const gateway = await bed.gateway({ config });
  for (let count = 0; count < 5; count++) {
    const head = await gateway.fetch("/admin/events", { method: "HEAD" });
    expect(head.headers.get("content-type")).toContain("text/event-stream");
  }
  // By sockets: a client of the runtime has no more than 256 requests under way.
  const port = Number(new URL(gateway.url).port);
  const followers = await Promise.all(Array.from({ length: 256 }, () => RawConnection.open(port)));
  for (const follower of followers) follower.write(`GET /admin/events HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  const hasBegun = ({ received }: RawConnection) => received.includes("events of Signalbox");
  await waitFor("all of them listen", () => followers.every(hasBegun));
  const refused = await gateway.fetch("/admin/events");
  expect(refused.headers.get("retry-after")).toBe("10");
  expect(await expectError(refused, 503)).toMatchObject({
    code: "events_unavailable",
    message: expect.stringContaining("256 listeners"),
  });
  followers[0]?.close();
  const late = await waitFor("there is room", async () => {
    const follower = await EventFollower.open(gateway);
    return follower.response.status === 200 && follower;
  });
  await (await gateway.chat()).text();
  await late.next("the request", ({ event }) => event === "request");
  await waitFor("all of them hear of it", () =>
    followers.slice(1).every(({ received }) => received.includes("event: request")),
  );
  late.leave();
  for (const follower of followers) follower.close();
});

test("a reader that does not read is dropped, and others hear on", async () => {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-events-"));
  const socketPath = join(folder, "gateway.sock");
  const gateway = await bed.gateway({
    config: { ...config, server: { bind_address: ["127.0.0.1:0", `unix:${socketPath}`] } },
  });
  const quick = await EventFollower.open(gateway);
  // The kernel keeps less for a unix socket than for TCP: there it is full after a few hundred events.
  const slow = await RawConnection.open(socketPath);
  slow.write("GET /admin/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await waitFor("it listens", () => slow.received.includes("events of Signalbox"));
  slow.pause();
  const isDropped = () => gateway.printed.stderr.includes("fell behind and was dropped");
  // Names that are long as JSON make long events.
  let asked = 0;
  const ask = async () => {
    asked++;
    expect((await gateway.chat({ model: "\u0001".repeat(256) })).status).toBe(404);
  };
  await waitFor(
    "it is dropped",
    async () => {
      await Promise.all(Array.from({ length: 10 }, ask));
      return isDropped();
    },
    { timeoutMs: 60_000, intervalMs: 250, explain: () => `${quick.text.length} bytes were told` },
  );
  expect(slow.isClosed).toBe(false); // it does not read even that
  slow.resume();
  await waitFor("its connection is closed", () => slow.isClosed);
  expect(slow.received.length).toBeLessThan(quick.text.length);
  await ask();
  const totals = () => quick.events.flatMap(({ event, data }) => (event === "request" ? [data.total as number] : []));
  await waitFor("the other one has heard of all", () => totals().reduce((sum, total) => sum + total, 0) === asked);
  quick.leave();
  rmSync(folder, { recursive: true });
});

describe("the stream ends with the sign-in", () => {
  const auth = { method: "bearer_token" as const, token: TOKEN };
  const start = () => bed.gateway({ config: { ...config, admin: { auth } }, awaitHealth: false });

  test("when the credentials are changed, whoever has done it", async () => {
    const gateway = await start();
    await expectError(await gateway.fetch("/admin/events"), 401);
    const follower = await EventFollower.open(gateway, bearer());
    const admin = new AdminClient(gateway, bearer());
    await admin.ok("PATCH", "/admin/config/retry", { max_attempts: 4 });
    await follower.next("the configuration", ({ event }) => event === "config");
    expect(follower.isOver).toBe(false);
    await admin.ok("PATCH", "/admin/config/admin", { auth: { token: "sekret-second" } });
    await waitFor("the stream ends", () => follower.isOver);
    await expectError(await gateway.fetch("/admin/events", { headers: bearer() }), 401);
  });

  test("when the browser signs out", async () => {
    const gateway = await start();
    const body = JSON.stringify({ token: TOKEN });
    const signedIn = await gateway.fetch("/admin/session", { method: "POST", body });
    const Cookie = signedIn.headers.getSetCookie()[0]?.split(";")[0] as string;
    const page = { Cookie, Origin: gateway.url };
    const [mine, other] = [await EventFollower.open(gateway, page), await EventFollower.open(gateway, bearer())];
    await gateway.fetch("/admin/session", { method: "DELETE", headers: page });
    await waitFor("the stream ends", () => mine.isOver);
    expect(other.isOver).toBe(false);
    other.leave();
  });
});

test("a shutdown ends every stream at once, and does not wait for listeners", async () => {
  const gateway = await bed.gateway({ config: { ...config, server: { shutdown_timeout: "30s" } } });
  const followers = await Promise.all(Array.from({ length: 5 }, () => EventFollower.open(gateway)));
  const beganMs = performance.now();
  await gateway.stop();
  expect(performance.now() - beganMs).toBeLessThan(10_000);
  await waitFor("all have ended", () => followers.every(({ isOver }) => isOver));
});
