// Budgets: who is let in, what a refusal and every answer tell, what counts as spent, and what lasts (docs/budgets.md).

import { beforeEach, describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import { EventFollower } from "../support/event-follower.ts";
import type { RecordedRequest } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatBody, chatStream, eventStream } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();
const other = bed.backend();

beforeEach(() => {
  backend.reset();
  other.reset();
});

type Rules = NonNullable<ConfigDocument["budgets"]>["rules"];
type Keys = NonNullable<ConfigDocument["api_keys"]>["keys"];

/** One unit for a token of input, ten for one of output. */
const pricing = { input_tokens: 1_000, output_tokens: 10_000 };
const priced = (id: string, more: object = {}) => ({ id, metadata: { pricing, ...more } });

const KEYS = [
  { key: "secret-of-a", id: "a", organization_id: "sales" },
  { key: "secret-of-b", id: "b", organization_id: "sales" },
] satisfies Keys;

function configOf(rules: Rules, more: ConfigDocument = {}): ConfigDocument {
  return {
    health_checks: { enabled: false },
    retry: { base_delay: "1ms" },
    backends: [
      { name: "one", url: backend.url, models: ["m", "both", "small"], model_configs: [priced("m"), priced("both")] },
      { name: "two", url: other.url, models: ["both"], model_configs: [priced("both")] },
    ],
    api_keys: { keys: KEYS },
    ...more,
    budgets: { rules, ...more.budgets },
  };
}

const start = (rules: Rules, more: ConfigDocument = {}) => bed.gateway({ config: configOf(rules, more) });

const usage = (prompt: number, completion: number) => ({
  usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
});

const bearer = (key: string) => ({ headers: { Authorization: `Bearer secret-of-${key}` } });

async function statusOf(gateway: Gateway, body: object = {}, key = "a"): Promise<number> {
  const response = await gateway.chat({ model: "m", ...body }, bearer(key));
  await response.text();
  return response.status;
}

describe("a budget that is spent", () => {
  test("refuses with insufficient_quota, says what was spent and when there is room again, and asks no backend", async () => {
    backend.answer = chat("x", usage(5, 3));
    const gateway = await start([
      { id: "sales-month", match: { organization: "sales" }, limit: { cost: 30 }, window: "month" },
    ]);
    expect(await statusOf(gateway)).toBe(200);
    const response = await gateway.chat({ model: "m" }, bearer("b"));
    expect(response.status).toBe(429);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
    const { error } = (await response.json()) as { error: Record<string, unknown> };
    expect(error).toMatchObject({
      type: "insufficient_quota",
      code: "insufficient_quota",
      details: { budget: "sales-month", spent: 35, limit: 30, amount: "cost", currency: "USD" },
    });
    expect(error.message).toMatch(
      /^The budget 'sales-month' has 35 USD spent of 30 USD\. It has room again at \d{4}-\d\d-01T00:00:00\.000Z\.$/,
    );
    expect(backend.requests).toHaveLength(1);
    expect((await gateway.chat({ model: "m" })).status).toBe(200);
  });

  test("counts what the backend counted, also of an answer that is translated", async () => {
    backend.answer = chat("x", usage(5, 3));
    const gateway = await start([{ id: "all", limit: { cost: 30 }, window: "month" }]);
    const question = { model: "m", max_tokens: 50, messages: [{ role: "user", content: "hi" }] };
    expect((await gateway.post("/v1/messages", question)).status).toBe(200);
    const { error } = (await (await gateway.chat({ model: "m" })).json()) as { error: Record<string, unknown> };
    expect(error).toMatchObject({ details: { budget: "all", spent: 35 } });
  });

  test("is a rate_limit_error to clients of the Messages API", async () => {
    const gateway = await start([{ id: "none", limit: { requests: 0 }, window: "day" }]);
    const response = await gateway.post("/v1/messages", {
      model: "m",
      max_tokens: 5,
      messages: [{ role: "user", content: "hi" }],
    });
    expect(response.status).toBe(429);
    expect(await response.json()).toMatchObject({ type: "error", error: { type: "rate_limit_error" } });
  });

  test("tokens per minute of a key answer as a rate limit does", async () => {
    backend.answer = chat("x", usage(90, 20));
    const keys = [{ key: "secret-of-a", id: "a", token_limit: 100 }];
    const gateway = await start([], { api_keys: { keys } });
    const first = await gateway.chat({ model: "m" }, bearer("a"));
    expect(first.headers.get("x-ratelimit-limit-tokens")).toBe("100");
    await first.text();
    const response = await gateway.chat({ model: "m" }, bearer("a"));
    expect(response.status).toBe(429);
    expect(response.headers.get("x-should-retry")).toBeNull();
    expect(Number(response.headers.get("retry-after"))).toBeLessThanOrEqual(62);
    expect(await response.json()).toMatchObject({
      error: { type: "rate_limit_exceeded", code: "rate_limit_exceeded" },
    });
  });

  test("lets another model answer where the rule names one, and says so", async () => {
    const rule = { id: "soft", match: { model: "m" }, limit: { requests: 1 }, window: "day" } as const;
    const gateway = await start([{ ...rule, when_exceeded: { use_model: "small" } }]);
    expect(await statusOf(gateway)).toBe(200);
    const response = await gateway.chat({ model: "m" });
    expect(response.status).toBe(200);
    expect(response.headers.get("x-fallback-used")).toBe("true");
    expect(response.headers.get("x-fallback-reason")).toBe("budget");
    expect(response.headers.get("x-fallback-model")).toBe("small");
    expect(backend.lastRequest.json()).toMatchObject({ model: "small" });
  });

  test("of one backend leaves the requests to the others", async () => {
    const gateway = await start([{ id: "one", match: { backend: "one" }, limit: { requests: 2 }, window: "day" }]);
    for (let count = 0; count < 8; count++) expect(await statusOf(gateway, { model: "both" })).toBe(200);
    expect([backend.requests.length, other.requests.length]).toEqual([2, 6]);
    expect(await statusOf(gateway)).toBe(429);
  });

  test("warn lets requests in", async () => {
    const gateway = await start([{ id: "w", limit: { requests: 1 }, window: "day", when_exceeded: "warn" }]);
    expect([await statusOf(gateway), await statusOf(gateway)]).toEqual([200, 200]);
  });
});

describe("what every answer tells", () => {
  test("what is left, in the headers of OpenAI and of the Messages API", async () => {
    backend.answer = chat("x", usage(5, 3));
    const limit = { requests: 10, tokens: 1000 };
    const gateway = await start([
      { id: "wide", limit: { tokens: 1_000_000 }, window: "day" },
      { id: "tight", limit, window: "day" },
    ]);
    await statusOf(gateway);
    const { headers } = await gateway.chat({ model: "m" });
    expect(headers.get("x-ratelimit-limit-requests")).toBe("10");
    expect(headers.get("x-ratelimit-remaining-requests")).toBe("8");
    expect(headers.get("x-ratelimit-limit-tokens")).toBe("1000");
    expect(headers.get("x-ratelimit-remaining-tokens")).toBe("992");
    expect(headers.get("x-ratelimit-reset-tokens")).toMatch(/^(\d+h)?(\d+m)?\d+s$/);
    const messages = [{ role: "user", content: "hi" }];
    const response = await gateway.post("/v1/messages", { model: "m", max_tokens: 5, messages });
    expect(response.headers.get("anthropic-ratelimit-requests-remaining")).toBe("7");
    expect(response.headers.get("anthropic-ratelimit-tokens-limit")).toBe("1000");
    expect(response.headers.get("anthropic-ratelimit-tokens-reset")).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  });

  test("of answers from the cache and of shared calls too, and of refusals", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    backend.answer = { ...chat("x", usage(5, 3)), headersAfter: promise };
    const gateway = await start([{ id: "r", limit: { requests: 2, tokens: 1000 }, window: "day" }], {
      response_cache: { enabled: true },
      deduplication: { mode: "all" },
    } as ConfigDocument);
    const left = ({ headers }: Response) =>
      ["requests", "tokens"].map((of) => headers.get(`x-ratelimit-remaining-${of}`));
    const same = { model: "m", temperature: 0 };
    const shared = [0, 1].map(() => gateway.chat(same));
    await waitFor("the call", () => backend.requests.length === 1);
    resolve();
    for (const response of await Promise.all(shared)) expect(left(response)[0]).toBe("1");
    expect(left(await gateway.chat(same))).toEqual(["1", "992"]);
    backend.answer = chat("x", usage(5, 3));
    await statusOf(gateway);
    const refused = await gateway.chat({ model: "m" });
    expect([refused.status, ...left(refused)]).toEqual([429, "0", "984"]);
    const messages = [{ role: "user", content: "hi" }];
    const { headers } = await gateway.post("/v1/messages", { model: "m", max_tokens: 5, messages });
    expect(headers.get("anthropic-ratelimit-requests-remaining")).toBe("0");
  });

  test("of the tightest among budgets and the rate limit of the key", async () => {
    backend.answer = chat("x", usage(5, 3));
    const keys = [
      { key: "secret-of-a", id: "a", rate_limit: 3 },
      { key: "secret-of-b", id: "b", rate_limit: 300 },
    ];
    const gateway = await start([{ id: "r", limit: { requests: 100 }, window: "day", per: "key" }], {
      api_keys: { keys },
    });
    const limitOf = async (key: string) => {
      const { status, headers } = await gateway.chat({ model: "m" }, bearer(key));
      const [limit, left] = ["limit", "remaining"].map((what) => headers.get(`x-ratelimit-${what}-requests`));
      return [status, limit, left];
    };
    expect(await limitOf("a")).toEqual([200, "3", "2"]);
    expect(await limitOf("b")).toEqual([200, "100", "99"]);
    for (const left of ["1", "0"]) expect(await limitOf("a")).toEqual([200, "3", left]);
    expect(await limitOf("a")).toEqual([429, "3", "0"]);
    const models = await fetch(`${gateway.url}/v1/models`, bearer("b"));
    expect(models.headers.get("x-ratelimit-limit-requests")).toBe("300");
  });

  test("nothing where no budget counts tokens or requests", async () => {
    const gateway = await start([{ id: "money", limit: { cost: 10_000 }, window: "day" }]);
    const { headers } = await gateway.chat({ model: "m" });
    expect([...headers.keys()].filter((name) => name.includes("ratelimit"))).toEqual([]);
  });
});

/** What is spent of the budget "all", in the currency. */
async function spentOf(gateway: Gateway): Promise<{ cost: number; requests: number }> {
  const response = await gateway.chat({ model: "m" });
  const { error } = (await response.json()) as { error?: { details: { spent: number } } };
  return { cost: error?.details.spent ?? 0, requests: backend.requests.length };
}

const all = (cost: number): Rules => [{ id: "all", limit: { cost }, window: "month" }];

describe("what counts as spent", () => {
  test("streams, also those whose client did not ask for the counts", async () => {
    const counts = `data: ${JSON.stringify({ choices: [], ...usage(5, 3) })}\n\n`;
    backend.answer = chatStream(["a", "b"]);
    const events = chatStream(["a", "b"]).body as string[];
    backend.answer = eventStream([...events.slice(0, -1), counts, "data: [DONE]\n\n"]);
    const gateway = await start(all(30));
    expect(await statusOf(gateway, { stream: true })).toBe(200);
    expect(await spentOf(gateway)).toEqual({ cost: 35, requests: 1 });
  });

  test("a stream that breaks off by what was seen of it", async () => {
    backend.answer = chatStream(["a", "b", "c", "d"], {}, { breakAfterBytes: 600, breakWith: "reset" });
    const gateway = await start(all(20));
    await gateway.chat({ model: "m", stream: true }).then((response) => response.text());
    const { cost } = await spentOf(gateway);
    expect(cost).toBeGreaterThan(20);
  });

  test("a stream whose client leaves", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    backend.answer = chatStream(
      ["a", "b", "c", "d"],
      {},
      { beforeChunk: (index) => (index === 4 ? promise : undefined) },
    );
    const gateway = await start(all(10));
    const controller = new AbortController();
    const response = await gateway.chat({ model: "m", stream: true }, { signal: controller.signal });
    await response.body?.getReader().read();
    controller.abort();
    await waitFor(
      "what was seen is spent",
      async () => (await statusOf(gateway, { model: "m", max_tokens: 1 })) === 429,
    );
    resolve();
  });

  test("attempts that no vendor bills are free, and those of a retry count once", async () => {
    backend.queue({ status: 503 }, { status: 503 });
    backend.answer = chat("x", usage(5, 3));
    const gateway = await start(all(30));
    expect(await statusOf(gateway)).toBe(200);
    expect(backend.requests).toHaveLength(3);
    expect(await spentOf(gateway)).toEqual({ cost: 35, requests: 3 });
  });

  test("answers from the cache cost nothing, and identical calls in flight cost once", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    backend.answer = { ...chat("x", usage(5, 3)), headersAfter: promise };
    const gateway = await start(all(60), {
      response_cache: { enabled: true },
      deduplication: { mode: "all" },
    } as ConfigDocument);
    const asked = { temperature: 0, messages: [{ role: "user", content: "same" }] };
    const shared = [0, 1, 2].map(() => statusOf(gateway, asked));
    await waitFor("the call", () => backend.requests.length === 1);
    resolve();
    expect(await Promise.all(shared)).toEqual([200, 200, 200]);
    expect(await statusOf(gateway, asked)).toBe(200);
    expect(backend.requests).toHaveLength(1);
    backend.answer = chat("x", usage(5, 3));
    expect(await statusOf(gateway)).toBe(200);
    expect(await spentOf(gateway)).toEqual({ cost: 70, requests: 2 });
  });
});

describe("a strict budget", () => {
  const strict: Rules = [{ id: "s", limit: { cost: 1_000 }, window: "month", strict: true }];
  const asked = (maxTokens: number) => ({ max_tokens: maxTokens, messages: [{ role: "user", content: "x" }] });

  test("wants what the request may cost at most", async () => {
    const gateway = await start(strict);
    const response = await gateway.chat({ model: "m", ...asked(200) });
    expect(response.status).toBe(429);
    expect(((await response.json()) as { error: { message: string } }).error.message).toContain(
      "a smaller max_tokens asks for less",
    );
    expect(await statusOf(gateway, asked(20))).toBe(200);
  });

  test("counts a document by its bytes, up to the context window of the model", async () => {
    const file_data = `data:application/pdf;base64,${Buffer.from(`%PDF-1.7${" ".repeat(40_000)}`).toString("base64")}`;
    const content = [{ type: "file", file: { filename: "a.pdf", file_data } }];
    const document = { max_tokens: 1, messages: [{ role: "user", content }] };
    const refusedIn = async (more: object) => {
      const one = { name: "one", url: backend.url, models: ["m"], model_configs: [priced("m", more)] };
      const gateway = await start([{ id: "s", limit: { input_tokens: 20_000 }, window: "month", strict: true }], {
        backends: [one],
      } as ConfigDocument);
      return await statusOf(gateway, document);
    };
    expect(await refusedIn({})).toBe(429);
    expect(await refusedIn({ limits: { context_window: 8_000 } })).toBe(200);
  });

  test("is never exceeded by a thousand requests at once", async () => {
    let billed = 0;
    backend.answer = (request: RecordedRequest) => {
      const { max_tokens } = request.json<{ max_tokens: number }>();
      billed += 1 + max_tokens * 10;
      return { ...chat("x", usage(1, max_tokens)), beforeHeadersMs: 5 };
    };
    const gateway = await start(strict);
    const statuses = await Promise.all(
      Array.from({ length: 1_000 }, (_, index) => statusOf(gateway, asked(1 + (index % 9)))),
    );
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    expect(billed).toBeLessThanOrEqual(1_000);
    expect(billed).toBeGreaterThan(200);
  });
});

test("a budget of requests is exact among a thousand at once", async () => {
  const gateway = await start([{ id: "r", limit: { requests: 137 }, window: "month" }]);
  const statuses = await Promise.all(Array.from({ length: 1_000 }, () => statusOf(gateway)));
  expect(statuses.filter((status) => status === 200)).toHaveLength(137);
  expect(backend.requests).toHaveLength(137);
});

test("a changed limit holds for the next request, and what was spent stays", async () => {
  backend.answer = { body: chatBody("x", usage(5, 3)) };
  const gateway = await start(all(30));
  expect([await statusOf(gateway), await statusOf(gateway)]).toEqual([200, 429]);
  const { status } = await new AdminClient(gateway).send("PATCH", "/admin/config/budgets", {
    body: { rules: all(40) },
  });
  expect(status).toBe(200);
  expect([await statusOf(gateway), await statusOf(gateway)]).toEqual([200, 429]);
});

test("thresholds are told to those who listen, each once", async () => {
  backend.answer = chat("x", usage(5, 3));
  const gateway = await start([{ id: "all", limit: { cost: 100 }, window: "month", warn_at: [0.5] }]);
  const follower = await EventFollower.open(gateway);
  for (let count = 0; count < 4; count++) await statusOf(gateway);
  const told = () => follower.events.filter(({ event }) => event === "budget").map(({ data }) => data);
  await waitFor("both are told", () => told().length === 2);
  expect(told()).toMatchObject([
    { budget: "all", subject: null, share: 0.5, amount: "cost", spent: 70, limit: 100 },
    { budget: "all", share: 1, spent: 105 },
  ]);
  follower.leave();
});

describe("the admin API", () => {
  const admin = (gateway: Gateway) => new AdminClient(gateway);

  test("shows what is spent, by whom, and adds, changes and removes rules", async () => {
    backend.answer = chat("x", usage(5, 3));
    const gateway = await start([]);
    const rule = { id: "per-key", limit: { cost: 100 }, window: "month", per: "key" };
    const made = await admin(gateway).send("POST", "/admin/budgets", { body: rule });
    expect(made).toMatchObject({ status: 201, body: { budget: { id: "per-key", per: "key", window: "month" } } });
    for (const key of ["a", "a", "b"]) expect(await statusOf(gateway, {}, key)).toBe(200);
    const { body } = await admin(gateway).send("GET", "/admin/budgets");
    expect(body).toMatchObject({
      currency: "USD",
      time_zone: "UTC",
      total: 1,
      budgets: [
        { subject: "a", limits: [{ amount: "cost", limit: 100, spent: 70, held: 0, remaining: 30, share: 0.7 }] },
      ],
    });
    const shown = await admin(gateway).send("GET", "/admin/budgets/per-key/usage");
    expect(shown.body).toMatchObject({
      subjects: [
        { subject: "a", share: 0.7, cost: 70, input_tokens: 10, output_tokens: 6, requests: 2 },
        { subject: "b", share: 0.35, cost: 35, requests: 1 },
      ],
      history: [
        { subject: "a", cost: 70 },
        { subject: "b", cost: 35 },
      ],
    });
    const dry = await admin(gateway).send("PUT", "/admin/budgets/per-key?dry_run=true", {
      body: { limit: { cost: 70 } },
    });
    expect(dry.body).toMatchObject({ dry_run: true, budget: { limits: [{ limit: 70, spent: 70, share: 1 }] } });
    expect(await statusOf(gateway)).toBe(200);
    expect(await statusOf(gateway)).toBe(429);
    const gone = await admin(gateway).send("DELETE", "/admin/budgets/per-key");
    expect(gone.body).toMatchObject({ removed_budget: { id: "per-key" } });
    expect(await statusOf(gateway)).toBe(200);
  });

  test("a reset begins from nothing, with its reason in the history, and a rollback takes it back", async () => {
    backend.answer = chat("x", usage(5, 3));
    const gateway = await start(all(30));
    expect([await statusOf(gateway), await statusOf(gateway)]).toEqual([200, 429]);
    const before = (await admin(gateway).send("GET", "/admin/budgets")).headers.get("etag")?.replaceAll('"', "");
    const reset = await admin(gateway).send("POST", "/admin/budgets/all/reset", {
      body: { reason: "the bill was paid" },
    });
    expect(reset.body).toMatchObject({ budget: { limits: [{ spent: 0 }] } });
    expect(await statusOf(gateway)).toBe(200);
    const { text } = await admin(gateway).send("GET", "/admin/config/history");
    expect(text).toContain("budget all reset: the bill was paid");
    expect((await admin(gateway).send("POST", `/admin/config/rollback/${before}`)).status).toBe(200);
    const after = await admin(gateway).send("GET", "/admin/budgets/all");
    expect(after.body).toMatchObject({ reset_at: null, limits: [{ spent: 70 }] });
  });

  test("one subject of a rule with per begins from nothing, and the others do not", async () => {
    backend.answer = chat("x", usage(5, 3));
    const gateway = await start([{ id: "each", limit: { cost: 50 }, window: "month", per: "key" }]);
    for (const key of ["a", "a", "b", "b"]) await statusOf(gateway, {}, key);
    expect([await statusOf(gateway), await statusOf(gateway, {}, "b")]).toEqual([429, 429]);
    const reset = (body: object) => admin(gateway).send("POST", "/admin/budgets/each/reset", { body });
    for (const subject of ["nobody", "A"]) {
      expect(await reset({ subject })).toMatchObject({ status: 400, body: { error: { param: "subject" } } });
    }
    const done = await reset({ subject: "a", reason: "a mistake" });
    expect(done).toMatchObject({
      status: 200,
      body: { budget: { reset_at: null, reset_subjects: { a: expect.any(String) } } },
    });
    expect([await statusOf(gateway), await statusOf(gateway, {}, "b")]).toEqual([200, 429]);
    const { body } = await admin(gateway).send("GET", "/admin/budgets/each/usage");
    expect(body.subjects).toMatchObject([
      { subject: "b", cost: 70 },
      { subject: "a", cost: 35 },
    ]);
    const { body: history } = await admin(gateway).send("GET", "/admin/config/history");
    expect(JSON.stringify(history)).toContain("budget each reset for a: a mistake");
    await admin(gateway).send("POST", "/admin/config/rollback/1");
    expect(await statusOf(gateway)).toBe(429);
    await reset({});
    expect([await statusOf(gateway), await statusOf(gateway, {}, "b")]).toEqual([200, 200]);
  });

  test("a key is made with a budget, which is shown beside the rules and reset by its name", async () => {
    backend.answer = chat("x", usage(5, 3));
    const gateway = await start([]);
    const intern = {
      id: "intern",
      key: "secret-of-intern",
      budget: { cost: 20, window: "month" },
      token_limit: 20_000,
    };
    const made = await admin(gateway).send("POST", "/admin/keys", { body: intern });
    expect(made).toMatchObject({
      status: 201,
      body: { key: { id: "intern", budget: { cost: 20 }, token_limit: 20_000 } },
    });
    expect([await statusOf(gateway, {}, "intern"), await statusOf(gateway, {}, "intern")]).toEqual([200, 429]);
    const { body } = await admin(gateway).send("GET", "/admin/budgets");
    expect(body.budgets).toMatchObject([
      { id: "key:intern", key: "intern", limits: [{ spent: 35 }] },
      { id: "key:intern:tokens", key: "intern", window: "1m", limits: [{ amount: "tokens", spent: 8, limit: 20_000 }] },
    ]);
    expect((await admin(gateway).send("PUT", "/admin/budgets/key:intern", { body: {} })).status).toBe(409);
    expect((await admin(gateway).send("POST", "/admin/budgets/key:intern/reset")).status).toBe(200);
    expect(await statusOf(gateway, {}, "intern")).toBe(200);
  });

  test("a mistake is told by its field", async () => {
    const gateway = await start([]);
    const wrong = { id: "a b", limit: { cost: -1 }, window: "year", match: { team: "x" } };
    const { status, text } = await admin(gateway).send("POST", "/admin/budgets", { body: wrong });
    expect(status).toBe(400);
    for (const field of ['"id"', '"limit.cost"', '"window"', "team"]) expect(text).toContain(field);
  });
});

test("the holder of a key sees what is left", async () => {
  backend.answer = chat("x", usage(5, 3));
  const gateway = await start([
    { id: "sales", match: { organization: "sales", model: "m" }, limit: { cost: 500 }, window: "month" },
    { id: "others", match: { organization: "others" }, limit: { cost: 1 }, window: "month" },
    { id: "each", limit: { requests: 10 }, window: "day", per: "key" },
  ]);
  await statusOf(gateway, {}, "b");
  await statusOf(gateway);
  const me = (await (await gateway.fetch("/v1/me", bearer("a"))).json()) as { budgets: object[] };
  expect(me.budgets).toMatchObject([
    {
      id: "sales",
      window: "month",
      models: ["m"],
      limits: [{ amount: "cost", spent: 70, remaining: 430, currency: "USD" }],
    },
    { id: "each", window: "day", models: null, limits: [{ amount: "requests", spent: 1, limit: 10, remaining: 9 }] },
  ]);
});

test("metrics show what is spent and refused", async () => {
  backend.answer = chat("x", usage(5, 3));
  const gateway = await start(all(30));
  expect([await statusOf(gateway), await statusOf(gateway)]).toEqual([200, 429]);
  const text = await (await gateway.fetch("/metrics")).text();
  expect(text).toContain('signalbox_budget_spent{budget="all",amount="cost"} 35\n');
  expect(text).toContain('signalbox_budget_limit{budget="all",amount="cost"} 30\n');
  expect(text).toContain('signalbox_budget_refusals_total{budget="all"} 1\n');
});

describe("organizations", () => {
  const keys = [
    { key: "secret-of-a", id: "a", organization_id: "sales" },
    {
      key: "secret-of-b",
      id: "b",
      organization_id: "sales",
      models: ["m", "both"],
      rate_limit: 100,
      token_limit: 1_000,
    },
    { key: "secret-of-c", id: "c", organization_id: "other" },
  ];
  const startWith = (sales: object) =>
    start([], { api_keys: { keys }, organizations: [{ id: "sales", name: "Sales", ...sales }] } as ConfigDocument);

  test("members share a budget", async () => {
    const gateway = await startWith({ budget: { requests: 2, window: "day" } });
    expect([await statusOf(gateway), await statusOf(gateway, {}, "b")]).toEqual([200, 200]);
    const response = await gateway.chat({ model: "m" }, bearer("b"));
    expect(response.status).toBe(429);
    expect(((await response.json()) as { error: { message: string } }).error.message).toContain("'organization:sales'");
    expect(await statusOf(gateway, {}, "c")).toBe(200);
    const admin = new AdminClient(gateway);
    expect((await admin.send("GET", "/admin/budgets/organization:sales")).body).toMatchObject({
      limits: [{ spent: 2 }],
    });
    for (const [method, path] of [
      ["PUT", ""],
      ["DELETE", ""],
      ["POST", "/reset"],
    ] as const) {
      const told = await admin.send(
        method,
        `/admin/budgets/organization:sales${path}`,
        method === "PUT" ? { body: {} } : {},
      );
      expect(told.status).toBe(409);
      expect(told.text).toContain("is carried by a key or an organization");
    }
  });

  test("a key has of it what it does not say itself", async () => {
    const gateway = await startWith({ models: ["m"], rate_limit: 1 });
    expect(await statusOf(gateway, { model: "both" })).toBe(403);
    expect(await statusOf(gateway)).toBe(429);
    for (const model of ["both", "m"]) expect(await statusOf(gateway, { model }, "b")).toBe(200);
    const me = await (await gateway.fetch("/v1/me", bearer("b"))).json();
    expect(me).toMatchObject({ organization: "sales", models: ["m", "both"], limits: { requests_per_minute: 100 } });
  });

  test("each key without a limit of its own has that many tokens per minute", async () => {
    backend.answer = chat("x", usage(5, 3));
    const gateway = await startWith({ token_limit: 8 });
    expect([await statusOf(gateway), await statusOf(gateway)]).toEqual([200, 429]);
    expect([await statusOf(gateway, {}, "b"), await statusOf(gateway, {}, "b")]).toEqual([200, 200]);
  });

  test("one that is disabled is refused with its name, which is told of who was refused", async () => {
    const gateway = await startWith({ enabled: false });
    const response = await gateway.chat({ model: "m" }, bearer("a"));
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({
      error: { code: "organization_disabled", message: "The organization 'Sales' is disabled." },
    });
    expect(await statusOf(gateway, {}, "c")).toBe(200);
    const { body } = await new AdminClient(gateway).send("GET", "/admin/requests?status=403");
    expect(body).toMatchObject({ requests: [{ key_id: "a" }] });
  });

  test("are added, shown with what is spent of them, changed and removed by the admin API", async () => {
    backend.answer = chat("x", usage(5, 3));
    const gateway = await start([], { api_keys: { keys } });
    const admin = new AdminClient(gateway);
    const body = { id: "sales", name: "Sales", budget: { cost: 100, window: "month" } };
    const made = await admin.send("POST", "/admin/organizations", { body });
    expect(made).toMatchObject({ status: 201, body: { organization: { id: "sales", keys: 2, enabled: true } } });
    expect([await statusOf(gateway), await statusOf(gateway, {}, "b")]).toEqual([200, 200]);
    const list = await admin.send("GET", "/admin/organizations");
    expect(list.body).toMatchObject({
      currency: "USD",
      total: 1,
      organizations: [{ keys: 2, budgets: [{ id: "organization:sales", limits: [{ spent: 70, remaining: 30 }] }] }],
    });
    const rows = (await admin.send("GET", "/admin/keys")).body.keys as { id: string; tightest_budget: unknown }[];
    expect(rows.map(({ tightest_budget }) => tightest_budget)).toEqual([
      { budget: "organization:sales", amount: "cost", limit: 100, remaining: 30, share: 0.7 },
      { budget: "organization:sales", amount: "cost", limit: 100, remaining: 30, share: 0.7 },
      null,
    ]);
    await admin.send("PUT", "/admin/organizations/sales", { body: { enabled: false, token_limit: 7 } });
    expect(await statusOf(gateway)).toBe(403);
    const one = await admin.send("GET", "/admin/organizations/sales");
    expect(one.body).toMatchObject({ enabled: false, budgets: [{}, { id: "organization:sales:tokens" }] });
    const gone = await admin.send("DELETE", "/admin/organizations/sales");
    expect(gone).toMatchObject({ status: 200, body: { removed_organization: { id: "sales" } } });
    expect(await statusOf(gateway)).toBe(200);
  });

  test("none is there twice", async () => {
    const gateway = await startWith({});
    const list = [{ id: "sales" }, { id: "sales" }];
    const { status, text } = await new AdminClient(gateway).send("PUT", "/admin/config/organizations", { body: list });
    expect(status).toBe(400);
    expect(text).toContain("organizations[1].id");
  });
});
