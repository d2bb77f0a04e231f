// Backends of type azure: the form without versions, Claude, and tokens of Entra ID in place of a key. Microsoft's way is
// what the official client does.

import { afterAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import AnthropicFoundry from "@anthropic-ai/foundry-sdk";
import OpenAI, { AzureOpenAI } from "openai";
import { AdminClient } from "../support/admin-client.ts";
import type { FakeBackend } from "../support/fake-backend.ts";
import { chat } from "../support/openai-answers.ts";
import { startStrictMessages } from "../support/strict/messages.ts";
import { answer, text } from "../support/strict/script.ts";
import { createTestBed } from "../support/test-bed.ts";
import { startAzureMetadata, startEntraIssuer } from "../support/token-issuers.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const owned: { stop(): void }[] = [];
afterAll(() => {
  for (const server of owned) server.stop();
});

function own<Server extends { stop(): void }>(server: Server): Server {
  owned.push(server);
  return server;
}

const KEY = "sekret-azure-key";
const TOKEN = expect.stringMatching(/^Bearer sekret-token-\d+$/);
const hello = { messages: [{ role: "user" as const, content: "hi" }] };
const asked = ({ lastRequest: { path, headers } }: FakeBackend) => ({
  path,
  key: headers["api-key"],
  token: headers.authorization,
});

describe("the gateway asks as the official client does", () => {
  test("with a version, by the deployment in the path", async () => {
    const backend = bed.backend();
    const client = new AzureOpenAI({ endpoint: backend.url, apiKey: KEY, apiVersion: "2024-10-21", maxRetries: 0 });
    await client.chat.completions.create({ model: "my-deployment", ...hello });
    const official = asked(backend);
    const gateway = await bed.gateway({
      config: {
        backends: [
          { name: "a", type: "azure", url: backend.url, api_key: KEY, deployments: { "gpt-4o": "my-deployment" } },
        ],
      },
    });
    await gateway.chat({ model: "gpt-4o", ...hello });
    expect(asked(backend)).toEqual(official);
    await gateway.post("/v1/responses", { model: "gpt-4o", input: "hi" });
    expect([backend.lastRequest.path, backend.lastRequest.json()]).toMatchObject([
      "/openai/v1/responses",
      { model: "my-deployment" },
    ]);
  });

  test.each([
    ["by api_version", "", { api_version: "v1" }],
    ["by the address", "/openai/v1/", {}],
  ])("without versions, the deployment stands in the body: %s", async (_, end, more) => {
    const backend = bed.backend();
    const client = new OpenAI({ baseURL: `${backend.url}/openai/v1/`, apiKey: KEY, maxRetries: 0 });
    await client.chat.completions.create({ model: "my-deployment", ...hello });
    const { path } = backend.lastRequest;
    const gateway = await bed.gateway({
      config: {
        backends: [
          {
            name: "a",
            type: "azure",
            url: backend.url + end,
            api_key: KEY,
            models: ["o3"],
            deployments: { "gpt-4o": "my-deployment" },
            ...more,
          },
        ],
      },
    });
    expect(backend.probes.map((probe) => probe.path)).toContain("/openai/v1/models");
    const body = '{ "model": "o3",  "messages": [{"role":"user","content":"ü"}] }';
    await gateway.post("/v1/chat/completions", body);
    expect([backend.lastRequest.text, asked(backend)]).toEqual([body, { path, key: KEY, token: undefined }]);
    await gateway.chat({ model: "gpt-4o", ...hello });
    expect([backend.lastRequest.path, backend.lastRequest.json().model]).toEqual([path, "my-deployment"]);
    const translated = { model: "gpt-4o", max_tokens: 9, ...hello };
    await gateway.post("/v1/messages", translated);
    expect([backend.lastRequest.path, backend.lastRequest.json().model]).toEqual([path, "my-deployment"]);
    await gateway.post("/v1/embeddings", { model: "gpt-4o", input: "x" });
    expect([backend.lastRequest.path, backend.lastRequest.json().model]).toEqual([
      "/openai/v1/embeddings",
      "my-deployment",
    ]);
    await gateway.post("/v1/images/generations", { model: "gpt-4o", prompt: "x" });
    expect([backend.lastRequest.path, backend.lastRequest.json().model]).toEqual([
      "/openai/v1/images/generations",
      "my-deployment",
    ]);
    await gateway.post("/v1/audio/speech", { model: "gpt-4o", input: "x", voice: "alloy" });
    expect([backend.lastRequest.path, backend.lastRequest.json().model]).toEqual([
      "/openai/v1/audio/speech",
      "my-deployment",
    ]);
  });
});

test("Claude on Azure: Messages of any version pass, others are translated, and tokens are counted there", async () => {
  const models = ["claude-opus-4-6", "claude-opus-5-production"];
  const claude = own(await startStrictMessages(() => answer(text("Fine.")), { models }));
  const azure = bed.backend();
  // One resource has both; the path says which is asked.
  azure.answer = async ({ path, text: body, headers }) => {
    const response = await fetch(claude.url + path.replace(/^\/anthropic/, ""), { method: "POST", body, headers });
    return { status: response.status, headers: { "Content-Type": "application/json" }, body: await response.text() };
  };
  const gateway = await bed.gateway({
    config: {
      backends: [
        {
          name: "a",
          type: "azure",
          url: `${azure.url}/anthropic/v1`,
          api_key: KEY,
          models: ["claude-opus-4-6"],
          deployments: { "claude-opus-5": "claude-opus-5-production" },
        },
      ],
    },
  });
  const official = new AnthropicFoundry({ apiKey: KEY, baseURL: `${azure.url}/anthropic/`, maxRetries: 0 });
  await official.messages.create({ model: "claude-opus-4-6", max_tokens: 9, ...hello });
  const { path, headers } = azure.lastRequest;
  expect([path, headers["x-api-key"]]).toEqual(["/anthropic/v1/messages", KEY]);
  const body = '{ "model": "claude-opus-4-6",  "max_tokens": 9, "messages": [{"role":"user","content":"ü"}] }';
  const passed = await gateway.post("/v1/messages", body, { headers: { "anthropic-version": "2026-10-21" } });
  expect([passed.status, await passed.json()]).toMatchObject([200, { content: [{ type: "text", text: "Fine." }] }]);
  const { lastRequest } = azure;
  expect([lastRequest.path, lastRequest.text]).toEqual(["/anthropic/v1/messages", body]);
  expect(lastRequest.headers).toMatchObject({ "x-api-key": KEY, "anthropic-version": "2026-10-21" });
  expect(lastRequest.headers["api-key"]).toBeUndefined();
  expect((await gateway.chat({ model: "claude-opus-5", ...hello })).status).toBe(200);
  expect(claude.last.body.model).toBe("claude-opus-5-production");
  const counted = await gateway.post("/v1/messages/count_tokens", { model: "claude-opus-5", ...hello });
  expect([counted.status, counted.headers.get("x-signalbox-estimate")]).toEqual([200, null]);
  expect(claude.last).toMatchObject({ path: "/v1/messages/count_tokens", body: { model: "claude-opus-5-production" } });
});

describe("tokens of Entra ID", () => {
  async function ask(entra_id: object, environment: Record<string, string> = {}, files: Record<string, string> = {}) {
    const azure = bed.backend({ answer: chat("hello") });
    const gateway = await bed.gateway({
      config: { backends: [{ name: "a", type: "azure", url: azure.url, models: ["m", "claude-x"], entra_id }] },
      environment,
      files,
    });
    const response = await gateway.chat({ model: "m", ...hello });
    return { azure, gateway, status: response.status, sent: asked(azure) };
  }

  test("of an application with a secret, for every request, probes included, and for Claude", async () => {
    const entra = own(startEntraIssuer());
    const application = { tenant_id: "t-1", client_id: "app-1", client_secret: "sekret-of-the-app" };
    const { azure, gateway, status, sent } = await ask(application, { AZURE_AUTHORITY_HOST: entra.url });
    expect([status, sent.token, sent.key]).toEqual([200, TOKEN, undefined]);
    expect(azure.probes.at(-1)?.headers.authorization).toEqual(TOKEN);
    await gateway.post("/v1/messages", { model: "claude-x", max_tokens: 9, ...hello });
    expect(asked(azure)).toEqual({ path: "/anthropic/v1/messages", key: undefined, token: TOKEN });
    expect(entra.asked.length).toBeLessThanOrEqual(1 + Number(process.env.GATEWAY_WORKERS ?? 0));
  });

  test("of a federated workload, as Kubernetes sets it up", async () => {
    const entra = own(startEntraIssuer());
    const variables = {
      AZURE_AUTHORITY_HOST: `${entra.url}/`,
      AZURE_TENANT_ID: "t-1",
      AZURE_CLIENT_ID: "app-1",
      AZURE_FEDERATED_TOKEN_FILE: "federated.token",
    };
    const { status, sent } = await ask({}, variables, { "federated.token": "sekret-federated\n" });
    expect([status, sent.token]).toEqual([200, TOKEN]);
  });

  test("of an application in the environment", async () => {
    const entra = own(startEntraIssuer("https://ai.azure.com/.default"));
    const variables = { AZURE_TENANT_ID: "t-1", AZURE_CLIENT_ID: "app-1", AZURE_CLIENT_SECRET: "sekret-of-the-app" };
    const { status, sent } = await ask(
      { scope: "https://ai.azure.com/.default" },
      { AZURE_AUTHORITY_HOST: entra.url, ...variables },
    );
    expect([status, sent.token]).toEqual([200, TOKEN]);
  });

  test("of the identity of a machine, and of App Service", async () => {
    const metadata = own(startAzureMetadata());
    const machine = await ask({ client_id: "user-assigned" }, { AZURE_POD_IDENTITY_AUTHORITY_HOST: metadata.url });
    expect([machine.status, machine.sent.token]).toEqual([200, TOKEN]);
    expect(metadata.asked.at(-1)?.form.client_id).toBe("user-assigned");
    const service = { IDENTITY_ENDPOINT: `${metadata.url}/msi/token`, IDENTITY_HEADER: "sekret-header" };
    const app = await ask({}, service);
    expect([app.status, app.sent.token]).toEqual([200, TOKEN]);
  });

  test("that are refused: the reason is told without secrets, and a new secret is used at once", async () => {
    const entra = own(startEntraIssuer());
    const azure = bed.backend();
    const wrong = { tenant_id: "t-1", client_id: "app-1", client_secret: "sekret-wrong" };
    const backend = { name: "a", type: "azure", url: azure.url, models: ["m"], entra_id: wrong };
    const gateway = await bed.gateway({
      config: { health_checks: { enabled: false }, circuit_breaker: { enabled: false }, backends: [backend] },
      environment: { AZURE_AUTHORITY_HOST: entra.url },
    });
    expect((await gateway.chat({ model: "m", ...hello })).status).toBe(502);
    await waitFor(
      "operators are told",
      async () =>
        (await gateway.backend("a")).last_error === "no access token: Entra ID answered HTTP 401 (invalid_client)",
    );
    const admin = new AdminClient(gateway);
    await admin.ok("PATCH", "/admin/config/backends", [
      { ...backend, entra_id: { ...wrong, client_secret: "sekret-of-the-app" } },
    ]);
    await waitFor("a token", async () => (await gateway.chat({ model: "m", ...hello })).status === 200);
    expect(azure.requests.length).toBeGreaterThan(0);
  });

  test("the token file is read again for each token", async () => {
    const entra = own(startEntraIssuer());
    const azure = bed.backend();
    const gateway = await bed.gateway({
      config: {
        health_checks: { enabled: false },
        circuit_breaker: { enabled: false },
        backends: [
          {
            name: "a",
            type: "azure",
            url: azure.url,
            models: ["m"],
            entra_id: { tenant_id: "t-1", client_id: "app-1", federated_token_file: "own.jwt" },
          },
        ],
      },
      environment: { AZURE_AUTHORITY_HOST: entra.url },
    });
    expect((await gateway.chat({ model: "m", ...hello })).status).toBe(502);
    await waitFor(
      "operators are told",
      async () => (await gateway.backend("a")).last_error === "the file with the federated token cannot be read",
    );
    writeFileSync(join(gateway.folder, "own.jwt"), "sekret-federated");
    await waitFor("the file is read", async () => (await gateway.chat({ model: "m", ...hello })).status === 200);
  });
});

test("keys that do not go together, or belong to other types, are named", async () => {
  const gateway = await bed.gateway({ config: { backends: [] } });
  const admin = new AdminClient(gateway);
  const entra_id = { tenant_id: "t-1", client_id: "app-1", client_secret: "sekret-of-the-app" };
  const problems = async (backend: object) => {
    const answer = await admin.send("POST", "/admin/backends", { body: { name: "a", models: ["m"], ...backend } });
    return [answer.status, answer.text.match(/"validation_errors":\[\{"field":"([^"]+)","error":"([^"]+)/)?.slice(1)];
  };
  const url = "https://a.example";
  expect(await problems({ type: "azure", api_key: KEY, url, entra_id })).toMatchObject([
    400,
    ["entra_id", expect.stringContaining("remove one of them")],
  ]);
  expect(await problems({ type: "openai", entra_id })).toMatchObject([
    400,
    ["entra_id", expect.stringContaining("belongs to backends of type azure, this one is openai")],
  ]);
  expect(await problems({ type: "azure", url, entra_id: {} })).toMatchObject([
    400,
    ["url", expect.stringContaining("credentials of this machine")],
  ]);
  expect(await problems({ type: "azure", url, entra_id: { client_secret: "sekret-of-the-app" } })).toMatchObject([
    400,
    ["entra_id", expect.stringContaining("needs tenant_id and client_id")],
  ]);
  expect(await problems({ type: "vertex" })).toMatchObject([
    400,
    ["project", "is required for a backend of type vertex"],
  ]);
});
