// The examples of docs/hooks.md: the page shows the files, and they do what it says.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatStream } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const ROOT = join(import.meta.dir, "..", "..");
const EXAMPLES = join(ROOT, "examples", "hooks");
const SECRET = "the secret of the policy server";

const bed = createTestBed();
const backend = bed.backend();
let gateway: Gateway;
let server: Bun.Subprocess<"ignore", "pipe", "inherit">;

const key = (name: string) => ({ key: `key-of-${name}-0123456789`, id: name, organization_id: name });
const as = (name: string) => ({ headers: { Authorization: `Bearer key-of-${name}-0123456789` } });

beforeAll(async () => {
  server = Bun.spawn([process.execPath, join(EXAMPLES, "policy-server.ts")], {
    env: { ...process.env, PORT: "0", HOUR: "3", HOOK_SECRET: SECRET },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  const reader = server.stdout.getReader();
  while (!said.includes("port")) said += new TextDecoder().decode((await reader.read()).value);
  const port = /port: (?:\D*m)?(\d+)/.exec(said)?.[1];
  const hook = (name: string, model: string, options: object) => ({
    ...{
      name,
      module: join(EXAMPLES, `${name}.ts`),
      timeout: "20s",
      match: { model },
      options: options as Record<string, unknown>,
    },
  });
  gateway = await bed.gateway({
    config: {
      backends: [
        {
          name: "one",
          url: backend.url,
          models: ["tenant", "small", "names", "topic", "judge", "audit", "opus", "haiku"],
        },
      ],
      health_checks: { enabled: false },
      api_keys: { keys: [key("acme"), key("other")], mode: "permissive" },
      hooks: [
        hook("tenant-models", "tenant", { models: { acme: "small" } }),
        hook("customer-names", "names", { names: ["Initech", "Hooli"] }),
        hook("topic-guard", "topic", { topic: "trains", model: "judge" }),
        hook("audit-log", "audit", { path: "audit.jsonl" }),
        {
          ...{ name: "policy", url: `http://127.0.0.1:${port}/`, secret: SECRET, events: ["request"], timeout: "20s" },
          match: { model: ["opus", "haiku"] },
        },
      ],
    },
  });
});
afterAll(() => server.kill());

test.each(["tenant-models", "customer-names", "topic-guard", "audit-log", "policy-server"])(
  "docs/hooks.md shows %s",
  (name) => {
    const page = readFileSync(join(ROOT, "docs", "hooks.md"), "utf8");
    expect(page).toContain(`\`\`\`ts\n${readFileSync(join(EXAMPLES, `${name}.ts`), "utf8")}\`\`\`\n`);
  },
);

test("an organisation gets the model of its contract", async () => {
  backend.reset(chat("hello"));
  expect((await gateway.chat({ model: "tenant" }, as("acme"))).status).toBe(200);
  expect(backend.lastRequest.json().model).toBe("small");
  expect((await gateway.chat({ model: "tenant" }, as("other"))).status).toBe(200);
  expect(backend.lastRequest.json().model).toBe("tenant");
  expect((await gateway.chat({ model: "tenant" })).status).toBe(403);
});

test("names of customers leave requests and come back in answers and streams", async () => {
  const messages = [{ role: "user", content: "Compare Initech and Hooli" }];
  backend.reset((request) => chat(`About ${request.json<{ messages: { content: string }[] }>().messages[0]?.content}`));
  expect(await (await gateway.chat({ model: "names", messages })).text()).toContain("About Compare Initech and Hooli");
  expect(backend.lastRequest.text).not.toContain("Hooli");
  backend.reset(chatStream([..."I like <CUSTOMER-1> < 2"]));
  const stream = await (await gateway.chat({ model: "names", messages, stream: true })).text();
  const events = stream.split("\n\n").filter((event) => event.startsWith("data: {"));
  expect(events.map((event) => JSON.parse(event.slice(6)).choices[0]?.delta.content ?? "").join("")).toBe(
    "I like Hooli < 2",
  );
});

test("questions beside the topic get an answer of the hook", async () => {
  const asking = (content: string) => gateway.chat({ model: "topic", messages: [{ role: "user", content }] });
  backend.reset((request) =>
    chat(request.json().model !== "judge" ? "an answer" : request.text.includes("signals") ? "Yes." : "No."),
  );
  expect(await (await asking("How do signals work?")).text()).toContain("an answer");
  expect(await (await asking("How do I cook?")).text()).toContain("I can only help with trains.");
});

test("each request is a line of the audit", async () => {
  backend.reset(chat("hello"));
  await gateway.chat({ model: "audit" }, as("acme"));
  const line = await waitFor("the line is written", () =>
    Bun.file(join(gateway.folder, "audit.jsonl"))
      .json()
      .catch(() => undefined),
  );
  expect(line).toMatchObject({
    key: "acme",
    operation: "chat",
    model: "audit",
    status: 200,
    backend: "one",
    inputTokens: 3,
  });
});

test("a server refuses what costs too much at night", async () => {
  backend.reset(chat("hello"));
  const response = await gateway.chat({ model: "opus" });
  expect(response.status).toBe(403);
  expect(await response.json()).toMatchObject({ error: { code: "office_hours" } });
  expect((await gateway.chat({ model: "haiku" })).status).toBe(200);
});
