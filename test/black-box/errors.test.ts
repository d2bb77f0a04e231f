// /admin/errors, /admin/debug/error and /admin/requests: what went wrong, and what became of one request.

import { describe, expect, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import { expectError } from "../support/expect-error.ts";
import { chat, chatStream, failure } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

type Story = Record<string, unknown> & { steps: Record<string, unknown>[] };

async function start(more: object = {}) {
  const one = bed.backend({ answer: chat("one") });
  const two = bed.backend({ answer: chat("two") });
  const gateway = await bed.gateway({
    config: {
      backends: [
        { name: "one", type: "vllm", url: one.url, models: ["m", "only-one"] },
        { name: "two", type: "vllm", url: two.url, models: ["m", "other"] },
      ],
      retry: { max_attempts: 2, base_delay: "10ms", jitter: false },
      fallback: { enabled: true, fallback_chains: { "only-one": ["other"] } },
      ...more,
    },
  });
  return { one, two, gateway, admin: new AdminClient(gateway) };
}

async function storyOf(admin: AdminClient, response: Response): Promise<Story> {
  const id = response.headers.get("x-request-id") ?? "";
  await response.text();
  return await waitFor("the request is over", async () => {
    const story = await admin.get(`/admin/requests/${encodeURIComponent(id)}`);
    return story.finished === true && (story as Story);
  });
}

describe("errors", () => {
  test("a failed request is found with its attempts, by every filter, without secrets", async () => {
    const { one, two, gateway, admin } = await start({ fallback: { enabled: false } });
    const unauthorized = "Incorrect API key provided: sk-sekretsekret1234567890.";
    one.queue(failure(503), failure(401, unauthorized, { type: "no_such_key" }));
    two.queue(failure(503));
    const response = await gateway.chat();
    const id = response.headers.get("x-request-id") as string;
    await expectError(response, [502, 503]);

    const record = await admin.get(`/admin/errors/${id}`);
    const { type } = record;
    expect(record).toMatchObject({
      request_id: id,
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      status: response.status,
      type: expect.any(String),
      message: expect.any(String),
      model: "m",
      backend: expect.stringMatching(/^(one|two)$/),
    });
    expect(Object.keys(record)).toEqual([
      "id",
      "request_id",
      "timestamp",
      "status",
      "type",
      "code",
      "message",
      "model",
      "backend",
      "key_id",
      "user_id",
      "organization_id",
      "client",
      "ended_by",
      "attempts",
    ]);
    const attempts = record.attempts as { backend: string; failure: string }[];
    expect(attempts.map(({ backend }) => backend).sort()).toEqual(["one", "two"]);
    expect(attempts.map(({ failure: reason }) => reason)).toEqual(["status_503", "status_503"]);

    await (await gateway.chat({ model: "only-one" })).text(); // 401 of the backend, key quoted in its message
    const all = await admin.get("/admin/errors/recent");
    expect(all).toMatchObject({ errors: [{ model: "only-one" }, { request_id: id }], total: 2 });
    expect(await admin.get(`/admin/errors/recent?type=${type}&limit=1`)).toMatchObject({
      errors: [{ request_id: id }],
      total: 1,
    });
    expect(await admin.get("/admin/errors/recent?backend=two")).toMatchObject({
      errors: [{ request_id: id }],
      total: 1,
    });
    expect(await admin.get("/admin/errors/stats?window=1h")).toMatchObject({
      total: 2,
      by_type: { [type as string]: 1 },
      by_status: { [String(response.status)]: 1 },
      by_backend: { one: expect.any(Number) },
      window: "1h",
    });
    expect((await admin.refused(400, "GET", "/admin/errors/recent?limit=0")).param).toBe("limit");
    expect((await admin.refused(400, "GET", "/admin/errors/stats?window=5m")).param).toBe("window");
    await admin.refused(404, "GET", "/admin/errors/no-such-request");
  });

  test("an answer that succeeded is no error", async () => {
    const { one, gateway, admin } = await start();
    one.queue(failure(503));
    for (let each = 0; each < 4; each++) await (await gateway.chat()).text();
    expect(await admin.get("/admin/errors/recent")).toEqual({ errors: [], total: 0 });
  });

  test.each([
    ["timeout", 504],
    ["connection_error", 502],
    ["circuit_open", 503],
    ["status_429", 429],
  ])("a test error of type %s", async (type, status) => {
    const { gateway, admin } = await start();
    const answer = await admin.ok("POST", "/admin/debug/error", { type, backend: "two" });
    expect(answer).toMatchObject({ success: true, message: expect.any(String), error: { status, backend: "two" } });
    const { request_id } = answer.error as { request_id: string };
    expect(await admin.get(`/admin/errors/${request_id}`)).toEqual(answer.error as Record<string, unknown>);
    expect(await admin.get("/admin/errors/recent?backend=two")).toMatchObject({ total: 1 });
    // It is a record only: nothing happens to the backend.
    expect(await gateway.backend("two")).toMatchObject({ is_healthy: true, circuit: "closed", failed_requests: 0 });
  });

  test("a test error of no type, or for no backend, names the field and records nothing", async () => {
    const { admin } = await start();
    for (const [param, status, body] of [
      ["type", 400, { backend: "one" }],
      ["type", 400, { type: "flood", backend: "one" }],
      ["backend", 400, { type: "timeout" }],
      ["backend", 404, { type: "timeout", backend: "three" }],
    ] as const) {
      expect((await admin.refused(status, "POST", "/admin/debug/error", body)).param).toBe(param);
    }
    for (const body of ["", "{", "[1]", "[".repeat(10_000)])
      await admin.refused(400, "POST", "/admin/debug/error", body);
  });
});

describe("GET /admin/requests/{id}", () => {
  test("tells of a retry: both attempts, the candidates, the wait, the timings", async () => {
    const { one, two, gateway, admin } = await start();
    one.queue(failure(503));
    two.queue(failure(503));
    one.answer = failure(503);
    two.answer = chat("two");
    const story = await storyOf(admin, await gateway.chat());
    expect(story).toMatchObject({
      request_id: expect.any(String),
      started_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      operation: "chat",
      model: "m",
      stream: false,
      key_id: null,
      attempts: 2,
      steps_dropped: 0,
      timings: { total_ms: expect.any(Number), waiting_ms: expect.any(Number) },
    });
    const attempts = story.steps.filter(({ kind }) => kind === "attempt");
    expect(attempts[0]).toMatchObject({ outcome: "failed", failure: "status_503", status: 503, model: "m" });
    expect(attempts.map(({ backend }) => backend).sort()).toEqual(["one", "two"]);
    const [first] = attempts as { candidates: { backend: string }[]; strategy: string }[];
    expect(first?.candidates.map(({ backend }) => backend).sort()).toEqual(["one", "two"]);
    expect(first?.strategy).toEqual(expect.any(String));
  });

  test("tells of a fallback and its cause", async () => {
    const { one, gateway, admin } = await start();
    one.answer = failure(503);
    const response = await gateway.chat({ model: "only-one" });
    expect(response.headers.get("x-fallback-used")).toBe("true");
    const story = await storyOf(admin, response);
    expect(story).toMatchObject({
      model: "only-one",
      answered_by: "other",
      backend: "two",
      status: 200,
      failure: null,
    });
    expect(story.steps).toContainEqual(
      expect.objectContaining({ kind: "fallback", from: "only-one", to: "other", reason: "error_code_503" }),
    );
  });

  test("tells of a stream, also while it runs", async () => {
    const gate = Promise.withResolvers<void>();
    const { one, gateway, admin } = await start();
    one.answer = { ...chatStream(["a", "b"]), headersAfter: gate.promise };
    const pending = gateway.chat({ model: "only-one", stream: true }, { headers: { "X-Request-ID": "my-own/id" } });
    const path = `/admin/requests/${encodeURIComponent("my-own/id")}`;
    const running = await waitFor("the attempt runs", async () => {
      const { status, body } = await admin.send("GET", path);
      return status === 200 && (body as Story).steps.length > 0 && (body as Story);
    });
    expect(running).toMatchObject({ finished: false, status: null, stream: true, steps: [{ outcome: "running" }] });
    gate.resolve();
    const story = await storyOf(admin, await pending);
    expect(story).toMatchObject({
      request_id: "my-own/id",
      finished: true,
      status: 200,
      timings: { first_byte_ms: expect.any(Number) },
      steps: [{ kind: "attempt", backend: "one", outcome: "succeeded" }],
    });
  });

  test("tells what the response cache decided", async () => {
    const { gateway, admin } = await start({ response_cache: { enabled: true } });
    const ask = async () => storyOf(admin, await gateway.chat({ model: "only-one", temperature: 0 }));
    expect(await ask()).toMatchObject({ cache: { decision: "MISS" }, attempts: 1 });
    expect(await ask()).toMatchObject({ cache: { decision: "HIT" }, attempts: 0, backend: null });
  });

  test("404 for a request that is not known", async () => {
    const { admin } = await start();
    expect((await admin.refused(404, "GET", "/admin/requests/nobody")).message).toContain("X-Request-ID");
  });
});
