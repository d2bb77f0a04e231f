import { afterEach, describe, expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startSilentHost } from "../../test/support/silent-host.ts";
import { waitFor } from "../../test/support/wait-for.ts";
import { toBackend } from "../backends/backend.ts";
import { type ConfigDocument, documentSchema } from "../config/sections/registry.ts";
import { systemClock } from "../lib/clock.ts";
import { createTransport } from "../upstream/transport.ts";
import { type ProbeOutcome, type ProbePlan, probeBackend, probePlan } from "./probe.ts";

type BackendInput = NonNullable<ConfigDocument["backends"]>[number];

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

function planOf(backend: Omit<BackendInput, "name">, healthChecks: ConfigDocument["health_checks"] = {}): ProbePlan {
  const settings = documentSchema.parse({ backends: [{ name: "b", ...backend }], health_checks: healthChecks });
  return probePlan(toBackend(settings.backends[0]!), settings.health_checks);
}

const transport = createTransport(async () => new Response("{}"));

async function probe(
  backend: Omit<BackendInput, "name">,
  healthChecks: ConfigDocument["health_checks"] = {},
  stop = new AbortController().signal,
): Promise<ProbeOutcome> {
  const settings = documentSchema.parse({ backends: [{ name: "b", ...backend }], health_checks: healthChecks });
  const target = toBackend(settings.backends[0]!);
  return probeBackend(target, probePlan(target, settings.health_checks), { transport, clock: systemClock, stop });
}

interface SeenRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
}

/** Answers each path with its status; everything else with 404. */
function serve(statuses: Record<string, number>): { url: string; seen: SeenRequest[] } {
  const seen: SeenRequest[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { pathname } = new URL(request.url);
      seen.push({ method: request.method, path: pathname, headers: request.headers.toJSON() });
      return new Response("x", { status: statuses[pathname] ?? 404 });
    },
  });
  cleanups.push(() => server.stop(true));
  return { url: `http://127.0.0.1:${server.port}`, seen };
}

function listenRaw(answer: (socket: { write(text: string): unknown; terminate(): unknown }) => void) {
  const state = { open: 0 };
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open: () => void state.open++,
      close: () => void state.open--,
      data: (socket) => answer(socket),
    },
  });
  cleanups.push(() => server.stop(true));
  return { url: `http://127.0.0.1:${server.port}`, state };
}

describe("what is asked", () => {
  const url = "http://h";
  const kinds: [type: string, method: string, paths: string[]][] = [
    ["openai", "GET", ["/v1/models"]],
    ["vllm", "GET", ["/health", "/v1/models"]],
    ["llamacpp", "GET", ["/health", "/v1/models"]],
    ["federated", "GET", ["/health", "/v1/models"]],
    ["ollama", "GET", ["/api/tags", "/"]],
    ["lmstudio", "GET", ["/v1/models", "/api/v1/models"]],
    ["anthropic", "POST", ["/v1/messages"]],
    ["gemini", "GET", ["/models", "/v1beta/models"]],
    ["azure", "GET", ["/openai/models?api-version=2024-10-21"]],
  ];
  test.each(kinds)("a backend of type %s by %s", (type, method, paths) => {
    const plan = planOf({ type, url, models: ["m"] });
    expect(plan.method).toBe(method as ProbePlan["method"]);
    expect(plan.paths).toEqual(paths);
  });

  test("the backend's own check wins over the general endpoint, which wins over the kind", () => {
    expect(planOf({ type: "vllm", url }, { endpoint: "/up" }).paths).toEqual(["/up"]);
    const own = planOf({ type: "vllm", url, health_check: { endpoint: "/own", timeout: "3s" } }, { endpoint: "/up" });
    expect(own).toMatchObject({ paths: ["/own"], timeoutMs: 3_000 });
    expect(planOf({ type: "vllm", url, health_check: { fallback_endpoints: ["/b"] } }).paths).toEqual([
      "/health",
      "/b",
    ]);
  });

  test("another path does not inherit method, body and statuses that belong to the kind's path", () => {
    const plan = planOf({ type: "anthropic", url, health_check: { endpoint: "/up" } });
    expect(plan).toMatchObject({ method: "GET", body: undefined, acceptStatus: [200], warmupStatus: [503] });
    expect(planOf({ type: "anthropic", url })).toMatchObject({ body: "{}", acceptStatus: [200, 400, 401, 429] });
  });

  test("method, body, credentials and headers arrive", async () => {
    const { url, seen } = serve({ "/check": 200 });
    const check = { endpoint: "/check", method: "POST", body: { a: 1 } } as const;
    await probe({ type: "openai", url, api_key: "secret", headers: { "X-Extra": "1" }, health_check: check });
    const request = seen[0]!;
    expect(request.method).toBe("POST");
    expect(request.headers).toMatchObject({
      authorization: "Bearer secret",
      "accept-encoding": "identity",
      "content-type": "application/json",
      "x-extra": "1",
    });
  });

  test("the headers of a messages backend and the operator's own credential arrive once", async () => {
    const { url, seen } = serve({ "/v1/messages": 400 });
    expect((await probe({ type: "anthropic", url, api_key: "a", headers: { "X-API-Key": "own" } })).verdict).toBe(
      "healthy",
    );
    expect(seen[0]!.headers).toMatchObject({
      "x-api-key": "own",
      "anthropic-version": "2023-06-01",
    });
  });
});

describe("what the answer means", () => {
  test.each([
    [200, "healthy"],
    [503, "warming"],
    [500, "failed"],
    [401, "failed"],
    [302, "failed"],
  ] as const)("HTTP %d is %s", async (status, verdict) => {
    const { url } = serve({ "/health": status });
    const outcome = await probe({ type: "vllm", url });
    expect(outcome.verdict).toBe(verdict);
    if (verdict === "healthy") expect(outcome.reason).toBeUndefined();
    else expect(outcome.reason).toContain(`HTTP ${status}`);
  });

  test("configured statuses replace the usual ones", async () => {
    const { url } = serve({ "/health": 204 });
    expect((await probe({ type: "vllm", url, health_check: { accept_status: [204] } })).verdict).toBe("healthy");
    expect((await probe({ type: "vllm", url, health_check: { warmup_status: [204] } })).verdict).toBe("warming");
  });

  test("the next path is tried on 404 only", async () => {
    const moved = serve({ "/v1/models": 200 });
    expect((await probe({ type: "vllm", url: moved.url })).verdict).toBe("healthy");
    expect(moved.seen.map((request) => request.path)).toEqual(["/health", "/v1/models"]);
    const broken = serve({ "/health": 500, "/v1/models": 200 });
    expect((await probe({ type: "vllm", url: broken.url })).verdict).toBe("failed");
    expect(broken.seen.length).toBe(1);
  });

  test("404 on every path names them", async () => {
    const { url } = serve({});
    expect((await probe({ type: "vllm", url })).reason).toBe("HTTP 404 for /health, /v1/models");
  });

  test("a missing and a refused key are told apart", async () => {
    const { url } = serve({ "/v1/models": 401 });
    expect((await probe({ type: "openai", url })).reason).toContain("none is configured");
    const refused = await probe({ type: "openai", url, api_key: "top-secret" });
    expect(refused.reason).toContain("api_key is refused");
    expect(refused.reason).not.toContain("top-secret");
  });
});

describe("failures in words", () => {
  test("refused, unresolved, reset, not HTTP, not TLS, no socket", async () => {
    const free = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const refused = `http://127.0.0.1:${free.port}`;
    free.stop(true);
    expect((await probe({ url: refused })).reason).toBe("connection refused");
    expect((await probe({ url: "http://nowhere.invalid" })).reason).toBe("the host name cannot be resolved");
    const reset = listenRaw((socket) => socket.terminate());
    expect((await probe({ url: reset.url })).reason).toContain("connection closed");
    const other = listenRaw((socket) => socket.write("220 mail.example ESMTP\r\n\r\n"));
    expect((await probe({ url: other.url })).reason).toBe("the answer is not HTTP");
    expect((await probe({ url: other.url.replace("http:", "https:") })).reason).toContain("TLS");
    expect((await probe({ url: `unix:${join(tmpdir(), "no-such.sock")}` })).reason).toContain("unix socket");
  });

  test("a password in the address and a header stay secret", async () => {
    const outcome = await probe({ url: "http://user:hunter2@nowhere.invalid", headers: { "x-key": "sekret-key" } });
    expect(outcome.verdict).toBe("failed");
    expect(outcome.reason).not.toMatch(/hunter2|sekret/);
  });

  test("silence ends with the timeout, and its connection is closed", async () => {
    const silent = listenRaw(() => {});
    const outcome = await probe({ url: silent.url }, { timeout: "100ms" });
    expect(outcome).toMatchObject({ verdict: "failed", reason: "no answer within 100ms" });
    await waitFor("the connection closes", () => silent.state.open === 0);
  });

  test("a host that never completes the connection ends with the timeout", async () => {
    await using host = await startSilentHost();
    if (host === undefined) return;
    expect((await probe({ url: host.url }, { timeout: "100ms" })).reason).toBe("no answer within 100ms");
  });

  test("a stopped checker ends its probes", async () => {
    const silent = listenRaw(() => {});
    const stop = new AbortController();
    const running = probe({ url: silent.url }, { timeout: "60s" }, stop.signal);
    await waitFor("the probe arrives", () => silent.state.open === 1);
    stop.abort();
    expect((await running).verdict).toBe("failed");
  });
});

describe("bodies", () => {
  test("an empty one is never parsed, one that trickles on does not hold the verdict back", async () => {
    const head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    const empty = listenRaw((socket) => socket.write(`${head}content-length: 0\r\n\r\n`));
    expect((await probe({ url: empty.url })).verdict).toBe("healthy");
    const slow = listenRaw((socket) => socket.write(`${head}content-length: 1000\r\n\r\nabc`));
    const outcome = await probe({ url: slow.url }, { timeout: "30s" });
    expect(outcome.verdict).toBe("healthy");
    await waitFor("the connection is given up", () => slow.state.open === 0);
  });

  test("a small one is read whole, so that the next check uses the same connection", async () => {
    const kept = listenRaw((socket) => socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello`));
    for (let round = 0; round < 5; round++) await probe({ url: kept.url });
    expect(kept.state.open).toBe(1);
  });

  test("an endless one is cut", async () => {
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => new Response(new ReadableStream({ pull: (sink) => sink.enqueue(new Uint8Array(65_536)) })),
    });
    cleanups.push(() => server.stop(true));
    expect((await probe({ url: `http://127.0.0.1:${server.port}` })).verdict).toBe("healthy");
  });

  test("a unix socket works like an address", async () => {
    const path = join(tmpdir(), `probe-${process.pid}.sock`);
    const server = Bun.serve({ unix: path, fetch: () => new Response("ok") });
    cleanups.push(() => server.stop(true));
    expect((await probe({ url: `unix:${path}` })).verdict).toBe("healthy");
  });
});
