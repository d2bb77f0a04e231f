// What is held while a stream goes on: the bytes of its request, and not the many objects that were parsed from them.

import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { FakeBackend } from "../../test/support/fake-backend.ts";
import { startInProcess } from "../../test/support/in-process.ts";
import { chatEvents, eventStream } from "../../test/support/openai-answers.ts";
import type { ConfigDocument } from "../config/sections/registry.ts";

const STREAMS = 5;
const OBJECTS_PER_BODY = 40_000;

function objectsAlive(): number {
  Bun.gc(true);
  return heapStats().objectCount;
}

async function readRest(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  while (!(await reader.read()).done);
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
  const { url, stop } = await startInProcess({
    backends: [{ name: "a", type: "vllm", url: backend.url, models: ["m", "n"] }],
    ...sections,
  });
  try {
    const before = objectsAlive();
    const objects = Array.from({ length: OBJECTS_PER_BODY }, () => "{}").join(",");
    const readers = await Promise.all(
      Array.from({ length: STREAMS }, async (_, index) => {
        const body = `{"model":"m","stream":true,"temperature":0,"seed":${index},"messages":[{"role":"user","content":"x"}],"metadata":[${objects}]}`;
        const answer = await fetch(new URL("/v1/chat/completions", url), { method: "POST", body });
        expect(answer.status).toBe(200);
        const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
        await reader.read();
        return reader as ReadableStreamDefaultReader<Uint8Array>;
      }),
    );
    // What the machine's stack happens to point at is not collected: one body of the five may stay.
    expect(objectsAlive() - before).toBeLessThan(2 * OBJECTS_PER_BODY);
    goOn.resolve();
    await Promise.all(readers.map(readRest));
  } finally {
    goOn.resolve();
    await stop();
  }
});
