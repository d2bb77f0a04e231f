import { expect, test } from "bun:test";
import { waitFor } from "../../test/support/wait-for.ts";
import { documentSchema } from "../config/sections/registry.ts";
import { JsonBody } from "../lib/request-body.ts";
import { RequestRecord } from "../stats/request-record.ts";
import { createRecorder, type FinishedRecording } from "./recorder.ts";

/** Nothing is asked of a request on which the lot does not fall. */
const UNSEEN = () => {
  throw new Error("nobody looks at it");
};
const NOTHING = { costOf: () => 0, now: () => 0, wallTime: () => 0 };

function started(memory: number, recording: object = {}, random = () => 0) {
  const { recording: settings } = documentSchema.parse({ recording: { enabled: true, redact: false, ...recording } });
  const seen = { held: 0, dropped: 0, finished: [] as FinishedRecording[] };
  const recorder = createRecorder({
    ...NOTHING,
    random,
    settings,
    allowance: {
      take(bytes) {
        if (seen.held + bytes > memory) return false;
        seen.held += bytes;
        return true;
      },
      giveBack(bytes) {
        seen.held -= bytes;
      },
    },
    finished(recorded, heldBytes) {
      seen.finished.push(recorded);
      seen.held -= heldBytes;
    },
    dropped: () => seen.dropped++,
  });
  const record = new RequestRecord("own-1", "id", 0, () => 0);
  const bytes = new TextEncoder().encode(JSON.stringify({ model: "m", prompt: "x".repeat(100) }));
  const begin = () =>
    recorder.begin(() => ({
      ...{ record, caller: undefined, clientHeaders: new Headers(), path: "/v1/completions" },
      body: new JsonBody(bytes, JSON.parse(new TextDecoder().decode(bytes))),
      subject: () => {
        throw new Error("no condition looks at it");
      },
    }));
  return { recorder, begin, seen, record, bytes };
}

const streamOf = (...pieces: string[]) =>
  new Response(
    new ReadableStream({
      start(controller) {
        for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
        controller.close();
      },
    }),
  );

test("memory is taken while a request is open, and given back when it is finished or forgotten", async () => {
  const { begin, seen, record, bytes } = started(10_000);
  const exchange = begin();
  expect(seen.held).toBe(bytes.length);
  expect(await exchange?.answered(streamOf("one ", "two"), true).text()).toBe("one two");
  expect(seen.finished).toEqual([]);
  exchange?.over(record);
  expect(seen.finished.map(({ answer }) => Buffer.from(answer.content).toString())).toEqual(["one two"]);
  expect(seen.held).toBe(0);
  const forgotten = begin();
  forgotten?.forget();
  expect(await forgotten?.answered(streamOf("three"), true).text()).toBe("three");
  expect(seen.held).toBe(0);
  expect(seen.finished).toHaveLength(1);
});

test("without memory a request is dropped and counted, and an answer is cut", async () => {
  const { begin, seen, record, bytes } = started(0);
  expect(begin()).toBeUndefined();
  expect(seen.dropped).toBe(1);
  const little = started(bytes.length + 4);
  const exchange = little.begin();
  expect(await exchange?.answered(streamOf("one ", "two"), true).text()).toBe("one two");
  exchange?.over(record);
  const [{ answer } = { answer: undefined }] = little.seen.finished;
  expect(answer).toMatchObject({ incomplete: "cut", bytes: 7 });
  expect(Buffer.from(answer?.content ?? []).toString()).toBe("one ");
});

test("either end may come first", async () => {
  const { begin, seen, record } = started(10_000);
  const exchange = begin();
  const response = exchange?.answered(streamOf("late"), true);
  exchange?.over(record);
  expect(seen.finished).toEqual([]);
  await response?.text();
  expect(seen.finished).toHaveLength(1);
});

test("a request on which the lot does not fall is not looked at", () => {
  const { recorder } = started(10_000, { share: 0.5 }, () => 0.5);
  expect(recorder.begin(UNSEEN)).toBeUndefined();
  expect(() => started(10_000, { share: 0.5 }, () => 0.4).recorder.begin(UNSEEN)).toThrow("nobody looks");
});

test("a whole answer is noted beside what the client gets, and one without a body is empty", async () => {
  const { begin, seen, record } = started(10_000);
  for (const body of ["hello", null]) {
    const exchange = begin();
    const response = exchange?.answered(new Response(body, { headers: { "Content-Type": "text/x" } }), false);
    exchange?.over(record);
    expect(await response?.text()).toBe(body ?? "");
  }
  await waitFor("both are finished", () => seen.finished.length === 2);
  expect(seen.finished.map(({ answer }) => Buffer.from(answer.content).toString())).toEqual(["hello", ""]);
  expect(seen.finished[0]?.answer).toMatchObject({ contentType: "text/x", bytes: 5, incomplete: null });
});

test("of a whole answer that is too long only what is kept stays in memory", async () => {
  const { begin, seen, record } = started(1024 ** 2, { max_body_bytes: 1024 });
  const exchange = begin();
  exchange?.answered(new Response("x".repeat(100_000)), false);
  exchange?.over(record);
  await waitFor("it is finished", () => seen.finished.length === 1);
  const { answer } = seen.finished[0] as FinishedRecording;
  expect(answer).toMatchObject({ bytes: 100_000, incomplete: "cut" });
  expect(answer.content.buffer.byteLength).toBeLessThan(10_000);
});

test("whether a recording is redacted was settled when its request came", async () => {
  for (const redact of [true, false]) {
    const { begin, seen, record } = started(10_000, { redact });
    const exchange = begin();
    exchange?.answered(new Response("hello"), false);
    exchange?.over(record);
    await waitFor("it is finished", () => seen.finished.length === 1);
    expect(seen.finished[0]?.redacts).toBe(redact);
  }
});
