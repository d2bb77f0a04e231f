// Zero configuration against real listeners: engines, strangers, and ports that misbehave.

import { afterEach, describe, expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { BACKEND_KINDS, type BackendKind } from "../backends/kinds.ts";
import { documentSchema } from "../config/sections/registry.ts";
import type { BackendKindName } from "../names.ts";
import { type DiscoveryOptions, discover } from "./discover.ts";

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

/** A server on a free port that answers these paths with JSON, and every other with 404. */
function serve(answers: Record<string, unknown>): string {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const answer = answers[new URL(request.url).pathname];
      return answer === undefined ? new Response("not found", { status: 404 }) : Response.json(answer);
    },
  });
  cleanUps.push(() => server.stop(true));
  return server.url.origin;
}

/** A free port that nobody listens on. */
function closedAddress(): string {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { origin } = server.url;
  server.stop(true);
  return origin;
}

/** The real table, with other addresses of local engines; one without is not running. */
function enginesAt(urls: Partial<Record<BackendKindName, string>>): BackendKind[] {
  return Object.values(BACKEND_KINDS).map((kind) =>
    kind.localSigns === undefined ? kind : { ...kind, defaultUrl: urls[kind.name] ?? closedAddress() },
  );
}

function find(options: Partial<DiscoveryOptions> = {}) {
  return discover({ env: {}, kinds: enginesAt({}), ...options });
}

const OLLAMA = { "/api/tags": { models: [{ name: "llama3:latest", digest: "abc" }] } };
const LM_STUDIO = { "/api/v1/models": { models: [{ key: "qwen", type: "llm" }] } };
const OLD_LM_STUDIO = { "/api/v0/models": { data: [{ id: "qwen", state: "not-loaded" }] } };
const VLLM = { "/v1/models": { object: "list", data: [{ id: "m", owned_by: "vllm" }] } };

describe("keys in the environment", () => {
  test("become backends that refer to the variables", async () => {
    const { backends, found } = await find({
      env: { OPENAI_API_KEY: "sk-1", ANTHROPIC_API_KEY: "sk-2", GEMINI_API_KEY: "k-3" },
    });
    expect(backends).toEqual([
      { name: "openai", type: "openai", api_key: "${OPENAI_API_KEY}" },
      { name: "anthropic", type: "anthropic", api_key: "${ANTHROPIC_API_KEY}" },
      { name: "gemini", type: "gemini", api_key: "${GEMINI_API_KEY}" },
    ]);
    expect(found).toEqual([
      { name: "openai", kind: "openai", url: "https://api.openai.com", how: "OPENAI_API_KEY" },
      { name: "anthropic", kind: "anthropic", url: "https://api.anthropic.com", how: "ANTHROPIC_API_KEY" },
      { name: "gemini", kind: "gemini", url: "https://generativelanguage.googleapis.com", how: "GEMINI_API_KEY" },
    ]);
    expect(documentSchema.safeParse({ backends }).success).toBe(true);
    expect(JSON.stringify({ backends, found })).not.toContain("sk-");
  });

  test("GOOGLE_API_KEY stands in for GEMINI_API_KEY", async () => {
    const { found } = await find({ env: { GEMINI_API_KEY: "", GOOGLE_API_KEY: "k" } });
    expect(found.map((backend) => backend.how)).toEqual(["GOOGLE_API_KEY"]);
  });

  test("empty ones do not count", async () => {
    const { found } = await find({ env: { OPENAI_API_KEY: "", ANTHROPIC_API_KEY: "  ", GEMINI_API_KEY: undefined } });
    expect(found.map((backend) => backend.kind)).toEqual(["demo"]);
  });

  test("base URLs are respected, and shown without credentials", async () => {
    const { backends, found } = await find({
      env: {
        OPENAI_API_KEY: "k",
        OPENAI_BASE_URL: " https://me:secret@proxy.example/v1 ",
        ANTHROPIC_API_KEY: "k",
        ANTHROPIC_BASE_URL: "",
      },
    });
    expect(backends.map((backend) => backend.url)).toEqual(["https://me:secret@proxy.example/v1", undefined]);
    expect(found.map((backend) => backend.url)).toEqual(["https://proxy.example/v1", "https://api.anthropic.com"]);
  });

  test.each([
    ["http://localhost:8080/v1", ["127.0.0.1:8080"]],
    ["http://127.0.0.1:8080/v1", ["unix:/run/x.sock", "0.0.0.0:8080"]],
    ["http://[::1]:8080", ["[::]:8080"]],
    ["http://gateway.example/v1", ["gateway.example:80"]],
  ])("a base URL %s that leads to the gateway itself is not used", async (baseUrl, ownAddresses) => {
    const env = { OPENAI_API_KEY: "k", OPENAI_BASE_URL: baseUrl };
    expect((await find({ env, ownAddresses })).backends[0]).not.toHaveProperty("url");
    expect((await find({ env, ownAddresses: ["127.0.0.1:9999"] })).backends[0]?.url).toBe(baseUrl);
  });
});

describe("local engines", () => {
  test("that answer become backends", async () => {
    const urls = { ollama: serve(OLLAMA), lmstudio: serve(LM_STUDIO), vllm: serve(VLLM) };
    const { backends, found } = await find({ kinds: enginesAt(urls) });
    expect(backends).toEqual([
      { name: "ollama", type: "ollama", url: urls.ollama },
      { name: "lmstudio", type: "lmstudio", url: urls.lmstudio },
      { name: "vllm", type: "vllm", url: urls.vllm },
    ]);
    expect(found[0]).toEqual({
      name: "ollama",
      kind: "ollama",
      url: urls.ollama,
      how: `answers on ${new URL(urls.ollama).host}`,
    });
    expect(documentSchema.safeParse({ backends }).success).toBe(true);
  });

  test("stand beside hosted ones, without the demo backend", async () => {
    const { found } = await find({ env: { OPENAI_API_KEY: "k" }, kinds: enginesAt({ ollama: serve(OLLAMA) }) });
    expect(found.map((backend) => backend.name)).toEqual(["openai", "ollama"]);
  });

  test("an older LM Studio is recognised by its other path", async () => {
    const { found } = await find({ kinds: enginesAt({ lmstudio: serve(OLD_LM_STUDIO) }) });
    expect(found.map((backend) => backend.kind)).toEqual(["lmstudio"]);
  });

  test.each([
    ["vllm", { "/v1/models": { data: [{ id: "m", owned_by: "someone" }] } }],
    ["vllm", { "/v1/models": { data: [] } }],
    ["vllm", { "/v1/models": "vllm" }],
    ["ollama", { "/api/tags": { models: [] } }],
    ["ollama", { "/api/tags": { models: [{ name: "no digest" }, null] } }],
    ["lmstudio", { "/v1/models": { data: [{ id: "m", owned_by: "organization_owner" }] } }],
    ["lmstudio", { "/api/v1/models": { error: "Unexpected endpoint or method." } }],
    ["ollama", {}],
  ] as const)("a stranger on the port of %s is not taken for it: %j", async (kind, answers) => {
    const { found } = await find({ kinds: enginesAt({ [kind]: serve(answers) }) });
    expect(found).toEqual([{ name: "demo", kind: "demo", url: "http://demo.invalid", how: "built in" }]);
  });

  test("a redirect is not followed", async () => {
    const target = serve(OLLAMA);
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => Response.redirect(`${target}/api/tags`),
    });
    cleanUps.push(() => server.stop(true));
    const { found } = await find({ kinds: enginesAt({ ollama: server.url.origin }) });
    expect(found.map((backend) => backend.kind)).toEqual(["demo"]);
  });

  test("with nothing at all there is the demo backend, and it is a valid document", async () => {
    const { backends } = await find();
    expect(backends).toEqual([{ name: "demo", type: "demo" }]);
    expect(documentSchema.safeParse({ backends }).success).toBe(true);
  });
});

describe("time", () => {
  /** A listener with its own way to misbehave. */
  async function misbehave(onConnection: (socket: Socket) => void): Promise<string> {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => socket.destroy());
      onConnection(socket);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    cleanUps.push(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  }

  test("refused ports are answered at once", async () => {
    const startedAt = performance.now();
    await find({ timeoutMs: 60_000 });
    expect(performance.now() - startedAt).toBeLessThan(200);
  });

  test("ports that never answer, never end or never stop cost the timeout once in all", async () => {
    const silent = await misbehave(() => {});
    const slow = await misbehave((socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{");
    });
    const endless = await misbehave((socket) => {
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
      const block = `10000\r\n${" ".repeat(0x10000)}\r\n`;
      const pour = () => {
        while (!socket.destroyed && socket.write(block));
      };
      socket.on("drain", pour);
      pour();
    });
    const startedAt = performance.now();
    const { found } = await find({
      timeoutMs: 150,
      kinds: enginesAt({ ollama: silent, lmstudio: slow, vllm: endless }),
    });
    expect(performance.now() - startedAt).toBeLessThan(350);
    expect(found.map((backend) => backend.kind)).toEqual(["demo"]);
  });

  test("a probe that ignores its signal cannot hold the start up", async () => {
    const probe = () => new Promise<Response>(() => {});
    const { found } = await find({ probe, timeoutMs: 20, env: { OPENAI_API_KEY: "k" } });
    expect(found.map((backend) => backend.kind)).toEqual(["openai"]);
  });
});
