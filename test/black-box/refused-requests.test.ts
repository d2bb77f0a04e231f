// Requests that the gateway refuses are requests: they have a story, are counted apart from failures, name their caller, and
// cannot push out what became of others.

import { describe, expect, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import { chat, failure } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend({ answer: chat("x"), models: ["m", "other"] });
const MESSAGES = [{ role: "user", content: "Hello!" }];

const gateway = await bed.gateway({
  config: {
    backends: [
      { name: "a", type: "vllm", url: backend.url },
      { name: "gone", type: "vllm", url: "http://127.0.0.1:9", models: ["away"] },
    ],
    api_keys: {
      mode: "blocking",
      keys: [
        { id: "team-a", key: "sekret-a", organization_id: "org-1", models: ["m", "away"], scopes: ["read", "write"] },
        { id: "reader", key: "sekret-r", scopes: ["read"] },
        { id: "slow", key: "sekret-s", rate_limit: 1, models: ["m"] },
        { id: "expired", key: "sekret-e", expires_at: "2020-01-01T00:00:00Z" },
        { id: "boss", key: "sekret-boss", scopes: ["admin"] },
      ],
    },
    admin: { auth: { method: "none" } },
    retry: { max_attempts: 1 },
    circuit_breaker: { enabled: false },
  },
  awaitHealth: false,
});
const admin = new AdminClient(gateway);

type Row = Record<string, unknown>;

function ask(key: string | undefined, body: unknown, path = "/v1/chat/completions"): Promise<Response> {
  return gateway.fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(key !== undefined && { Authorization: `Bearer ${key}` }) },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

async function storyOf(answer: Response): Promise<Row> {
  await answer.text();
  return (await admin.get(`/admin/requests/${answer.headers.get("x-signalbox-request-id")}`)) as Row;
}

async function metric(line: RegExp): Promise<number> {
  const text = await (await gateway.fetch("/metrics")).text();
  return Number(line.exec(text)?.[1] ?? 0);
}

describe("a refused request has a story that names its caller", () => {
  const body = { model: "m", messages: MESSAGES, user: "ada" };
  test.each([
    ["without a key", undefined, body, 401, { code: "invalid_api_key", key_id: null }],
    ["with a wrong key", "sekret-wrong", body, 401, { code: "invalid_api_key", key_id: null }],
    ["with an expired key", "sekret-e", body, 401, { code: "expired_api_key", key_id: "expired" }],
    ["without the scope", "sekret-r", body, 403, { code: "insufficient_scope", key_id: "reader" }],
    [
      "for a model that the key may not use",
      "sekret-a",
      { ...body, model: "other" },
      403,
      { code: "model_not_allowed", key_id: "team-a", organization_id: "org-1", model: "other", user_id: "ada" },
    ],
    ["with a broken body", "sekret-a", "{", 400, { code: "invalid_json", key_id: "team-a" }],
    [
      "with a wrong field",
      "sekret-a",
      { model: "m", messages: [], safety_identifier: "grace" },
      400,
      { key_id: "team-a", model: "m", user_id: "grace" },
    ],
  ])("%s", async (_, key, sent, status, expected) => {
    const answer = await ask(key as string | undefined, sent);
    expect(answer.status).toBe(status as number);
    const story = await storyOf(answer);
    expect(story).toMatchObject({
      ...(expected as Row),
      outcome: "refused",
      finished: true,
      operation: "chat",
      client: "127.0.0.1",
      target: "POST /v1/chat/completions",
      attempts: 0,
    });
    expect(JSON.stringify(story)).not.toContain("sekret");
  });

  test("beyond a limit, at a path that does not exist, with a wrong method", async () => {
    await (await ask("sekret-s", body)).text();
    expect(await storyOf(await ask("sekret-s", body))).toMatchObject({
      status: 429,
      code: "rate_limit_exceeded",
      key_id: "slow",
      outcome: "refused",
    });
    expect(await storyOf(await ask("sekret-a", body, "/v1/v1/chat/completions"))).toMatchObject({
      status: 404,
      target: "POST /v1/v1/chat/completions",
      operation: "",
    });
    expect(await storyOf(await gateway.fetch("/v1/chat/completions"))).toMatchObject({ status: 405 });
  });

  test("the list is filtered by outcome, user and organization; errors name the caller", async () => {
    const list = async (query: string) =>
      ((await admin.get(`/admin/requests?${query}`)) as { requests: Row[] }).requests;
    expect((await list("outcome=refused&organization=org-1&status=403")).map(({ code }) => code)).toEqual([
      "model_not_allowed",
    ]);
    expect((await list("user=grace")).map(({ status }) => status)).toEqual([400]);
    const { errors } = (await admin.get("/admin/errors/recent")) as { errors: Row[] };
    expect(errors.find(({ code }) => code === "model_not_allowed")).toMatchObject({
      key_id: "team-a",
      user_id: "ada",
      organization_id: "org-1",
      client: "127.0.0.1",
    });
    expect(await metric(/requests_refused_total\{status="403",code="model_not_allowed"\} (\d+)/)).toBe(1);
    expect(await metric(/requests_refused_total\{status="401",code="invalid_api_key"\} (\d+)/)).toBe(2);
    // The admin API's own refusals stand in the access log alone.
    await admin.refused(404, "GET", "/admin/requests/none");
    expect((await list("outcome=refused")).filter(({ target }) => String(target).includes("/admin"))).toEqual([]);
  });
});

test("refusals are no failures, but a model whose backends are away is", async () => {
  await (await ask("sekret-a", { model: "m", messages: MESSAGES })).text();
  const { metrics } = (await admin.get("/admin/health")) as { metrics: { error_rate: number } };
  expect(metrics.error_rate).toBe(0);
  const unavailable = await waitFor("the backend is found down", async () => {
    const answer = await ask("sekret-a", { model: "away", messages: MESSAGES });
    return answer.status === 404 ? answer : void (await answer.text());
  });
  expect(await storyOf(unavailable)).toMatchObject({ outcome: "failed", status: 404 });
  const after = (await admin.get("/admin/health")) as { metrics: { error_rate: number } };
  expect(after.metrics.error_rate).toBeGreaterThan(0);
});

test("what a backend says of the gateway's account is a failure, what it says of the request is a refusal", async () => {
  const outcomeOf = async (status: number, more: Record<string, unknown> = {}) => {
    backend.answer = failure(status, "no", more);
    const { outcome } = await storyOf(await ask("sekret-a", { model: "m", messages: MESSAGES }));
    backend.answer = chat("x");
    return outcome;
  };
  for (const status of [401, 402, 403]) expect([status, await outcomeOf(status)]).toEqual([status, "failed"]);
  expect(await outcomeOf(429, { code: "insufficient_quota" })).toBe("failed");
  for (const status of [400, 404, 413, 422]) expect([status, await outcomeOf(status)]).toEqual([status, "refused"]);
});

test("a flood of one caller's refusals removes neither requests that were answered, nor refusals and errors of others", async () => {
  const other = await storyOf(await ask("sekret-a", { model: "other", messages: MESSAGES }));
  const answered = await ask("sekret-a", { model: "m", messages: MESSAGES });
  const id = answered.headers.get("x-signalbox-request-id");
  await answered.text();
  for (let round = 0; round < 30; round++) {
    await Promise.all(Array.from({ length: 20 }, async () => (await ask("sekret-wrong", "{}")).text()));
  }
  expect(await admin.get(`/admin/requests/${id}`)).toMatchObject({ outcome: "succeeded" });
  expect(await admin.get(`/admin/requests/${other.id}`)).toMatchObject({
    outcome: "refused",
    code: "model_not_allowed",
  });
  expect(await admin.get(`/admin/errors/${other.id}`)).toMatchObject({ key_id: "team-a" });
});

test("what looks like a key is masked, wherever a stranger writes it", async () => {
  const misplaced = "sk-misplaced-0123456789";
  const nowhere = await gateway.fetch(`/v1/${misplaced}/models`);
  expect(await storyOf(nowhere)).toMatchObject({ target: "GET /v1/***/models", model: "" });
  expect(await storyOf(await ask("sekret-a", { model: misplaced, messages: MESSAGES }))).toMatchObject({
    model: "***",
  });
  const told = [await admin.get("/admin/requests?limit=1000"), await admin.get("/admin/errors/recent?limit=1000")];
  expect(JSON.stringify(told).includes(misplaced)).toBe(false);
});

test("two workers tell of their refusals alike", async () => {
  await using pair = await bed.process({
    config: {
      server: { workers: 2 },
      backends: [{ name: "a", type: "vllm", url: backend.url, models: ["m"] }],
      api_keys: {
        mode: "blocking",
        keys: [{ id: "team-a", key: "sekret-a", organization_id: "org-1", models: ["m"] }],
      },
    },
  });
  const there = new AdminClient(pair);
  const asked = async (key: string, model: string) => {
    const answer = await pair.chat({ model }, { headers: { Authorization: `Bearer ${key}` } });
    await answer.text();
    return answer.headers.get("x-signalbox-request-id") as string;
  };
  const told = (id: string) =>
    waitFor("the primary knows of it", async () => {
      const { requests } = (await there.get(`/admin/requests?id=${id}`)) as { requests: Row[] };
      return requests.find(({ finished }) => finished === true);
    });
  const client = "127.0.0.1";
  const denied = await asked("sekret-a", "other");
  expect(await told(denied)).toMatchObject({
    code: "model_not_allowed",
    key_id: "team-a",
    organization_id: "org-1",
    client,
  });
  expect(await there.get(`/admin/errors/${denied}`)).toMatchObject({ key_id: "team-a", client });
  for (let each = 0; each < 20; each++) await asked("sekret-wrong", "m");
  const strange = await asked("sekret-wrong", "m");
  expect(await told(strange)).toMatchObject({ code: "invalid_api_key", key_id: null, client, outcome: "refused" });
  await waitFor("all of them are counted", async () => {
    const text = await (await pair.fetch("/metrics")).text();
    return text.includes('signalbox_requests_refused_total{status="401",code="invalid_api_key"} 21');
  });
  expect(await (await pair.fetch("/metrics")).text()).toContain(
    'signalbox_key_requests_total{key="team-a",organization="org-1",outcome="refused"} 1\n',
  );
  const { overall } = (await there.get("/admin/stats")) as { overall: Row };
  expect(overall).toMatchObject({ total_requests: 22, refused_requests: 22, failed_requests: 0 });
});
