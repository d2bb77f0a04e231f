// What is held while a stream goes on: the bytes of its request, and not the many objects that were parsed from them.

import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { FakeBackend } from "../support/fake-backend.ts";
import { startInProcess } from "../support/in-process.ts";
import { chatEvents, eventStream } from "../support/openai-answers.ts";

const STREAMS = 5;
const OBJECTS_PER_BODY = 40_000;

function objectsAlive(): number {
  Bun.gc(true);
  return heapStats().objectCount;
}

async function readRest(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  while (!(await reader.read()).done);
}

/** Streams of requests that parse to many objects, each with its first events read. */
function openStreams(url: string): Promise<ReadableStreamDefaultReader<Uint8Array>[]> {
  const objects = Array.from({ length: OBJECTS_PER_BODY }, () => "{}").join(",");
  return Promise.all(
    Array.from({ length: STREAMS }, async (_, index) => {
      const body = `{"model":"m","stream":true,"temperature":0,"seed":${index},"messages":[{"role":"user","content":"x"}],"metadata":[${objects}]}`;
      const answer = await fetch(new URL("/v1/chat/completions", url), { method: "POST", body });
      expect(answer.status).toBe(200);
      const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
      await reader.read();
      return reader as ReadableStreamDefaultReader<Uint8Array>;
    }),
  );
}

const chain = { fallback: { enabled: true, fallback_chains: { m: ["n"] } } };

test.each<[string, ConfigDocument]>([
  ["that nobody can take over", {}],
  ["that another model can take over", chain],
  ["that is kept in the cache", { response_cache: { enabled: true } }],
  ["that is shared", { ...chain, deduplication: { mode: "all" } }],
])("a stream %s holds no parsed request", async (_which, sections) => {
  using backend = new FakeBackend({ models: ["m", "n"] });
  const goOn = Promise.withResolvers<void>();
  const events = chatEvents(["one", "two", "three"]);
  backend.answer = eventStream(events, { beforeChunk: (index) => (index === 2 ? goOn.promise : undefined) });
  const gateway = await startInProcess({
    config: {
      backends: [{ name: "a", type: "vllm", url: backend.url, models: ["m", "n"] }],
      ...sections,
    },
  });
  try {
    const before = objectsAlive();
    const readers = await openStreams(gateway.url);
    // What the machine's stack happens to point at is not collected: one body of the five may stay.
    expect(objectsAlive() - before).toBeLessThan(2 * OBJECTS_PER_BODY);
    goOn.resolve();
    await Promise.all(readers.map(readRest));
  } finally {
    goOn.resolve();
    await gateway.close();
  }
});

test("a stream that another backend took over holds no parsed request", async () => {
  using breaking = new FakeBackend({ models: ["m"] });
  using next = new FakeBackend({ models: ["n"] });
  const goOn = Promise.withResolvers<void>();
  breaking.answer = eventStream(chatEvents(["one"], { finishReason: null, done: false }), {
    breakWith: "fin",
    close: true,
  });
  next.answer = eventStream(chatEvents(["three", "four", "five"]), {
    beforeChunk: (index) => (index === 3 ? goOn.promise : undefined),
  });
  const gateway = await startInProcess({
    config: {
      backends: [
        { name: "a", type: "vllm", url: breaking.url, models: ["m"] },
        { name: "b", type: "vllm", url: next.url, models: ["n"] },
      ],
      ...chain,
    },
  });
  try {
    const before = objectsAlive();
    const readers = await openStreams(gateway.url);
    const decoder = new TextDecoder();
    for (const reader of readers) {
      let text = "";
      while (!text.includes("three")) {
        const { done, value } = await reader.read();
        if (done) throw new Error(`nobody took over: ${text}`);
        text += decoder.decode(value);
      }
    }
    expect(objectsAlive() - before).toBeLessThan(2 * OBJECTS_PER_BODY);
    goOn.resolve();
    await Promise.all(readers.map(readRest));
  } finally {
    goOn.resolve();
    await gateway.close();
  }
});
