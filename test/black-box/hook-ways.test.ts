// Hooks on every way of a request: without HTTP, copies for mirrors, lines of batches, shared calls, worker processes; and that only
// the file may name them.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import type { GenerationEvent } from "../../src/generation/events.ts";
import type { GenerationRequest } from "../../src/generation/request.ts";
import { AdminClient } from "../support/admin-client.ts";
import { batchLine, createBatch, linesOf, openaiClient, whenEnded } from "../support/batch-client.ts";
import type { RecordedRequest } from "../support/fake-backend.ts";
import { GatewayProcess } from "../support/gateway-process.ts";
import { type InProcessGateway, startInProcess } from "../support/in-process.ts";
import { chat, chatStream } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const echo = (request: RecordedRequest) => {
  const messages = request.json().messages as { content: string }[];
  const said = `You said ${messages.at(-1)?.content}`;
  return request.text.includes('"stream":true') ? chatStream([...said]) : chat(said);
};
const backend = bed.backend({ answer: echo });
const copies = bed.backend({ answer: echo });

const ATTEMPTS = `
import { change, defineHook, refuse } from "signalbox/hooks";
export default defineHook({
  attempt: ({ body, backend }) => change({ body: { ...body, user: "for " + backend } }),
});
`;

const hooks: NonNullable<ConfigDocument["hooks"]> = [
  { name: "redact", module: "builtin:redact", timeout: "20s" },
  { name: "attempts", module: "./attempts.ts", timeout: "20s" },
];

const config: ConfigDocument = {
  backends: [
    { name: "one", url: backend.url, models: ["m", "demo"] },
    { name: "copies", url: copies.url, models: ["copy"] },
  ],
  routes: [{ name: "mirrored", targets: [{ model: "m" }], mirror: { model: "copy", share: 1 } }],
  health_checks: { enabled: false },
  deduplication: { mode: "all" },
  hooks,
};

let gateway: InProcessGateway;
beforeAll(async () => {
  gateway = await startInProcess({ config, files: { "attempts.ts": ATTEMPTS } });
});

afterAll(() => gateway.close());

const neutral = (text: string, stream = true): GenerationRequest => ({
  model: "m",
  system: [],
  messages: [{ role: "user", parts: [{ type: "text", text }] }],
  tools: [],
  sampling: {},
  reasoning: {},
  stream,
  origin: { protocol: "chat", body: {} },
  extensions: {},
});

test("a request without HTTP is changed, and its events are changed back", async () => {
  backend.reset();
  const events: GenerationEvent[] = [];
  const call = { signal: new AbortController().signal };
  for await (const event of gateway.inside.generate(neutral("jane@example.com"), call)) events.push(event);
  expect(events.map((event) => (event.type === "delta" ? event.text : "")).join("")).toBe("You said jane@example.com");
  expect(backend.lastRequest.text).not.toContain("jane@");
  expect(backend.lastRequest.json()).toMatchObject({ user: "for one" });
});

test("a copy for a mirror has what hooks have made of the request, and its own attempt", async () => {
  copies.reset();
  const messages = [{ role: "user", content: "a@b.de" }];
  const response = await gateway.chat({ model: "mirrored", messages });
  expect(await response.text()).toContain("You said a@b.de");
  await waitFor("the copy has come", () => copies.requests.length > 0);
  expect(copies.lastRequest.text).not.toContain("a@b.de");
  expect(copies.lastRequest.json().user).toBe("for copies");
});

test("a line of a batch passes hooks", async () => {
  const client = openaiClient(gateway);
  const body = { model: "demo", messages: [{ role: "user", content: "x@y.de" }] };
  const { id } = await createBatch(client, [batchLine("one", { body })]);
  const batch = await whenEnded(client, id);
  const [line] = await linesOf(client, batch.output_file_id);
  expect(JSON.stringify(line?.response?.body)).toContain("You said x@y.de");
  expect(backend.lastRequest.text).not.toContain("x@y.de");
});

test("clients that share a call have hooks of their own", async () => {
  let release = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  backend.reset(async (request) => {
    await gate;
    return echo(request);
  });
  const ask = () =>
    gateway.chat({ model: "m", temperature: 0, messages: [{ role: "user", content: "s@t.de" }], stream: true });
  const both = [ask(), ask()];
  await waitFor("a request has come", () => backend.requests.length > 0);
  release();
  for (const response of await Promise.all(both)) {
    const events = (await response.text()).split("\n\n").filter((event) => event.startsWith("data: {"));
    const said = events.map((event) => JSON.parse(event.slice(6)).choices[0]?.delta.content ?? "").join("");
    expect(said).toBe("You said s@t.de");
  }
  backend.reset();
});

test("worker processes have hooks, and the primary counts their calls", async () => {
  const many = await bed.process({ config: { ...config, server: { workers: 2 } }, files: { "attempts.ts": ATTEMPTS } });
  const messages = [{ role: "user", content: "w@x.de" }];
  for (let times = 0; times < 4; times++) {
    const response = await many.chat({ messages }, { headers: { Connection: "close" } });
    expect(await response.text()).toContain("You said w@x.de");
  }
  await waitFor("the calls are counted", async () => {
    const metrics = await (await many.fetch("/metrics")).text();
    return metrics.includes('signalbox_hook_calls_total{hook="redact",event="request",verdict="change"} 4');
  });
});

describe("the admin API", () => {
  const url = "https://example.com/hook";
  test.each([
    ["adds a hook", [...hooks, { name: "more", url, events: ["end"] }]],
    ["names another module", [{ ...hooks[0], module: "./other.ts" }, hooks[1]]],
    ["takes a hook away", [hooks[0]]],
    ["changes options", [{ ...hooks[0], options: { kinds: ["email"] } }, hooks[1]]],
  ])("never %s", async (_, changed) => {
    const admin = new AdminClient(gateway);
    const refused = await admin.refused(400, "PUT", "/admin/config/hooks", { config: changed });
    expect(JSON.stringify(refused)).toContain("can only be set in the configuration file");
  });
});

describe("--test-hook", () => {
  const run = async (...args: string[]) => {
    const folder = gateway.folder;
    await Bun.write(
      join(folder, "request.json"),
      JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] }),
    );
    const made = `import { change, defineHook } from "signalbox/hooks";
export default defineHook({ request: ({ body, request }) => change({ body: { ...body, user: request.messages[0].role } }) });`;
    await Bun.write(join(folder, "made.ts"), made);
    return await new GatewayProcess({ args: ["--test-hook", ...args] }, folder).finished();
  };

  test("prints verdict, changes and time", async () => {
    const { exitCode, stdout } = await run("made.ts", "request.json");
    expect(exitCode).toBe(0);
    const told = JSON.parse(stdout) as { duration_ms: number };
    expect(told).toMatchObject({
      events: ["request"],
      verdict: "change",
      changes: "user: 0 -> 6 bytes",
      body: { user: "user" },
    });
    expect(told.duration_ms).toBeGreaterThan(0);
  });

  test.each([
    [["missing.ts", "request.json"], "missing.ts"],
    [["made.ts", "missing.json"], "missing.json"],
    [["made.ts"], "needs the file of a request"],
  ])("%j is refused", async (args, message) => {
    const { exitCode, stderr } = await run(...args);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(message);
  });
});
