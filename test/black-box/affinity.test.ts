// Session affinity: with ConsistentHash a session stays on its backend, whatever names it; when its backend leaves only
// its sessions move, and they come home; one hot session cannot drown a backend.

import { expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import type { FakeBackend } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, failure } from "../support/openai-answers.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

function pool(count: number): Record<string, FakeBackend> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`b${index}`, bed.backend()]));
}

function start(
  backends: Record<string, FakeBackend>,
  routing: object = {},
  more: Partial<ConfigDocument> = {},
): Promise<Gateway> {
  return startGateway({
    config: {
      routing: { selection_strategy: "ConsistentHash", ...routing },
      health_checks: { interval: "200ms", warmup_check_interval: "50ms", healthy_threshold: 1 },
      backends: Object.entries(backends).map(([name, { url }]) => ({ name, url, models: ["m"] })),
      ...more,
    },
  });
}

interface Ask {
  body?: Record<string, unknown>;
  headers?: Record<string, string>;
}

async function ownerOf(gateway: Gateway, { body = {}, headers = {} }: Ask): Promise<string> {
  const response = await gateway.chat(body, { headers });
  await response.text();
  expect(response.status).toBe(200);
  return response.headers.get("x-signalbox-backend") ?? "nobody";
}

const conversation = (index: number, turns = 0) => [
  { role: "system", content: "You are brief." },
  { role: "user", content: `question ${index}` },
  ...Array.from({ length: turns }, (_, turn) => [
    { role: "assistant", content: `answer ${turn}` },
    { role: "user", content: `and then ${turn}` },
  ]).flat(),
];

const NAMED_BY: Record<string, (index: number, turn: number) => Ask> = {
  "the header": (index) => ({ headers: { "X-Session-ID": `session-${index}` } }),
  prompt_cache_key: (index, turn) => ({ body: { prompt_cache_key: `key-${index}`, seed: turn } }),
  "the field user": (index, turn) => ({ body: { user: `user-${index}`, seed: turn } }),
  "the conversation's start": (index, turn) => ({ body: { messages: conversation(index, turn) } }),
};

for (const [name, session] of Object.entries(NAMED_BY)) {
  test(`sessions named by ${name} stay where they are and are spread`, async () => {
    const backends = pool(3);
    await using gateway = await start(backends);
    const owners = new Set<string>();
    for (let index = 0; index < 20; index++) {
      const met = new Set<string>();
      for (let turn = 0; turn < 3; turn++) met.add(await ownerOf(gateway, session(index, turn)));
      expect(met.size).toBe(1);
      owners.add([...met][0] ?? "nobody");
    }
    expect(owners.size).toBe(3);
  });
}

test("the header comes before prompt_cache_key, that before user, that before the conversation", async () => {
  await using gateway = await start(pool(4), { session_affinity: { header: "X-My-Session" } });
  const names: ((index: number) => Ask)[] = [
    (index) => ({ headers: { "X-My-Session": `h-${index}` } }),
    (index) => ({ body: { prompt_cache_key: `p-${index}` } }),
    (index) => ({ body: { user: `u-${index}` } }),
    (index) => ({ body: { messages: conversation(index) } }),
  ];
  for (let rank = 0; rank < names.length - 1; rank++) {
    for (let index = 0; index < 6; index++) {
      const owner = await ownerOf(gateway, names[rank]!(index));
      const lower = names.slice(rank + 1).map((name) => name(100 + index * 7));
      const own = names[rank]!(index);
      const mixed = {
        headers: { ...own.headers, "X-Session-ID": `ignored-${index}` },
        body: Object.assign({}, ...lower.map(({ body }) => body), own.body),
      };
      expect(await ownerOf(gateway, mixed)).toBe(owner);
    }
  }
});

test("when a backend leaves only its sessions move, and they come home with it", async () => {
  const backends = pool(4);
  await using gateway = await start(backends, {}, { circuit_breaker: { enabled: false } });
  const session = (index: number): Ask => ({ headers: { "X-Session-ID": `s${index}` } });
  const owners: string[] = [];
  for (let index = 0; index < 40; index++) owners.push(await ownerOf(gateway, session(index)));
  expect(new Set(owners).size).toBe(4);

  backends.b1?.stop();
  const moved: string[] = [];
  for (let index = 0; index < 40; index++) {
    const owner = await ownerOf(gateway, session(index));
    if (owners[index] === "b1") {
      expect(owner).not.toBe("b1");
      moved.push(owner);
      expect(await ownerOf(gateway, session(index))).toBe(owner);
    } else {
      expect(owner).toBe(owners[index] ?? "nobody");
    }
  }
  expect(new Set(moved).size).toBeGreaterThan(1); // not all to one neighbour

  backends.b1?.start();
  await gateway.waitForHealth("b1", true);
  const home: string[] = [];
  for (let index = 0; index < 40; index++) home.push(await ownerOf(gateway, session(index)));
  expect(home).toEqual(owners);
});

test("a retry of a session's request goes to its next backend, always the same", async () => {
  const backends = pool(3);
  await using gateway = await start(
    backends,
    {},
    { retry: { base_delay: "1ms" }, circuit_breaker: { enabled: false } },
  );
  const session: Ask = { headers: { "X-Session-ID": "steady" } };
  const owner = await ownerOf(gateway, session);
  backends[owner]!.reset(failure(503));
  const next = new Set<string>();
  for (let index = 0; index < 4; index++) next.add(await ownerOf(gateway, session));
  expect(next.size).toBe(1);
  expect(next.has(owner)).toBe(false);
});

test("one hot session overflows to other backends instead of drowning its own", async () => {
  const backends = pool(3);
  const gate = Promise.withResolvers<void>();
  for (const backend of Object.values(backends)) backend.answer = { ...chat("x"), headersAfter: gate.promise };
  await using gateway = await start(backends, { session_affinity: { load_factor: 1.25 } });
  const pending = Array.from({ length: 60 }, () => ownerOf(gateway, { headers: { "X-Session-ID": "hot" } }));
  const open = () => Object.values(backends).map((backend) => backend.requests.length);
  await waitFor("all are under way", () => open().reduce((sum, count) => sum + count) === 60, {
    explain: () => open().join(),
  });
  expect(Math.max(...open())).toBeLessThanOrEqual(Math.ceil((1.25 * 60) / 3) + 1);
  gate.resolve();
  await Promise.all(pending);
  for (const backend of Object.values(backends)) backend.answer = chat("x");
  const after = new Set<string>();
  for (let index = 0; index < 5; index++) after.add(await ownerOf(gateway, { headers: { "X-Session-ID": "hot" } }));
  expect(after.size).toBe(1);
});
