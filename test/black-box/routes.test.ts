// Routes: names that clients ask for as models, and the models that answer, by weight, by condition, and when one fails.

import { beforeEach, describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import type { FakeBackend } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatEvents, chatStream, embeddings, eventStream, failure } from "../support/openai-answers.ts";
import { readSse } from "../support/sse-reader.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

/** Two models on two backends of their own. */
async function start(routes: ConfigDocument["routes"], more: Partial<ConfigDocument> = {}) {
  const main = bed.backend({ answer: chat("main", { model: "big-2026" }) });
  const trial = bed.backend({ answer: chat("trial", { model: "small-2026" }) });
  const gateway = await bed.gateway({
    config: {
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
  return { main, trial, gateway };
}

interface Chunk {
  model: string;
  choices: { delta?: { content?: string } }[];
}

interface ModelList {
  data: { id: string }[];
}

const modelIds = async (answer: Response) => ((await answer.json()) as ModelList).data.map(({ id }) => id);

const hello = [{ role: "user", content: "Hello!" }];

async function armsOf(gateway: Gateway, times: number, body: (index: number) => Record<string, unknown> = () => ({})) {
  const counts = new Map<string, number>();
  for (let index = 0; index < times; index++) {
    const response = await gateway.chat({ model: "smart", messages: hello, ...body(index) });
    expect(response.status).toBe(200);
    await response.body?.cancel();
    const arm = response.headers.get("x-signalbox-arm") ?? "none";
    counts.set(arm, (counts.get(arm) ?? 0) + 1);
  }
  return Object.fromEntries(counts);
}

const SHARED: ConfigDocument["routes"] = [
  {
    name: "smart",
    sticky: "none",
    targets: [
      { model: "big", weight: 90 },
      { model: "small", weight: 10, name: "canary" },
    ],
  },
];

describe("shares", () => {
  test("are exact within each hundred requests", async () => {
    const { gateway } = await start(SHARED);
    expect(await armsOf(gateway, 100)).toEqual({ big: 90, canary: 10 });
    expect(await armsOf(gateway, 100)).toEqual({ big: 90, canary: 10 });
  });

  test("of conversations stay with their target, and each conversation has one", async () => {
    const { gateway, main, trial } = await start([{ name: "smart", targets: [{ model: "big" }, { model: "small" }] }]);
    for (let conversation = 0; conversation < 20; conversation++) {
      const messages = [{ role: "user", content: `question ${conversation}` }];
      const first = await armsOf(gateway, 1, () => ({ messages }));
      const more = [...messages, { role: "assistant", content: "yes" }, { role: "user", content: "and now?" }];
      expect(await armsOf(gateway, 3, () => ({ messages: more }))).toEqual(
        Object.fromEntries(Object.keys(first).map((arm) => [arm, 3])),
      );
    }
    expect(main.requests.length).toBeGreaterThan(0);
    expect(trial.requests.length).toBeGreaterThan(0);
  });

  test("of users stay with their target", async () => {
    const { gateway } = await start([
      { name: "smart", sticky: "user", targets: [{ model: "big" }, { model: "small" }] },
    ]);
    for (const user of ["ada", "bob", "cleo", "dan"]) {
      const found = await armsOf(gateway, 5, (index) => ({ user, messages: [{ role: "user", content: `${index}` }] }));
      expect(Object.values(found)).toEqual([5]);
    }
  });

  test("of requests without a session are taken in turn", async () => {
    const { gateway } = await start([
      { name: "smart", sticky: "key", targets: [{ model: "big" }, { model: "small" }] },
    ]);
    expect(await armsOf(gateway, 10)).toEqual({ big: 5, small: 5 });
  });

  test("go on where they were when another section changes", async () => {
    const { gateway } = await start(SHARED, { admin: { auth: { method: "none" } } });
    const before = await armsOf(gateway, 50);
    const admin = new AdminClient(gateway);
    await admin.ok("PATCH", "/admin/config/logging", { level: "debug" });
    const after = await armsOf(gateway, 50);
    expect((before.canary ?? 0) + (after.canary ?? 0)).toBe(10);
  });
});

describe("what a target gets", () => {
  test("is its own model, and the fields that it sets, in the client's format", async () => {
    const { gateway, trial } = await start([
      {
        name: "smart",
        targets: [{ model: "small", set: { temperature: 0.2, max_output_tokens: 50, reasoning_effort: "low" } }],
      },
    ]);
    await gateway.chat({ model: "smart", messages: hello, temperature: 1, max_tokens: 9 });
    const { model, temperature, max_tokens, max_completion_tokens, reasoning_effort } = trial.requests[0]?.json() ?? {};
    expect({ model, temperature, reasoning_effort }).toEqual({
      model: "small",
      temperature: 0.2,
      reasoning_effort: "low",
    });
    // A generic engine takes the limit by its older name.
    expect([max_tokens, max_completion_tokens]).toContain(50);
    expect([max_tokens, max_completion_tokens]).not.toContain(9);
    await gateway.post("/v1/messages", { model: "smart", max_tokens: 9, messages: hello });
    expect(trial.requests[1]?.json()).toMatchObject({ model: "small", temperature: 0.2 });
    expect(JSON.stringify(trial.requests[1]?.json())).toContain("50");
  });

  test("is sent to its backend alone", async () => {
    const { gateway, main, trial } = await start([{ name: "smart", targets: [{ model: "both", backend: "trial" }] }]);
    void main;
    const response = await gateway.chat({ model: "smart", messages: hello });
    expect(response.status).toBe(404);
    expect(trial.requests).toHaveLength(0);
  });

  test("is asked of one backend of several that serve the model", async () => {
    const left = bed.backend();
    const right = bed.backend();
    const gateway = await bed.gateway({
      config: {
        health_checks: { enabled: false },
        backends: [
          { name: "left", url: left.url, models: ["m"] },
          { name: "right", url: right.url, models: ["m"] },
        ],
        routes: [{ name: "smart", targets: [{ model: "m", backend: "right" }] }],
      },
    });
    expect(await armsOf(gateway, 6)).toEqual({ "m@right": 6 });
    expect([left.requests.length, right.requests.length]).toEqual([0, 6]);
  });
});

describe("answers", () => {
  test("name the route as their model, whole and in streams", async () => {
    const { gateway, main } = await start([{ name: "smart", targets: [{ model: "big" }] }]);
    const whole = await gateway.chat({ model: "smart", messages: hello });
    expect(await whole.json()).toMatchObject({ model: "smart" });
    expect(whole.headers.get("x-signalbox-route")).toBe("smart");
    main.reset(chatStream(["a", 'the "model":"big-2026" of it', "c"], { model: "big-2026" }));
    const stream = await gateway.chat({ model: "smart", messages: hello, stream: true });
    const text = await stream.text();
    expect(text).toBe(chatEvents(["a", 'the "model":"big-2026" of it', "c"], { model: "smart" }).join(""));
  });

  test("of Messages and Responses backends name it as well", async () => {
    const anthropic = bed.backend();
    const gateway = await bed.gateway({
      config: {
        health_checks: { enabled: false },
        backends: [{ name: "a", type: "anthropic", url: anthropic.url, api_key: "sk-sekret", models: ["claude"] }],
        routes: [{ name: "smart", targets: [{ model: "claude" }] }],
      },
    });
    const events = [
      'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-1","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}\n\n',
      'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
      'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}\n\n',
      'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
      'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}\n\n',
      'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    ];
    anthropic.reset(eventStream(events));
    const answer = await gateway.post("/v1/messages", { model: "smart", max_tokens: 9, messages: hello, stream: true });
    expect(await answer.text()).toBe(events.join("").replace("claude-1", "smart"));
  });

  test("of embeddings name it", async () => {
    const { gateway, main } = await start([{ name: "vectors", targets: [{ model: "big" }] }]);
    main.reset(embeddings([[1, 2]]));
    const answer = await gateway.post("/v1/embeddings", { model: "vectors", input: "x" });
    expect(await answer.json()).toMatchObject({ model: "vectors", data: [{ embedding: [1, 2] }] });
  });
});

describe("conditions", () => {
  const conditional: ConfigDocument["routes"] = [
    {
      name: "smart",
      targets: [{ model: "big" }],
      when: [
        { input_tokens: ">1000", targets: [{ model: "small", name: "long" }] },
        { has: "image", targets: [{ model: "small", name: "sees" }] },
        { has: ["tools", "json_schema"], targets: [{ model: "small", name: "both" }] },
        { has: "reasoning", targets: [{ model: "small", name: "thinks" }] },
        { header: { "X-Team": "red*" }, targets: [{ model: "small", name: "red" }] },
        { metadata: { tier: ["gold", "silver"] }, targets: [{ model: "small", name: "paid" }] },
        { user: "batch-*", targets: [{ model: "small", name: "batch" }] },
      ],
    },
  ];
  let gateway: Gateway;
  let main: FakeBackend;
  beforeEach(async () => {
    if (gateway === undefined) ({ gateway, main } = await start(conditional));
  });

  const schema = { type: "json_schema", json_schema: { name: "x", schema: { type: "object" } } };
  const tools = [{ type: "function", function: { name: "f", parameters: { type: "object" } } }];
  const picture = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
  const cases: [string, Record<string, unknown>, string, Record<string, string>?][] = [
    ["none of them", {}, "big"],
    ["many tokens", { messages: [{ role: "user", content: "word ".repeat(2000) }] }, "long"],
    ["a picture", { messages: [{ role: "user", content: [picture] }] }, "sees"],
    ["tools without a schema", { tools }, "big"],
    ["tools and a schema", { tools, response_format: schema }, "both"],
    ["an effort", { reasoning_effort: "high" }, "thinks"],
    ["no effort", { reasoning_effort: "none" }, "big"],
    ["a header", {}, "red", { "X-Team": "red-1" }],
    ["metadata", { metadata: { tier: "silver" } }, "paid"],
    ["a user", { user: "batch-7" }, "batch"],
  ];
  for (const [name, body, arm, headers] of cases) {
    test(`${name}: ${arm}`, async () => {
      const response = await gateway.chat(
        { model: "smart", messages: hello, ...body },
        headers === undefined ? {} : { headers },
      );
      expect(response.status).toBe(200);
      expect(response.headers.get("x-signalbox-arm")).toBe(arm);
    });
  }

  test("look at the client's format, whatever it is", async () => {
    const { gateway } = await start(conditional);
    const source = { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" };
    const messages = [{ role: "user", content: [{ type: "image", source }] }];
    const response = await gateway.post("/v1/messages", { model: "smart", max_tokens: 5, messages });
    expect(response.headers.get("x-signalbox-arm")).toBe("sees");
  });

  test("stand in the story of the request", async () => {
    const { gateway } = await start(conditional, { admin: { auth: { method: "none" } } });
    const response = await gateway.chat({ model: "smart", messages: hello, user: "batch-7" });
    const id = response.headers.get("x-signalbox-request-id");
    const story = await new AdminClient(gateway).get(`/admin/requests/${id}`);
    expect(story).toMatchObject({ model: "small", route: "smart", arm: "batch" });
    expect((story.explanation as string[])[0]).toBe(
      'The route smart chose batch: its only target, as the condition "user batch-*" held.',
    );
    void main;
  });
});

describe("a target that fails", () => {
  test("gives way to the next one, and then to the chain of the first", async () => {
    const { gateway, main, trial } = await start(SHARED, {
      fallback: { fallback_chains: { big: ["last"] } },
      admin: { auth: { method: "none" } },
    });
    main.reset(failure(503));
    const response = await gateway.chat({ model: "smart", messages: hello });
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ model: "smart", choices: [{ message: { content: "trial" } }] });
    expect(response.headers.get("x-signalbox-arm")).toBe("canary");
    expect(response.headers.get("x-fallback-model")).toBe("small");
    trial.reset(failure(503));
    const failed = await gateway.chat({ model: "smart", messages: hello });
    expect(failed.status).toBe(503);
    expect(await failed.text()).toContain("big: error_code_503, small: error_code_503, last:");
  });

  test("gives way to its chain alone with on_failure: chain", async () => {
    const [route] = SHARED as [NonNullable<ConfigDocument["routes"]>[number]];
    const { gateway, main, trial } = await start([{ ...route, on_failure: "chain" }]);
    main.reset(failure(503));
    const response = await gateway.chat({ model: "smart", messages: hello });
    expect(response.status).toBe(503);
    expect(trial.requests).toHaveLength(0);
  });

  test("in the middle of a stream is taken over by the next one", async () => {
    const { gateway, main, trial } = await start([
      { name: "smart", sticky: "none", targets: [{ model: "big", weight: 2 }, { model: "small" }] },
    ]);
    main.reset(eventStream(chatEvents(["one ", "two "], { model: "big-2026" }).slice(0, 3), { breakWith: "reset" }));
    trial.reset(chatStream(["three"], { model: "small-2026" }));
    const response = await gateway.chat({ model: "smart", messages: hello, stream: true });
    const { data } = await readSse(response);
    const chunks = data.filter((text) => text !== "[DONE]").map((text) => JSON.parse(text) as Chunk);
    expect(chunks.map(({ choices }) => choices[0]?.delta?.content ?? "").join("")).toContain("three");
    expect(new Set(chunks.map(({ model }) => model))).toEqual(new Set(["smart"]));
  });
});

describe("names", () => {
  test("with a pattern stand for many models, and * for what nothing serves", async () => {
    const { gateway, main, trial } = await start([
      { name: "gpt-*", targets: [{ model: "big" }] },
      { name: "*", targets: [{ model: "small" }] },
    ]);
    for (const model of ["gpt-4o", "anything", "small"]) {
      expect((await gateway.chat({ model, messages: hello })).status).toBe(200);
    }
    expect(main.requests).toHaveLength(1);
    expect(trial.requests).toHaveLength(2);
  });

  test("of a model can be a route that shares its requests with another", async () => {
    const { gateway } = await start([{ name: "big", sticky: "none", targets: [{ model: "big" }, { model: "small" }] }]);
    const arms: (string | null)[] = [];
    for (let index = 0; index < 4; index++) {
      arms.push((await gateway.chat({ model: "big", messages: hello })).headers.get("x-signalbox-arm"));
    }
    expect(arms.toSorted()).toEqual(["big", "big", "small", "small"]);
  });

  test("that begin with a backend or a type reach that backend", async () => {
    const { gateway, trial } = await start([]);
    for (const model of ["trial/small", "generic/small"]) {
      const response = await gateway.chat({ model, messages: hello });
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({ model });
    }
    expect(trial.requests.map((request) => request.json().model)).toEqual(["small", "small"]);
    expect((await gateway.chat({ model: "main/small", messages: hello })).status).toBe(404);
    expect((await gateway.chat({ model: "nobody/small", messages: hello })).status).toBe(404);
  });

  test("are listed among the models, unless they are patterns", async () => {
    const { gateway } = await start([
      { name: "smart", targets: [{ model: "big" }] },
      { name: "gpt-*", targets: [{ model: "big" }] },
      { name: "nowhere", targets: [{ model: "absent" }] },
    ]);
    expect(await modelIds(await gateway.fetch("/v1/models"))).toEqual(["smart", "big", "small"]);
    const one = await (await gateway.fetch("/v1/models/smart")).json();
    expect(one).toMatchObject({ id: "smart", owned_by: "signalbox", available: true });
    expect((await gateway.fetch("/v1/models/nowhere")).status).toBe(404);
    expect(await modelIds(await gateway.fetch("/anthropic/v1/models"))).toEqual(["smart", "big", "small"]);
  });

  test("may lead to another route, two deep", async () => {
    const { gateway } = await start(
      [
        { name: "smart", targets: [{ model: "fast", set: { temperature: 0.5 } }] },
        { name: "fast", targets: [{ model: "small" }] },
      ],
      { admin: { auth: { method: "none" } } },
    );
    const response = await gateway.chat({ model: "smart", messages: hello });
    expect(response.headers.get("x-signalbox-arm")).toBe("fast > small");
    expect(await response.json()).toMatchObject({ model: "smart" });
  });

  test("of a key that may use a model allow it on one backend, and no other model there", async () => {
    const { gateway } = await start([], {
      api_keys: { mode: "blocking", keys: [{ id: "k", key: "sk-sekret-pin", models: ["small"] }] },
    });
    const headers = { Authorization: "Bearer sk-sekret-pin" };
    expect((await gateway.chat({ model: "trial/small", messages: hello }, { headers })).status).toBe(200);
    expect((await gateway.chat({ model: "main/big", messages: hello }, { headers })).status).toBe(403);
  });

  test("of a key allow the route without its targets", async () => {
    const { gateway } = await start([{ name: "smart", targets: [{ model: "big" }] }], {
      api_keys: { mode: "blocking", keys: [{ id: "k", key: "sk-sekret-route", models: ["smart"] }] },
    });
    const headers = { Authorization: "Bearer sk-sekret-route" };
    expect((await gateway.chat({ model: "smart", messages: hello }, { headers })).status).toBe(200);
    expect((await gateway.chat({ model: "big", messages: hello }, { headers })).status).toBe(403);
    expect(await modelIds(await gateway.fetch("/v1/models", { headers }))).toEqual(["smart"]);
  });
});

describe("what one vendor keeps", () => {
  test("brings the conversation back to the target that has it", async () => {
    const openai = bed.backend();
    const other = bed.backend();
    const gateway = await bed.gateway({
      config: {
        health_checks: { enabled: false },
        backends: [
          { name: "openai", type: "openai", url: openai.url, api_key: "sk-sekret-1", models: ["gpt"] },
          { name: "other", url: other.url, models: ["small"] },
        ],
        routes: [{ name: "smart", sticky: "none", targets: [{ model: "gpt" }, { model: "small", weight: 3 }] }],
      },
    });
    const response = (id: string) => ({
      body: JSON.stringify({ id, object: "response", status: "completed", model: "gpt-1", output: [] }),
    });
    let id: string | undefined;
    for (let turn = 0; turn < 8 && id === undefined; turn++) {
      openai.reset(response("resp_vendor"));
      const first = await gateway.post("/v1/responses", { model: "smart", input: "Hello!" });
      if (first.headers.get("x-signalbox-arm") === "gpt") id = ((await first.json()) as { id: string }).id;
    }
    expect(id).toBe("resp_vendor");
    for (let turn = 0; turn < 4; turn++) {
      openai.reset(response(`resp_${turn}`));
      const next = await gateway.post("/v1/responses", { model: "smart", input: "And?", previous_response_id: id });
      expect(next.headers.get("x-signalbox-arm")).toBe("gpt");
      expect(await next.json()).toMatchObject({ id: `resp_${turn}`, model: "smart" });
    }
  });

  test("that the gateway keeps itself goes on with any target", async () => {
    const { gateway } = await start(SHARED);
    const first = await gateway.post("/v1/responses", { model: "smart", input: "Hello!" });
    const { id } = (await first.json()) as { id: string };
    for (let turn = 0; turn < 10; turn++) {
      const next = await gateway.post("/v1/responses", { model: "smart", input: "And?", previous_response_id: id });
      expect(next.status).toBe(200);
    }
  });
});

describe("clients of Ollama's API", () => {
  test("ask for a route by its name, with a tag or without", async () => {
    const { gateway, trial } = await start([
      { name: "smart", targets: [{ model: "small", set: { temperature: 0.2 } }] },
    ]);
    const messages = hello;
    for (const model of ["smart", "smart:latest"]) {
      const answer = await gateway.post("/api/chat", { model, messages, stream: false, options: { temperature: 1 } });
      expect(answer.headers.get("x-signalbox-route")).toBe("smart");
      expect(await answer.json()).toMatchObject({ model, message: { content: "trial" } });
    }
    expect(trial.requests.map((request) => request.json())).toMatchObject([{ temperature: 0.2 }, { temperature: 0.2 }]);
    const tags = (await (await gateway.fetch("/api/tags")).json()) as { models: { name: string }[] };
    expect(tags.models.map(({ name }) => name)).toEqual(["smart", "big", "small"]);
    expect((await gateway.post("/api/show", { model: "smart" })).status).toBe(200);
    expect((await gateway.post("/api/generate", { model: "smart" })).status).toBe(200);
  });
});
