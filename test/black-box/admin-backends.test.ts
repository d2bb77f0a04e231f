// GET /admin/backends: the fields of the contract, true numbers, no secrets, this machine only.

import { expect, test } from "bun:test";
import { networkInterfaces } from "node:os";
import { expectError } from "../support/expect-error.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { chat, failure } from "../support/openai-answers.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

test("every backend has the fields of the contract, and the wrapper sums them up", async () => {
  const good = bed.backend();
  const gone = bed.backend();
  gone.stop();
  await using gateway = await startGateway({
    config: {
      backends: [
        { name: "good", type: "vllm", url: good.url, models: ["m", "n"], weight: 7 },
        { name: "gone", url: gone.url, models: ["m"], api_key: "sk-sekret-admin" },
      ],
    },
  });
  await (await gateway.chat()).text();
  good.reset(failure(500));
  await (await gateway.chat()).text();
  const response = await gateway.fetch("/admin/backends");
  expect(response.status).toBe(200);
  const text = await response.text();
  expect(text).not.toContain("sekret");
  const list = JSON.parse(text) as Record<string, unknown> & { backends: Record<string, unknown>[] };
  expect(list).toMatchObject({
    healthy_count: 1,
    total_count: 2,
    summary: { total_models: 2, total_requests: 2, total_failures: 1, average_response_time_ms: expect.any(Number) },
  });
  const [first, second] = list.backends;
  expect(first).toMatchObject({
    name: "good",
    url: good.url,
    is_healthy: true,
    state: "ready",
    consecutive_failures: 0,
    consecutive_successes: expect.any(Number),
    last_check: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    last_error: null,
    response_time_ms: expect.any(Number),
    models: ["m", "n"],
    weight: 7,
    total_requests: 2,
    failed_requests: 1,
    in_flight: 0,
  });
  expect(second).toMatchObject({
    name: "gone",
    is_healthy: false,
    state: "down",
    last_error: expect.any(String),
    total_requests: 0,
  });
});

test("requests on their way are counted, and no longer when they are done", async () => {
  const gate = Promise.withResolvers<void>();
  const backend = bed.backend({ answer: { ...chat("x"), headersAfter: gate.promise } });
  await using gateway = await startGateway({ config: { backends: [{ name: "a", url: backend.url, models: ["m"] }] } });
  const pending = [gateway.chat(), gateway.chat(), gateway.chat()];
  await waitFor("three on their way", async () => (await gateway.backend("a")).in_flight === 3);
  gate.resolve();
  await Promise.all(pending);
  await gateway.waitUntilIdle();
  expect((await gateway.backend("a")).total_requests).toBe(3);
});

test("credentials inside an address are not shown", async () => {
  const backend = bed.backend();
  await using gateway = await startGateway({
    config: { backends: [{ name: "a", url: `http://user:sekret@127.0.0.1:${backend.port}`, models: ["m"] }] },
  });
  const text = await (await gateway.fetch("/admin/backends")).text();
  expect(text).not.toContain("sekret");
  expect(text).toContain(String(backend.port));
});

test("a peer from elsewhere is 403", async () => {
  const external = Object.values(networkInterfaces())
    .flat()
    .find((address) => address?.family === "IPv4" && !address.internal)?.address;
  if (external === undefined) return; // this machine has no other address to call itself by
  await using gateway = await startGatewayProcess({
    config: { server: { bind_address: ["127.0.0.1:0", `${external}:0`] }, backends: [{ name: "a", type: "demo" }] },
  });
  const url = new RegExp(`http://${external.replaceAll(".", "\\.")}:\\d+`).exec(gateway.printed.stdout)?.[0];
  if (url === undefined) throw new Error(`the banner does not name the second address:\n${gateway.printed.stdout}`);
  expect((await fetch(`${url}/health`)).status).toBe(200);
  await expectError(await fetch(`${url}/admin/backends`), 403);
  // A header does not make a peer local.
  const forged = { headers: { "X-Forwarded-For": "127.0.0.1", Host: "127.0.0.1" } };
  await expectError(await fetch(`${url}/admin/backends`, forged), 403);
});

test("other methods are 405, unknown admin paths 404", async () => {
  await using gateway = await startGateway({ config: { backends: [{ name: "a", type: "demo" }] } });
  const response = await gateway.fetch("/admin/backends", { method: "DELETE" });
  await expectError(response, 405);
  expect(response.headers.get("allow")).toContain("GET");
  await expectError(await gateway.fetch("/admin/unknown"), 404);
});
