// Chaos over real sockets: the backends of one model are killed and restarted at random while clients ask, and no client
// may notice as long as one of them lives. SIGNALBOX_CHAOS_SECONDS makes it longer, SIGNALBOX_CHAOS_SEED repeats a run.

import { expect, test } from "bun:test";
import { readChat } from "../support/chat-reading.ts";
import type { Answer, FakeBackend, RecordedRequest } from "../support/fake-backend.ts";
import type { ProcessGateway } from "../support/gateway-process.ts";
import { chat, chatEvents, embeddings, eventStream } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const SECONDS = Number(process.env.SIGNALBOX_CHAOS_SECONDS ?? "8");
const SEED = Number(process.env.SIGNALBOX_CHAOS_SEED ?? "3");
const BACKENDS = 4;
const CLIENTS_PER_GATEWAY = 12;
/** How long a backend has been up before it may be the only one: the health checks need to have seen it. */
const SETTLED_MS = 1_000;
const PROMPT = "Continue.";
const WORDS = 24;

const bed = createTestBed();

type Random = () => number;

function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 0x1_0000_0000;
  };
}

function between(random: Random, low: number, high: number): number {
  return low + random() * (high - low);
}

function pick<Item>(random: Random, items: readonly Item[]): Item {
  return items[Math.floor(random() * items.length)] as Item;
}

/** What any backend answers to a question, so that an answer of two authors can be checked. */
function answerTo(question: string): string[] {
  return Array.from({ length: WORDS }, (_, index) => `${question}:${index} `);
}

interface ChatBody {
  stream?: boolean;
  messages: { role: string; content: string }[];
}

function respond(request: RecordedRequest, random: Random): Answer {
  const beforeHeadersMs = between(random, 1, 50);
  if (request.path.endsWith("/embeddings")) return { ...embeddings([[1, 2, 3]]), beforeHeadersMs };
  const { stream, messages } = request.json<ChatBody>();
  const words = answerTo(messages[0]?.content ?? "");
  if (stream !== true) return { ...chat(words.join("")), beforeHeadersMs };
  const sent = messages.length > 1 ? (messages[1]?.content ?? "") : "";
  const rest = words.join("").slice(sent.length);
  const texts = rest.match(/\S+ ?|\s+/g) ?? [];
  const events = chatEvents(texts).map((event) =>
    event.replace("chatcmpl-1", `id-${request.connectionId}-${random()}`),
  );
  return eventStream(unifyId(events), { beforeHeadersMs, betweenChunksMs: between(random, 2, 15) });
}

/** All events of one answer carry the id of its first. */
function unifyId(events: readonly string[]): string[] {
  const id = /"id":"([^"]*)"/.exec(events[0] ?? "")?.[1] ?? "none";
  return events.map((event) => event.replace(/"id":"[^"]*"/, `"id":"${id}"`));
}

interface Tally {
  sent: Record<"plain" | "stream" | "embeddings", number>;
  failures: string[];
}

async function askOnce(gateway: ProcessGateway, random: Random, tally: Tally, serial: number): Promise<void> {
  const kind = pick(random, ["plain", "plain", "stream", "stream", "embeddings"] as const);
  const question = `q${serial}`;
  const messages = [{ role: "user", content: question }];
  tally.sent[kind]++;
  try {
    if (kind === "stream") {
      const reading = await readChat(await gateway.chat({ model: "chained", messages, stream: true }));
      const { text, ids, roles, finishReasons, errors, done } = reading;
      const expected = answerTo(question).join("");
      const isGood =
        text === expected && ids.length === 1 && roles.length === 1 && finishReasons.join() === "stop" && done === 1;
      if (!isGood || errors.length > 0) {
        throw new Error(JSON.stringify({ text, expected, ids, roles, finishReasons, errors, done }));
      }
      return;
    }
    const response =
      kind === "plain"
        ? await gateway.chat({ model: "single", messages })
        : await gateway.post("/v1/embeddings", { model: "single", input: question });
    const body = await response.text();
    if (response.status !== 200) throw new Error(`${response.status} ${body}`);
    if (kind === "plain" && !body.includes(answerTo(question).join(""))) throw new Error(`wrong answer: ${body}`);
  } catch (error) {
    tally.failures.push(`${kind} ${question} at ${new Date().toISOString()}: ${error}`);
  }
}

function starts(backend: FakeBackend): boolean {
  try {
    backend.start();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return false;
    throw error;
  }
}

/** Kills and restarts until the deadline, so that a backend that has settled lives at any time; then all live again. */
async function disturb(
  backends: readonly FakeBackend[],
  random: Random,
  untilMs: number,
): Promise<{ kills: number; drops: number }> {
  const upSinceMs = new Map<FakeBackend, number>(backends.map((backend) => [backend, 0]));
  let kills = 0;
  let drops = 0;
  while (performance.now() < untilMs) {
    await Bun.sleep(between(random, 40, 250));
    const nowMs = performance.now();
    const settled = [...upSinceMs].filter(([, sinceMs]) => nowMs - sinceMs >= SETTLED_MS).map(([backend]) => backend);
    const dead = backends.filter((backend) => !upSinceMs.has(backend));
    const victims = [...upSinceMs.keys()].filter((backend) => settled.some((survivor) => survivor !== backend));
    if (dead.length > 0 && (victims.length === 0 || random() < 0.45)) {
      const risen = pick(random, dead);
      // Another process may have taken the port meanwhile, for a connection of its own.
      if (starts(risen)) upSinceMs.set(risen, performance.now());
    } else if (victims.length > 0) {
      const victim = pick(random, victims);
      victim.dropConnections();
      if (random() < 0.2) {
        drops++; // a crash of all connections, and back at once
        continue;
      }
      victim.stop();
      upSinceMs.delete(victim);
      kills++;
    }
  }
  for (const backend of backends) await waitFor("it lives again", () => starts(backend));
  return { kills, drops };
}

function gatewayFor(backends: readonly FakeBackend[], continues: boolean): Promise<ProcessGateway> {
  return bed.process({
    config: {
      retry: { base_delay: "10ms", max_attempts: 5 },
      health_checks: { interval: "500ms", warmup_check_interval: "100ms", timeout: "1s" },
      streaming: { mid_stream_fallback: { enabled: continues, continuation_prompt: PROMPT } },
      fallback: {
        // The stand-ins live on the same backends, so that none is safe.
        fallback_chains: { chained: ["stand-in-1", "stand-in-2"] },
        fallback_policy: { max_fallback_attempts: 20 },
      },
      backends: backends.map(({ url }, index) => ({
        name: `b${index}`,
        url,
        models: ["single", "chained", "stand-in-1", "stand-in-2"],
      })),
    },
  });
}

test(
  `${SECONDS} s of chaos: no client sees a failure while a backend lives`,
  async () => {
    const random = seeded(SEED);
    const backends = Array.from({ length: BACKENDS }, () => {
      const own = seeded(Math.floor(random() * 1e9));
      return bed.backend({ answer: (request) => respond(request, own) });
    });
    const gateways = await Promise.all([gatewayFor(backends, true), gatewayFor(backends, false)]);
    const tally: Tally = { sent: { plain: 0, stream: 0, embeddings: 0 }, failures: [] };
    const untilMs = performance.now() + SECONDS * 1000;
    let serial = 0;
    const clients = gateways.flatMap((gateway) =>
      Array.from({ length: CLIENTS_PER_GATEWAY }, async () => {
        const own = seeded(Math.floor(random() * 1e9));
        while (performance.now() < untilMs) {
          await askOnce(gateway, own, tally, serial++);
          await Bun.sleep(between(own, 0, 10));
        }
      }),
    );
    const { kills, drops } = await disturb(backends, seeded(Math.floor(random() * 1e9)), untilMs);
    await Promise.all(clients);
    for (const gateway of gateways) await gateway.waitUntilIdle();

    const entries = gateways.flatMap((gateway) => gateway.printed.logEntries);
    const retried = entries.filter((entry) => entry.msg === "request" && Number(entry.attempts ?? 1) > 1).length;
    const switched = entries.filter((entry) => String(entry.msg).includes("another backend took over")).length;
    const { plain, stream, embeddings: vectors } = tally.sent;
    console.log(
      `chaos (seed ${SEED}, ${SECONDS} s, ${kills} kills, ${drops} dropped connections): sent ${plain + stream + vectors} ` +
        `(${plain} plain, ${stream} streams, ${vectors} embeddings), failed visibly ${tally.failures.length}, ` +
        `retried ${retried}, switched mid-stream ${switched}`,
    );
    for (const failure of tally.failures.slice(0, 10)) console.log(failure);
    expect(tally.failures).toHaveLength(0);
    expect(kills + drops).toBeGreaterThan(SECONDS / 4);
    expect(retried).toBeGreaterThan(0);
    expect(switched).toBeGreaterThan(0);
    for (const gateway of gateways) {
      for (const { name } of await gateway.backends()) {
        const { in_flight } = await gateway.waitForHealth(name, true);
        expect(in_flight).toBe(0);
      }
    }
  },
  SECONDS * 1000 + 60_000,
);
