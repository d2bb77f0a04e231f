// De-duplication in flight: identical deterministic requests of one caller share one upstream call, and each client
// gets its own live copy; parallel sampling is never collapsed by default (decisions.md, section 3).

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { expectError } from "../support/expect-error.ts";
import type { Answer } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatEvents, chatStream, eventStream, failure } from "../support/openai-answers.ts";
import { readUntil } from "../support/sse-reader.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor, within } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();
const ALICE = "sk-sekret-alice";
const BOB = "sk-sekret-bob-12";
let gateway: Gateway;

function start(deduplication: { mode?: "deterministic" | "all" | "off"; ttl?: string }): Promise<Gateway> {
  return bed.gateway({
    config: {
      health_checks: { enabled: false },
      circuit_breaker: { enabled: false },
      retry: { max_attempts: 1 },
      deduplication,
      api_keys: {
        keys: [
          { key: ALICE, id: "alice", organization_id: "org" },
          { key: BOB, id: "bob", organization_id: "org" },
        ],
      },
      backends: [{ name: "a", url: backend.url, models: ["m"] }],
    },
  });
}

beforeAll(async () => {
  gateway = await start({});
});

beforeEach(() => backend.reset(chat("hello")));

const SAME = { temperature: 0, stream: true };

/** A stream whose pieces from `index` on wait for the gate. */
function gated(texts: readonly string[], index: number): { answer: Answer; gate: PromiseWithResolvers<void> } {
  const gate = Promise.withResolvers<void>();
  const beforeChunk = (piece: number) => (piece === index ? gate.promise : undefined);
  return { answer: chatStream(texts, {}, { beforeChunk }), gate };
}

/** A plain answer that waits for the gate. */
function gatedPlain(text: string): { answer: Answer; gate: PromiseWithResolvers<void> } {
  const gate = Promise.withResolvers<void>();
  return { answer: { ...chat(text), headersAfter: gate.promise }, gate };
}

/** On a busy machine one look finds some still on their way, from one worker to another, say. */
const QUIET_LOOKS = 3;

/** So many requests are under way in the gateway, and what they ask of the backend has arrived there. */
async function settled(underWay: number, target = gateway): Promise<void> {
  let seen = -1;
  let quietLooks = 0;
  await waitFor(
    `${underWay} requests are under way, and no more arrive at the backend`,
    async () => {
      const listed = await (await target.fetch("/admin/requests?limit=100")).json();
      const { requests } = listed as { requests: { finished: boolean }[] };
      const isAsItWas =
        requests.filter(({ finished }) => !finished).length === underWay && seen === backend.requests.length;
      quietLooks = isAsItWas ? quietLooks + 1 : 0;
      seen = backend.requests.length;
      return quietLooks >= QUIET_LOOKS;
    },
    { intervalMs: 60 },
  );
}

test("20 identical streams are one upstream call, and everyone gets the same bytes from the first", async () => {
  const { answer, gate } = gated(["one ", "two ", "three"], 2);
  backend.reset(answer);
  const early = await Promise.all(Array.from({ length: 10 }, () => gateway.chat(SAME)));
  const reader = early[0]!.clone().body!.getReader();
  await readUntil(reader, "one ");
  const late = await Promise.all(Array.from({ length: 10 }, () => gateway.chat(SAME)));
  gate.resolve();
  const whole = chatEvents(["one ", "two ", "three"]).join("");
  for (const response of [...early, ...late]) {
    expect(response.status).toBe(200);
    expect(response.headers.get("x-signalbox-backend")).toBe("a");
    expect(await response.text()).toBe(whole);
  }
  expect(new Set([...early, ...late].map((response) => response.headers.get("x-request-id"))).size).toBe(20);
  expect(backend.requests).toHaveLength(1);
  await gateway.waitUntilIdle();
});

test("20 identical plain requests are one call, and each is answered whole", async () => {
  const { answer, gate } = gatedPlain("shared");
  backend.reset(answer);
  const pending = Array.from({ length: 20 }, () => gateway.chat({ temperature: 0 }));
  await settled(20);
  gate.resolve();
  for (const response of await Promise.all(pending)) expect(await response.text()).toBe(chat("shared").body as string);
  expect(backend.requests).toHaveLength(1);
});

test("an error is shared as well, and the next request asks again", async () => {
  const gate = Promise.withResolvers<void>();
  backend.reset({ ...failure(400, "no such thing"), headersAfter: gate.promise });
  const pending = Array.from({ length: 5 }, () => gateway.chat({ temperature: 0 }));
  await settled(5);
  gate.resolve();
  for (const response of await Promise.all(pending)) {
    expect((await expectError(response, 400)).message).toBe("no such thing");
  }
  expect(backend.requests).toHaveLength(1);
  backend.answer = chat("now");
  expect((await gateway.chat({ temperature: 0 })).status).toBe(200);
  expect(backend.requests).toHaveLength(2);
});

test("a stream that breaks ends with an error event for everyone", async () => {
  const sent = chatEvents(["one "], { finishReason: null, done: false });
  const gate = Promise.withResolvers<void>();
  backend.reset(
    eventStream([...sent, "x"], {
      beforeChunk: (index) => (index === 2 ? gate.promise : undefined),
      breakAfterBytes: Buffer.byteLength(sent.join("")),
    }),
  );
  const responses = await Promise.all(Array.from({ length: 4 }, () => gateway.chat(SAME)));
  gate.resolve();
  for (const response of responses) {
    const text = await response.text();
    expect(text.startsWith(sent.join(""))).toBe(true);
    expect(text).toContain('"error"');
    expect(text).not.toContain("[DONE]");
    expect(text).toContain(response.headers.get("x-request-id") ?? "no id");
  }
  expect(backend.requests).toHaveLength(1);
});

for (const stream of [true, false]) {
  test(`the leader leaves, the followers go on (${stream ? "stream" : "plain"})`, async () => {
    const { answer, gate } = stream ? gated(["one ", "two"], 2) : gatedPlain("shared");
    backend.reset(answer);
    const leaving = new AbortController();
    const body = { temperature: 0, stream };
    const leader = gateway.chat(body, { signal: leaving.signal }).catch(() => undefined);
    await waitFor("the leader is under way", () => backend.requests.length === 1);
    const followers = Array.from({ length: 3 }, () => gateway.chat(body));
    await settled(4);
    const led = stream ? await leader : undefined;
    leaving.abort();
    await leader;
    await led?.text().catch(() => "");
    await settled(3);
    expect(backend.lastRequest.isClosed).toBe(false);
    gate.resolve();
    const whole = stream ? chatEvents(["one ", "two"]).join("") : (chat("shared").body as string);
    for (const response of await Promise.all(followers)) expect(await response.text()).toBe(whole);
    expect(backend.requests).toHaveLength(1);
    await gateway.waitUntilIdle();
  });

  test(`the last who leaves ends the call (${stream ? "stream" : "plain"})`, async () => {
    const { answer } = stream ? gated(["one ", "two"], 2) : gatedPlain("shared");
    backend.reset(answer);
    const controllers = [new AbortController(), new AbortController(), new AbortController()];
    const pending = controllers.map(({ signal }) =>
      gateway
        .chat({ temperature: 0, stream }, { signal })
        .then((response) => response.text())
        .catch(() => "left"),
    );
    await waitFor("the call is under way", () => backend.requests.length === 1);
    await settled(3);
    controllers[1]?.abort();
    controllers[0]?.abort();
    await settled(1);
    expect(backend.lastRequest.isClosed).toBe(false);
    controllers[2]?.abort();
    await Promise.all(pending);
    await within("the backend is let go", backend.lastRequest.closed);
    expect(backend.requests).toHaveLength(1);
    await gateway.waitUntilIdle();
    backend.reset(chat("anew"));
    expect((await gateway.chat({ temperature: 0 })).status).toBe(200);
  });
}

/** How many upstream calls become of requests that are under way together. */
async function callsOf(
  target: Gateway,
  requests: [body: Record<string, unknown>, headers?: Record<string, string>][],
): Promise<number> {
  const { answer, gate } = gatedPlain("x");
  backend.reset(answer);
  const pending = requests.map(([body, headers]) => target.chat(body, headers ? { headers } : {}));
  await settled(requests.length, target);
  const calls = backend.requests.length;
  gate.resolve();
  for (const response of await Promise.all(pending)) {
    expect(response.status).toBe(200);
    await response.text();
  }
  expect(backend.requests).toHaveLength(calls);
  return calls;
}

const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });

describe("who shares by default", () => {
  test("requests without a temperature, or with another one, never do", async () => {
    expect(
      await callsOf(gateway, [
        [{}],
        [{}],
        [{ temperature: 1 }],
        [{ temperature: 1 }],
        [{ temperature: null }],
        [{ temperature: null }],
      ]),
    ).toBe(6);
  });

  test("who asks does not matter, the values and the order of fields do", async () => {
    expect(await callsOf(gateway, [[{ temperature: 0, user: "a" }], [{ user: "b", temperature: 0 }]])).toBe(1);
    expect(await callsOf(gateway, [[{ temperature: 0, top_p: 1 }], [{ top_p: 1, temperature: 0 }]])).toBe(2);
    expect(await callsOf(gateway, [[{ temperature: 0, seed: 1 }], [{ temperature: 0, seed: 2 }]])).toBe(2);
    expect(await callsOf(gateway, [[{ temperature: 0 }], [{ temperature: 0, tools: [] }]])).toBe(2);
  });

  test("different keys never do, not even of one organisation", async () => {
    expect(
      await callsOf(gateway, [
        [{ temperature: 0 }, bearer(ALICE)],
        [{ temperature: 0 }, bearer(BOB)],
        [{ temperature: 0 }],
        [{ temperature: 0 }, bearer(ALICE)],
      ]),
    ).toBe(3);
  });

  test("the same Idempotency-Key does, another one does not", async () => {
    const key = (value: string) => ({ "Idempotency-Key": value });
    expect(
      await callsOf(gateway, [
        [{}, key("one")],
        [{}, key("one")],
        [{}, key("two")],
      ]),
    ).toBe(2);
    expect(
      await callsOf(gateway, [
        [{ seed: 1 }, key("one")],
        [{ seed: 2 }, key("one")],
      ]),
    ).toBe(2);
  });

  test("a stream and a plain answer do not", async () => {
    const gate = Promise.withResolvers<void>();
    backend.reset((request) => ({
      ...(request.json().stream === true ? chatStream(["x"]) : chat("x")),
      headersAfter: gate.promise,
    }));
    const pending = [gateway.chat({ temperature: 0, stream: true }), gateway.chat({ temperature: 0 })];
    await settled(2);
    expect(backend.requests).toHaveLength(2);
    gate.resolve();
    for (const response of await Promise.all(pending)) expect(response.status).toBe(200);
  });

  test("requests whose answer is to be stored at the backend do not", async () => {
    expect(await callsOf(gateway, [[{ temperature: 0, store: true }], [{ temperature: 0, store: true }]])).toBe(2);
  });

  test("a finished call is not joined", async () => {
    for (let count = 1; count <= 3; count++) {
      expect(await (await gateway.chat({ temperature: 0 })).text()).toBe(chat("hello").body as string);
      expect(backend.requests).toHaveLength(count);
    }
  });
});

test("mode off shares nothing", async () => {
  const own = await start({ mode: "off" });
  expect(
    await callsOf(own, [
      [{ temperature: 0 }],
      [{ temperature: 0 }],
      [{}, { "Idempotency-Key": "k" }],
      [{}, { "Idempotency-Key": "k" }],
    ]),
  ).toBe(4);
});

test("mode all shares requests of any temperature, but not between keys", async () => {
  const own = await start({ mode: "all" });
  expect(await callsOf(own, [[{}], [{}], [{ temperature: 1 }], [{ temperature: 1 }], [{}, bearer(ALICE)]])).toBe(3);
});

test("after the ttl a call in flight is not joined any more", async () => {
  const own = await start({ ttl: "1s" });
  const { answer, gate } = gatedPlain("x");
  backend.reset(answer);
  const pending = [own.chat({ temperature: 0 })];
  await waitFor("the first is under way", () => backend.requests.length === 1);
  await Bun.sleep(1_100);
  pending.push(own.chat({ temperature: 0 }));
  await waitFor("the second makes its own call", () => backend.requests.length === 2);
  gate.resolve();
  for (const response of await Promise.all(pending)) expect(response.status).toBe(200);
});

test("a follower that reads slowly does not hold the others up", async () => {
  const texts = Array.from({ length: 300 }, (_, index) => `${index} ${"x".repeat(2_000)}`);
  const { answer, gate } = gated(texts, 1);
  backend.reset(answer);
  const responses = await Promise.all(Array.from({ length: 3 }, () => gateway.chat(SAME)));
  gate.resolve();
  const whole = chatEvents(texts).join("");
  expect(await responses[0]?.text()).toBe(whole);
  expect(await responses[1]?.text()).toBe(whole);
  expect(await responses[2]?.text()).toBe(whole);
  expect(backend.requests).toHaveLength(1);
});
