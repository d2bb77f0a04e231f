// Hooks: modules that see, change and refuse requests, attempts, answers and streams (docs/hooks.md).

import { beforeAll, describe, expect, test } from "bun:test";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatStream } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
const backend = bed.backend({ models: ["m"] });

const CHANGING = `
import { answer, change, defineHook, pass, refuse, repair } from "signalbox/hooks";

export default defineHook({
  chunks: { by: "sentence", hold: 100 },
  request({ body, request, info, state }) {
    const text = String(body.messages?.at(-1)?.content ?? "");
    if (text.includes("refuse me")) return refuse(451, "topic_refused", "Not this topic.");
    if (text.includes("answer me")) return answer({ text: "from the hook" });
    if (text.includes("neutral")) return change({ request: { ...request, system: [{ type: "text", text: "be kind" }] } });
    if (text.includes("nonsense")) return change({ body: { nonsense: true } });
    if (text.includes("throw")) throw new Error("thrown by the hook");
    if (text.includes("verdict")) return { verdict: "what" };
    if (text.includes("model")) return change({ body: { ...body, model: "other" } });
    return change({ body: { ...body, metadata: { seen: info.operation } } }, { state: "seen" });
  },
  attempt({ body, backend, attempt }) {
    return change({ body: { ...body, user: backend + " " + attempt } });
  },
  answer({ body, state }) {
    if (body.choices?.[0].message.content === "bad") return refuse(502, "bad_answer", "A bad answer.");
    return change({ body: { ...body, seen: state } });
  },
  chunk({ text, isLast }) {
    if (text.includes("bad")) return refuse(403, "bad_piece", "A bad piece.");
    return change({ text: text === "" ? "" : "<" + text + ">" });
  },
});
`;

let gateway: Gateway;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      backends: [{ name: "one", url: backend.url, models: ["m", "other", "free", "packed"] }],
      health_checks: { enabled: false },
      hooks: [
        { name: "packed", module: "a-hook", timeout: "10s", match: { model: "packed" } },
        { name: "changing", module: "./hooks/changing.ts", timeout: "10s", match: { model: "m" } },
      ],
    },
    files: {
      "node_modules/a-hook/package.json": '{ "name": "a-hook", "main": "hook.js" }',
      "node_modules/a-hook/hook.js": `import { defineHook, refuse } from "signalbox/hooks";
export default defineHook({ request: () => refuse(418, "teapot", "From a package.") });`,
      "hooks/changing.ts": CHANGING,
    },
  });
});

const ask = (content: string, more: object = {}) => gateway.chat({ messages: [{ role: "user", content }], ...more });

async function storyOf(response: Response) {
  const id = response.headers.get("x-request-id") as string;
  return (await (await gateway.fetch(`/admin/requests/${id}`)).json()) as {
    steps: Record<string, unknown>[];
    explanation: string[];
  };
}

describe("a module", () => {
  test("changes requests, attempts and answers, and keeps state between them", async () => {
    backend.reset(chat("hello"));
    const response = await ask("hi");
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ seen: "seen", choices: [{ message: { content: "hello" } }] });
    expect(backend.lastRequest.json()).toMatchObject({ metadata: { seen: "chat" }, user: "one 1" });
  });

  test("is told of in the story, by the names and sizes of what it changed", async () => {
    backend.reset(chat("hello"));
    const response = await ask("a secret word");
    const { steps, explanation } = await storyOf(response);
    const hooks = steps.filter(({ kind }) => kind === "hook");
    expect(hooks.map(({ hook, event, verdict }) => [hook, event, verdict])).toEqual([
      ["changing", "request", "change"],
      ["changing", "attempt", "change"],
      ["changing", "answer", "change"],
    ]);
    expect(hooks[0]?.detail).toBe("metadata: 0 -> 15 bytes");
    expect(JSON.stringify(steps)).not.toContain("secret word");
    expect(explanation.join("\n")).toContain("The hook changing made changes at request");
  });

  test("refuses with its own status, code and message", async () => {
    backend.reset(chat("hello"));
    const response = await ask("refuse me");
    expect(response.status).toBe(451);
    expect(await response.json()).toMatchObject({ error: { code: "topic_refused", message: "Not this topic." } });
    expect(backend.requests).toHaveLength(0);
    const { steps } = await storyOf(response);
    expect(steps[0]).toMatchObject({ hook: "changing", verdict: "refuse", detail: "topic_refused" });
  });

  test("gives the answer itself, whole and as a stream", async () => {
    backend.reset(chat("hello"));
    expect(await (await ask("answer me")).json()).toMatchObject({
      model: "m",
      choices: [{ message: { content: "from the hook" } }],
    });
    const stream = await (await ask("answer me", { stream: true })).text();
    expect(stream).toContain("from the hook");
    expect(stream).toEndWith("data: [DONE]\n\n");
    expect(backend.requests).toHaveLength(0);
  });

  test("changes the request in the neutral model", async () => {
    backend.reset(chat("hello"));
    expect((await ask("neutral")).status).toBe(200);
    expect(backend.lastRequest.json()).toMatchObject({ messages: [{ content: "be kind" }, { content: "neutral" }] });
  });

  test("names another model before routing", async () => {
    backend.reset(chat("hello"));
    expect((await ask("model")).status).toBe(200);
    expect(backend.lastRequest.json()).toMatchObject({ model: "other" });
  });

  test.each(["nonsense", "throw", "verdict"])("that fails refuses the request by default (%s)", async (what) => {
    backend.reset(chat("hello"));
    const response = await ask(what);
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ error: { code: "hook_failed" } });
    expect(backend.requests).toHaveLength(0);
  });

  test("may be a package that is installed beside the configuration", async () => {
    backend.reset(chat("hello"));
    expect((await ask("hi", { model: "packed" })).status).toBe(418);
  });

  test("that throws is told of by the kind and the place, never by its words", async () => {
    const { steps } = await storyOf(await ask("throw a secret word"));
    expect(steps[0]).toMatchObject({
      verdict: "error",
      detail: expect.stringMatching(/^it threw Error at changing\.ts:\d+:\d+$/),
    });
  });

  test("changes a stream by sentences, however it comes", async () => {
    const texts = ["One sen", "tence. Ano", "ther one.", " And the", " rest"];
    backend.reset(chatStream(texts));
    const response = await ask("hi", { stream: true });
    const events = (await response.text()).split("\n\n").filter((event) => event.startsWith("data: {"));
    const said = events.map((event) => JSON.parse(event.slice(6)).choices[0]?.delta.content ?? "").join("");
    expect(said).toBe("<One sentence. ><Another one. ><And the rest>");
  });

  test("refuses the rest of a stream with an error event, and the client's request ends as refused", async () => {
    backend.reset(chatStream(["Good. ", "This is bad. ", "More."]));
    const response = await ask("hi", { stream: true });
    const text = await response.text();
    expect(text).toContain("Good. ");
    expect(text).not.toContain("More");
    expect(text).toContain('"code":"bad_piece"');
    expect(text).not.toContain("[DONE]");
  });

  test("refuses a whole answer", async () => {
    backend.reset(chat("bad"));
    const response = await ask("hi");
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({ error: { code: "bad_answer" } });
  });

  test("is not called for requests that it does not match", async () => {
    backend.reset(chat("hello"));
    const response = await ask("refuse me", { model: "free" });
    expect(response.status).toBe(200);
    expect((await storyOf(response)).steps.map(({ kind }) => kind)).toEqual(["attempt"]);
  });

  test("n above 1 is refused where a hook reads the answer", async () => {
    expect((await ask("hi", { n: 2 })).status).toBe(400);
  });

  test("is counted", async () => {
    const metrics = await (await gateway.fetch("/metrics")).text();
    expect(metrics).toMatch(/signalbox_hook_calls_total\{hook="changing",event="request",verdict="refuse"\} [1-9]/);
    expect(metrics).toMatch(/signalbox_hook_calls_total\{hook="changing",event="chunk",verdict="change"\} [1-9]/);
    expect(metrics).toContain('signalbox_hook_duration_seconds_count{hook="changing",event="answer"}');
  });
});
