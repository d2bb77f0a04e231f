// What waits to be sent: in batches, bounded, and never lost without being counted.

import { expect, test } from "bun:test";
import { waitFor } from "../../test/support/wait-for.ts";
import type { OtlpEncoding, OtlpSpan } from "./data.ts";
import { createSpanQueue } from "./span-queue.ts";

function queueing(
  answer: (count: number) => Promise<boolean> = async () => true,
  maxWaiting?: number,
  spanBytes = 400,
) {
  const sent: string[][] = [];
  const types: string[] = [];
  let dropped = 0;
  const stop = new AbortController();
  const encodingOf = (contentType: string): OtlpEncoding => ({
    contentType,
    spans() {
      let ids: string[] = [];
      return {
        get size() {
          return ids.length * spanBytes;
        },
        add: ({ spanId }) => void ids.push(spanId),
        take() {
          const bytes = new TextEncoder().encode(ids.join());
          ids = [];
          return bytes;
        },
      };
    },
    metrics: () => new Uint8Array(),
    partialSuccess: () => undefined,
  });
  let encoding = encodingOf("first");
  const queue = createSpanQueue({
    origin: { resource: [], scope: { name: "", version: "" }, schemaUrl: "" },
    encoding: () => encoding,
    sender: {
      async send({ body, encoding: { contentType } }) {
        types.push(contentType);
        const names = new TextDecoder().decode(body).split(",");
        sent.push(names);
        return answer(names.length);
      },
    },
    dropped: (spans) => {
      dropped += spans;
    },
    stop: stop.signal,
    ...(maxWaiting !== undefined && { maxWaiting }),
  });
  let added = 0;
  const add = (count: number) => {
    for (let each = 0; each < count; each++) {
      queue.add({ spanId: String(added++) } as OtlpSpan);
    }
  };
  const speak = (contentType: string) => {
    encoding = encodingOf(contentType);
  };
  return { queue, add, sent, types, speak, dropped: () => dropped, stop };
}

test("all goes, once and in order, in batches of a thousand", async () => {
  const { queue, add, sent, dropped } = queueing();
  add(2_500);
  await queue.flush();
  expect(sent.map(({ length }) => length)).toEqual([1_000, 1_000, 500]);
  expect(sent.flat()).toEqual(Array.from({ length: 2_500 }, (_, each) => String(each)));
  expect(dropped()).toBe(0);
});

test("what is little goes after a moment, what is much at once", async () => {
  const { add, sent } = queueing();
  add(3);
  expect(sent).toEqual([]);
  await waitFor("they go", () => sent.length === 1);
  add(1_000);
  await waitFor("these go at once", () => sent.length === 2, { timeoutMs: 500 });
});

test("what comes while something is sent gathers again", async () => {
  let gate = Promise.withResolvers<boolean>();
  const { add, sent } = queueing(() => gate.promise);
  add(1_000);
  await waitFor("they are under way", () => sent.length === 1);
  add(5);
  gate.resolve(true);
  gate = Promise.withResolvers();
  await Bun.sleep(20); // nothing tells of what does not happen
  add(5);
  expect(sent).toHaveLength(1);
  await waitFor("those go together", () => sent.length === 2);
  expect(sent[1]).toHaveLength(10);
  gate.resolve(true);
});

test("while nobody takes anything, what is beyond the bound is dropped and counted", async () => {
  const gate = Promise.withResolvers<boolean>();
  const { queue, add, sent, dropped } = queueing(() => gate.promise, 2_000);
  add(1_000);
  await waitFor("a thousand are under way", () => sent.length === 1);
  add(2_000 + 7);
  expect(dropped()).toBe(7);
  gate.resolve(true);
  await queue.flush();
  expect(sent.flat()).toHaveLength(3_000);
  add(1);
  await queue.flush();
  expect(sent.flat()).toHaveLength(3_001);
});

test("a batch that is not taken is counted, and the next one goes", async () => {
  let isTaken = false;
  const { queue, add, dropped } = queueing(async () => isTaken);
  add(10);
  await queue.flush();
  expect(dropped()).toBe(10);
  isTaken = true;
  add(10);
  await queue.flush();
  expect(dropped()).toBe(10);
});

test("the end drops what was not sent by then", async () => {
  const { queue, add, dropped, stop, sent } = queueing(async () => {
    stop.abort();
    return false;
  });
  add(1_500);
  await queue.flush();
  expect(sent).toHaveLength(1);
  expect(dropped()).toBe(1_500);
});

test("large spans make smaller batches, and fewer of them wait", async () => {
  const gate = Promise.withResolvers<boolean>();
  const { queue, add, sent, dropped } = queueing(() => gate.promise, undefined, 100 * 1024);
  add(1_000);
  expect(dropped()).toBeGreaterThan(800);
  gate.resolve(true);
  await queue.flush();
  expect(sent.flat()).toHaveLength(1_000 - dropped());
  expect(Math.max(...sent.map(({ length }) => length))).toBe(11);
  // What was counted for them is free again.
  add(100);
  await queue.flush();
  expect(sent.flat()).toHaveLength(1_100 - dropped());
});

test("what was written before the encoding changed goes as it was written", async () => {
  const { queue, add, sent, types, speak } = queueing();
  add(3);
  speak("second");
  add(2);
  await queue.flush();
  expect(sent.map(({ length }) => length)).toEqual([3, 2]);
  expect(types).toEqual(["first", "second"]);
});
