// Secrets in every place that takes one, and everything that the gateway says to anybody: none of them appears. What it
// prints is checked by the gateway process of the tests.

import { beforeAll, describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import { EventFollower } from "../support/event-follower.ts";
import type { Answer } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { runCommand } from "../support/gateway-process.ts";
import { chat, eventStream } from "../support/openai-answers.ts";
import { SECRET_MARK } from "../support/printed.ts";
import { createTestBed, type TestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

const ADMIN = { Authorization: "Bearer sekret-admin-token" };
const CLIENT = { Authorization: "Bearer sekret-client-key" };

const ENVIRONMENT = {
  KEY_IN_ENVIRONMENT: "sekret-in-environment",
  PASSWORD: "sekret-password-in-environment",
  SIGNALBOX_METRICS__AUTH__PASSWORD: "sekret-override-password",
};

type FakeBackend = ReturnType<TestBed["backend"]>;

function withPassword(url: string, password: string): string {
  return url.replace("http://", `http://user:${password}@`);
}

function configOf(backend: FakeBackend): ConfigDocument {
  const { url } = backend;
  return {
    // Its format makes no difference to what a line holds.
    logging: { level: "trace" },
    backends: [
      {
        name: "plain",
        type: "vllm",
        url: withPassword(url, "sekret-password"),
        models: ["m"],
        api_key: "sekret-backend-key",
        headers: { "X-Secret": "sekret-header", Cookie: "session=sekret-cookie" },
      },
      { name: "reference", type: "openai", url, models: ["n"], api_key: "${KEY_IN_ENVIRONMENT}" },
      { name: "default", type: "openai", url, models: ["o"], api_key: "${NOT_SET:-sekret-default}" },
      { name: "messages", type: "anthropic", url, models: ["claude"], api_key: "sekret-anthropic" },
      { name: "google", type: "gemini", url, models: ["gemini"], api_key: "sekret-gemini" },
      { name: "cloud", type: "azure", url, models: ["deployment"], api_key: "sekret-azure" },
      { name: "password", url: "http://user:${PASSWORD}@127.0.0.1:9", models: ["p"] },
    ],
    retry: { max_attempts: 1 },
    api_keys: {
      mode: "blocking",
      api_keys_file: "keys.yaml",
      keys: [{ key: "sekret-client-key", id: "client" }, { key: "sekret-nameless-key" }],
    },
    admin: { auth: { method: "bearer_token", token: "sekret-admin-token", username: "u", password: "sekret-basic" } },
    metrics: { auth: { enabled: true, username: "prometheus", password: "sekret-metrics-password" } },
    rate_limiting: { bypass_keys: ["sekret-bypass-key", "${KEY_IN_ENVIRONMENT}"] },
    web_search: { provider: "serper", api_key: "sekret-search", base_url: withPassword(url, "sekret-search-password") },
    telemetry: { otlp: { endpoint: `${url}/otlp`, headers: { Authorization: "Bearer sekret-otlp" } } },
    global_prompts: { default_file: "a.md" },
  };
}

const FILES = {
  "keys.yaml": "keys: [{key: sekret-key-of-file, id: of-file, scopes: [read, write, admin]}]\n",
  "prompts/a.md": "Be brief.\n",
};

const PROMPT = "sekret words of a client";

/** The secret that a backend got, told back in every way; what comes after the first event of a stream passes as it is. */
const QUOTING: [what: string, answer: (key: string) => Answer][] = [
  ...[400, 401, 403, 404, 422, 429, 500, 503].map((status): [string, (key: string) => Answer] => [
    `status ${status}`,
    (key) => ({
      status,
      body: JSON.stringify({
        error: {
          message: `Incorrect API key provided: ${key}.`,
          type: `type ${key}`,
          code: key,
          param: key,
          detail: key,
        },
        detail: [{ msg: key }],
        message: key,
      }),
    }),
  ]),
  ["a page", (key) => ({ status: 502, headers: { "Content-Type": "text/html" }, body: `<h1>${key}</h1>` })],
  ["plain text", (key) => ({ status: 401, headers: { "Content-Type": "text/plain" }, body: `bad key ${key}` })],
  ["a status line", (key) => ({ rawBytes: `HTTP/1.1 401 ${key}\r\nContent-Length: 0\r\n\r\n` })],
  ["headers", (key) => ({ status: 401, headers: { "WWW-Authenticate": `Bearer ${key}`, "X-Debug": key }, body: "{}" })],
  ["a redirect", (key) => ({ status: 302, headers: { Location: `http://127.0.0.1:9/?key=${key}` }, body: "" })],
  ["no HTTP", (key) => ({ rawBytes: `${key}\r\n\r\n` })],
  ["half an answer", (key) => ({ body: `{"error": "${key}`, contentLength: 10_000, close: true })],
  ["an error in a plain answer", (key) => ({ body: JSON.stringify({ error: { message: key } }) })],
  ["an error as the first event", (key) => eventStream(`data: {"error":{"message":"${key}"}}\n\n`)],
];

const KEYS: Record<string, string> = {
  m: "sekret-backend-key",
  n: "sekret-in-environment",
  claude: "sekret-anthropic",
  gemini: "sekret-gemini",
};

const PATHS: [path: string, body: (model: string) => object][] = [
  ["/v1/chat/completions", (model) => ({ model, messages: [{ role: "user", content: PROMPT }] })],
  ["/v1/messages", (model) => ({ model, max_tokens: 9, messages: [{ role: "user", content: PROMPT }] })],
  ["/v1/responses", (model) => ({ model, input: PROMPT })],
];

const GEMINI_BODY = { contents: [{ parts: [{ text: PROMPT }] }] };

async function expectNoSecret(what: string, response: Response): Promise<string> {
  const text = await response.text().catch((error: Error) => error.message);
  const all = `${[...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n")}\n${text}`;
  const at = all.indexOf(SECRET_MARK);
  if (at >= 0) throw new Error(`${what}: ${all.slice(Math.max(0, at - 200), at + 200)}`);
  return text;
}

describe("with every line of the log", () => {
  const backend = bed.backend({ answer: chat("x") });
  let gateway: Gateway;
  let admin: AdminClient;

  beforeAll(async () => {
    gateway = await bed.gateway({
      config: configOf(backend),
      environment: ENVIRONMENT,
      files: FILES,
      awaitHealth: false,
    });
    admin = new AdminClient(gateway, ADMIN);
  });

  const send = (path: string, body: unknown, headers: Record<string, string> = CLIENT) =>
    gateway.post(path, body, { headers });

  test("backends that tell it back", async () => {
    for (const [what, answer] of QUOTING) {
      for (const [model, key] of Object.entries(KEYS)) {
        for (const [path, body] of PATHS) {
          for (const stream of [false, true]) {
            backend.reset(answer(key));
            const response = await send(path, { ...body(model), stream }).catch(
              (error: Error) => new Response(error.message),
            );
            await expectNoSecret(`${what}, ${model} at ${path}${stream ? ", streamed" : ""}`, response);
            expect([what, model, path, backend.requests.length > 0]).toEqual([what, model, path, true]);
          }
        }
      }
    }
    for (const [what, answer] of QUOTING) {
      for (const [model, key] of Object.entries(KEYS)) {
        for (const method of ["generateContent", "streamGenerateContent?alt=sse", "streamGenerateContent"]) {
          backend.reset(answer(key));
          const path = `/v1beta/models/${model}:${method}`;
          const response = await send(path, GEMINI_BODY).catch((error: Error) => new Response(error.message));
          await expectNoSecret(`${what}, ${path}`, response);
        }
      }
    }
    backend.reset();
  });

  test("probes, model lists and searches that tell it back", async () => {
    for (const [, answer] of QUOTING) {
      backend.probeAnswer = answer("sekret-backend-key");
      await admin.ok("PATCH", "/admin/config/health_checks", { interval: "1s" });
      await admin.ok("PUT", "/admin/backends/plain", { enabled: false });
      await admin.ok("PUT", "/admin/backends/plain", { enabled: true });
      await waitFor("it was checked", async () => {
        const { backends } = (await admin.get("/admin/backends")) as { backends: { last_check: unknown }[] };
        return backends.slice(0, 1).every(({ last_check }) => last_check !== null);
      });
    }
    const tools = [{ type: "web_search_20250305", name: "web_search" }];
    const call = { id: "call_1", type: "function", function: { name: "web_search", arguments: '{"query":"x"}' } };
    const message = { role: "assistant", content: null, tool_calls: [call] };
    for (const [, answer] of QUOTING) {
      backend.reset((request) => (request.path.includes("search") ? answer("sekret-search") : chat("x")));
      backend.queue({
        body: JSON.stringify({ ...chatShape, choices: [{ index: 0, message, finish_reason: "tool_calls" }] }),
      });
      const response = await send("/v1/messages", { ...PATHS[1]?.[1]("m"), tools });
      await expectNoSecret("a search", response);
    }
    backend.reset();
  });

  test("requests that are refused", async () => {
    const wrong = { Authorization: "Bearer sekret-wrong-key" };
    const bodies = ["{", '{"model": "sekret"', JSON.stringify(["sekret"]), JSON.stringify({ model: { sekret: 1 } })];
    for (const [path, body] of PATHS) {
      await expectNoSecret("a wrong key", await send(path, body("m"), wrong));
      const inQuery = await send("/v1beta/models/m:generateContent?key=sekret-wrong-key", GEMINI_BODY, {});
      await expectNoSecret("a wrong key in the query", inQuery);
      for (const text of bodies) await expectNoSecret(text, await send(path, text));
    }
    await expectNoSecret("metrics", await gateway.fetch("/metrics", { headers: wrong }));
    await expectNoSecret(
      "metrics",
      await gateway.fetch("/metrics", { headers: { Authorization: basic("prometheus:sekret") } }),
    );
    for (const path of ["/admin/config/full", "/admin/backends", "/v1/models"]) {
      await expectNoSecret(path, await gateway.fetch(path, { headers: wrong }));
    }
  });

  test("changes that are refused, tried, made, staged and rolled back", async () => {
    const secret = { api_key: "sekret-new-key", headers: { "X-Secret": "sekret-new-header" } };
    const refused: [string, string, unknown][] = [
      ["PUT", "/admin/config/backends", [{ name: "x", ...secret, "sekret-key": "sekret" }]],
      ["PUT", "/admin/config/backends", [{ name: "x", url: "sekret://user:sekret@", ...secret }]],
      ["PUT", "/admin/config/backends", [{ name: "x", headers: { "sekret header": "sekret" } }]],
      [
        "PUT",
        "/admin/config/api_keys",
        { keys: [{ key: "sekret" }, { key: "sekret-twice" }, { key: "sekret-twice" }] },
      ],
      ["PUT", "/admin/config/api_keys", { keys: ["sekret-not-a-mapping"] }],
      ["PATCH", "/admin/config/admin", { auth: { method: "basic", token: "sekret", password: ["sekret"] } }],
      ["PATCH", "/admin/config/web_search", { api_key: { key: "sekret" }, base_url: "sekret://x" }],
      ["PATCH", "/admin/config/rate_limiting", { bypass_keys: ["sekret", 7] }],
      ["POST", "/admin/config/import", { format: "yaml", content: "backends: [{name: sekret: sekret" }],
      ["POST", "/admin/config/import", { format: "toml", content: 'a = "sekret' }],
      ["POST", "/admin/config/import", { format: "json", content: '{"sekret": "sekret"' }],
      ["POST", "/admin/backends", { name: "x", type: "sekret-type", ...secret }],
      ["POST", "/admin/backends", '{"api_key": "sekret", "api_key": "sekret"}'],
    ];
    for (const [method, path, body] of refused) {
      const { status, text } = await admin.send(method, path, { body });
      expect([method, path, text.slice(0, 300), status >= 400 && status < 500]).toEqual([
        method,
        path,
        text.slice(0, 300),
        true,
      ]);
    }
    for (const config of [[{ name: "x", ...secret }], [{ name: "x", weight: "many", ...secret }]]) {
      await admin.ok("POST", "/admin/config/validate", { section: "backends", config });
      const content = JSON.stringify({ backends: config });
      await admin.ok("POST", "/admin/config/import", { format: "json", content, dry_run: true });
    }
    const url = withPassword(backend.url, "sekret-new-password");
    await admin.ok("POST", "/admin/backends", { name: "new", url, models: ["q"], ...secret });
    await admin.ok("PUT", "/admin/backends/new", {
      api_key: "sekret-newer-key",
      url: withPassword(backend.url, "sekret-newer"),
    });
    await admin.ok("PATCH", "/admin/config/web_search?apply=false", { api_key: "sekret-staged" });
    await admin.ok("PATCH", "/admin/config/admin?apply=false", { auth: { password: "sekret-staged-password" } });
    await admin.get("/admin/config/staged");
    await admin.ok("POST", "/admin/config/apply", { dry_run: true });
    await admin.ok("POST", "/admin/config/apply", {});
    await admin.ok("DELETE", "/admin/backends/new?force=true");
    for (const version of [1, 2]) {
      await admin.ok("POST", `/admin/config/rollback/${version}`, { dry_run: true });
      await admin.ok("POST", `/admin/config/rollback/${version}`, {});
    }
    for (const format of ["yaml", "json", "toml"]) {
      for (const include_defaults of [true, false])
        await admin.ok("POST", "/admin/config/export", { format, include_defaults });
    }
    gateway.writeConfig({ ...configOf(backend), retry: { max_attempts: 0 } });
    await waitFor("the edit is refused", async () => {
      const { last_error } = await admin.get("/admin/config/hot-reload-status");
      return last_error;
    });
  });

  /** A stream that does not end by itself: with a request and a change that it tells of. */
  async function followEvents(headers: Record<string, string>): Promise<void> {
    const follower = await EventFollower.open(gateway, headers);
    if (follower.response.status === 200) {
      await expectNoSecret("an answer", await send("/v1/chat/completions", PATHS[0]?.[1]("m")));
      await admin.ok("PATCH", "/admin/config/retry", { base_delay: `${performance.now().toFixed(0)}ms` });
      for (const name of ["request", "config"]) await follower.next(name, ({ event }) => event === name);
    }
    follower.leave();
    await expectNoSecret("GET /admin/events", new Response(follower.text, { headers: follower.response.headers }));
  }

  test("every GET of the document, with everything that there is to name", async () => {
    const traced = await send("/v1/chat/completions", PATHS[0]?.[1]("m"));
    await expectNoSecret("an answer", traced);
    const { errors = [] } = (await admin.get("/admin/errors/recent")) as { errors?: { request_id: string }[] };
    const { sections, extensions } = (await admin.get("/admin/config/sections")) as Record<string, { name: string }[]>;
    const values: Record<string, string[]> = {
      section: [...(sections ?? []), ...(extensions ?? [])].map(({ name }) => name),
      name: ["plain", "reference", "password", "sekret-unknown".slice(7)],
      id: [traced.headers.get("x-request-id") ?? "", ...errors.map(({ request_id }) => request_id), "unknown"],
      model: ["m", "claude", "unknown"],
      path: ["a.md", "b.md"],
      version: ["1", "2"],
    };
    const document = (await (await gateway.fetch("/openapi.json")).json()) as { paths: Record<string, object> };
    const paths = Object.entries(document.paths).flatMap(([path, methods]) => ("get" in methods ? [path] : []));
    expect(paths.length).toBeGreaterThan(25);
    for (const path of paths) {
      const parameter = /\{(\w+)\}/.exec(path)?.[1];
      const targets =
        parameter === undefined
          ? [path]
          : (values[parameter] ?? ["x"]).map((value) => path.replace(`{${parameter}}`, value));
      for (const target of targets) {
        for (const headers of [ADMIN, CLIENT, { Authorization: basic("prometheus:sekret-override-password") }, {}]) {
          if (target === "/admin/events") await followEvents({ ...headers });
          else await expectNoSecret(`GET ${target}`, await gateway.fetch(target, { headers }));
        }
      }
    }
  });

  test("the log has lines of all that", async () => {
    expect(gateway.printed.stderrLines.length).toBeGreaterThan(50);
    gateway.printed.check();
    await gateway.stop();
    gateway.printed.check();
  });
});

describe("commands", () => {
  test("a configuration that is wrong in every secret place", async () => {
    const configText = [
      "backends:",
      '  - {name: a, type: vllm, url: "sekret://user:sekret@h", api_key: [sekret], headers: {a b: sekret}}',
      "  - {name: a, api_key:sekret-in-a-key, type: sekret}",
      "api_keys: {keys: [{key: sekret}, {key: sekret-twice}, {key: sekret-twice}, {keys: sekret}]}",
      "admin: {auth: {method: sekret, token: sekret, sekret-token: x}}",
      'web_search: {provider: serper, base_url: "sekret"}',
    ].join("\n");
    for (const args of [["--check-config"], ["--check-config", "--json"], [], ["--health-check"]]) {
      // What it prints is checked when it has ended.
      expect((await runCommand({ configText, args })).exitCode).toBe(1);
    }
    const unreadable = await runCommand({ configText: "backends: [{api_key: sekret", args: ["--check-config"] });
    expect(unreadable.exitCode).toBe(1);
    expect(unreadable.stdout).toContain("gateway.yaml");
  });
});

const chatShape = JSON.parse((chat("x").body as string) ?? "{}") as object;

function basic(text: string): string {
  return `Basic ${Buffer.from(text).toString("base64")}`;
}
