// A gateway that is asked without HTTP, in front of real sockets: neutral requests in, neutral events out.

import { afterEach, describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { collect } from "../../src/generation/collect.ts";
import type { GenerationEvent } from "../../src/generation/events.ts";
import type { GenerationRequest } from "../../src/generation/request.ts";
import { type Answer, FakeBackend } from "../support/fake-backend.ts";
import { startInProcess } from "../support/in-process.ts";
import { chatEvents, chatStream, eventStream, failure, sseEvent } from "../support/openai-answers.ts";
import { waitFor } from "../support/wait-for.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function startBackend(answer = chatStream(["one ", "two"])): FakeBackend {
  const backend = new FakeBackend({ models: ["m"], answer });
  cleanups.push(() => backend.stop());
  return backend;
}

async function start(backends: readonly FakeBackend[], more: ConfigDocument = {}) {
  const named = backends.map(({ url }, index) => ({ name: `b${index}`, type: "vllm", url }));
  const gateway = await startInProcess({ config: { backends: named, retry: { base_delay: "1ms" }, ...more } });
  cleanups.push(() => gateway.close());
  const lastStory = async () => {
    const { requests } = (await (await gateway.fetch("/admin/requests")).json()) as {
      requests: Record<string, unknown>[];
    };
    return requests[0];
  };
  return { gateway: gateway.inside, lastStory };
}

const request: GenerationRequest = {
  model: "m",
  system: [],
  messages: [{ role: "user", parts: [{ type: "text", text: "count" }] }],
  tools: [],
  sampling: {},
  reasoning: {},
  stream: true,
  origin: { protocol: "chat", body: {} },
  extensions: {},
};

const open = () => ({ signal: new AbortController().signal });

async function readAll(events: AsyncIterable<GenerationEvent>): Promise<GenerationEvent[]> {
  const read: GenerationEvent[] = [];
  for await (const event of events) read.push(event);
  return read;
}

const textOf = (events: readonly GenerationEvent[]) =>
  events.map((event) => (event.type === "delta" ? event.text : "")).join("");

describe("an answer", () => {
  test("comes as neutral events, and has its story", async () => {
    const backend = startBackend();
    const { gateway, lastStory } = await start([backend]);
    const events = await readAll(gateway.generate(request, open()));
    expect(textOf(events)).toBe("one two");
    expect(events.filter(({ type }) => type === "finish")).toMatchObject([{ finish: { reason: "stop" } }]);
    expect(backend.requests[0]?.json()).toMatchObject({ model: "m", stream: true });
    expect(await lastStory()).toMatchObject({ model: "m", status: 200, backend: "b0", stream: true });
  });

  test("comes from another backend when one fails, and from another model when all do", async () => {
    const [sick, well] = [startBackend(failure(503)), startBackend()];
    const { gateway, lastStory } = await start([sick, well]);
    for (let count = 0; count < 2; count++) {
      expect(textOf(await readAll(gateway.generate(request, open())))).toBe("one two");
    }
    expect(sick.requests.length).toBeGreaterThan(0);
    expect(await lastStory()).toMatchObject({ status: 200, backend: "b1" });

    const fallback = { enabled: true, fallback_chains: { gone: ["m"] } };
    const chained = await start([startBackend()], { fallback });
    expect(textOf(await readAll(chained.gateway.generate({ ...request, model: "gone" }, open())))).toBe("one two");
  });

  test("of an alias is that of its model", async () => {
    const { gateway } = await start([startBackend()], { model_aliases: { short: "m" } });
    expect(textOf(await readAll(gateway.generate({ ...request, model: "short" }, open())))).toBe("one two");
  });
});

test("an answer of a route is that of its target, with the fields that it sets", async () => {
  const backend = startBackend();
  const routes: ConfigDocument["routes"] = [{ name: "smart", targets: [{ model: "m", set: { temperature: 0.3 } }] }];
  const { gateway, lastStory } = await start([backend], { routes });
  expect(textOf(await readAll(gateway.generate({ ...request, model: "smart" }, open())))).toBe("one two");
  expect(backend.requests[0]?.json()).toMatchObject({ model: "m", temperature: 0.3 });
  expect(await lastStory()).toMatchObject({ model: "m", route: "smart", arm: "m" });
});

test("an answer of the next target has the fields that this one sets, and none of the first", async () => {
  const backends = [startBackend(failure(503)), startBackend()] as const;
  const routes: ConfigDocument["routes"] = [
    {
      name: "smart",
      targets: [
        { model: "m", backend: "b0", set: { temperature: 0.3 } },
        { model: "m", backend: "b1", weight: 0, set: { seed: 7 } },
      ],
    },
  ];
  const { gateway } = await start(backends, { routes, retry: { max_attempts: 1 } });
  const asked = { ...request, model: "smart", sampling: { temperature: 0.9 } };
  expect(textOf(await readAll(gateway.generate(asked, open())))).toBe("one two");
  expect(backends[1].requests[0]?.json()).toMatchObject({ model: "m", temperature: 0.9, seed: 7 });
});

describe("trouble", () => {
  test("with the backend is a failure event, and is told in the story", async () => {
    const { gateway, lastStory } = await start([startBackend(failure(400, "no such tool"))]);
    const events = await readAll(gateway.generate(request, open()));
    expect(events).toMatchObject([{ type: "failure", failure: { status: 400, message: "no such tool" } }]);
    expect(await lastStory()).toMatchObject({ status: 400 });
  });

  test("in the middle of an answer comes behind what was said", async () => {
    const broken = eventStream(chatEvents(["one ", "two"]).slice(0, 2));
    const { gateway, lastStory } = await start([startBackend(broken)]);
    const events = await readAll(gateway.generate(request, open()));
    expect(textOf(events)).toBe("one ");
    expect(events.at(-1)).toMatchObject({ type: "failure", failure: { status: 502 } });
    expect(await lastStory()).toMatchObject({ outcome: "stream_broken" });
  });

  test("before any backend was asked is thrown", async () => {
    const { gateway, lastStory } = await start([startBackend()]);
    const asked = readAll(gateway.generate({ ...request, model: "nobody" }, open()));
    await expect(asked).rejects.toMatchObject({ status: 404, type: "model_not_found" });
    expect(await lastStory()).toMatchObject({ model: "nobody", status: 404 });
  });
});

/** Every part has an index of its own, is begun once, and ends before the next one begins. */
function expectOneAnswer(events: readonly GenerationEvent[]): void {
  expect(events.filter(({ type }) => type === "start")).toHaveLength(1);
  expect(events.filter(({ type }) => type === "finish" || type === "failure")).toHaveLength(1);
  let open: number | undefined;
  let count = 0;
  for (const event of events) {
    if (event.type === "part-start") {
      expect([open, event.index]).toEqual([undefined, count]);
      open = count++;
    } else if (event.type === "delta") expect(event.index).toBe(open as number);
    else if (event.type === "part-end") {
      expect(event.index).toBe(open as number);
      open = undefined;
    } else if (event.type === "finish") expect(open).toBeUndefined();
  }
}

describe("an answer that breaks off", () => {
  const cut = (events: readonly string[]) => eventStream(events);
  const says = (text: string) => chatEvents([text]).slice(0, 2);
  const thinks = (thought: string) =>
    chatEvents([thought]).map((event) => event.replace('"content":', '"reasoning_content":'));
  const callStart = sseEvent({
    choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id: "c", function: { name: "f", arguments: "{" } }] } }],
  });

  test("goes on at another backend of the model exactly where it stopped", async () => {
    const second = startBackend();
    const first = startBackend();
    let asked = 0;
    for (const backend of [first, second]) {
      backend.answer = () => (asked++ === 0 ? cut(says("one ")) : chatStream(["two ", "three"]));
    }
    const { gateway, lastStory } = await start([first, second]);
    const events = await readAll(gateway.generate({ ...request, maxOutputTokens: 9 }, open()));
    expectOneAnswer(events);
    expect(textOf(events)).toBe("one two three");
    const [rest] = [...first.requests, ...second.requests].filter(({ body }) =>
      body.includes("continue_final_message"),
    );
    expect(rest?.json()).toMatchObject({
      messages: [
        { role: "user", content: "count" },
        { role: "assistant", content: "one" },
      ],
      continue_final_message: true,
      max_tokens: 8,
    });
    expect(await lastStory()).toMatchObject({ status: 200, outcome: "succeeded" });
  });

  const chain = { fallback: { enabled: true, fallback_chains: { m: ["n"] } } };
  async function startChain(first: Answer, second: Answer, more: ConfigDocument = {}) {
    const [broken, standIn] = [startBackend(first), new FakeBackend({ models: ["n"], answer: second })];
    cleanups.push(() => standIn.stop());
    return { ...(await start([broken, standIn], { ...chain, ...more })), standIn };
  }

  test("is told again by a model of the chain, and nothing twice", async () => {
    const { gateway, standIn } = await startChain(cut(says("one ")), chatStream(["one ", "two"]));
    const events = await readAll(gateway.generate(request, open()));
    expectOneAnswer(events);
    expect(textOf(events)).toBe("one two");
    expect(standIn.requests[0]?.json()).toMatchObject({ model: "n", messages: [{ role: "user", content: "count" }] });
  });

  test("is gone on with by a model of the chain that is asked to", async () => {
    const streaming = { mid_stream_fallback: { enabled: true, continuation_prompt: "go on" } };
    const { gateway, standIn } = await startChain(cut(says("one ")), chatStream(["two"]), { streaming });
    expect(textOf(await readAll(gateway.generate(request, open())))).toBe("one two");
    expect(standIn.requests[0]?.json()).toMatchObject({
      messages: [{ role: "user" }, { role: "assistant", content: "one " }, { role: "user", content: "go on" }],
    });
  });

  test("keeps its thoughts, and those of the other one behind them", async () => {
    const first = thinks("hm").slice(0, 2);
    const second = [...thinks("aha").slice(0, 2), ...chatEvents(["two"]).slice(1)];
    const { gateway } = await startChain(cut(first), cut(second));
    const events = await readAll(gateway.generate(request, open()));
    expectOneAnswer(events);
    expect(collect(events)?.parts).toEqual([
      { type: "reasoning", text: "hm" },
      { type: "reasoning", text: "aha" },
      { type: "text", text: "two" },
    ]);
  });

  test("within a call is a failure: nobody else could end its arguments", async () => {
    const { gateway, standIn } = await startChain(cut([...says("one ").slice(0, 1), callStart]), chatStream(["two"]));
    const events = await readAll(gateway.generate(request, open()));
    expect(events.at(-1)).toMatchObject({ type: "failure", failure: { status: 502 } });
    expect(standIn.requests).toHaveLength(0);
  });
});

describe("a caller", () => {
  const apiKey = "sekret-key";

  test("may use the models of its key only", async () => {
    const backend = startBackend();
    const api_keys = { keys: [{ key: apiKey, id: "k", models: ["other"] }] };
    const { gateway } = await start([backend], { api_keys });
    const asked = readAll(gateway.generate(request, { ...open(), apiKey }));
    await expect(asked).rejects.toMatchObject({ status: 403 });
    expect(backend.requests).toEqual([]);
  });

  test("is limited as its key is; the gateway's own calls are not", async () => {
    const api_keys = { keys: [{ key: apiKey, id: "k", rate_limit: 1 }] };
    const rate_limiting = { enabled: true };
    const { gateway } = await start([startBackend()], { rate_limiting, api_keys });
    const ask = (call = {}) => readAll(gateway.generate(request, { ...open(), ...call }));
    await ask({ apiKey });
    await expect(ask({ apiKey })).rejects.toMatchObject({ status: 429 });
    expect(textOf(await ask())).toBe("one two");
  });
});

test("an unknown key is refused where keys are asked for", async () => {
  const backend = startBackend();
  const { gateway } = await start([backend], {
    api_keys: { mode: "blocking", keys: [{ key: "sekret-key", id: "k" }] },
  });
  await expect(readAll(gateway.generate(request, { ...open(), apiKey: "another" }))).rejects.toMatchObject({
    status: 401,
  });
  expect(backend.requests).toEqual([]);
});

describe("nobody wants the answer any more", () => {
  async function startHeld() {
    const goOn = Promise.withResolvers<void>();
    cleanups.push(() => goOn.resolve());
    const beforeChunk = (index: number) => (index === 2 ? goOn.promise : undefined);
    const backend = startBackend(eventStream(chatEvents(["one ", "two"]), { beforeChunk }));
    const started = await start([backend]);
    const isFree = () => started.gateway.fleet.states().configured.every(({ counters }) => counters.inFlight === 0);
    return { ...started, backend, isFree };
  }

  test.each(["aborts", "stops reading"])("and %s: the backend is free", async (how) => {
    const { gateway, backend, isFree, lastStory } = await startHeld();
    const controller = new AbortController();
    const events = gateway.generate(request, { signal: controller.signal });
    for await (const event of events) {
      if (event.type !== "delta") continue;
      if (how === "stops reading") break;
      controller.abort();
    }
    await waitFor("nothing is in flight", isFree);
    await waitFor("the connection is closed", () => backend.requests[0]?.isClosed === true);
    expect(await lastStory()).toMatchObject({ status: 499 });
  });

  test("before a backend has answered: nothing comes", async () => {
    const backend = startBackend({ hang: true });
    const { gateway, lastStory } = await start([backend]);
    const controller = new AbortController();
    const reading = readAll(gateway.generate(request, { signal: controller.signal }));
    await waitFor("the backend is asked", () => backend.requests.length === 1);
    controller.abort();
    await reading.catch(() => []);
    expect(await lastStory()).toMatchObject({ status: 499 });
  });
});

test("a reader that takes its time loses nothing of a long answer", async () => {
  const words = Array.from({ length: 5_000 }, (_, index) => `${index} `);
  const { gateway } = await start([startBackend(chatStream(words))]);
  let text = "";
  let count = 0;
  for await (const event of gateway.generate(request, open())) {
    if (event.type === "delta") text += event.text;
    if (++count % 500 === 0) await Bun.sleep(5);
  }
  expect(text).toBe(words.join(""));
});

test("a reader that stops holds the backend back, and gets the rest when it reads on", async () => {
  const words = Array.from({ length: 4_000 }, (_, index) => `${index} ${"x".repeat(20_000)}`);
  const backend = startBackend(chatStream(words));
  const { gateway } = await start([backend]);
  const events = gateway.generate(request, open());
  await events.next();
  // 80 MB are more than all socket buffers on the way hold; half a second is more than sending them takes.
  await Bun.sleep(500);
  expect(backend.lastRequest.answerComplete).toBe(false);
  expect(textOf(await readAll(events))).toBe(words.join(""));
});
