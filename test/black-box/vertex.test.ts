// Backends of type vertex: where tokens come from and how they are renewed, which path a model has, what clients of each
// format get, and what operators learn when there is no token.

import { afterAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import { AdminClient } from "../support/admin-client.ts";
import { answer, call, failure, type ScriptEntry, text, thinking } from "../support/strict/script.ts";
import { startStrictVertex } from "../support/strict/vertex.ts";
import { createTestBed } from "../support/test-bed.ts";
import { startGoogleIssuer, startGoogleMetadata } from "../support/token-issuers.ts";
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

const CLAUDE = "claude-sonnet-4-5@20250929";
const GEMINI = "gemini-2.5-flash";
const FINE = answer(text("Fine."));

async function start(script: ScriptEntry[] | (() => ScriptEntry), more: object = {}, parts: object = {}) {
  const issuer = own(startGoogleIssuer());
  const vertex = own(await startStrictVertex(script, { accepts: issuer.hasIssued }));
  const backend = { name: "cloud", type: "vertex", url: vertex.url, project: "p-1", models: [CLAUDE, GEMINI] };
  const config = {
    health_checks: { interval: "1h" },
    backends: [{ ...backend, credentials: JSON.stringify(issuer.serviceAccount), ...more }],
  };
  const gateway = await bed.gateway({ config, ...parts });
  return { issuer, vertex, gateway };
}

/** Each has its own tokens. */
const PROCESSES = 1 + Number(process.env.GATEWAY_WORKERS ?? 0);
const hello = { messages: [{ role: "user", content: "hi" }] };

describe("each model is asked in its own format", () => {
  test("Claude in the client's own bytes, without the model and with the version in the body", async () => {
    const { gateway, vertex } = await start([FINE, FINE, FINE]);
    const body = `{ "model": "${CLAUDE}",  "max_tokens": 9, "messages": [{"role": "user", "content": "ü"}] }`;
    expect((await gateway.post("/v1/messages", body)).status).toBe(200);
    const { path, text: sent, headers } = vertex.last;
    expect(path).toBe(`/v1/projects/p-1/locations/global/publishers/anthropic/models/${CLAUDE}:rawPredict`);
    expect(sent).toBe(
      '{"max_tokens": 9,"messages": [{"role": "user", "content": "ü"}],"anthropic_version":"vertex-2023-10-16"}',
    );
    expect(headers["anthropic-version"]).toBeUndefined();
    const later = { headers: { "anthropic-version": "2026-10-21", "anthropic-beta": "one" } };
    expect((await gateway.post("/v1/messages", body, later)).status).toBe(200);
    expect(vertex.last.body.anthropic_version).toBe("2026-10-21");
    expect(vertex.last.headers).toMatchObject({ "anthropic-beta": "one" });
    await (await gateway.post("/v1/messages", { ...JSON.parse(body), stream: true })).text();
    expect(vertex.last.path).toEndWith(":streamRawPredict");
    expect(vertex.refusals).toEqual([]);
  });

  test("Claude's tokens are counted by Google's counter", async () => {
    const { gateway, vertex } = await start([]);
    const response = await gateway.post("/v1/messages/count_tokens", { model: CLAUDE, ...hello });
    expect([response.status, await response.json()]).toEqual([200, { input_tokens: expect.any(Number) }]);
    expect(response.headers.get("x-signalbox-estimate")).toBeNull();
    expect(vertex.last.path).toBe(
      "/v1/projects/p-1/locations/global/publishers/anthropic/models/count-tokens:rawPredict",
    );
    expect(vertex.last.body).toMatchObject({ model: CLAUDE, anthropic_version: "vertex-2023-10-16" });
  });

  test("names in full, and a location of their own", async () => {
    const models = ["publishers/anthropic/models/claude-opus-4-6", "anthropic/claude-opus-5", "google/gemini-3-pro"];
    const place = { models: models.map((name) => name.slice(name.lastIndexOf("/") + 1)), location: "us-east5" };
    const issuer = own(startGoogleIssuer());
    const vertex = own(await startStrictVertex(() => FINE, { ...place, accepts: issuer.hasIssued }));
    const gateway = await bed.gateway({
      config: {
        backends: [
          {
            name: "cloud",
            type: "vertex_ai" as "vertex",
            url: vertex.url,
            project: "p-1",
            location: place.location,
            credentials: JSON.stringify(issuer.serviceAccount),
            models,
          },
        ],
      },
    });
    for (const model of models) {
      const response = await gateway.chat({ model, ...hello });
      expect([response.status, await response.json()]).toMatchObject([
        200,
        { choices: [{ message: { content: "Fine." } }] },
      ]);
    }
    expect(vertex.refusals).toEqual([]);
    expect(vertex.requests.map(({ path }) => path.replace(/^.*us-east5/, ""))).toEqual([
      "/publishers/anthropic/models/claude-opus-4-6:rawPredict",
      "/publishers/anthropic/models/claude-opus-5:rawPredict",
      "/publishers/google/models/gemini-3-pro:generateContent",
    ]);
  });

  test("models are owned by who has made them", async () => {
    const { gateway } = await start([]);
    const { data } = (await (await gateway.fetch("/v1/models")).json()) as { data: { id: string; owned_by: string }[] };
    expect(data.map(({ id, owned_by }) => [id, owned_by])).toEqual([
      [CLAUDE, "anthropic"],
      [GEMINI, "google"],
    ]);
  });

  test("without models there are those that Google lists", async () => {
    const { gateway } = await start([], { models: undefined });
    await waitFor("the list", async () => (await gateway.backend("cloud")).models.length === 2);
    expect((await gateway.backend("cloud")).models).toEqual(["gemini-2.5-flash", "gemini-3-pro"]);
  });

  test("a tool turn of Gemini, with its signature, keeps the ids that it was given here", async () => {
    const { gateway, vertex } = await start([answer(thinking("hmm"), call("get", { city: "Köln" })), FINE], {
      models: ["gemini-3-pro"],
    });
    const tools = [{ type: "function", function: { name: "get", parameters: { type: "object", properties: {} } } }];
    const first = (await (await gateway.chat({ model: "gemini-3-pro", ...hello, tools })).json()) as {
      choices: { message: { tool_calls: { id: string }[] } }[];
    };
    const message = first.choices[0]?.message;
    const result = { role: "tool", tool_call_id: message?.tool_calls[0]?.id, content: "sun" };
    const messages = [...hello.messages, message, result];
    expect((await gateway.chat({ model: "gemini-3-pro", messages, tools })).status).toBe(200);
    expect(vertex.refusals).toEqual([]);
    expect(vertex.last.text).toContain('"thoughtSignature"');
    expect(vertex.last.text).not.toContain('"id"');
  });
});

test("embeddings: one input in a request where the model takes no more, else all in one", async () => {
  const models = ["gemini-embedding-001", "gemini-embedding-2", "text-embedding-005"];
  const { gateway, vertex } = await start([], { models });
  const embed = async (model: string, more: object = {}) => {
    const response = await gateway.post("/v1/embeddings", { model, input: ["a", "b"], ...more });
    return {
      status: response.status,
      ...((await response.json()) as { data: { embedding: number[] }[]; usage: object }),
    };
  };
  const half = expect.closeTo(Math.SQRT1_2);
  const both = [
    { object: "embedding", index: 0, embedding: [0.6, 0.8] },
    { object: "embedding", index: 1, embedding: [0.6, 0.8] },
  ];
  expect(await embed("gemini-embedding-001")).toMatchObject({ status: 200, data: both, usage: { prompt_tokens: 8 } });
  expect(vertex.requests.splice(0).map(({ path }) => path.split("/").at(-1))).toEqual([
    "gemini-embedding-001:predict",
    "gemini-embedding-001:predict",
  ]);
  expect(await embed("gemini-embedding-2")).toMatchObject({ status: 200, data: both, usage: { prompt_tokens: 10 } });
  expect(vertex.requests.splice(0).map(({ path }) => path.split("/").at(-1))).toEqual([
    "gemini-embedding-2:embedContent",
    "gemini-embedding-2:embedContent",
  ]);
  expect(await embed("text-embedding-005", { task_type: "RETRIEVAL_QUERY", dimensions: 2 })).toMatchObject({
    status: 200,
    data: [{ embedding: [half, half] }, { embedding: [half, half] }],
    usage: { prompt_tokens: 8 },
  });
  expect(vertex.requests.map(({ body }) => body)).toEqual([
    {
      instances: [
        { content: "a", task_type: "RETRIEVAL_QUERY" },
        { content: "b", task_type: "RETRIEVAL_QUERY" },
      ],
      parameters: { outputDimensionality: 2 },
    },
  ]);
});

describe("tokens", () => {
  const asks = async (parts: Awaited<ReturnType<typeof start>>) =>
    (await parts.gateway.chat({ model: GEMINI, ...hello })).status;

  test("of a service account, by the path of its key file, are asked for once and used for everything", async () => {
    const parts = await start(
      () => FINE,
      { credentials: "key.json" },
      { files: { "key.json": "{}" }, awaitHealth: false },
    );
    const { gateway, issuer, vertex } = parts;
    expect((await gateway.backend("cloud")).last_error).toContain("no JSON of Google credentials");
    writeFileSync(join(gateway.folder, "key.json"), JSON.stringify(issuer.serviceAccount));
    await waitFor("the file is read again", async () => (await asks(parts)) === 200);
    for (let index = 0; index < 3; index++) expect(await asks(parts)).toBe(200);
    expect(issuer.asked.length).toBeLessThanOrEqual(PROCESSES);
    expect(vertex.last.headers.authorization).toStartWith("Bearer sekret-token-");
  });

  test("of a user, with the project that is billed", async () => {
    const issuer = own(startGoogleIssuer());
    const vertex = own(await startStrictVertex(() => FINE, { accepts: issuer.hasIssued }));
    const gateway = await bed.gateway({
      config: {
        backends: [
          {
            name: "u",
            type: "vertex",
            url: vertex.url,
            project: "p-1",
            models: [GEMINI],
            credentials: JSON.stringify(issuer.user),
          },
        ],
      },
    });
    expect((await gateway.chat({ model: GEMINI, ...hello })).status).toBe(200);
    expect(vertex.last.headers["x-goog-user-project"]).toBe("p-billed");
    expect(issuer.asked.at(-1)?.form).toMatchObject({ grant_type: "refresh_token" });
  });

  test("of a federated workload, by the application default credentials", async () => {
    const issuer = own(startGoogleIssuer());
    const vertex = own(await startStrictVertex(() => FINE, { accepts: issuer.hasIssued }));
    const gateway = await bed.gateway({
      config: { backends: [{ name: "w", type: "vertex", url: vertex.url, project: "p-1", models: [GEMINI] }] },
      environment: { GOOGLE_APPLICATION_CREDENTIALS: "workload.json" },
      files: { "workload.json": "{}", "subject.txt": "sekret-subject" },
      awaitHealth: false,
    });
    const subject = join(gateway.folder, "subject.txt");
    writeFileSync(join(gateway.folder, "workload.json"), JSON.stringify(issuer.workload(subject)));
    const ask = async () => (await gateway.chat({ model: GEMINI, ...hello })).status;
    await waitFor("the file is read", async () => (await ask()) === 200);
    expect(issuer.asked.at(-1)?.path).toBe("/sts");
  });

  test("of gcloud's own file, and of the metadata server where there is no file", async () => {
    const issuer = own(startGoogleIssuer());
    const metadata = own(startGoogleMetadata());
    const accepts = (token: string) => issuer.hasIssued(token) || metadata.hasIssued(token);
    const vertex = own(await startStrictVertex(() => FINE, { accepts }));
    const config = {
      backends: [{ name: "g", type: "vertex", url: vertex.url, project: "p-1", models: [GEMINI] }],
    };
    const environment = { GCE_METADATA_HOST: new URL(metadata.url).host };
    const onCloud = await bed.gateway({ config, environment });
    expect((await onCloud.chat({ model: GEMINI, ...hello })).status).toBe(200);
    expect([metadata.asked.length > 0, issuer.asked.length]).toEqual([true, 0]);
    const before = metadata.asked.length;
    const file = "home/.config/gcloud/application_default_credentials.json";
    const atHome = await bed.gateway({ config, environment, files: { [file]: JSON.stringify(issuer.user) } });
    expect((await atHome.chat({ model: GEMINI, ...hello })).status).toBe(200);
    expect([metadata.asked.length, issuer.asked.length > 0]).toEqual([before, true]);
  });

  test("are renewed before they end, and no request fails or waits meanwhile", async () => {
    const issuer = own(startGoogleIssuer());
    issuer.lifetime = 2;
    const vertex = own(await startStrictVertex(() => FINE, { accepts: issuer.hasIssued }));
    const gateway = await bed.gateway({
      config: {
        backends: [
          {
            name: "r",
            type: "vertex",
            url: vertex.url,
            project: "p-1",
            models: [GEMINI],
            credentials: JSON.stringify(issuer.serviceAccount),
          },
        ],
      },
    });
    const statuses = new Set<number>();
    await waitFor("three tokens", async () => {
      statuses.add((await gateway.chat({ model: GEMINI, ...hello })).status);
      return new Set(vertex.requests.map(({ headers }) => headers.authorization)).size >= 3;
    });
    expect([...statuses]).toEqual([200]);
  });

  test("that cannot be got: another backend answers, and operators read why, without secrets", async () => {
    const issuer = own(startGoogleIssuer());
    issuer.failure = { status: 400, body: { error: "invalid_grant", error_description: "sekret-description" } };
    const vertex = own(await startStrictVertex(() => FINE, { accepts: issuer.hasIssued }));
    const other = bed.backend();
    const cloud = {
      type: "vertex",
      url: vertex.url,
      project: "p-1",
      credentials: JSON.stringify(issuer.serviceAccount),
    } as const;
    const gateway = await bed.gateway({
      config: {
        health_checks: { enabled: false },
        circuit_breaker: { enabled: false },
        retry: { base_delay: "1ms" },
        backends: [
          { name: "cloud", ...cloud, models: [GEMINI, "gemini-3-pro"] },
          { name: "other", url: other.url, models: [GEMINI], weight: 0 },
        ],
      },
    });
    expect((await gateway.chat({ model: GEMINI, ...hello })).headers.get("x-signalbox-backend")).toBe("other");
    const alone = await gateway.chat({ model: "gemini-3-pro", ...hello });
    expect([alone.status, await alone.text()]).toEqual([502, expect.stringContaining("has no credential for it")]);
    const told = "no access token: Google's token endpoint answered HTTP 400 (invalid_grant)";
    await waitFor("operators are told", async () => (await gateway.backend("cloud")).last_error === told);
    expect(gateway.printed.stderr).toContain("invalid_grant");
    expect(vertex.requests).toEqual([]);
    issuer.failure = undefined;
    await waitFor("a token", async () => (await gateway.chat({ model: "gemini-3-pro", ...hello })).status === 200);
    await waitFor("all is well", async () => (await gateway.backend("cloud")).last_error === null);
  });
});

describe("errors are told in the client's words", () => {
  const spent = failure(429, "Quota exceeded for the project.", { type: "RESOURCE_EXHAUSTED", retryAfter: "7" });

  test.each([
    [
      "/v1/chat/completions",
      CLAUDE,
      { error: { type: "rate_limit_exceeded", message: "Quota exceeded for the project." } },
    ],
    [
      "/v1/chat/completions",
      GEMINI,
      { error: { type: "rate_limit_exceeded", message: "Quota exceeded for the project." } },
    ],
    ["/v1/messages", CLAUDE, { type: "error", error: { type: "rate_limit_error" } }],
    ["/v1/messages", GEMINI, { type: "error", error: { type: "rate_limit_error" } }],
  ])("%s, %s", async (path, model, expected) => {
    const { gateway } = await start([spent, spent, spent, spent], { retry_override: { max_attempts: 1 } });
    const response = await gateway.post(path, { model, max_tokens: 9, ...hello });
    expect([response.status, await response.json()]).toMatchObject([429, expected]);
  });

  test("a token that Google refuses is the operator's matter", async () => {
    const { gateway, vertex } = await start(() => FINE, {
      credentials: JSON.stringify(startGoogleIssuer().serviceAccount),
    });
    const response = await gateway.chat({ model: GEMINI, ...hello });
    expect(vertex.refusals.length).toBeGreaterThan(0);
    expect(response.status).toBe(401);
    expect(await response.text()).toContain("does not accept the gateway's own credential");
    const told = "HTTP 401 (the credential is refused)";
    await waitFor("operators are told", async () => (await gateway.backend("cloud")).last_error === told);
  });
});

test("a stream of Claude's that breaks goes on at Gemini, for a client of the Messages format", async () => {
  const issuer = own(startGoogleIssuer());
  const accepts = issuer.hasIssued;
  const breaking = { ...answer(text("One two three")), breakAfterFrames: 4, breakWith: "cut" as const };
  const claude = own(await startStrictVertex([breaking], { accepts }));
  const gemini = own(await startStrictVertex([answer(text("wo three four"))], { accepts }));
  const cloud = { type: "vertex", project: "p-1", credentials: JSON.stringify(issuer.serviceAccount) } as const;
  const gateway = await bed.gateway({
    config: {
      retry: { max_attempts: 1 },
      streaming: { mid_stream_fallback: { enabled: true } },
      fallback: { fallback_chains: { [CLAUDE]: [GEMINI] } },
      backends: [
        { name: "claude", ...cloud, url: claude.url, models: [CLAUDE] },
        { name: "gemini", ...cloud, url: gemini.url, models: [GEMINI] },
      ],
    },
  });
  const client = new Anthropic({ apiKey: "sk-sekret", baseURL: gateway.url, maxRetries: 0 });
  const message = await client.messages
    .stream({ model: CLAUDE, max_tokens: 99, messages: [{ role: "user", content: "Count." }] })
    .finalMessage();
  expect(message.content.map((block) => (block.type === "text" ? block.text : "")).join("")).toBe("One two three four");
  expect([claude, gemini].map(({ last }) => last.path.split(":").at(-1))).toEqual([
    "streamRawPredict",
    "streamGenerateContent",
  ]);
});

test("a client that leaves ends its request to the cloud", async () => {
  const issuer = own(startGoogleIssuer());
  const backend = bed.backend();
  backend.answer = { hang: true };
  const gateway = await bed.gateway({
    config: {
      backends: [
        {
          name: "cloud",
          type: "vertex",
          url: backend.url,
          project: "p-1",
          models: [CLAUDE],
          credentials: JSON.stringify(issuer.serviceAccount),
        },
      ],
    },
  });
  const leaving = new AbortController();
  const asked = gateway
    .post("/v1/messages", { model: CLAUDE, max_tokens: 9, ...hello }, { signal: leaving.signal })
    .catch(() => undefined);
  await waitFor("the request is there", () => backend.requests.length === 1);
  leaving.abort();
  await asked;
  await backend.lastRequest.closed;
});

test("the machine's own credentials go nowhere that the admin API says", async () => {
  const issuer = own(startGoogleIssuer());
  const { gateway } = await start(() => FINE);
  const admin = new AdminClient(gateway);
  const backend = { name: "evil", type: "vertex", project: "p-1", models: ["m"] };
  const elsewhere = await admin.send("POST", "/admin/backends", { body: { ...backend, url: issuer.url } });
  expect([elsewhere.status, elsewhere.text]).toEqual([400, expect.stringContaining("credentials of this machine")]);
  const federated = JSON.stringify(issuer.workload("/etc/passwd"));
  const reading = await admin.send("POST", "/admin/backends", { body: { ...backend, credentials: federated } });
  expect([reading.status, reading.text]).toEqual([400, expect.stringContaining("must end in .json")]);
  expect(issuer.asked).toEqual([]);
  // The client refuses answers that show a secret.
  expect(JSON.stringify(await admin.get("/admin/config/backends"))).toContain('"credentials"');
});
