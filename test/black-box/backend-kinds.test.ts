// How each kind of backend is addressed: paths, credentials, spellings, addresses with and without /v1, unix sockets.

import { expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chat, models } from "../support/openai-answers.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
const KEY = "sk-sekret-backend";

test("azure: deployment path, api-version and api-key", async () => {
  const backend = bed.backend();
  await using gateway = await startGateway({
    config: {
      backends: [
        {
          name: "cloud",
          type: "azure_openai",
          url: `${backend.url}/`,
          api_key: KEY,
          models: ["plain"],
          deployments: { "gpt-x": "my deployment" },
        },
        { name: "dated", type: "kind_b", url: backend.url, api_key: KEY, models: ["old"], api_version: "2023-05-15" },
      ],
    },
  });
  const body = '{"model":"gpt-x","messages":[{"role":"user","content":"hi"}]}';
  expect((await gateway.post("/v1/chat/completions", body)).status).toBe(200);
  expect(backend.lastRequest.path).toBe("/openai/deployments/my%20deployment/chat/completions?api-version=2024-10-21");
  expect(backend.lastRequest.headers["api-key"]).toBe(KEY);
  expect(backend.lastRequest.headers.authorization).toBeUndefined();
  expect(backend.lastRequest.text).toBe(body);

  await gateway.chat({ model: "plain" });
  expect(backend.lastRequest.path).toStartWith("/openai/deployments/plain/chat/completions?");
  await gateway.chat({ model: "old" });
  expect(backend.lastRequest.path).toEndWith("?api-version=2023-05-15");
  await gateway.post("/v1/embeddings", { model: "plain", input: "x" });
  expect(backend.lastRequest.path).toStartWith("/openai/deployments/plain/embeddings?");
});

test("kinds that speak the chat format get a bearer token on /v1 paths, whatever the spelling", async () => {
  const backend = bed.backend({ models: [] });
  const spellings = ["kind_a", "VLLM", "llama.cpp", "local-studio", "ollama-style", "continuum-router", "generic"];
  await using gateway = await startGateway({
    config: {
      backends: spellings.map((type, index) => ({
        name: `b${index}`,
        type,
        url: backend.url,
        api_key: KEY,
        models: [`m${index}`],
      })),
    },
  });
  for (const [index] of spellings.entries()) {
    const response = await gateway.chat({ model: `m${index}` });
    expect(response.status).toBe(200);
    expect(backend.lastRequest.path).toBe("/v1/chat/completions");
    expect(backend.lastRequest.headers.authorization).toBe(`Bearer ${KEY}`);
  }
});

test("without an api_key no credential is sent", async () => {
  const backend = bed.backend();
  await using gateway = await startGateway({ config: { backends: [{ name: "a", url: backend.url, models: ["m"] }] } });
  await gateway.chat({}, { headers: { Authorization: "Bearer sk-sekret-of-the-client" } });
  expect(backend.lastRequest.headers.authorization).toBeUndefined();
});

test("configured headers are sent, and may hold secrets", async () => {
  const backend = bed.backend();
  await using gateway = await startGateway({
    config: { backends: [{ name: "a", url: backend.url, models: ["m"], headers: { "X-Team": "sekret-team" } }] },
  });
  await gateway.chat();
  expect(backend.lastRequest.headers["x-team"]).toBe("sekret-team");
});

test("an address with /v1, with a slash, and below a path means the same backend", async () => {
  const paths = {
    "": "/v1/chat/completions",
    "/": "/v1/chat/completions",
    "/v1": "/v1/chat/completions",
    "/v1/": "/v1/chat/completions",
    "/team/llm": "/team/llm/v1/chat/completions",
    "/team/llm/v1": "/team/llm/v1/chat/completions",
  };
  const backend = bed.backend();
  await using gateway = await startGateway({
    config: {
      backends: Object.keys(paths).map((suffix, index) => ({
        name: `b${index}`,
        url: backend.url + suffix,
        models: [`m${index}`],
      })),
    },
  });
  for (const [index, path] of Object.values(paths).entries()) {
    expect((await gateway.chat({ model: `m${index}` })).status).toBe(200);
    expect(backend.lastRequest.path).toBe(path);
  }
});

test("a backend behind a unix socket serves plain and streamed, and is health-checked", async () => {
  const backend = bed.backend({ unixPath: join(tmpdir(), `signalbox-backend-${process.pid}.sock`) });
  await using gateway = await startGateway({ config: { backends: [{ name: "local", url: backend.url }] } });
  expect((await gateway.backend("local")).url).toStartWith("unix:");
  const response = await gateway.chat();
  expect(response.status).toBe(200);
  expect(await response.text()).toBe(chat("hello").body as string);
  expect(backend.probes.length).toBeGreaterThan(0);
});

test("a generic backend that turns out to be llama.cpp is recognised by its model list", async () => {
  const backend = bed.backend();
  backend.probeAnswer = (request) =>
    request.path === "/v1/models" ? models(["m"], "llamacpp") : { body: JSON.stringify({ status: "ok" }) };
  await using gateway = await startGateway({ config: { backends: [{ name: "a", url: backend.url }] } });
  expect((await gateway.chat()).status).toBe(200);
  const list = (await (await gateway.fetch("/v1/models")).json()) as { data: { owned_by: string }[] };
  expect(list.data[0]?.owned_by).toBe("llamacpp");
  expect((await gateway.backend("a")).type).toBe("llamacpp");
});

test("an answer with a body encoding is asked for plain, so that bytes pass", async () => {
  const backend = bed.backend();
  await using gateway = await startGateway({ config: { backends: [{ name: "a", url: backend.url, models: ["m"] }] } });
  await gateway.chat({}, { headers: { "Accept-Encoding": "gzip, br" } });
  expect(backend.lastRequest.headers["accept-encoding"] ?? "identity").toBe("identity");
});

test("a redirect of a backend is not followed: credentials would go along", async () => {
  const target = bed.backend();
  const backend = bed.backend({ answer: { status: 307, headers: { Location: `${target.url}/v1/chat/completions` } } });
  await using gateway = await startGateway({
    config: { backends: [{ name: "a", url: backend.url, models: ["m"], api_key: KEY }], retry: { max_attempts: 1 } },
  });
  expect((await gateway.chat()).status).toBe(502);
  expect(target.requests).toHaveLength(0);
});
