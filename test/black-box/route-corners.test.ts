// Corners of routes: names that keys may use, answers that name their model oddly, what one vendor keeps, searches, and mirrors.

import { describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import { chat, chatStream, eventStream, failure, sseEvent } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

const hello = [{ role: "user", content: "Hello!" }];

/** Two models on two backends of their own. */
async function start(routes: ConfigDocument["routes"], more: Partial<ConfigDocument> = {}) {
  const main = bed.backend({ answer: chat("main", { model: "big-2026" }) });
  const trial = bed.backend({ answer: chat("trial", { model: "small-2026" }) });
  const gateway = await bed.gateway({
    config: {
      admin: { auth: { method: "none" } },
      retry: { max_attempts: 1 },
      health_checks: { enabled: false },
      circuit_breaker: { enabled: false },
      backends: [
        { name: "main", url: main.url, models: ["big"] },
        { name: "trial", url: trial.url, models: ["small"] },
      ],
      routes,
      ...more,
    },
  });
  return { main, trial, gateway, admin: new AdminClient(gateway) };
}

describe("a key that may use a model", () => {
  const headers = { Authorization: "Bearer sk-sekret-corner" };
  const api_keys = (models: string[]): ConfigDocument["api_keys"] => ({
    mode: "blocking",
    keys: [{ id: "k", key: "sk-sekret-corner", models }],
  });

  test("may not use a route whose name begins with a backend of this model", async () => {
    const { gateway, main } = await start([{ name: "trial/*", targets: [{ model: "big" }] }], {
      api_keys: api_keys(["small"]),
    });
    expect((await gateway.chat({ model: "trial/small", messages: hello }, { headers })).status).toBe(403);
    expect(main.requests).toHaveLength(0);
  });

  test("of the same name as a route may not use the model behind it", async () => {
    const { gateway, main } = await start([{ name: "big", targets: [{ model: "small" }] }], {
      api_keys: api_keys(["big"]),
    });
    expect((await gateway.chat({ model: "big", messages: hello }, { headers })).status).toBe(200);
    expect((await gateway.chat({ model: "main/big", messages: hello }, { headers })).status).toBe(403);
    expect(main.requests).toHaveLength(0);
  });
});

test("a target is not counted for what the gateway answers itself", async () => {
  const { gateway, admin } = await start([{ name: "smart", targets: [{ model: "big" }] }]);
  expect((await gateway.post("/v1/messages/count_tokens", { model: "smart", messages: hello })).status).toBe(200);
  await (await gateway.chat({ model: "smart", messages: hello })).text();
  await waitFor("the second request is counted", async () => {
    const { arms } = (await admin.get("/admin/routes/smart")) as { arms: { total_requests: number }[] };
    return (arms[0]?.total_requests ?? 0) > 0;
  });
  expect(await admin.get("/admin/routes/smart")).toMatchObject({ arms: [{ total_requests: 1 }] });
});

test("a model of one backend is reached beside a default alias", async () => {
  const { gateway, main, trial } = await start([], { model_aliases: { default: "big" } });
  for (const model of ["trial/small", "unknown"]) {
    expect((await gateway.post("/v1/messages", { model, max_tokens: 5, messages: hello })).status).toBe(200);
  }
  expect([main, trial].map(({ requests }) => requests.map((request) => request.json().model))).toEqual([
    ["big"],
    ["small"],
  ]);
});

test("a route can be reached by its name in a path, whatever it is called", async () => {
  const { admin } = await start([]);
  const targets = [{ model: "big" }];
  for (const name of ["openai/gpt-4o", "gpt-*", "*", "__proto__", "a b/ü?#%", "<b>"]) {
    await admin.ok("POST", "/admin/routes", { name, targets });
    const path = `/admin/routes/${encodeURIComponent(name)}`;
    expect(await admin.get(path)).toMatchObject({ name });
    await admin.refused(409, "PUT", path, { sticky: "none", version: 1 });
    await admin.ok("PUT", `${path}?dry_run=true`, { sticky: "none" });
    expect(await admin.get(path)).toMatchObject({ sticky: "conversation" });
    await admin.ok("DELETE", path);
  }
  const refused = await admin.refused(400, "POST", "/admin/routes", { name: "two\nlines", targets });
  expect(refused.fields).toEqual(["name"]);
});

describe("the model of an answer", () => {
  const routes: ConfigDocument["routes"] = [{ name: 'smart "quoted" \\ one', targets: [{ model: "big" }] }];
  const chunk = (model: string, content: string) =>
    `{"id":"c","object":"chat.completion.chunk","created":1,"model":${model},"choices":[{"index":0,"delta":{"content":"${content}"},"finish_reason":null}]}`;
  const last = (model: string) =>
    `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":${model},"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`;

  async function namesIn(chunks: string[]): Promise<unknown[]> {
    const { gateway, main } = await start(routes);
    main.reset(eventStream(chunks));
    const answer = await gateway.chat({ model: 'smart "quoted" \\ one', messages: hello, stream: true });
    const text = await answer.text();
    return text
      .split(/\r?\n\r?\n/)
      .filter((event) => event.startsWith("data: {"))
      .map((event) => JSON.parse(event.slice(6)).model);
  }
  const NAME = 'smart "quoted" \\ one';

  test("is the route's where the first event has an empty name", async () => {
    const filter = 'data: {"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[]}\n\n';
    const names = await namesIn([filter, `data: ${chunk('"big-2026"', "a")}\n\n`, last('"big-2026"')]);
    expect(names).toEqual([NAME, NAME, NAME]);
  });

  test("is the route's where the name changes on the way", async () => {
    const names = await namesIn([
      `data: ${chunk('"big"', "a")}\n\n`,
      `data: ${chunk('"big-2026"', "b")}\n\n`,
      last('"big-2026"'),
    ]);
    expect(names).toEqual([NAME, NAME, NAME]);
  });

  test("is the route's where several events with several names come in one piece", async () => {
    const names = await namesIn([
      `data: ${chunk('"big"', "a")}\n\ndata: ${chunk('"big-2026"', "b")}\n\n${last('"big-2026"')}`,
    ]);
    expect(names).toEqual([NAME, NAME, NAME]);
  });

  test("is the route's where the first event has the route's name", async () => {
    const names = await namesIn([
      `data: ${chunk(JSON.stringify(NAME), "a")}\n\n`,
      `data: ${chunk('"big-2026"', "b")}\n\n`,
      last('"big-2026"'),
    ]);
    expect(names).toEqual([NAME, NAME, NAME]);
  });

  test("is the route's where it is written with escapes or blanks", async () => {
    const names = await namesIn([
      `: hello\r\n\r\ndata: ${chunk('"gro\\u00df\\/2026"', "a")}\r\n\r\n`,
      `data: ${chunk(' \\t"x"'.replace("\\t", "  "), "b")}\n\n`,
      last('"gro\\u00df\\/2026"'),
    ]);
    expect(names).toEqual([NAME, NAME, NAME]);
  });

  test("is the route's where an event has several lines", async () => {
    const lines = chunk('"big-2026"', "a").replace(',"model"', ',\ndata: "model"');
    const names = await namesIn([
      `event: x\ndata: ${lines}\n\n`,
      `data: ${chunk('"big-2026"', "b")}\n\n`,
      last('"big-2026"'),
    ]);
    expect(names).toEqual([NAME, NAME]);
  });

  test("is replaced where the answer names its model, not in what it repeats of the request", async () => {
    const openai = bed.backend();
    const gateway = await bed.gateway({
      config: {
        health_checks: { enabled: false },
        backends: [{ name: "openai", type: "openai", url: openai.url, api_key: "sk-sekret-1", models: ["gpt"] }],
        routes: [{ name: "smart", targets: [{ model: "gpt" }] }],
      },
    });
    const response = { id: "resp_1", object: "response", metadata: { model: "gpt" }, model: "gpt", output: [] };
    const event = (type: string, status: string) =>
      `event: ${type}\n${sseEvent({ type, sequence_number: 0, response: { ...response, status } })}`;
    openai.reset(eventStream([event("response.created", "in_progress"), event("response.completed", "completed")]));
    const answer = await gateway.post("/v1/responses", {
      model: "smart",
      input: "x",
      stream: true,
      metadata: { model: "gpt" },
    });
    const told = (await answer.text())
      .split("\n")
      .filter((line) => line.startsWith("data: {"))
      .map((line) => JSON.parse(line.slice(6)).response);
    expect(told.map(({ model, metadata }) => [model, metadata.model])).toEqual([
      ["smart", "gpt"],
      ["smart", "gpt"],
    ]);
  });
});

describe("what one vendor keeps", () => {
  async function startVendor(routes: ConfigDocument["routes"]) {
    const openai = bed.backend();
    const other = bed.backend();
    const gateway = await bed.gateway({
      config: {
        admin: { auth: { method: "none" } },
        health_checks: { enabled: false },
        backends: [
          { name: "openai", type: "openai", url: openai.url, api_key: "sk-sekret-1", models: ["gpt"] },
          { name: "other", url: other.url, models: ["small"] },
        ],
        routes,
      },
    });
    const response = (id: string) => ({
      body: JSON.stringify({ id, object: "response", status: "completed", model: "gpt-1", output: [] }),
    });
    async function firstAtVendor(model: string): Promise<string> {
      for (let turn = 0; turn < 12; turn++) {
        openai.reset(response("resp_vendor"));
        const first = await gateway.post("/v1/responses", { model, input: "Hello!" });
        const { id } = (await first.json()) as { id: string };
        if (id === "resp_vendor") return id;
      }
      throw new Error("the vendor was not asked");
    }
    return { openai, gateway, response, firstAtVendor };
  }

  test("is found behind a route that a target names", async () => {
    const { openai, gateway, response, firstAtVendor } = await startVendor([
      { name: "smart", sticky: "none", targets: [{ model: "fast" }, { model: "small", weight: 3 }] },
      { name: "fast", targets: [{ model: "gpt" }] },
    ]);
    const previous_response_id = await firstAtVendor("smart");
    for (let turn = 0; turn < 4; turn++) {
      openai.reset(response(`resp_${turn}`));
      const next = await gateway.post("/v1/responses", { model: "smart", input: "And?", previous_response_id });
      expect(next.headers.get("x-signalbox-arm")).toBe("fast > gpt");
    }
  });

  test("stays with a target that has lost its weight", async () => {
    const targets = [{ model: "gpt" }, { model: "small", weight: 3 }];
    const { openai, gateway, response, firstAtVendor } = await startVendor([
      { name: "smart", sticky: "none", targets },
    ]);
    const previous_response_id = await firstAtVendor("smart");
    const admin = new AdminClient(gateway);
    await admin.ok("PUT", "/admin/routes/smart", { targets: [{ model: "gpt", weight: 0 }, { model: "small" }] });
    for (let turn = 0; turn < 4; turn++) {
      openai.reset(response(`resp_${turn}`));
      const next = await gateway.post("/v1/responses", { model: "smart", input: "And?", previous_response_id });
      expect(next.headers.get("x-signalbox-arm")).toBe("gpt");
    }
  });
});

describe("a target that is asked in place of another one", () => {
  test("gets its own fields, on its own backend, in every turn of an answer with searches", async () => {
    const search = bed.backend({ answer: { body: JSON.stringify({ organic: [] }) } });
    const main = bed.backend({ answer: failure(503) });
    const trial = bed.backend();
    const gateway = await bed.gateway({
      config: {
        retry: { max_attempts: 1 },
        health_checks: { enabled: false },
        circuit_breaker: { enabled: false },
        backends: [
          { name: "main", type: "vllm", url: main.url, models: ["big"] },
          { name: "trial", type: "vllm", url: trial.url, models: ["small"] },
        ],
        web_search: { provider: "serper", api_key: "sekret-search", base_url: search.url },
        routes: [
          {
            name: "smart",
            targets: [
              { model: "big", backend: "main", set: { temperature: 0.1 } },
              { model: "small", weight: 0, backend: "trial", set: { seed: 7 } },
            ],
          },
        ],
      },
    });
    const call = { index: 0, id: "c1", type: "function", function: { name: "web_search", arguments: '{"query":"x"}' } };
    const chunk = (delta: object, finish_reason: string | null) =>
      sseEvent({
        id: "c",
        object: "chat.completion.chunk",
        created: 1,
        model: "m",
        choices: [{ index: 0, delta, finish_reason }],
      });
    const searches = eventStream([
      chunk({ role: "assistant", tool_calls: [call] }, null),
      chunk({}, "tool_calls"),
      "data: [DONE]\n\n",
    ]);
    trial.reset(() => (trial.requests.length === 1 ? searches : chatStream(["found"])));
    const answer = await gateway.post("/v1/messages", {
      model: "smart",
      max_tokens: 50,
      temperature: 0.5,
      messages: hello,
      tools: [{ type: "web_search_20250305", name: "web_search" }],
    });
    expect(await answer.text()).toContain("found");
    expect(trial.requests.map((request) => request.json())).toMatchObject([
      { model: "small", seed: 7, temperature: 0.5 },
      { model: "small", seed: 7, temperature: 0.5 },
    ]);
  });
});

describe("a mirror", () => {
  test("gets one copy of a call that several clients share", async () => {
    const { gateway, main, trial } = await start(
      [{ name: "smart", targets: [{ model: "big" }], mirror: { model: "small", share: 1 } }],
      { deduplication: { mode: "all" } },
    );
    const held = Promise.withResolvers<void>();
    main.reset(async () => {
      await held.promise;
      return chat("main");
    });
    const asked = Array.from({ length: 5 }, () => gateway.chat({ model: "smart", messages: hello, temperature: 0 }));
    await waitFor("the call is made", () => main.requests.length === 1);
    held.resolve();
    await Promise.all(asked.map(async (answer) => (await answer).text()));
    await waitFor("the copy is made", () => trial.requests.length > 0);
    await gateway.chat({ model: "smart", messages: [{ role: "user", content: "last" }] });
    await waitFor("the last copy is made", () =>
      trial.requests.some((request) => JSON.stringify(request.json()).includes("last")),
    );
    expect([main.requests.length, trial.requests.length]).toEqual([2, 2]);
  });

  test("asks no vendor to keep what the copy's answer is", async () => {
    const openai = bed.backend({
      answer: {
        body: JSON.stringify({ id: "resp_1", object: "response", status: "completed", model: "gpt", output: [] }),
      },
    });
    const gateway = await bed.gateway({
      config: {
        health_checks: { enabled: false },
        backends: [{ name: "openai", type: "openai", url: openai.url, api_key: "sk-sekret-1", models: ["gpt", "new"] }],
        routes: [{ name: "smart", targets: [{ model: "gpt" }], mirror: { model: "new", share: 1 } }],
      },
    });
    await (await gateway.post("/v1/responses", { model: "smart", input: "x", store: true })).text();
    await waitFor("the copy is made", () => openai.requests.length === 2);
    const copy = openai.requests.map((request) => request.json()).find(({ model }) => model === "new");
    expect(copy).toMatchObject({ store: false });
    openai.reset(chat("x"));
    await (await gateway.chat({ model: "smart", messages: hello, store: true })).text();
    await waitFor("the copy is made", () => openai.requests.length === 2);
    const other = openai.requests.map((request) => request.json()).find(({ model }) => model === "new");
    expect(other).toMatchObject({ store: false });
  });

  test("that fails is no failed request of the gateway", async () => {
    const { gateway, admin, trial } = await start([
      { name: "smart", targets: [{ model: "big" }], mirror: { model: "small", share: 1 } },
    ]);
    trial.reset(failure(500));
    for (let index = 0; index < 3; index++) await (await gateway.chat({ model: "smart", messages: hello })).text();
    await waitFor("copies are counted", async () => {
      const { arms } = (await admin.get("/admin/routes/smart")) as { arms: { errors: number }[] };
      return arms[1]?.errors === 3;
    });
    expect(await admin.get("/admin/errors/recent")).toMatchObject({ errors: [] });
  });

  test("gets no copy of what does more than answer", async () => {
    const anthropic = bed.backend();
    const gateway = await bed.gateway({
      config: {
        health_checks: { enabled: false },
        backends: [
          { name: "a", type: "anthropic", url: anthropic.url, api_key: "sk-sekret-1", models: ["claude", "new"] },
        ],
        routes: [{ name: "smart", targets: [{ model: "claude" }], mirror: { model: "new", share: 1 } }],
      },
    });
    const message = {
      id: "msg_1",
      type: "message",
      role: "assistant",
      content: [],
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    anthropic.reset({ body: JSON.stringify({ ...message, model: "claude", stop_reason: "end_turn" }) });
    const ask = (more: object) =>
      gateway.post("/v1/messages", { model: "smart", max_tokens: 9, messages: hello, ...more });
    await (await ask({ mcp_servers: [{ type: "url", name: "x", url: "https://mcp.test" }] })).text();
    await (await ask({})).text();
    await waitFor("the second is copied", () => anthropic.requests.length === 3);
    expect(anthropic.requests.map((request) => request.json().model)).toEqual(["claude", "claude", "new"]);
  });
});
