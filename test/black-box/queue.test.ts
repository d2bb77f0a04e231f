// The queue in front of the backends: slots, the fair order, classes, refusals, and what is said of a wait.

import { describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import type { RecordedRequest } from "../support/fake-backend.ts";
import { chat, chatEvents, chatStream, eventStream } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

interface Queue {
  total_waiting: number;
  waiting: { model: string; class: string; tenant: string[]; waited_ms: number }[];
  backends: { backend: string; in_flight: number; max_concurrent: number | null }[];
}

const KEYS = ["anna", "bert", "night", "chief"].map((id) => ({
  id,
  key: `secret-of-${id}`,
  ...(id === "night" && { class: "batch" }),
  ...(id === "chief" && { max_class: "interactive" }),
}));

const CLASSES = { interactive: { weight: 10 }, default: { weight: 5 }, batch: { weight: 1 } };

/** A backend that answers each request when the test lets it. */
function heldBackend() {
  const running: { user: string; finish(): void }[] = [];
  const served: string[] = [];
  const backend = bed.backend({
    answer: (request: RecordedRequest) => {
      const { user = "", stream } = request.json<{ user?: string; stream?: boolean }>();
      served.push(user);
      const { promise, resolve } = Promise.withResolvers<void>();
      running.push({ user, finish: resolve });
      void request.closed.then(resolve);
      return { ...(stream ? chatStream(["rest"]) : chat("done")), headersAfter: promise };
    },
  });
  async function finish(): Promise<void> {
    await waitFor("a request is there", () => running.length > 0);
    running.shift()?.finish();
  }
  return { backend, running, served, finish };
}

/** One backend that takes one request at a time. */
async function start(admission: NonNullable<ConfigDocument["admission"]> = {}, more: Partial<ConfigDocument> = {}) {
  const held = heldBackend();
  const gateway = await bed.gateway({
    config: {
      retry: { max_attempts: 1 },
      health_checks: { enabled: false },
      circuit_breaker: { enabled: false },
      backends: [{ name: "gpu", url: held.backend.url, models: ["m"] }],
      api_keys: { keys: KEYS },
      admission: { enabled: true, per_backend: { max_concurrent: 1 }, ...admission },
      ...more,
    },
  });
  const admin = new AdminClient(gateway);
  const ask = (user: string, key = "anna", { headers = {}, body = {}, signal }: Asking = {}) =>
    gateway.chat(
      { model: "m", user, messages: [{ role: "user", content: `question ${user}` }], ...body },
      { headers: { Authorization: `Bearer secret-of-${key}`, ...headers }, ...(signal && { signal }) },
    );
  const queue = async () => (await admin.ok("GET", "/admin/queue")) as unknown as Queue;
  const waiting = (count: number) => waitFor(`${count} wait`, async () => (await queue()).total_waiting === count);
  /** Asks one after the other, so that they wait in this order; the first one has the slot. */
  async function line(...users: readonly (readonly [user: string, key?: string, asking?: Asking])[]) {
    const answers: Promise<Response>[] = [];
    for (const [index, asked] of users.entries()) {
      answers.push(ask(...asked));
      if (index === 0) await waitFor("the first is there", () => held.running.length === 1);
      else await waiting(index);
    }
    return answers;
  }
  /** Lets all of them be answered; in this order they were. */
  async function order(answers: readonly Promise<Response>[]): Promise<string[]> {
    for (const _ of answers) await held.finish();
    for (const answer of answers) expect((await answer).status).toBe(200);
    return held.served;
  }
  return { gateway, admin, ask, queue, waiting, line, order, ...held };
}

interface Asking {
  headers?: Record<string, string>;
  body?: Record<string, unknown>;
  signal?: AbortSignal;
}

describe("slots", () => {
  test("a second request waits until the first is over, and says how long", async () => {
    const { admin, line, order } = await start();
    const answers = await line(["1"], ["2"]);
    expect(await order(answers)).toEqual(["1", "2"]);
    const answer = (await answers[1]) as Response;
    expect(answer.headers.get("server-timing")).toContain("queue;dur=");
    const id = answer.headers.get("x-signalbox-request-id");
    const { steps } = (await admin.ok("GET", `/admin/requests/${id}`)) as unknown as {
      steps: { kind: string; reason?: string }[];
    };
    expect(steps.map(({ kind, reason }) => reason ?? kind)).toEqual(["queue", "attempt"]);
  });

  test("a client that leaves the queue frees its place, and one that leaves the backend its slot", async () => {
    const { ask, waiting, line, finish, served } = await start();
    const leaving = new AbortController();
    const [first] = await line(["1"]);
    const second = ask("2", "anna", { signal: leaving.signal });
    second.catch(() => {});
    await waiting(1);
    const third = ask("3");
    await waiting(2);
    leaving.abort();
    await waiting(1);
    await finish();
    await finish();
    expect([(await first)?.status, (await third).status]).toEqual([200, 200]);
    expect(served).toEqual(["1", "3"]);
  });

  test("a free slot anywhere takes the next request", async () => {
    const other = heldBackend();
    const { admin, ask, waiting, running, finish } = await start();
    await admin.ok("POST", "/admin/backends", { name: "second", url: other.backend.url, models: ["m"] });
    const answers = [ask("1"), ask("2"), ask("3")];
    await waiting(1);
    await waitFor("both are busy", () => running.length === 1 && other.running.length === 1);
    await other.finish();
    await other.finish();
    await finish();
    for (const answer of answers) expect((await answer).status).toBe(200);
    expect(other.served).toHaveLength(2);
  });

  test("a backend that is added takes a request that waits", async () => {
    const other = heldBackend();
    const { admin, line, finish } = await start();
    const [first, second] = await line(["1"], ["2"]);
    await admin.ok("POST", "/admin/backends", { name: "second", url: other.backend.url, models: ["m"] });
    await other.finish();
    expect((await second)?.headers.get("x-signalbox-backend")).toBe("second");
    await finish();
    expect((await first)?.status).toBe(200);
  });

  test("a stream has its slot until it ends", async () => {
    const { promise: rest, resolve: letGo } = Promise.withResolvers<void>();
    const backend = bed.backend({
      answer: ({ json }) =>
        json<{ stream?: boolean }>().stream
          ? { ...chatStream(["a", "b", "c"]), beforeChunk: (index) => (index === 2 ? rest : undefined) }
          : chat("plain"),
    });
    const { ask, waiting } = await start({}, { backends: [{ name: "gpu", url: backend.url, models: ["m"] }] });
    const stream = await ask("1", "anna", { body: { stream: true } });
    const plain = ask("2");
    await waiting(1);
    letGo();
    await stream.text();
    expect((await plain).status).toBe(200);
  });

  test("tokens in flight are bounded as well; a request that is larger than the bound is served alone", async () => {
    const { ask, waiting, running, finish } = await start({
      per_backend: { max_concurrent: "none", max_tokens_in_flight: 3000 },
    });
    const large = ask("large", "anna", { body: { messages: [{ role: "user", content: "x".repeat(20_000) }] } });
    await waitFor("it is there", () => running.length === 1);
    const small = ask("small", "anna", { body: { max_tokens: 10 } });
    await waiting(1);
    await finish();
    await finish();
    expect([(await large).status, (await small).status]).toEqual([200, 200]);
  });
});

describe("the order", () => {
  test("takes turns between keys, also where one of them has asked before and more", async () => {
    const { line, order } = await start();
    const answers = await line(["a1"], ["a2"], ["a3"], ["a4"], ["a5"], ["a6"], ["b1", "bert"], ["b2", "bert"]);
    const served = await order(answers);
    expect(served.filter((user) => user.startsWith("a"))).toEqual(["a1", "a2", "a3", "a4", "a5", "a6"]);
    expect(served.indexOf("b1")).toBeLessThan(served.indexOf("a4"));
    expect(served.indexOf("b2")).toBeLessThan(served.indexOf("a6"));
  });

  test("follows the weights of the classes: a batch key waits while others do", async () => {
    const { line, order, queue } = await start();
    const answers = await line(["1"], ["n1", "night"], ["n2", "night"], ["2"], ["3"], ["4"]);
    expect((await queue()).waiting.map((one) => one.class).toSorted()).toEqual(
      ["batch", "batch", "default", "default", "default"].toSorted(),
    );
    const served = await order(answers);
    expect(served.indexOf("n2")).toBe(5);
  });

  test("a client may lower the class of its request, and raise it where its key may", async () => {
    const { line, queue, order } = await start();
    const priority = (name: string) => ({ headers: { "X-Signalbox-Priority": name } });
    const tier = (name: string) => ({ body: { service_tier: name } });
    const answers = await line(
      ["1"],
      ["lowered", "anna", priority("batch")],
      ["not raised", "anna", priority("interactive")],
      ["raised", "chief", priority("interactive")],
      ["flex", "anna", tier("flex")],
      ["priority", "chief", tier("priority")],
      ["no priority", "anna", tier("priority")],
    );
    expect((await queue()).waiting.map((one) => one.class)).toEqual([
      ...["batch", "default", "interactive"],
      ...["batch", "interactive", "default"],
    ]);
    await order(answers);
  });

  test("a class that does not exist is named, with those that do", async () => {
    const { ask } = await start();
    const answer = await ask("1", "anna", { headers: { "X-Signalbox-Priority": "urgent" } });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain(
      "The header X-Signalbox-Priority must name a class of admission.queue.classes: interactive, default, batch.",
    );
  });
});

describe("refusals", () => {
  test("a full queue refuses the newest request of the tenant that has most in it, at once", async () => {
    const { admin, ask, line, order, waiting } = await start({ queue: { max_waiting: 2 } });
    const answers = await line(["1"], ["2"], ["3"]);
    const refused = await ask("4");
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(await refused.json()).toMatchObject({
      error: {
        type: "rate_limit_exceeded",
        code: "queue_refused",
        details: { reason: "queue_full", class: "default", waiting: 2 },
      },
    });
    const id = refused.headers.get("x-signalbox-request-id");
    expect(JSON.stringify(await admin.ok("GET", `/admin/requests/${id}`))).toContain(
      "the queue in front of its backends is full",
    );
    const bert = ask("b", "bert");
    expect(((await answers.pop()) as Response).status).toBe(429);
    await waiting(2);
    const served = await order([...answers, bert]);
    expect(served.toSorted()).toEqual(["1", "2", "b"]);
  });

  test("a request that has waited as long as it may is refused", async () => {
    const { line, order } = await start({
      queue: { classes: { ...CLASSES, default: { weight: 5, max_wait: "300ms" } } },
    });
    const [first, second] = await line(["1"], ["2"]);
    const refused = (await second) as Response;
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ error: { details: { reason: "waited_too_long" } } });
    await order([first as Promise<Response>]);
  });

  test("the configuration names classes and backends that exist", async () => {
    const { admin } = await start();
    const wrong = await admin.send("PATCH", "/admin/config/admission", {
      body: { backends: { gpuu: { max_concurrent: 2 } } },
    });
    expect(wrong.status).toBe(400);
    expect(wrong.body).toMatchObject({
      error: { message: 'admission.backends.gpuu: there is no backend "gpuu"; did you mean "gpu"?' },
    });
    const noDefault = await admin.send("PUT", "/admin/config/admission", {
      body: { queue: { classes: { fast: { weight: 1 } } } },
    });
    expect(noDefault.text).toContain("must have a class default");
  });

  test("switched off, what waits goes on at once", async () => {
    const { admin, line, running, finish } = await start();
    const answers = await line(["1"], ["2"], ["3"]);
    await admin.ok("PATCH", "/admin/config/admission", { enabled: false });
    await waitFor("all are there", () => running.length === 3);
    for (const answer of answers) {
      await finish();
      expect((await answer).status).toBe(200);
    }
  });
});

describe("a stream that waits", () => {
  const keepalive = { streaming: { keepalive: "50ms" } };
  const streamed = { body: { stream: true } };

  test("gets comments after a while, then its answer", async () => {
    const { gateway, ask, finish, line } = await start({}, keepalive);
    const [first] = await line(["1"]);
    const second = await ask("2", "anna", streamed);
    expect(second.status).toBe(200);
    expect(second.headers.get("content-type")).toContain("text/event-stream");
    const reader = (second.body as ReadableStream<Uint8Array>).getReader();
    const decoder = new TextDecoder();
    let text = "";
    while (text.split(": waiting\n\n").length < 4) text += decoder.decode((await reader.read()).value);
    await finish();
    await finish();
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) text += decoder.decode(piece.value);
    expect(text).toContain('rest"');
    expect(text).toEndWith("data: [DONE]\n\n");
    expect((await first)?.status).toBe(200);
    await waitFor("one line of the log says so", () => gateway.printed.logEntries.length >= 2);
  });

  test("gets an error event where its turn does not come", async () => {
    const classes = { ...CLASSES, default: { weight: 5, max_wait: "200ms" } };
    const { admin, ask, finish, line } = await start({ queue: { classes } }, keepalive);
    const [first] = await line(["1"]);
    const second = await ask("2", "anna", streamed);
    expect(second.status).toBe(200);
    const text = await second.text();
    expect(text).toStartWith(": waiting\n\n");
    expect(text).toContain('"code":"queue_refused"');
    const id = second.headers.get("x-signalbox-request-id");
    const story = await admin.ok("GET", `/admin/requests/${id}`);
    expect(story).toMatchObject({ status: 429 });
    await finish();
    expect((await first)?.status).toBe(200);
  });

  test("of a client of Messages as well, and frees its place when the client leaves", async () => {
    const { gateway, waiting, finish, line } = await start({}, keepalive);
    const [first] = await line(["1"]);
    const leaving = new AbortController();
    const second = await gateway.post(
      "/v1/messages",
      { model: "m", max_tokens: 5, stream: true, messages: [{ role: "user", content: "hi" }] },
      { signal: leaving.signal },
    );
    const reader = (second.body as ReadableStream<Uint8Array>).getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toStartWith(": waiting\n\n");
    await waiting(1);
    leaving.abort();
    await waiting(0);
    await finish();
    expect((await first)?.status).toBe(200);
  });
});

describe("several processes", () => {
  test("workers have one order and one number of slots", async () => {
    const held = heldBackend();
    const gateway = await bed.process({
      config: {
        server: { workers: 3 },
        admin: { auth: { method: "none" } },
        health_checks: { enabled: false },
        circuit_breaker: { enabled: false },
        retry: { max_attempts: 1 },
        backends: [{ name: "gpu", url: held.backend.url, models: ["m"] }],
        admission: { enabled: true, per_backend: { max_concurrent: 2 }, queue: { fair_by: [] } },
      },
    });
    const admin = new AdminClient(gateway);
    const waiting = (count: number) =>
      waitFor(`${count} wait`, async () => (await admin.get("/admin/queue")).total_waiting === count);
    const answers: Promise<Response>[] = [];
    for (let index = 0; index < 12; index++) {
      const user = String(index);
      answers.push(gateway.chat({ model: "m", user }, { headers: { Connection: "close" } }));
      if (index < 2) await waitFor("it is there", () => held.served.length === index + 1);
      else await waiting(index - 1);
    }
    expect(held.served).toHaveLength(2);
    for (let index = 0; index < 12; index++) {
      await held.finish();
      await waitFor("the next one is there", () => held.served.length === Math.min(12, index + 3));
    }
    for (const answer of answers) expect((await answer).status).toBe(200);
    expect(held.served).toEqual(Array.from({ length: 12 }, (_, index) => String(index)));
    const metrics = await (await gateway.fetch("/metrics")).text();
    expect(metrics).toContain('signalbox_queue_wait_seconds_count{class="default"} 10');
    expect(metrics).toContain('signalbox_queue_in_flight{backend="gpu"} 0');
    expect(metrics).toContain('signalbox_queue_slots{backend="gpu"} 2');
  });
});

describe("what breaks", () => {
  test("another model of the chain answers where the queue refuses", async () => {
    const other = bed.backend({ answer: chat("other", { model: "other" }) });
    const held = heldBackend();
    const { ask } = await start(
      { queue: { classes: { ...CLASSES, default: { weight: 5, max_wait: "200ms" } } } },
      {
        backends: [
          { name: "gpu", url: held.backend.url, models: ["m"] },
          { name: "spare", url: other.url, models: ["other"] },
        ],
        fallback: { enabled: true, fallback_chains: { m: ["other"] } },
      },
    );
    const first = ask("1");
    await waitFor("it is there", () => held.running.length === 1);
    const second = await ask("2");
    expect(second.headers.get("x-fallback-reason")).toBe("error_code_429");
    expect(second.headers.get("x-signalbox-backend")).toBe("spare");
    await held.finish();
    expect((await first).status).toBe(200);
  });

  test("a stream that is taken over goes before requests that wait", async () => {
    const { promise: broken, resolve: breakOff } = Promise.withResolvers<void>();
    const events = chatEvents(["one ", "two ", "three"], { finishReason: null, done: false });
    const first = bed.backend({
      answer: {
        ...eventStream(events, { breakAfterBytes: events.slice(0, 3).join("").length, breakWith: "reset" }),
        beforeChunk: (index) => (index === 3 ? broken : undefined),
      },
    });
    const held = heldBackend();
    const { gateway, ask, waiting } = await start(
      {},
      {
        backends: [
          { name: "streams", url: first.url, models: ["s"] },
          { name: "gpu", url: held.backend.url, models: ["m"] },
        ],
        fallback: { enabled: true, fallback_chains: { s: ["m"] } },
      },
    );
    const stream = await gateway.chat({ model: "s", user: "stream", stream: true });
    const one = ask("1");
    await waitFor("it is there", () => held.running.length === 1);
    const two = ask("2");
    await waiting(1);
    breakOff();
    await waiting(2);
    await held.finish();
    await waitFor("the stream is there", () => held.running.length === 1);
    expect(held.served).toEqual(["1", "stream"]);
    await held.finish();
    await held.finish();
    expect(await stream.text()).toContain('rest"');
    expect([(await one).status, (await two).status]).toEqual([200, 200]);
  });

  test("an attempt more keeps its place, and a failed one frees its slot", async () => {
    let attempts = 0;
    const backend = bed.backend({ answer: () => (attempts++ < 2 ? { status: 503 } : chat("fine")) });
    const { ask, queue } = await start(
      {},
      {
        backends: [{ name: "gpu", url: backend.url, models: ["m"] }],
        retry: { max_attempts: 3, base_delay: "10ms" },
      },
    );
    expect((await ask("1")).status).toBe(200);
    expect((await queue()).backends).toMatchObject([{ backend: "gpu", in_flight: 0 }]);
  });
});
