// /admin/requests: what became of requests, told under an id that no client can take, and who is to blame for what failed.

import { describe, expect, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatStream, failure } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

type Row = Record<string, unknown>;

interface Story extends Row {
  id: string;
  request_id: string;
  others: string[];
  steps: Row[];
}

const withId = (id: string): RequestInit => ({ headers: { "X-Request-ID": id } });

async function finishedStory(admin: AdminClient, id: string): Promise<Story> {
  return await waitFor(`request ${id} is over`, async () => {
    const story = (await admin.get(`/admin/requests/${id}`)) as Story;
    return story.finished === true && story;
  });
}

/** Sends a request, reads its answer, and gives the gateway's own id of it. */
async function sent(answer: Promise<Response>): Promise<string> {
  const response = await answer;
  await response.text();
  return response.headers.get("x-signalbox-request-id") ?? "";
}

describe("ids", () => {
  test("a client's X-Request-ID comes back, and cannot replace another request's story", async () => {
    const backend = bed.backend({ answer: chat("x") });
    await using gateway = await bed.gateway({
      config: { backends: [{ name: "a", type: "vllm", url: backend.url, models: ["m", "n"] }] },
    });
    const admin = new AdminClient(gateway);
    const answer = await gateway.chat({}, withId("mine"));
    expect(answer.headers.get("x-request-id")).toBe("mine");
    const first = await sent(Promise.resolve(answer));
    const second = await sent(gateway.chat({ model: "n" }, withId("mine")));
    expect(new Set([first, second, "mine", ""]).size).toBe(4);

    expect(await finishedStory(admin, first)).toMatchObject({ id: first, request_id: "mine", model: "m" });
    expect(await finishedStory(admin, "mine")).toMatchObject({ id: second, model: "n", others: [first] });

    // Nor by taking the gateway's own id of it.
    const third = await sent(gateway.chat({ model: "n" }, withId(first)));
    expect(await finishedStory(admin, first)).toMatchObject({ id: first, model: "m" });
    expect(await finishedStory(admin, third)).toMatchObject({ request_id: first, model: "n" });
  });

  test("nor the record of its error; every answer tells the gateway's own id", async () => {
    const backend = bed.backend({ answer: failure(503) });
    await using gateway = await bed.gateway({
      config: { backends: [{ name: "a", url: backend.url, models: ["m"] }], retry: { max_attempts: 1 } },
    });
    const admin = new AdminClient(gateway);
    const first = await sent(gateway.chat({}, withId("mine")));
    const second = await sent(gateway.chat({ model: "nobody-has-it" }, withId("mine")));
    expect(await admin.get(`/admin/errors/${first}`)).toMatchObject({ id: first, request_id: "mine", status: 503 });
    expect(await admin.get("/admin/errors/mine")).toMatchObject({ id: second, status: 404 });
    for (const path of ["/health", "/v1/models", "/no/such/path"]) expect(await sent(gateway.fetch(path))).not.toBe("");
  });
});

/** Two backends of one model: the second stands by for the first. */
async function twoBackends() {
  const [bad, good] = [bed.backend({ answer: failure(503) }), bed.backend({ answer: chat("x") })];
  const gateway = await bed.gateway({
    config: {
      backends: [
        { name: "gpu-1", type: "vllm", url: bad.url, models: ["m"], weight: 1 },
        { name: "gpu-2", type: "vllm", url: good.url, models: ["m"], weight: 0 },
      ],
      circuit_breaker: { enabled: false },
      retry: { base_delay: "1ms" },
    },
  });
  return { gateway, admin: new AdminClient(gateway), bad, good };
}

describe("blame", () => {
  test("a failed attempt counts at the backend that failed, the request once at its model", async () => {
    const { gateway, admin } = await twoBackends();
    const id = await sent(gateway.chat());
    expect(await finishedStory(admin, id)).toMatchObject({
      outcome: "succeeded",
      backend: "gpu-2",
      steps: [
        { kind: "attempt", backend: "gpu-1", outcome: "failed", status: 503, first_byte_ms: expect.any(Number) },
        { kind: "attempt", backend: "gpu-2", outcome: "succeeded", first_byte_ms: expect.any(Number) },
      ],
    });
    const { overall, models, backends } = await admin.get("/admin/stats");
    expect(overall).toMatchObject({ total_requests: 1, failed_requests: 0 });
    expect(models).toMatchObject([{ model_id: "m", total_requests: 1, successful_requests: 1 }]);
    expect(backends).toMatchObject([
      { backend_name: "gpu-1", total_requests: 1, failed_requests: 1, avg_latency_ms: 0, total_tokens: 0 },
      { backend_name: "gpu-2", total_requests: 1, failed_requests: 0, total_tokens: 5, p50_first_token_ms: null },
    ]);
    const metrics = await (await gateway.fetch("/metrics")).text();
    for (const line of [
      'signalbox_retries_total{model="m",backend="gpu-1"} 1',
      'signalbox_backend_attempt_duration_seconds_count{backend="gpu-1",error_type="status_503"} 1',
      'signalbox_backend_attempt_duration_seconds_count{backend="gpu-2",error_type=""} 1',
    ]) {
      expect(metrics).toContain(`${line}\n`);
    }
  });

  test("an error that a client saw counts at every backend that failed", async () => {
    const { gateway, admin, good } = await twoBackends();
    good.answer = failure(503);
    await sent(gateway.chat());
    expect(await admin.get("/admin/errors/stats")).toMatchObject({ total: 1, by_backend: { "gpu-1": 1, "gpu-2": 1 } });
  });

  test("a client's own mistake, and its leaving, are no failures of the backend", async () => {
    const { gateway, admin, bad } = await twoBackends();
    bad.answer = failure(400);
    await sent(gateway.chat());
    const gate = Promise.withResolvers<void>();
    bad.answer = chatStream(["a", "b"], {}, { beforeChunk: (index) => (index === 2 ? gate.promise : undefined) });
    const leaving = new AbortController();
    const stream = await gateway.chat({ stream: true }, { signal: leaving.signal });
    await stream.body?.getReader().read();
    leaving.abort();
    const id = stream.headers.get("x-signalbox-request-id") as string;
    expect(await finishedStory(admin, id)).toMatchObject({ outcome: "client_left", status: 499 });
    gate.resolve();
    const row = await waitFor("both attempts are counted", async () => {
      const [first] = (await admin.get("/admin/stats/backends")).backends as Row[];
      return first?.total_requests === 2 && first;
    });
    expect(row).toMatchObject({ backend_name: "gpu-1", successful_requests: 0, failed_requests: 0 });
    expect(row.p50_first_token_ms).toBeGreaterThan(0);
  });

  test("a stream that broke off has failed, in its record and wherever it is counted", async () => {
    const { gateway, admin, bad } = await twoBackends();
    const answered = bed.backend({ answer: chatStream(["one"], { finishReason: null, done: false }) });
    await admin.ok("POST", "/admin/backends", { name: "breaks", type: "vllm", url: answered.url, models: ["s"] });
    const id = await sent(
      waitFor("the new backend is asked", async () => {
        const response = await gateway.chat({ model: "s", stream: true });
        return response.status === 200 && response;
      }),
    );
    expect(await finishedStory(admin, id)).toMatchObject({
      outcome: "stream_broken",
      status: 502,
      failure: expect.any(String),
      first_byte_ms: expect.any(Number),
      // It may have waited for the new backend before.
      steps: expect.arrayContaining([
        expect.objectContaining({ kind: "attempt", outcome: "failed", first_byte_ms: expect.any(Number) }),
      ]),
    });
    expect(await admin.get("/admin/requests?status=502")).toMatchObject({ requests: [{ id }], total: 1 });
    expect(await admin.get(`/admin/errors/${id}`)).toMatchObject({ status: 502, backend: "breaks" });
    const { backends } = await admin.get("/admin/stats");
    expect(backends).toContainEqual(expect.objectContaining({ backend_name: "breaks", failed_requests: 1 }));
    expect(await (await gateway.fetch("/metrics")).text()).toContain(
      'signalbox_requests_total{operation="chat",model="s",backend="breaks",status="502"} 1\n',
    );
    expect(bad.requests).toHaveLength(0);
  });
});

describe("GET /admin/requests", () => {
  async function filled(): Promise<{ gateway: Gateway; admin: AdminClient; ids: string[] }> {
    const [one, two] = [bed.backend({ answer: chat("x") }), bed.backend({ answer: failure(500) })];
    const gateway = await bed.gateway({
      config: {
        backends: [
          { name: "one", type: "vllm", url: one.url, models: ["m"] },
          { name: "two", type: "vllm", url: two.url, models: ["broken"] },
        ],
        api_keys: { keys: [{ id: "team", key: "sekret-team" }] },
        retry: { max_attempts: 1 },
      },
    });
    const ids = [
      await sent(gateway.chat({}, withId("client-1"))),
      await sent(gateway.chat({ model: "broken" })),
      await sent(gateway.chat({}, { headers: { Authorization: "Bearer sekret-team" } })),
    ];
    return { gateway, admin: new AdminClient(gateway), ids };
  }

  test("lists the latest, the newest first, by what was asked, who answered, and how it ended", async () => {
    const { admin, ids } = await filled();
    const [first, second, third] = ids as [string, string, string];
    const found = async (query: string) =>
      ((await admin.get(`/admin/requests${query}`)).requests as Story[]).map(({ id }) => id);
    expect(await found("")).toEqual([third, second, first]);
    expect(await found("?model=m")).toEqual([third, first]);
    expect(await found("?backend=two")).toEqual([second]);
    expect(await found("?status=5xx")).toEqual([second]);
    expect(await found("?key=team")).toEqual([third]);
    expect(await found("?id=client-")).toEqual([first]);
    expect(await found("?min_duration_ms=60000")).toEqual([]);
    expect(await found("?since=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z")).toEqual([]);
    const page = await admin.get("/admin/requests?limit=2");
    expect([page.total, typeof page.next_cursor]).toEqual([3, "string"]);
    expect(await found(`?limit=2&cursor=${page.next_cursor}`)).toEqual([first]);
    expect((page.requests as Row[])[0]).toMatchObject({
      key_id: "team",
      model: "m",
      backend: "one",
      outcome: "succeeded",
      status: 200,
      attempts: 1,
      prompt_tokens: 3,
      completion_tokens: 2,
    });
    expect((await admin.refused(400, "GET", "/admin/requests?status=often")).param).toBe("status");
  });
});

describe("Server-Timing", () => {
  const timings = (response: Response) =>
    Object.fromEntries(
      (response.headers.get("server-timing") ?? "").split(", ").map((part) => {
        const [name, duration] = part.split(";dur=");
        return [name, Number(duration)];
      }),
    );

  test("tells the gateway's time from the backend's, and the first token; so does the story", async () => {
    const { gateway, admin, good } = await twoBackends();
    const plain = await gateway.chat();
    expect(timings(plain)).toEqual({ gateway: expect.any(Number), backend: expect.any(Number) });
    good.answer = chatStream(["one"], {}, { beforeHeadersMs: 30 });
    const streamed = await gateway.chat({ stream: true });
    const told = timings(streamed) as { gateway: number; backend: number; "first-token": number };
    expect(told.backend).toBeGreaterThanOrEqual(29);
    expect(Math.abs(told.gateway + told.backend - told["first-token"])).toBeLessThan(0.2);
    await streamed.text();
    const id = streamed.headers.get("x-signalbox-request-id") as string;
    const { timings: kept } = await finishedStory(admin, id);
    expect(kept).toMatchObject({ first_token_ms: told["first-token"], gateway_ms: expect.any(Number) });
  });

  test("stands on failures and refusals too, but not on what asks no model", async () => {
    const { gateway, good } = await twoBackends();
    good.answer = failure(503);
    expect(timings(await gateway.chat())).toEqual({ gateway: expect.any(Number), backend: expect.any(Number) });
    expect(timings(await gateway.chat({ model: "none" }))).toEqual({ gateway: expect.any(Number) });
    expect((await gateway.fetch("/v1/models")).headers.get("server-timing")).toBeNull();
  });
});
