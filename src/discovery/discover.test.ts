// Zero configuration against real listeners: engines, strangers, and ports that misbehave.

import { afterEach, describe, expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { documentSchema } from "../config/sections/registry.ts";
import { PRESETS, type Preset } from "../presets.ts";
import { type DiscoveryOptions, discover } from "./discover.ts";
import { readPorts } from "./ports.ts";

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

type Answers = Record<string, unknown>;

/** A server on a free port that answers these paths with JSON, or with a response of its own, and every other with 404. */
function serve(answers: Answers, headers: Record<string, string> = {}): number {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const answer = answers[new URL(request.url).pathname];
      if (typeof answer === "function") return answer() as Response;
      return answer === undefined
        ? new Response("not found", { status: 404, headers })
        : Response.json(answer, { headers });
    },
  });
  cleanUps.push(() => server.stop(true));
  return Number(server.url.port);
}

/** A free port that nobody listens on. */
function closedPort(): number {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const port = Number(server.url.port);
  server.stop(true);
  return port;
}

function find(options: Partial<DiscoveryOptions> = {}) {
  return discover({ env: {}, ports: [], ...options });
}

const listOf = (...owners: unknown[]) => ({
  "/v1/models": { object: "list", data: owners.map((owned_by, index) => ({ id: `m${index}`, owned_by })) },
});
const OLLAMA = { ...listOf("library"), "/api/tags": { models: [{ name: "llama3:latest", digest: "abc" }] } };
const LM_STUDIO = { ...listOf("organization_owner"), "/api/v1/models": { models: [{ key: "qwen", type: "llm" }] } };
const OLD_LM_STUDIO = {
  ...listOf("organization_owner"),
  "/api/v0/models": { data: [{ id: "qwen", state: "not-loaded" }] },
};
const VLLM = listOf("vllm", "vllm");
/** It has this path of Ollama's, with an empty digest. */
const LLAMA_CPP = { ...listOf("llamacpp"), "/api/tags": { models: [{ name: "m", digest: "" }] } };
const LOADING = {
  "/v1/models": () => Response.json({ error: { code: 503 } }, { status: 503, headers: { Server: "llama.cpp" } }),
};
const SGLANG = listOf("sglang");

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

  test("of presets count where the variable is unmistakable", async () => {
    const services = ["GROQ", "MISTRAL", "DEEPSEEK", "XAI", "OPENROUTER"];
    const env = Object.fromEntries(services.map((name) => [`${name}_API_KEY`, `sekret-${name}`]));
    const others = Object.values<Preset>(PRESETS).flatMap(({ key, isFound }) =>
      key === undefined || isFound ? [] : [key],
    );
    const { backends, found } = await find({
      env: { ...env, AWS_ACCESS_KEY_ID: "sekret", ...Object.fromEntries(others.map((name) => [name, "sekret"])) },
    });
    expect(others).toContain("GITHUB_TOKEN");
    expect(backends).toEqual([
      { name: "groq", type: "groq", api_key: "${GROQ_API_KEY}" },
      { name: "mistral", type: "mistral", api_key: "${MISTRAL_API_KEY}" },
      { name: "deepseek", type: "deepseek", api_key: "${DEEPSEEK_API_KEY}" },
      { name: "xai", type: "xai", api_key: "${XAI_API_KEY}" },
      { name: "openrouter", type: "openrouter", api_key: "${OPENROUTER_API_KEY}" },
    ]);
    expect(found[0]).toMatchObject({ kind: "groq", url: "https://api.groq.com/openai/v1" });
    expect(found.map(({ how }) => how)).toEqual(Object.keys(env));
    expect(documentSchema.safeParse({ backends }).success).toBe(true);
    expect(JSON.stringify({ backends, found })).not.toContain("sekret");
    expect((await find({ env: { GROQ_API_KEY: " " } })).found.map(({ kind }) => kind)).toEqual(["demo"]);
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
  test("that answer become backends, in the order of the ports", async () => {
    const ports = [OLLAMA, LM_STUDIO, VLLM, LLAMA_CPP, SGLANG].map((answers) => serve(answers));
    const { backends, found, unrecognised } = await find({ ports });
    const urls = ports.map((port) => `http://127.0.0.1:${port}`);
    expect(backends).toEqual([
      { name: "ollama", type: "ollama", url: urls[0] },
      { name: "lmstudio", type: "lmstudio", url: urls[1] },
      { name: "vllm", type: "vllm", url: urls[2] },
      { name: "llamacpp", type: "llamacpp", url: urls[3] },
      { name: "sglang", type: "sglang", url: urls[4] },
    ]);
    expect(found[0]).toEqual({
      name: "ollama",
      kind: "ollama",
      url: `http://127.0.0.1:${ports[0]}`,
      how: `answers on 127.0.0.1:${ports[0]}`,
    });
    expect(unrecognised).toEqual([]);
    expect(documentSchema.safeParse({ backends }).success).toBe(true);
  });

  test("of one kind on several ports have names of their own", async () => {
    const ports = [serve(VLLM), serve(LLAMA_CPP), serve(VLLM)];
    const { found } = await find({ ports });
    expect(found.map(({ name }) => name)).toEqual(["vllm", "llamacpp", `vllm-${ports[2]}`]);
  });

  test("are recognised by the header of their answers, also while a model is being loaded", async () => {
    const ports = [serve(LOADING), serve({}, { Server: "llama.cpp" })];
    const { found } = await find({ ports });
    expect(found.map(({ kind }) => kind)).toEqual(["llamacpp", "llamacpp"]);
  });

  test("stand beside hosted ones, without the demo backend", async () => {
    const { found } = await find({ env: { OPENAI_API_KEY: "k" }, ports: [serve(OLLAMA)] });
    expect(found.map((backend) => backend.name)).toEqual(["openai", "ollama"]);
  });

  test("an older LM Studio is recognised by its other path", async () => {
    const { found } = await find({ ports: [serve(OLD_LM_STUDIO)] });
    expect(found.map((backend) => backend.kind)).toEqual(["lmstudio"]);
  });

  const DEMO = [{ name: "demo", kind: "demo", url: "http://demo.invalid", how: "built in" }];
  const HTML = () => new Response("<html>", { headers: { "content-type": "text/html" } });

  test.each<[Answers, said: string]>([
    [listOf("someone"), "lists models of an unknown engine"],
    [listOf("vllm", "llamacpp"), "lists models of an unknown engine"],
    [listOf("vllm", undefined), "lists models of an unknown engine"],
    [listOf("organization_owner"), "lists models of an unknown engine"],
    [listOf(), "lists no models"],
    [{ "/v1/models": "vllm" }, "answers GET /v1/models with no model list"],
    [{ "/v1/models": HTML }, "answers GET /v1/models with no model list"],
    [{ "/api/tags": { models: [] } }, "answers GET /v1/models with HTTP 404"],
    [{ "/api/tags": { models: [{ name: "no digest" }, null] } }, "answers GET /v1/models with HTTP 404"],
    [{ "/api/v1/models": { error: "Unexpected endpoint or method." } }, "answers GET /v1/models with HTTP 404"],
    [{}, "answers GET /v1/models with HTTP 404"],
  ])("a stranger that answers %j is not used, and is named", async (answers, said) => {
    const port = serve(answers);
    const { found, unrecognised } = await find({ ports: [port] });
    expect(found as unknown).toEqual(DEMO);
    const backend = { name: `local-${port}`, url: `http://127.0.0.1:${port}` };
    expect(unrecognised).toEqual([{ address: `127.0.0.1:${port}`, said, backend }]);
  });

  test.each([401, 403])("one that wants a key is named with a variable for it (%d)", async (status) => {
    const port = serve({ "/v1/models": () => Response.json({ error: "Unauthorized" }, { status }) });
    const { unrecognised } = await find({ ports: [port] });
    expect(unrecognised.map(({ said }) => said)).toEqual([`answers GET /v1/models with HTTP ${status}`]);
    const backends = unrecognised.map(({ backend }) => backend);
    expect(backends).toMatchObject([{ api_key: `\${LOCAL_${port}_API_KEY}` }]);
    expect(documentSchema.safeParse({ backends }).success).toBe(true);
  });

  test("a redirect is not followed", async () => {
    const target = serve(OLLAMA);
    const redirect = () => Response.redirect(`http://127.0.0.1:${target}/v1/models`);
    const { found, unrecognised } = await find({ ports: [serve({ "/v1/models": redirect, "/api/tags": redirect })] });
    expect(found.map((backend) => backend.kind)).toEqual(["demo"]);
    expect(unrecognised.map(({ said }) => said)).toEqual(["answers GET /v1/models with HTTP 302"]);
  });

  test.each(["127.0.0.1:", "0.0.0.0:", "[::]:", "localhost:"])(
    "the gateway's own address %s is not asked",
    async (own) => {
      let asked = 0;
      const probe = async () => {
        asked += 1;
        return Response.json(VLLM["/v1/models"]);
      };
      const { found, unrecognised } = await find({ ports: [8080], probe, ownAddresses: [`${own}8080`] });
      expect({ asked, kinds: found.map(({ kind }) => kind), unrecognised }).toEqual({
        asked: 0,
        kinds: ["demo"],
        unrecognised: [],
      });
      expect((await find({ ports: [8080], probe, ownAddresses: [`${own}9000`] })).found[0]?.kind).toBe("vllm");
    },
  );

  test("with nothing at all there is the demo backend, and it is a valid document", async () => {
    const { backends, unrecognised } = await find({ ports: [closedPort()] });
    expect({ backends, unrecognised }).toEqual({ backends: [{ name: "demo", type: "demo" }], unrecognised: [] });
    expect(documentSchema.safeParse({ backends }).success).toBe(true);
  });
});

test("ports are numbers with commas between them, or none", () => {
  expect(readPorts("8080, 9931,8080")).toEqual([8080, 9931]);
  expect(readPorts(" none ")).toEqual([]);
  for (const text of ["", "0", "65536", "8080,", "a", "1-9", "8080;9931", "-1", "1e3", `${"1,".repeat(32)}1`]) {
    expect([text, readPorts(text)]).toEqual([text, undefined]);
  }
});

describe("time", () => {
  /** A listener with its own way to misbehave. */
  async function misbehave(onConnection: (socket: Socket) => void): Promise<number> {
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
    return (server.address() as { port: number }).port;
  }

  test("refused ports are answered at once", async () => {
    const startedAt = performance.now();
    await find({ timeoutMs: 60_000, ports: [closedPort(), closedPort()] });
    expect(performance.now() - startedAt).toBeLessThan(30_000); // of 60 s
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
    const { found, unrecognised } = await find({ timeoutMs: 1_500, ports: [silent, slow, endless] });
    expect(performance.now() - startedAt).toBeLessThan(4_500); // one after the other they take longer
    expect(found.map((backend) => backend.kind)).toEqual(["demo"]);
    // What has begun to answer is named.
    expect(unrecognised.map(({ address }) => address)).toEqual([`127.0.0.1:${slow}`, `127.0.0.1:${endless}`]);
  });

  test("a probe that ignores its signal cannot hold the start up", async () => {
    const probe = () => new Promise<Response>(() => {});
    const { found } = await find({ probe, timeoutMs: 20, ports: [1, 2], env: { OPENAI_API_KEY: "k" } });
    expect(found.map((backend) => backend.kind)).toEqual(["openai"]);
  });
});
