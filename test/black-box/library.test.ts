// The gateway inside a program: no listener, the configuration as an object.

import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import {
  type ConfigDocument,
  ConfigurationError,
  createGateway,
  type GatewayOptions,
} from "../../src/library/index.ts";
import { FakeBackend, type FakeBackendOptions } from "../support/fake-backend.ts";
import { chat, chatStream, failure } from "../support/openai-answers.ts";
import { waitFor } from "../support/wait-for.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function startBackend(options: FakeBackendOptions = {}): FakeBackend {
  const backend = new FakeBackend({ models: ["m"], answer: chat("hello"), ...options });
  cleanups.push(() => backend.stop());
  return backend;
}

const configOf = ({ url }: FakeBackend, more: ConfigDocument = {}): ConfigDocument => ({
  backends: [{ name: "a", type: "vllm", url }],
  ...more,
});

async function open(config: ConfigDocument, more: Partial<GatewayOptions> = {}) {
  const gateway = await createGateway({ config, env: {}, ...more });
  cleanups.push(() => gateway.close());
  return gateway;
}

const QUESTION = { model: "m", messages: [{ role: "user" as const, content: "hi" }] };
const ask = (more: RequestInit = {}) =>
  ["http://signalbox/v1/chat/completions", { method: "POST", body: JSON.stringify(QUESTION), ...more }] as const;
const NEUTRAL = { model: "m", messages: [{ role: "user" as const, parts: [{ type: "text" as const, text: "hi" }] }] };

describe("fetch", () => {
  test("serves an official SDK, streams included", async () => {
    const gateway = await open(configOf(startBackend({ answer: chatStream(["hel", "lo"]) })));
    const openai = new OpenAI({ baseURL: "http://signalbox/v1", apiKey: "none", fetch: gateway.fetch });
    let text = "";
    const stream = await openai.chat.completions.create({ ...QUESTION, stream: true });
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
    expect(text).toBe("hello");
    expect((await openai.models.retrieve("m")).id).toBe("m");
  });

  test("refuses in the API's own shape, and never rejects", async () => {
    const gateway = await open(configOf(startBackend()));
    const statusOf = async (path: string, init?: RequestInit) =>
      (await gateway.fetch(`http://signalbox${path}`, init)).status;
    expect(await statusOf("/nowhere")).toBe(404);
    expect(await statusOf("/v1/chat/completions")).toBe(405);
    expect(await statusOf("/v1/chat/completions", { method: "POST", body: "{" })).toBe(400);
    expect(await statusOf("/v1/models/%zz")).toBe(400);
  });

  test("does not take a request for one from this machine, whatever its Host says", async () => {
    const gateway = await open(configOf(startBackend()));
    const response = await gateway.fetch("http://localhost/admin/config", { headers: { Host: "localhost" } });
    expect(response.status).toBe(403);
  });

  test("serves the admin API to its token", async () => {
    const admin = { auth: { method: "bearer_token" as const, token: "a-token-of-an-operator-1" } };
    const gateway = await open(configOf(startBackend(), { admin }));
    const headers = { Authorization: "Bearer a-token-of-an-operator-1" };
    expect((await gateway.fetch("http://signalbox/admin/backends", { headers })).status).toBe(200);
  });

  test("a client that leaves frees the backend", async () => {
    const backend = startBackend({ answer: { hang: true } });
    const gateway = await open(configOf(backend));
    const leaving = new AbortController();
    const asked = gateway.fetch(...ask({ signal: leaving.signal })).catch(() => undefined);
    const request = await waitFor("the backend is asked", () =>
      backend.requests.find(({ path }) => path.includes("chat")),
    );
    leaving.abort();
    await request.closed;
    await asked;
  });
});

describe("handler", () => {
  test("knows the address of a client from Bun's server", async () => {
    const config = configOf(startBackend());
    const lines: string[] = [];
    const gateway = await open(config, { log: (line) => lines.push(line) });
    const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: gateway.handler });
    cleanups.push(() => server.stop(true));
    const response = await fetch(`${server.url}v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify(QUESTION),
    });
    expect(await response.text()).toContain("hello");
    expect((await fetch(`${server.url}admin/config`)).status).toBe(200);
    await waitFor("the log names the client", () => lines.some((line) => line.includes('"client":"127.0.0.1"')));
  });
});

describe("generate", () => {
  test("gives events, or the whole answer", async () => {
    const gateway = await open(configOf(startBackend({ answer: chatStream(["hel", "lo"]) })));
    const types: string[] = [];
    for await (const { type } of gateway.generate({ ...NEUTRAL, system: "Be brief." })) types.push(type);
    expect(types).toContain("delta");
    expect((await gateway.generate(NEUTRAL).result()).parts).toEqual([{ type: "text", text: "hello" }]);
  });

  test("holds the limits of a key, and none without", async () => {
    const api_keys = { keys: [{ id: "k", key: "sekret-key-of-k", models: ["other"] }] };
    const gateway = await open(configOf(startBackend({ answer: chatStream(["hi"]) }), { api_keys }));
    const refused = gateway.generate(NEUTRAL, { apiKey: "sekret-key-of-k" }).result();
    await expect(refused).rejects.toMatchObject({ name: "GatewayError", status: 403 });
    expect((await gateway.generate(NEUTRAL).result()).finish.reason).toBe("stop");
  });

  test("a backend that fails is an error of the result, with its status", async () => {
    const gateway = await open(configOf(startBackend({ answer: failure(400, "too long") })));
    await expect(gateway.generate(NEUTRAL).result()).rejects.toMatchObject({ status: 400 });
  });
});

/** Other tests make folders in the usual place at the same time. */
function ownTemporaryFolder(): string {
  const { TMPDIR } = process.env;
  const folder = mkdtempSync(join(tmpdir(), "signalbox-test-"));
  process.env.TMPDIR = folder;
  cleanups.push(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

describe("the configuration", () => {
  test("that is wrong is refused with every field, and nothing is left behind", async () => {
    const folder = ownTemporaryFolder();
    const wrong = { backends: [{ name: "a", url: "not a url" }], retry: { max_attempts: -1 } };
    const error = await createGateway({ config: wrong, env: {} }).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error.problems.map(({ field }: { field: string }) => field)).toEqual(
      expect.arrayContaining(["backends[0].url", "retry.max_attempts"]),
    );
    expect(readdirSync(folder)).toEqual([]);
  });

  test("is replaced while requests run, and stays where the new one is wrong", async () => {
    const [first, second] = [startBackend(), startBackend({ answer: chat("from the second") })];
    const gateway = await open(configOf(first));
    await expect(gateway.update({ backends: [{ name: "a", url: "no" }] })).rejects.toBeInstanceOf(ConfigurationError);
    expect(await (await gateway.fetch(...ask())).text()).toContain("hello");
    await gateway.update({ backends: [{ name: "b", type: "vllm", url: second.url }] });
    await waitFor("the second one answers", async () =>
      (await (await gateway.fetch(...ask())).text()).includes("from the second"),
    );
  });

  test("reads variables from the environment that it is given", async () => {
    const backend = startBackend();
    const config = { backends: [{ name: "a", type: "vllm" as const, url: backend.url, api_key: "${KEY_OF_A}" }] };
    const gateway = await open(config, { env: { KEY_OF_A: "sk-from-env" } });
    await (await gateway.fetch(...ask())).text();
    expect(backend.requests.at(-1)?.headers.authorization).toBe("Bearer sk-from-env");
  });
});

describe("what it keeps", () => {
  test("is gone with close() where no folder is named", async () => {
    const folder = ownTemporaryFolder();
    const gateway = await createGateway({ config: configOf(startBackend()), env: {} });
    const made = readdirSync(folder);
    await gateway.close();
    expect(made).toHaveLength(1);
    expect(readdirSync(folder)).toEqual([]);
  });

  test("stays in server.data_dir: what was changed through the admin API is there after the next start", async () => {
    const data_dir = mkdtempSync(join(tmpdir(), "signalbox-test-"));
    cleanups.push(() => rmSync(data_dir, { recursive: true, force: true }));
    const token = "a-token-of-an-operator-1";
    const admin = { auth: { method: "bearer_token" as const, token } };
    const config = configOf(startBackend(), { admin, server: { data_dir } });
    const first = await createGateway({ config, env: {} });
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
    const section = "http://signalbox/admin/config/retry";
    const changed = await first.fetch(section, { method: "PATCH", headers, body: JSON.stringify({ max_attempts: 7 }) });
    expect(changed.status).toBe(200);
    await first.close();
    const second = await open(config);
    expect(await (await second.fetch(section, { headers })).text()).toContain('"max_attempts":7');
  });
});
