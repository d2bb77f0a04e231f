// Backends that are removed, disabled, moved and added while requests run: both planes over real sockets.

import { afterEach, describe, expect, test } from "bun:test";
import type { BackendStatusList } from "../../src/admin/backend-schemas.ts";
import { toStatusList } from "../../src/admin/backend-view.ts";
import { DRAIN_LIMIT_MS } from "../../src/backends/drains.ts";
import { type ConfigDocument, documentSchema, type Settings } from "../../src/config/sections/registry.ts";
import { Fleet } from "../../src/fleet/fleet.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { silentLogger } from "../../src/logging/logger.ts";
import { createTransport } from "../../src/upstream/transport.ts";
import { readChat } from "../support/chat-reading.ts";
import { startInProcess } from "../support/in-process.ts";
import { chatBody, chatEvents } from "../support/openai-answers.ts";
import { waitFor, within } from "../support/wait-for.ts";

type BackendInput = NonNullable<ConfigDocument["backends"]>[number];

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const WORDS = ["one ", "two ", "three"];
const encoder = new TextEncoder();

/** A backend that begins each stream, and goes on when it is told to. */
function startEngine(name: string, facts: { health?: number; port?: number } = {}) {
  const held: (() => void)[] = [];
  const engine = {
    url: "",
    health: facts.health ?? 200,
    probes: 0,
    chats: 0,
    /** Lets a plain answer wait, too. */
    holdsPlain: false,
    goOn() {
      for (const release of held.splice(0)) release();
    },
  };
  const server = Bun.serve({
    port: facts.port ?? 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/health") {
        engine.probes++;
        return new Response("", { status: engine.health });
      }
      if (pathname === "/v1/models") return Response.json({ data: [{ id: `only-${name}` }, { id: "m" }] });
      engine.chats++;
      const { stream } = (await request.json()) as { stream?: boolean };
      if (stream !== true) {
        if (engine.holdsPlain) await new Promise<void>((resolve) => held.push(resolve));
        return new Response(chatBody(name), { headers: { "content-type": "application/json" } });
      }
      const events = chatEvents(WORDS);
      const body = new ReadableStream<Uint8Array>({
        start(client) {
          client.enqueue(encoder.encode(events.slice(0, 2).join("")));
          held.push(() => {
            client.enqueue(encoder.encode(events.slice(2).join("")));
            client.close();
          });
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    },
  });
  engine.url = `http://127.0.0.1:${server.port}`;
  cleanups.push(() => server.stop(true));
  return engine;
}

function settingsOf(backends: BackendInput[], more: Partial<ConfigDocument> = {}): Settings {
  return documentSchema.parse({ backends: backends.map((each) => ({ type: "vllm", ...each })), ...more });
}

/** Requests have limits of their own, which are far away. */
const PATIENT: Partial<ConfigDocument> = { timeouts: { first_byte: "1h", between_chunks: "1h", request: "1h" } };

async function start(backends: BackendInput[], more: Partial<ConfigDocument> = {}) {
  let aheadMs = 0;
  const clock = { now: () => systemClock.now() + aheadMs, wallTime: systemClock.wallTime };
  const typed = backends.map((each) => ({ type: "vllm", ...each }));
  const gateway = await startInProcess({ config: { ...PATIENT, backends: typed, ...more } }, clock);
  cleanups.push(() => gateway.close());
  return {
    fleet: gateway.inside.fleet,
    moveBy(durationMs: number) {
      aheadMs += durationMs;
    },
    chat: (stream = false, model = "m") =>
      gateway.fetch("/v1/chat/completions", {
        method: "POST",
        body: JSON.stringify({ model, stream, messages: [{ role: "user", content: "hello" }] }),
      }),
    async rows() {
      const response = await gateway.fetch("/admin/backends");
      const { backends } = (await response.json()) as BackendStatusList;
      return backends.map(({ name, enabled, phase, in_flight }) => ({ name, enabled, phase, in_flight }));
    },
  };
}

const row = (name: string, phase: "active" | "draining" = "active", in_flight = 0, enabled = true) => ({
  name,
  enabled,
  phase,
  in_flight,
});
const whole = { text: WORDS.join(""), done: 1, errors: [] };

describe("a backend that is taken away while a stream runs there", () => {
  test.each(["removed", "disabled"])("%s: the stream ends whole, new requests go elsewhere", async (how) => {
    const [a, b] = [startEngine("a"), startEngine("b")];
    const both = [
      { name: "a", url: a.url },
      { name: "b", url: b.url, weight: 0 },
    ];
    const gateway = await start(both);
    const running = await gateway.chat(true);
    expect(running.headers.get("x-signalbox-backend")).toBe("a");

    const off = how === "disabled" ? [{ name: "a", url: a.url, enabled: false }] : [];
    gateway.fleet.update(settingsOf([...off, both[1]!]));
    const isEnabled = how !== "disabled";
    const rows = await gateway.rows();
    expect(rows).toContainEqual(row("a", "draining", 1, isEnabled));
    expect(rows.length).toBe(2);
    const probes = a.probes;
    const { backends, total_count, healthy_count } = toStatusList(gateway.fleet.states(), 0);
    expect(backends.find(({ name }) => name === "a")?.drain_remaining_ms).toBeGreaterThan(DRAIN_LIMIT_MS - 10_000);
    expect([total_count, healthy_count]).toEqual([how === "disabled" ? 2 : 1, 1]);
    for (let count = 0; count < 5; count++) {
      const answer = await gateway.chat();
      expect([answer.status, answer.headers.get("x-signalbox-backend")]).toEqual([200, "b"]);
    }
    expect((await gateway.chat(false, "only-a")).status).toBe(404);

    a.goOn();
    expect(await readChat(running)).toMatchObject(whole);
    await waitFor("nothing drains", () =>
      toStatusList(gateway.fleet.states(), 0).backends.every(({ phase }) => phase === "active"),
    );
    expect(await gateway.rows()).toEqual([...(how === "disabled" ? [row("a", "active", 0, false)] : []), row("b")]);
    expect([a.chats, a.probes]).toEqual([1, probes]);
  });

  test("after five minutes a stream that still runs is told so, a plain answer is asked for elsewhere", async () => {
    const [a, b] = [startEngine("a"), startEngine("b")];
    a.holdsPlain = true;
    const gateway = await start([{ name: "a", url: a.url }]);
    const stream = await gateway.chat(true);
    const plain = gateway.chat();
    await waitFor("both are there", () => a.chats === 2);
    gateway.fleet.update(settingsOf([{ name: "b", url: b.url }]));
    await gateway.fleet.firstChecks;
    gateway.moveBy(DRAIN_LIMIT_MS - 10_000);
    await Bun.sleep(60);
    expect(await gateway.rows()).toContainEqual(row("a", "draining", 2));
    gateway.moveBy(10_000);
    const { text, done, errors } = await within("the stream ends", readChat(stream));
    expect([text, done, errors.length]).toEqual(["one ", 0, 1]);
    expect(errors[0]?.message).toContain("'a'");
    const answer = await within("the plain answer comes", plain);
    expect([answer.status, answer.headers.get("x-signalbox-backend")]).toEqual([200, "b"]);
    expect(await gateway.rows()).toEqual([row("b")]);
  });

  test("after five minutes another backend goes on in the stream, where the model has a chain", async () => {
    const [a, b] = [startEngine("a"), startEngine("b")];
    const more = { fallback: { fallback_chains: { m: ["only-b"] } } };
    const gateway = await start([{ name: "a", url: a.url }], more);
    const stream = await gateway.chat(true);
    gateway.fleet.update(settingsOf([{ name: "b", url: b.url }], more));
    await gateway.fleet.firstChecks;
    gateway.moveBy(DRAIN_LIMIT_MS);
    await waitFor("b is asked", () => b.chats === 1);
    b.goOn();
    expect(await readChat(stream)).toMatchObject(whole);
  });
});

describe("a backend that comes back under its name", () => {
  test("takes requests while the one before it drains", async () => {
    const a = startEngine("a");
    const list = [{ name: "a", url: a.url }];
    const gateway = await start(list);
    const first = await gateway.chat(true);
    gateway.fleet.update(settingsOf([]));
    expect((await gateway.chat()).status).toBe(503);
    gateway.fleet.update(settingsOf(list));
    expect((await gateway.chat()).status).toBe(200);
    const second = await gateway.chat(true);
    expect(await gateway.rows()).toEqual([row("a", "active", 1), row("a", "draining", 1)]);
    gateway.fleet.update(settingsOf([]));
    expect(await gateway.rows()).toEqual([row("a", "draining", 1), row("a", "draining", 1)]);
    a.goOn();
    expect(await readChat(first)).toMatchObject(whole);
    expect(await readChat(second)).toMatchObject(whole);
    await waitFor("nobody is left", async () => (await gateway.rows()).length === 0);
  });

  test("enabled again, it goes on with what it has", async () => {
    const a = startEngine("a");
    const gateway = await start([{ name: "a", url: a.url }]);
    const running = await gateway.chat(true);
    gateway.fleet.update(settingsOf([{ name: "a", url: a.url, enabled: false }]));
    gateway.fleet.update(settingsOf([{ name: "a", url: a.url }]));
    expect((await gateway.chat()).status).toBe(200);
    gateway.moveBy(2 * DRAIN_LIMIT_MS);
    await Bun.sleep(60);
    expect(await gateway.rows()).toEqual([row("a", "active", 1)]);
    a.goOn();
    expect(await readChat(running)).toMatchObject(whole);
  });

  test("at another address, requests wait for its first check instead of failing", async () => {
    const [old, moved] = [startEngine("old"), startEngine("moved")];
    const gateway = await start([{ name: "a", url: old.url }]);
    const running = await gateway.chat(true);
    gateway.fleet.update(settingsOf([{ name: "a", url: moved.url }]));
    const answer = await gateway.chat();
    expect([answer.status, moved.chats, old.chats]).toEqual([200, 1, 1]);
    expect(await gateway.rows()).toEqual([row("a"), row("a", "draining", 1)]);
    expect((await gateway.chat(false, "only-old")).status).toBe(404);
    expect((await gateway.chat(false, "only-moved")).status).toBe(200);
    old.goOn();
    expect(await readChat(running)).toMatchObject(whole);
  });
});

describe("an update", () => {
  test("adds a backend that is checked at once", async () => {
    const [a, b] = [startEngine("a"), startEngine("b")];
    const gateway = await start([{ name: "a", url: a.url }]);
    gateway.fleet.update(
      settingsOf([
        { name: "a", url: a.url },
        { name: "b", url: b.url },
      ]),
    );
    expect((await gateway.chat(false, "only-b")).status).toBe(200);
    expect([a.probes, b.probes]).toEqual([1, 1]);
  });

  test("that changes nothing disturbs nobody", async () => {
    const a = startEngine("a");
    const gateway = await start([{ name: "a", url: a.url }]);
    const { board } = gateway.fleet;
    gateway.fleet.update(settingsOf([{ name: "a", url: a.url }]));
    expect(gateway.fleet.board).toBe(board);
    await gateway.fleet.firstChecks;
    expect(a.probes).toBe(1);
  });

  test("names other models at once", async () => {
    const a = startEngine("a");
    const gateway = await start([{ name: "a", url: a.url }]);
    gateway.fleet.update(settingsOf([{ name: "a", url: a.url, models: ["named"] }]));
    expect((await gateway.fleet.models.list()).map(({ id }) => id)).toEqual(["named"]);
    gateway.fleet.update(settingsOf([{ name: "a", url: a.url }]));
    expect((await gateway.fleet.models.list()).map(({ id }) => id)).toEqual(["only-a", "m"]);
  });

  test("switches the health checks off and on", async () => {
    const sick = startEngine("sick", { health: 500 });
    const list = [{ name: "a", url: sick.url, models: ["m"] }];
    const gateway = await start(list);
    expect((await gateway.chat()).status).toBe(503);
    gateway.fleet.update(settingsOf(list, { health_checks: { enabled: false } }));
    expect((await gateway.chat()).status).toBe(200);
    sick.health = 200;
    gateway.fleet.update(settingsOf(list));
    expect((await gateway.chat()).status).toBe(200);
    expect(toStatusList(gateway.fleet.states(), 0).backends[0]).toMatchObject({ state: "ready" });
  });

  test("forgets the circuits of those that are gone, moved or disabled", async () => {
    const a = startEngine("a");
    const settings = settingsOf([{ name: "a", url: a.url }]);
    const fleet = new Fleet({
      settings,
      transport: createTransport(async () => new Response("")),
      clock: systemClock,
      log: silentLogger(),
    });
    const { circuits } = fleet;
    cleanups.push(() => fleet.stop());
    await fleet.firstChecks;
    for (const next of [[], [{ name: "a", url: `${a.url}/path` }], [{ name: "a", url: a.url, enabled: false }]]) {
      for (let count = 0; count < 5; count++) circuits.acquire("a")?.settle("failure");
      fleet.update(settings);
      expect(circuits.state("a")).toBe("open");
      fleet.update(settingsOf(next));
      expect(circuits.state("a")).toBe("closed");
      fleet.update(settings);
    }
  });

  test("after the stop changes nothing", async () => {
    const a = startEngine("a");
    const gateway = await start([]);
    await gateway.fleet.stop();
    gateway.fleet.update(settingsOf([{ name: "a", url: a.url }]));
    expect(gateway.fleet.board.entries).toEqual([]);
    expect(a.probes).toBe(0);
  });
});
