// GET /admin/requests/{id}: what it says in words of every kind of failure that a backend can have.

import { beforeAll, describe, expect, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import type { Answer } from "../support/fake-backend.ts";
import { freePort } from "../support/free-port.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatEvents, chatStream, eventStream, failure, sseEvent } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const bad = bed.backend();
const good = bed.backend({ answer: chat("x") });
let gateway: Gateway;
let admin: AdminClient;

interface Explanation {
  summary: string;
  explanation: string[];
  error: { type: string; message: string } | null;
  steps: Record<string, unknown>[];
  cache: unknown;
  timings: Record<string, number | null>;
}

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      backends: [
        { name: "gpu-1", type: "vllm", url: bad.url, models: ["m", "alone"] },
        { name: "gpu-2", type: "vllm", url: good.url, models: ["m", "n"], weight: 0 },
        { name: "closed", type: "vllm", url: `http://127.0.0.1:${await freePort()}`, models: ["closed", "both"] },
        { name: "gpu-3", type: "vllm", url: good.url, models: ["both"], weight: 0 },
      ],
      health_checks: { enabled: false },
      circuit_breaker: { enabled: false },
      response_cache: { enabled: true },
      retry: { base_delay: "20ms", max_delay: "20ms", jitter: false, max_attempts: 2 },
      timeouts: { first_byte: "150ms", between_chunks: "150ms" },
      fallback: { enabled: true, fallback_chains: { alone: ["n"] } },
    },
  });
  admin = new AdminClient(gateway);
});

async function explained(answer: Promise<Response>): Promise<Explanation> {
  const response = await answer;
  await response.text().catch(() => "");
  const id = response.headers.get("x-signalbox-request-id");
  return (await waitFor("the request is over", async () => {
    const story = await admin.get(`/admin/requests/${id}`);
    return story.finished === true && story;
  })) as unknown as Explanation;
}

const FAILURES: [name: string, answer: Answer, words: string | RegExp][] = [
  ["an overloaded backend", failure(503), "gpu-1 was overloaded or not ready (status 503)"],
  ["a broken one", failure(502), "gpu-1 failed (status 502)"],
  ["one without room", failure(429), /^gpu-1 had no room for the request \(status 429\)/],
  ["one that wants another key", failure(401), "gpu-1 did not accept the gateway's own credentials (status 401)"],
  ["silence", { beforeHeadersMs: 5_000, body: "" }, "gpu-1 sent nothing within 150 ms"],
  ["a broken connection", { ...chat("x"), breakAfterBytes: 5, breakWith: "reset" }, /^gpu-1 broke the connection off/],
  ["HTML", { headers: { "Content-Type": "text/html" }, body: "<html>sekret prompt</html>" }, /^gpu-1 \w/],
];

describe("another backend makes good", () => {
  test.each(FAILURES)("%s", async (_name, answer, words) => {
    bad.answer = answer;
    const { summary, explanation, steps, error } = await explained(gateway.chat({ temperature: 1 }));
    const [first = "", second = ""] = summary.split("; ");
    expect(first).toMatch(words);
    expect(first).not.toContain("sekret");
    expect(second).toMatch(/^gpu-2 answered after \d+(\.\d)? (ms|s)\.$/);
    expect(explanation[0]).toStartWith("The response cache was left out: its temperature is not 0");
    expect(explanation).toContainEqual(expect.stringMatching(words));
    expect(explanation.at(-1)).toMatch(/^The answer was complete after .*, with 2 tokens/);
    expect(error).toBeNull();
    const attempts = steps.filter(({ kind }) => kind === "attempt");
    expect(attempts).toMatchObject([
      { backend: "gpu-1", outcome: "failed", text: expect.stringMatching(first) },
      { backend: "gpu-2", outcome: "succeeded" },
    ]);
    expect(attempts[0]?.candidates).toMatchObject([
      { backend: "gpu-1", chosen: true, why: expect.stringContaining("chosen by RoundRobin") },
      { backend: "gpu-2", chosen: false, why: "not chosen: it stands by with weight 0" },
    ]);
  });

  test("a refused connection", async () => {
    const { summary, steps } = await explained(gateway.chat({ model: "both", temperature: 1 }));
    expect(summary).toMatch(/^closed refused the connection; gpu-3 answered after/);
    expect(steps[0]).toMatchObject({ detail: expect.stringContaining("Could not connect to backend 'closed'") });
  });
});

test("nobody makes good: the client was told, and here is what", async () => {
  const { explanation, error } = await explained(gateway.chat({ model: "closed", temperature: 1 }));
  expect(error).toMatchObject({ type: "backend_connection_error", message: expect.any(String) });
  expect(explanation.filter((text) => text === "closed refused the connection.")).toHaveLength(2);
  expect(explanation).toContain("The request waited 20 ms before another attempt.");
  expect(explanation.at(-1)).toMatch(/^The client got status 502 after .*\.$/);
});

test("another model stands in", async () => {
  bad.answer = failure(503);
  const { explanation } = await explained(gateway.chat({ model: "alone", temperature: 1 }));
  expect(explanation).toContainEqual(
    expect.stringMatching(/^alone could not answer \(.*\), so n was asked instead\.$/),
  );
  expect(explanation).toContainEqual(expect.stringMatching(/^gpu-2 answered after .* \(asked for n\)/));
});

test("an unknown model: nobody was asked, in the words that the client had", async () => {
  const { summary, error } = await explained(gateway.chat({ model: "nobody-has-it" }));
  expect(error).toMatchObject({ type: "model_not_found" });
  // On a busy machine it is told as well that the request waited for the lists of models.
  expect(summary.replace(/^.*; no/, "No")).toBe(`No backend was asked: ${error?.message.replace(/\.$/, "")}.`);
});

test("the cache: a miss, then a hit", async () => {
  bad.answer = chat("x");
  const ask = () => explained(gateway.chat({ temperature: 0, messages: [{ role: "user", content: "cached" }] }));
  expect((await ask()).explanation[0]).toBe("The response cache did not have the answer.");
  const hit = await ask();
  expect(hit.summary).toBe("The response cache answered.");
  expect(hit.cache).toEqual({ decision: "HIT", reason: null });
});

describe("streams", () => {
  const ask = (more: object = {}) => gateway.chat({ model: "m", stream: true, temperature: 1, ...more });

  test("tell the first token and the speed", async () => {
    const events = chatEvents(["one", "two", "three"]);
    const usage = { prompt_tokens: 3, completion_tokens: 3, total_tokens: 6 };
    events.splice(-1, 0, sseEvent({ id: "chatcmpl-1", object: "chat.completion.chunk", choices: [], usage }));
    bad.answer = eventStream(events, { beforeChunk: () => Bun.sleep(10) });
    const { timings, summary } = await explained(ask({ stream_options: { include_usage: true } }));
    expect(summary).toMatch(/^gpu-1 answered after/);
    expect(timings.first_token_ms).toBeGreaterThan(0);
    expect(timings.until_first_attempt_ms).toBeGreaterThanOrEqual(0);
    expect(timings.tokens_per_second).toBeGreaterThan(0);
  });

  test("that fall silent, or end with an error of the backend's own", async () => {
    const { promise: never } = Promise.withResolvers<void>();
    bad.answer = chatStream(["one", "two"], {}, { beforeChunk: (index) => (index === 2 ? never : undefined) });
    const silent = await explained(ask({ model: "alone" }));
    expect(silent.explanation).toContainEqual(
      expect.stringContaining("gpu-1 fell silent in the middle of its answer, for 150 ms"),
    );
    bad.answer = eventStream([
      sseEvent({ id: "1", object: "chat.completion.chunk", choices: [{ index: 0, delta: { content: "a" } }] }),
      sseEvent({ error: { message: 'out of memory at {"role": "user", "content": "sekret"}', type: "server_error" } }),
    ]);
    const told = await explained(ask());
    expect(told.explanation[1]).toMatch(/^gpu-1 .*, saying "out of memory at …"/);
    expect(JSON.stringify(told.explanation)).not.toContain("sekret");
  });

  test("whose client leaves", async () => {
    const { promise: never } = Promise.withResolvers<void>();
    bad.answer = chatStream(["one", "two"], {}, { beforeChunk: (index) => (index === 2 ? never : undefined) });
    const leaving = new AbortController();
    const response = await gateway.chat({ stream: true, temperature: 1 }, { signal: leaving.signal });
    await response.body?.getReader().read();
    leaving.abort();
    const id = response.headers.get("x-signalbox-request-id");
    const { explanation } = (await waitFor("the request is over", async () => {
      const story = await admin.get(`/admin/requests/${id}`);
      return story.finished === true && story;
    })) as unknown as Explanation;
    expect(explanation.at(-1)).toMatch(/^The client left after/);
    expect(explanation).toContainEqual(expect.stringMatching(/^gpu-1 was still answering when the client left/));
  });
});
