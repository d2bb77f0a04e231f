import { afterEach, describe, expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor, within } from "../../test/support/wait-for.ts";
import { toStatusList } from "../admin/backend-view.ts";
import { type ConfigDocument, documentSchema } from "../config/sections/registry.ts";
import { systemClock } from "../lib/clock.ts";
import { silentLogger } from "../logging/logger.ts";
import { createTransport } from "../upstream/transport.ts";
import { Fleet } from "./fleet.ts";

type BackendInput = NonNullable<ConfigDocument["backends"]>[number];

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Engine {
  url: string;
  port: number;
  models: string[];
  ownedBy: string | undefined;
  /** Status of /health. */
  health: number;
  /** Status of /v1/models; undefined: it never answers. */
  listStatus: number | undefined;
  listDelayMs: number;
  paths: string[];
  count(path: string): number;
  stop(): unknown;
}

function startEngine(facts: Partial<Engine> = {}, where: { port?: number; unix?: string } = {}): Engine {
  const engine: Engine = {
    url: "",
    port: 0,
    models: ["m"],
    ownedBy: undefined,
    health: 200,
    listStatus: 200,
    listDelayMs: 0,
    paths: [],
    count: (path) => engine.paths.filter((each) => each === path).length,
    stop: () => server.stop(true),
    ...facts,
  };
  const fetch = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    engine.paths.push(pathname);
    if (pathname === "/health") return new Response("", { status: engine.health });
    if (pathname !== "/v1/models") return new Response("", { status: 404 });
    if (engine.listStatus === undefined) return new Promise<Response>(() => {});
    await Bun.sleep(engine.listDelayMs);
    const data = engine.models.map((id) => ({ id, owned_by: engine.ownedBy }));
    return Response.json({ object: "list", data }, { status: engine.listStatus });
  };
  const server =
    where.unix === undefined
      ? Bun.serve({ port: where.port ?? 0, hostname: "127.0.0.1", fetch })
      : Bun.serve({ unix: where.unix, fetch });
  engine.port = server.port ?? 0;
  engine.url = where.unix === undefined ? `http://127.0.0.1:${server.port}` : `unix:${where.unix}`;
  cleanups.push(engine.stop);
  return engine;
}

function start(backends: BackendInput[], more: Partial<ConfigDocument> = {}): Fleet {
  const settings = documentSchema.parse({ backends, ...more });
  const fleet = new Fleet({
    settings,
    transport: createTransport(async () => Response.json({ data: [{ id: "demo" }] })),
    clock: systemClock,
    log: silentLogger(),
    random: () => 0.5,
  });
  cleanups.push(() => fleet.stop());
  return fleet;
}

const candidates = (fleet: Fleet, model: string) => fleet.board.candidates(model).map((entry) => entry.backend.name);
const idsOf = async (fleet: Fleet) => (await fleet.models.list()).map((entry) => entry.id);
const OFF = { health_checks: { enabled: false } };

describe("the start", () => {
  test("after the first checks the board knows health and models", async () => {
    const [one, two] = [startEngine({ models: ["a", "b"] }), startEngine({ models: ["b", "c"] })];
    const fleet = start([
      { name: "one", type: "vllm", url: one.url },
      { name: "two", url: two.url },
    ]);
    await fleet.firstChecks;
    expect(candidates(fleet, "b")).toEqual(["one", "two"]);
    expect(candidates(fleet, "c")).toEqual(["two"]);
    expect(await idsOf(fleet)).toEqual(["a", "b", "c"]);
  });

  test("is bounded by the timeout when a backend is silent", async () => {
    const silent = startEngine({ listStatus: undefined });
    const fleet = start([{ name: "s", type: "openai", url: silent.url }], { health_checks: { timeout: "100ms" } });
    await within("the first checks end", fleet.firstChecks);
    expect(await fleet.models.list()).toEqual([]);
  });

  test("a silent backend does not keep the others' models back for its whole timeout", async () => {
    const [silent, good] = [startEngine({ listStatus: undefined }), startEngine()];
    const fleet = start([
      { name: "silent", type: "openai", url: silent.url },
      { name: "good", url: good.url },
    ]);
    expect(await within("the list comes", idsOf(fleet), 4_000)).toEqual(["m"]);
  });

  test("without backends everything is empty at once", async () => {
    const fleet = start([]);
    await fleet.firstChecks;
    await fleet.refreshModels();
    expect(await fleet.models.list()).toEqual([]);
    expect(await fleet.models.find("m")).toBeUndefined();
    expect(toStatusList(fleet.states(), 0)).toMatchObject({ backends: [], healthy_count: 0, total_count: 0 });
  });

  test("a cold list and cold look-ups share one question", async () => {
    const engine = startEngine({ listDelayMs: 50 });
    const fleet = start([{ name: "v", type: "vllm", url: engine.url }]);
    const answers = await Promise.all([
      ...Array.from({ length: 20 }, () => fleet.models.find("m")),
      ...Array.from({ length: 20 }, () => idsOf(fleet)),
    ]);
    expect(answers.every((answer) => answer !== undefined)).toBe(true);
    expect(engine.count("/v1/models")).toBe(1);
  });

  test("the embedded backend and a unix socket", async () => {
    const unix = join(tmpdir(), `fleet-${process.pid}.sock`);
    startEngine({ models: ["socket-model"] }, { unix });
    const fleet = start([
      { name: "demo", type: "demo" },
      { name: "socket", url: `unix:${unix}` },
    ]);
    expect(await idsOf(fleet)).toEqual(["demo", "socket-model"]);
    expect(toStatusList(fleet.states(), 0).backends[1]?.url).toBe(`unix:${unix}`);
  });

  test("200 backends", async () => {
    const engine = startEngine({ models: ["a", "b"] });
    const backends = Array.from({ length: 200 }, (_, index) => ({ name: `b${index}`, type: "vllm", url: engine.url }));
    const fleet = start(backends);
    await fleet.firstChecks;
    expect(fleet.board.candidates("a").length).toBe(200);
  });
});

describe("health and the board", () => {
  test("a backend that comes up is routed to, one that dies is not, and its models are remembered", async () => {
    const engine = startEngine();
    const fleet = start([{ name: "v", type: "vllm", url: engine.url }], {
      health_checks: { warmup_check_interval: "20ms" },
    });
    await fleet.firstChecks;
    expect(candidates(fleet, "m")).toEqual(["v"]);
    await engine.stop();
    fleet.suspect("v");
    await waitFor("it is unhealthy", () => fleet.board.entries[0]?.health === "unhealthy");
    expect(candidates(fleet, "m")).toEqual([]);
    expect(fleet.board.serving("m").length).toBe(1);
    expect(await fleet.models.find("m")).toMatchObject({ id: "m", owned_by: "vllm", available: false });
    expect(await fleet.models.list()).toEqual([]);
    startEngine({ models: ["n"] }, { port: engine.port });
    await waitFor("it is routed to again", () => candidates(fleet, "n").length === 1);
    expect(await fleet.models.find("m")).toBeUndefined();
  });

  test("a backend that is off is neither asked nor available", async () => {
    const engine = startEngine();
    const fleet = start([{ name: "v", type: "vllm", url: engine.url, enabled: false, models: ["m"] }]);
    await fleet.firstChecks;
    expect(engine.paths).toEqual([]);
    expect(await fleet.models.find("m")).toMatchObject({ available: false });
    expect(toStatusList(fleet.states(), 0).backends[0]).toMatchObject({
      enabled: false,
      is_healthy: false,
      last_check: null,
    });
  });

  test("without health checks nothing is probed, models are asked for, and all is available", async () => {
    const engine = startEngine({ health: 500 });
    const fleet = start(
      [
        { name: "v", type: "vllm", url: engine.url },
        { name: "dead", url: "http://127.0.0.1:1", models: ["x"], type: "vllm" },
      ],
      OFF,
    );
    expect(await idsOf(fleet)).toEqual(["m", "x"]);
    expect(engine.paths).toEqual(["/v1/models"]);
    expect(await fleet.models.find("x")).toMatchObject({ available: true });
    expect(toStatusList(fleet.states(), 0)).toMatchObject({ healthy_count: 2 });
  });
});

describe("generic backends", () => {
  test.each(["llamacpp", "vllm"])("%s is recognised with the request for its models", async (ownedBy) => {
    const engine = startEngine({ ownedBy });
    const fleet = start([{ name: "g", url: engine.url }]);
    await fleet.firstChecks;
    expect(toStatusList(fleet.states(), 0).backends[0]?.type).toBe(ownedBy as "vllm");
    const further = ownedBy === "llamacpp" ? ["/props"] : [];
    expect(engine.paths).toEqual(["/v1/models", "/v1/models", "/health", ...further]);
    expect(await fleet.models.list()).toMatchObject([{ id: "m", owned_by: ownedBy }]);
  });

  test("a recognised engine that is loading gets no requests, although it lists its models", async () => {
    const engine = startEngine({ ownedBy: "llamacpp", health: 503 });
    const fleet = start([{ name: "g", url: engine.url }], { health_checks: { warmup_check_interval: "20ms" } });
    let wasAvailable = false;
    await waitFor("it warms up", () => {
      wasAvailable ||= fleet.board.entries[0]?.available ?? false;
      return fleet.board.entries[0]?.health === "warming_up";
    });
    expect(wasAvailable).toBe(false);
    engine.health = 200;
    await waitFor("it is routed to", () => candidates(fleet, "m").length === 1);
  });

  test("another engine at the same address is recognised after it came back", async () => {
    const engine = startEngine({ ownedBy: "llamacpp" });
    const fleet = start([{ name: "g", url: engine.url }], { health_checks: { warmup_check_interval: "20ms" } });
    await fleet.firstChecks;
    await engine.stop();
    fleet.suspect("g");
    await waitFor("it is unhealthy", () => fleet.board.entries[0]?.health === "unhealthy");
    startEngine({ ownedBy: "vllm" }, { port: engine.port });
    await waitFor("it is recognised", () => fleet.board.entries[0]?.backend.kind.name === "vllm");
  });

  test("a failed recognition does not fail the backend", async () => {
    const engine = startEngine({ listStatus: 404 });
    const fleet = start([{ name: "g", url: engine.url, models: ["m"] }]);
    await fleet.firstChecks;
    expect(candidates(fleet, "m")).toEqual(["g"]);
    expect(toStatusList(fleet.states(), 0).backends[0]?.type).toBe("generic");
  });

  test("configured models are kept whatever the backend lists", async () => {
    const engine = startEngine({ ownedBy: "llamacpp", models: ["file.gguf"] });
    const fleet = start([{ name: "g", url: engine.url, models: ["mine"] }]);
    await fleet.firstChecks;
    expect(await idsOf(fleet)).toEqual(["mine"]);
    expect(toStatusList(fleet.states(), 0).backends[0]?.type).toBe("llamacpp");
  });
});

describe("model lists", () => {
  test("a new model is found by a sweep, and sweeps are not made more often than every 2 s", async () => {
    const engine = startEngine({ listDelayMs: 5 });
    let offsetMs = 0;
    const settings = documentSchema.parse({ backends: [{ name: "v", type: "vllm", url: engine.url }] });
    const fleet = new Fleet({
      settings,
      transport: createTransport(async () => new Response()),
      clock: { now: () => performance.now() + offsetMs, wallTime: () => Date.now() },
      log: silentLogger(),
    });
    cleanups.push(() => fleet.stop());
    await fleet.firstChecks;
    engine.models = ["m", "new"];
    offsetMs = 3_000;
    await Promise.all(Array.from({ length: 20 }, () => fleet.refreshModels()));
    expect(candidates(fleet, "new")).toEqual(["v"]);
    expect(engine.count("/v1/models")).toBe(2);
    await fleet.refreshModels();
    expect(engine.count("/v1/models")).toBe(2);
    offsetMs = 6_000;
    expect(await fleet.models.find("unknown")).toBeUndefined();
    expect(engine.count("/v1/models")).toBe(3);
  });

  test("an old list is served while a new one is fetched, an expired one is not", async () => {
    const engine = startEngine();
    let offsetMs = 0;
    const settings = documentSchema.parse({
      backends: [{ name: "v", type: "vllm", url: engine.url }],
      routing: { model_list_cache: { ttl: "100s" } },
    });
    const fleet = new Fleet({
      settings,
      transport: createTransport(async () => new Response()),
      clock: { now: () => performance.now() + offsetMs, wallTime: () => Date.now() },
      log: silentLogger(),
    });
    cleanups.push(() => fleet.stop());
    await fleet.firstChecks;
    const first = await fleet.models.list();
    expect(await fleet.models.list()).toBe(first);
    engine.models = ["n"];
    engine.listDelayMs = 50;
    offsetMs = 90_000;
    expect(await fleet.models.list()).toBe(first);
    await waitFor("the new list is there", () => candidates(fleet, "n").length === 1);
    expect(engine.count("/v1/models")).toBe(2);
    engine.models = ["o"];
    offsetMs = 200_000;
    expect(await idsOf(fleet)).toEqual(["o"]);
  });

  test("a list that fails keeps what was known, and its backend is available", async () => {
    const engine = startEngine();
    let offsetMs = 0;
    const settings = documentSchema.parse({ backends: [{ name: "v", type: "vllm", url: engine.url }] });
    const fleet = new Fleet({
      settings,
      transport: createTransport(async () => new Response()),
      clock: { now: () => performance.now() + offsetMs, wallTime: () => Date.now() },
      log: silentLogger(),
    });
    cleanups.push(() => fleet.stop());
    await fleet.firstChecks;
    engine.listStatus = 500;
    offsetMs = 10_000_000;
    expect(await idsOf(fleet)).toEqual(["m"]);
    expect(engine.count("/v1/models")).toBe(2);
    expect(await idsOf(fleet)).toEqual(["m"]);
    expect(engine.count("/v1/models")).toBe(2);
    expect(candidates(fleet, "m")).toEqual(["v"]);
  });

  test.each(["org/model", "a b", "__proto__", "constructor", "ünï:8b"])("the id %p is found as it is", async (id) => {
    const engine = startEngine({ models: [id] });
    const fleet = start([{ name: "v", type: "vllm", url: engine.url }]);
    expect(await fleet.models.find("toString")).toBeUndefined();
    expect(await fleet.models.find(id)).toMatchObject({ id, available: true });
  });

  test("an Ollama model is found without its tag", async () => {
    const engine = startEngine({ models: ["llama3:latest"] });
    const fleet = start([{ name: "o", type: "ollama", url: engine.url, health_check: { endpoint: "/v1/models" } }]);
    expect(await fleet.models.find("llama3")).toMatchObject({ id: "llama3", owned_by: "ollama", available: true });
  });
});

describe("status", () => {
  test("has the specified fields and no secrets", async () => {
    const engine = startEngine({ models: ["a", "b"] });
    const fleet = start([
      { name: "v", type: "vllm", url: engine.url.replace("//", "//user:hunter2@"), api_key: "sk-secret", weight: 3 },
      { name: "dead", type: "vllm", url: "http://127.0.0.1:1", headers: { "X-Key": "sk-header" } },
    ]);
    await fleet.firstChecks;
    Object.assign(fleet.board.entries[0]!.counters, { inFlight: 1, totalRequests: 10, failedRequests: 2 });
    const status = toStatusList(fleet.states(), 0);
    const [good, dead] = status.backends;
    expect(good).toEqual({
      name: "v",
      url: engine.url,
      type: "vllm",
      enabled: true,
      phase: "active",
      drain_remaining_ms: null,
      is_healthy: true,
      can_be_asked: true,
      state: "ready",
      circuit: "closed",
      circuit_since: null,
      consecutive_failures: 0,
      consecutive_successes: 1,
      last_check: good!.last_check,
      last_error: null,
      response_time_ms: good!.response_time_ms,
      models: ["a", "b"],
      weight: 3,
      in_flight: 1,
      total_requests: 10,
      failed_requests: 2,
    });
    expect(good!.last_check).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(Number.isInteger(good!.response_time_ms)).toBe(true);
    expect(dead).toMatchObject({
      is_healthy: false,
      state: "down",
      consecutive_failures: 1,
      last_error: "connection refused",
    });
    expect(status).toMatchObject({ healthy_count: 1, total_count: 2 });
    expect(status.summary).toMatchObject({ total_models: 2, total_requests: 10, total_failures: 2 });
    expect(JSON.stringify(status)).not.toMatch(/hunter2|sk-secret|sk-header/);
  });
});

describe("stop", () => {
  test("ends everything that runs and settles who waits", async () => {
    const silent = startEngine({ listStatus: undefined });
    const fleet = start([{ name: "g", url: silent.url }], { health_checks: { timeout: "1h" } });
    const listing = fleet.models.list();
    await waitFor("it is asked", () => silent.paths.length > 0);
    await within("it stops", fleet.stop());
    await within("the first checks settle", fleet.firstChecks);
    expect(await within("the list settles", listing)).toEqual([]);
  });

  test("leaves no timer that keeps a process alive", async () => {
    const engine = startEngine();
    const script = `
      import { Fleet } from "${import.meta.dir}/fleet.ts";
      import { createTransport } from "${import.meta.dir}/../upstream/transport.ts";
      import { documentSchema } from "${import.meta.dir}/../config/sections/registry.ts";
      import { systemClock } from "${import.meta.dir}/../lib/clock.ts";
      import { silentLogger } from "${import.meta.dir}/../logging/logger.ts";
      const settings = documentSchema.parse({ backends: [{ name: "v", url: "${engine.url}" }] });
      const transport = createTransport(async () => new Response());
      const fleet = new Fleet({ settings, transport, clock: systemClock, log: silentLogger() });
      await fleet.firstChecks;
      await fleet.stop();
      process.stdout.write(String(fleet.board.candidates("m").length));
    `;
    const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "inherit" });
    cleanups.push(() => child.kill());
    expect(await within("the process ends", child.exited)).toBe(0);
    expect(await new Response(child.stdout).text()).toBe("1");
  });
});
