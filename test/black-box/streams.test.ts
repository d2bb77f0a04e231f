// Streams: passed on byte for byte, retried unseen before their first event, never ended cleanly when they broke.

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import fastCheck from "fast-check";
import { expectError } from "../support/expect-error.ts";
import type { Answer } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatEvents, chatStream, eventStream, failure, html, sseEvent } from "../support/openai-answers.ts";
import { postBytes, RawConnection } from "../support/raw-http.ts";
import { readSse, readUntil, type SseReading, splitSse } from "../support/sse-reader.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor, within } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();
const other = bed.backend();
let gateway: Gateway;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      routing: { selection_strategy: "WeightedRoundRobin" },
      retry: { base_delay: "1ms", max_delay: "5ms" },
      health_checks: { enabled: false },
      logging: { access_log: false },
      backends: [
        { name: "a", url: backend.url, models: ["m", "twice"] },
        { name: "b", url: other.url, models: ["twice"], weight: 0 },
      ],
    },
  });
});

beforeEach(() => {
  backend.reset(chatStream(["one", "two"]));
  other.reset(chatStream(["other"]));
});

async function stream(more: Record<string, unknown> = {}): Promise<SseReading> {
  const response = await gateway.chat({ stream: true, ...more });
  if (response.status !== 200) throw new Error(`status ${response.status}: ${await response.text()}`);
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  return readSse(response);
}

function errorOf(data: string | undefined): { message: string; type: string } | undefined {
  if (data === undefined || !data.startsWith("{")) return undefined;
  return (JSON.parse(data) as { error?: { message: string; type: string } }).error;
}

/** Whole events of the original, in order and unchanged, then exactly one error event, no [DONE]. */
function expectBroken(reading: SseReading, events: readonly string[]): void {
  expect(reading.rest).toBe("");
  const received = reading.events.map((event) => event.raw);
  const error = errorOf(reading.events.at(-1)?.data);
  if (!error) throw new Error(`the last event is no error: ${JSON.stringify(received.at(-1))}, end ${reading.end}`);
  expect(error.message).not.toBe("");
  expect(received.slice(0, -1)).toEqual(events.slice(0, received.length - 1));
  expect(reading.data).not.toContain("[DONE]");
}

describe("a good stream", () => {
  test("arrives byte for byte: comments, ids, odd spacing, unknown fields, large numbers", async () => {
    const body = [
      ": a comment before the first event\n\n",
      'data: {"id":"1", "choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n',
      'id: 7\nevent: chunk\ndata:{"choices":[{"index":0,"delta":{"content":"\\u00e9 語 \\ud83d\\ude00"}}],"big":9007199254740993}\n\n',
      ": keep-alive\n\n",
      'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],\ndata: "x":[1.0, 1e2]}\n\n',
      'data: {"choices":[],"usage":{"total_tokens":3}}\n\n',
      "data: [DONE]\n\n",
    ];
    backend.reset(eventStream(body));
    const reading = await stream();
    expect(reading.text).toBe(body.join(""));
    expect(reading.end).toBe("clean");
  });

  test("with CRLF line ends arrives byte for byte", async () => {
    const body = chatEvents(["one", "two"]).map((event) => event.replaceAll("\n", "\r\n"));
    backend.reset(eventStream(body));
    expect((await stream()).text).toBe(body.join(""));
  });

  test("the request reaches the backend byte for byte", async () => {
    const body =
      '{ "stream" : true, "model":"m","messages":[{"role":"user","content":"x"}], "seed": 9007199254740993 }';
    await readSse(await gateway.post("/v1/chat/completions", body));
    expect(backend.lastRequest.text).toBe(body);
  });

  test("every event is handed on at once, not gathered", async () => {
    const gates = [0, 1, 2, 3, 4].map(() => Promise.withResolvers<void>());
    backend.reset(chatStream(["one", "two"], {}, { beforeChunk: (index) => gates[index]?.promise }));
    const pending = gateway.chat({ stream: true });
    gates[0]?.resolve();
    const reader = (await pending).body!.getReader();
    await readUntil(reader, '"role":"assistant"');
    gates[1]?.resolve();
    await readUntil(reader, "one");
    gates[2]?.resolve();
    await readUntil(reader, "two");
    gates[3]?.resolve();
    await readUntil(reader, "stop");
    gates[4]?.resolve();
    await readUntil(reader, "[DONE]");
  });

  test("text completions are streamed as well", async () => {
    const events = [
      sseEvent({ id: "cmpl-1", object: "text_completion", choices: [{ text: "a", index: 0, finish_reason: null }] }),
      sseEvent({ id: "cmpl-1", object: "text_completion", choices: [{ text: "", index: 0, finish_reason: "stop" }] }),
      "data: [DONE]\n\n",
    ];
    backend.reset(eventStream(events));
    const response = await gateway.post("/v1/completions", { model: "m", prompt: "x", stream: true });
    expect((await readSse(response)).text).toBe(events.join(""));
  });

  test("a stream of 5,000 events arrives whole", async () => {
    const events = chatEvents(Array.from({ length: 5_000 }, (_, index) => `token-${index} `));
    backend.reset(eventStream(events, { chunkBytes: 1_371 }));
    expect((await stream()).text).toBe(events.join(""));
  });

  test("one event of 2 MB arrives whole", async () => {
    const events = chatEvents(["x".repeat(2 * 1024 * 1024)]);
    backend.reset(eventStream(events));
    expect((await stream()).text).toBe(events.join(""));
  });

  test("a stream that ends by closing the connection is complete when it had [DONE]", async () => {
    const events = chatEvents(["one"]);
    backend.reset(eventStream(events, { framing: "close" }));
    expect((await stream()).text).toBe(events.join(""));
  });

  test("a slow reader loses nothing", async () => {
    const events = chatEvents(Array.from({ length: 400 }, (_, index) => `${index} ${"x".repeat(20_000)}`));
    backend.reset(eventStream(events));
    const connection = await RawConnection.open(gateway.port);
    connection.write(
      postBytes(
        "/v1/chat/completions",
        JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "x" }] }),
      ),
    );
    await waitFor("the stream begins", () => connection.received.length > 0);
    connection.pause();
    await Bun.sleep(100);
    connection.resume();
    await waitFor("the stream is complete", () => connection.partialBody().complete);
    expect(connection.partialBody().body.toString()).toBe(events.join(""));
    connection.close();
  });
});

test("a reader that stops holds the backend back, instead of filling the gateway's memory", async () => {
  const events = chatEvents(Array.from({ length: 4_000 }, (_, index) => `${index} ${"x".repeat(20_000)}`));
  backend.reset(eventStream(events));
  const connection = await RawConnection.open(gateway.port);
  connection.write(
    postBytes(
      "/v1/chat/completions",
      JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "x" }] }),
    ),
  );
  await waitFor("the stream begins", () => connection.received.length > 0);
  connection.pause();
  // 80 MB are more than all socket buffers on the way hold; half a second is more than sending them takes.
  await Bun.sleep(500);
  expect(backend.lastRequest.answerComplete).toBe(false);
  connection.abort();
  await within("the backend is let go", backend.lastRequest.closed);
  await gateway.waitUntilIdle();
});

describe("before the first event", () => {
  const unseen: Record<string, Answer> = {
    "an error status": failure(503),
    "a reset before the headers": { breakWith: "reset" },
    "a reset behind the headers": chatStream(
      ["x"],
      {},
      { breakAfterBytes: 0, breakWith: "reset", beforeFirstChunkMs: 5 },
    ),
    "a connection that ends behind the headers": chatStream(["x"], {}, { breakAfterBytes: 0, breakWith: "fin" }),
    "an empty stream": eventStream([]),
    "half of the first event": chatStream(["x"], {}, { breakAfterBytes: 20, breakWith: "fin" }),
    "an error event as the first event": eventStream([sseEvent({ error: { message: "no slot", code: 503 } })]),
    "comments only": eventStream([": loading\n\n", ": loading\n\n"]),
    "HTML instead of a stream": html(200),
    "HTML called a stream": eventStream("<!doctype html><html><body>login</body></html>"),
    "a first event that is not JSON": eventStream(["data: oops\n\n"]),
  };
  for (const [name, answer] of Object.entries(unseen)) {
    test(`${name} is retried on the other backend, unseen by the client`, async () => {
      backend.reset(answer);
      const reading = await stream({ model: "twice" });
      expect(reading.text).toBe(chatEvents(["other"]).join(""));
      expect(other.requests).toHaveLength(1);
    });

    test(`${name} with no other backend is an ordinary HTTP error`, async () => {
      backend.reset(answer);
      const response = await gateway.chat({ stream: true });
      const error = await expectError(response, [502, 503]);
      expect(error.message).not.toBe("");
    });
  }

  test("a client error inside the first event keeps its message and is not retried", async () => {
    backend.reset(
      eventStream([sseEvent({ error: { message: "context overflow", type: "invalid_request_error", code: 400 } })]),
    );
    const error = await expectError(await gateway.chat({ stream: true, model: "twice" }), 400);
    expect(error.message).toBe("context overflow");
    expect(backend.requests).toHaveLength(1);
    expect(other.requests).toHaveLength(0);
  });

  test("a plain answer to a request for a stream is an error, not handed on as a stream", async () => {
    backend.reset(chat("plain"));
    await expectError(await gateway.chat({ stream: true }), 502);
  });
});

describe("after the first event", () => {
  const events = chatEvents(["one", "two"]);
  const whole = events.join("");
  const firstLength = Buffer.byteLength(events[0] as string);
  const textLength = Buffer.byteLength(events.slice(0, 2).join(""));

  for (const breakWith of ["fin", "reset"] as const) {
    test(`a cut by ${breakWith} behind some text becomes one error event behind whole events`, async () => {
      backend.reset(eventStream(events, { breakAfterBytes: textLength + 10, breakWith, betweenChunksMs: 10 }));
      const reading = await stream({ model: "twice" });
      expectBroken(reading, events);
      expect(other.requests).toHaveLength(0);
      await gateway.waitUntilIdle();
    });
  }

  test("an orderly end without finish_reason and without [DONE] is an error", async () => {
    const unfinished = chatEvents(["one", "two"], { finishReason: null, done: false });
    for (const framing of ["chunked", "close"] as const) {
      backend.reset(eventStream(unfinished, { framing }));
      const reading = await stream();
      expectBroken(reading, unfinished);
      expect(reading.events).toHaveLength(unfinished.length + 1);
    }
  });

  test("an orderly end with finish_reason and without [DONE] is complete", async () => {
    const complete = chatEvents(["one"], { done: false });
    backend.reset(eventStream(complete));
    const reading = await stream();
    expect(reading.text.startsWith(complete.join(""))).toBe(true);
    expect(reading.data.some((data) => errorOf(data) !== undefined)).toBe(false);
  });

  test("an error event of the backend is handed on once and not followed by a clean end", async () => {
    const broken = [...events.slice(0, 2), sseEvent({ error: { message: "out of memory", type: "server_error" } })];
    backend.reset(eventStream(broken));
    const reading = await stream();
    expect(reading.text).toBe(broken.join(""));
    expect(reading.data.filter((data) => errorOf(data) !== undefined)).toHaveLength(1);
  });

  test("what a backend says behind [DONE] is handed on, and [DONE] is not said twice", async () => {
    const body = [...events, ": bye\n\n"];
    backend.reset(eventStream(body, { betweenChunksMs: 3 }));
    expect((await stream()).text).toBe(body.join(""));
  });

  test("a connection that stays open behind [DONE] does not keep the client waiting", async () => {
    backend.reset(
      eventStream([...events, ": never"], {
        beforeChunk: (index) => (index === events.length ? new Promise(() => {}) : undefined),
      }),
    );
    const controller = new AbortController();
    try {
      const response = await gateway.chat({ stream: true }, { signal: controller.signal });
      const reading = await within("the client's stream ends", readSse(response), 4_000);
      expect(reading.text).toBe(whole);
    } finally {
      controller.abort(); // so that a failure here does not fail the tests that count what is open
    }
    await gateway.waitUntilIdle();
  });

  test("keep-alive comments behind the finish do not make an answer incomplete", async () => {
    const complete = [...chatEvents(["one"], { done: false }), ...Array.from({ length: 6 }, () => ": keep-alive\n\n")];
    backend.reset(eventStream(complete, { betweenChunksMs: 3 }));
    const reading = await stream();
    expect(reading.data.some((data) => errorOf(data) !== undefined)).toBe(false);
  });

  test("one finished choice of two is not the end of an answer", async () => {
    const half = [
      sseEvent({
        choices: [
          { index: 0, delta: { content: "a" } },
          { index: 1, delta: { content: "b" } },
        ],
      }),
      sseEvent({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }),
    ];
    backend.reset(eventStream(half, { betweenChunksMs: 3 }));
    expectBroken(await stream({ n: 2 }), half);
  });

  test("an error event that begins with other fields is handed on once as well", async () => {
    const broken = [...events.slice(0, 2), sseEvent({ id: "x", error: { message: "out of memory" } })];
    backend.reset(eventStream(broken, { betweenChunksMs: 3 }));
    expect((await stream()).text).toBe(broken.join(""));
  });

  test("an error event followed by [DONE] is a failure of its backend", async () => {
    const before = await gateway.backend("a");
    const broken = [...events.slice(0, 2), sseEvent({ error: { message: "out of memory" } }), "data: [DONE]\n\n"];
    backend.reset(eventStream(broken, { betweenChunksMs: 3 }));
    expect((await stream()).text).toBe(broken.join(""));
    expect((await gateway.backend("a")).failed_requests).toBe(before.failed_requests + 1);
  });

  test("the gateway's error event has the standard shape with the request id", async () => {
    backend.reset(eventStream(events, { breakAfterBytes: firstLength + 10, betweenChunksMs: 5 }));
    const response = await gateway.chat({ stream: true }, { headers: { "X-Request-ID": "broken-1" } });
    const reading = await readSse(response);
    const { error } = JSON.parse(reading.data.at(-1) ?? "{}") as { error: Record<string, unknown> };
    expect(error).toMatchObject({
      message: expect.any(String),
      type: expect.any(String),
      code: expect.anything(),
      request_id: "broken-1",
    });
  });

  test("a broken stream counts as a failed request of its backend", async () => {
    const before = await gateway.backend("a");
    backend.reset(eventStream(events, { breakAfterBytes: firstLength + 10, betweenChunksMs: 5 }));
    await stream();
    const after = await gateway.backend("a");
    expect(after.failed_requests).toBe(before.failed_requests + 1);
    expect(after.total_requests).toBe(before.total_requests + 1);
  });

  /** The position travels in an unknown field of the request, so that many can run side by side. */
  function byPosition(toAnswer: (position: number) => Answer): void {
    backend.reset((request) => toAnswer(request.json<{ position: number }>().position));
  }

  async function sideBySide(count: number, run: (position: number) => Promise<void>): Promise<void> {
    let next = 0;
    const worker = async (): Promise<void> => {
      while (next < count) await run(next++);
    };
    await Promise.all(Array.from({ length: 16 }, worker));
  }

  const tricky = chatEvents(["é", "語😀"]).join("");
  const trickyBytes = Buffer.from(tricky);

  test("split in two at every byte, the same bytes arrive", async () => {
    byPosition((position) =>
      eventStream([trickyBytes.subarray(0, position), trickyBytes.subarray(position)], { betweenChunksMs: 2 }),
    );
    await sideBySide(trickyBytes.length + 1, async (position) => {
      const reading = await stream({ position });
      if (reading.text !== tricky) throw new Error(`split at ${position}: ${JSON.stringify(reading.text)}`);
      if (reading.end !== "clean") throw new Error(`split at ${position}: not ended cleanly`);
    });
  }, 60_000);

  test("split into single bytes, the same bytes arrive", async () => {
    backend.reset(eventStream(tricky, { chunkBytes: 1 }));
    expect((await stream()).text).toBe(tricky);
  });

  test("split at random places into many pieces, the same bytes arrive", async () => {
    await fastCheck.assert(
      fastCheck.asyncProperty(
        fastCheck.array(fastCheck.integer({ min: 1, max: trickyBytes.length - 1 }), { maxLength: 12 }),
        async (positions) => {
          const cuts = [0, ...new Set(positions), trickyBytes.length].sort((a, b) => a - b);
          const pieces = cuts.slice(1).map((end, index) => trickyBytes.subarray(cuts[index], end));
          backend.reset(eventStream(pieces, { betweenChunksMs: 1 }));
          expect((await stream()).text).toBe(tricky);
        },
      ),
      { numRuns: 40, seed: 20_261_121 },
    );
  }, 30_000);

  for (const [name, more] of [
    ["by FIN in chunked framing", { framing: "chunked", breakWith: "fin" }],
    ["by closing a stream without framing", { framing: "close", breakWith: "fin" }],
    ["by RST", { framing: "chunked", breakWith: "reset" }],
  ] as const) {
    test(`cut ${name} at every byte, only whole events and one error event arrive`, async () => {
      // The first event travels alone: what arrives together with the break of a connection may be lost with it.
      byPosition((position) =>
        eventStream([events[0] as string, events.slice(1).join("")], {
          ...more,
          breakAfterBytes: position,
          betweenChunksMs: 25, // long enough that a loaded machine reads the first event before the break
        }),
      );
      const length = Buffer.byteLength(whole);
      const finishAt = whole.indexOf('"finish_reason":"stop"');
      const finishedAt = whole.indexOf("\n\n", finishAt);
      await sideBySide(length, async (position) => {
        const response = await gateway.chat({ stream: true, position });
        if (response.status !== 200) {
          // Nothing was sent yet: an ordinary error.
          if (position > firstLength) {
            throw new Error(`cut at ${position}: status ${response.status} although the first event was whole`);
          }
          await expectError(response, [502, 503]);
          return;
        }
        if (position < firstLength - 2) throw new Error(`cut at ${position}: an answer began before the first event`);
        const reading = await readSse(response);
        if (position >= finishedAt && reading.data.at(-1) === "[DONE]") {
          // The answer was complete; only its last marker or the end of its connection is missing.
          if (reading.text !== whole) throw new Error(`cut at ${position}: ${JSON.stringify(reading.text)}`);
          return;
        }
        try {
          expectBroken(reading, events);
          const wholeEvents = splitSse(whole.slice(0, position)).events.length;
          if (more.framing === "close") expect(reading.events.length - 1).toBe(wholeEvents);
        } catch (error) {
          throw new Error(
            `cut at ${position} of ${length}: ${(error as Error).message}\n${JSON.stringify(reading.text)}`,
          );
        }
      });
      await gateway.waitUntilIdle();
    }, 60_000);
  }
});
