// A call that is left: whatever it was doing, its connection is closed, the server sees that soon, and nobody gets the
// connection after it.

import { afterAll, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import type { BackendAnswer, BackendCall } from "../../src/backends/transport.ts";
import { startSilentHost } from "../support/silent-host.ts";
import { waitFor, within } from "../support/wait-for.ts";
import { answerOf } from "./answers.ts";
import { Collector, headOf, outcomeOf } from "./outcome.ts";
import { ScriptedServer } from "./scripted-server.ts";
import { type Step, turns } from "./server-connection.ts";
import { ask, backendAt, newClient, type Question } from "./subject.ts";

const MEBIBYTE = 1024 * 1024;

const client = newClient();
afterAll(() => client.close());

interface Leaving {
  /** What the server does with the request that is left; any other is answered with "next". */
  steps: readonly Step[];
  at?: "head" | "request";
  stopsReading?: boolean;
  question?: Question;
  /** Whether the call has come to the point at which it is left. */
  isThere: (seen: { server: ScriptedServer; answer: BackendAnswer | undefined; body: Collector }) => boolean;
  paused?: boolean;
}

const HALF_LENGTH = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";

const POINTS: Readonly<Record<string, Leaving>> = {
  "while its body is written": {
    steps: [],
    at: "head",
    stopsReading: true,
    question: { body: Buffer.alloc(64 * MEBIBYTE) },
    isThere: ({ server }) => server.requests.length === 1,
  },
  "while it waits for the answer": { steps: [], isThere: ({ server }) => server.requests.length === 1 },
  "behind half a head": {
    steps: ["HTTP/1.1 200 OK\r\nContent-"],
    isThere: ({ server }) => (server.connections[0]?.sentBytes ?? 0) > 0,
  },
  "behind an interim answer": {
    steps: ["HTTP/1.1 100 Continue\r\n\r\n"],
    isThere: ({ server }) => (server.connections[0]?.sentBytes ?? 0) > 0,
  },
  "in a body of known length": { steps: [HALF_LENGTH], isThere: ({ body }) => body.bytes === 4 },
  "in a chunk": {
    steps: ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhalf"],
    isThere: ({ body }) => body.bytes === 4,
  },
  "between chunks": {
    steps: ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"],
    isThere: ({ body }) => body.bytes === 4,
  },
  "in a body that ends with the connection": {
    steps: ["HTTP/1.1 200 OK\r\n\r\nhalf"],
    isThere: ({ body }) => body.bytes === 4,
  },
  "in a body in gzip": {
    steps: [answerOf(gzipSync(Buffer.alloc(100_000, "text")), ["Content-Encoding: gzip"]).subarray(0, 200)],
    isThere: ({ body }) => body.bytes > 0,
  },
  "while its body is paused": {
    steps: [HALF_LENGTH],
    paused: true,
    isThere: ({ answer }) => answer !== undefined,
  },
  "while a great body waits behind a pause": {
    steps: ["HTTP/1.1 200 OK\r\n\r\n", { fill: 64 * MEBIBYTE }],
    paused: true,
    isThere: ({ server }) => (server.connections[0]?.sentBytes ?? 0) > MEBIBYTE / 4,
  },
};

async function expectUnused(server: ScriptedServer): Promise<void> {
  const next = await within("the next answer", outcomeOf(ask(client.transport, backendAt(server.url))));
  expect(next).toMatchObject({ end: "complete", body: Buffer.from("next") });
  expect(server.connections).toHaveLength(2);
  expect(server.violations).toEqual([]);
}

/** Milliseconds until the server has seen that the call was left. */
async function leave(server: ScriptedServer, call: BackendCall): Promise<number> {
  const leftAtMs = performance.now();
  call.abort();
  const seenAtMs = await waitFor("the server sees the end", () => server.connections[0]?.leftAtMs, { intervalMs: 1 });
  return seenAtMs - leftAtMs;
}

describe("a call that is left", () => {
  test.each(Object.entries(POINTS))("%s closes its connection", async (name, point) => {
    using server = new ScriptedServer({
      at: point.at ?? "request",
      script: ({ connection }) => {
        if (connection.number > 0) return [answerOf("next")];
        if (point.stopsReading === true) connection.stopReading();
        return point.steps;
      },
    });
    const call = ask(client.transport, backendAt(server.url), point.question);
    const body = new Collector();
    let answer: BackendAnswer | undefined;
    const head = headOf(call).then((told) => {
      if ("code" in told) return told;
      answer = told;
      answer.read(body);
      if (point.paused === true) answer.pause();
      return told;
    });
    await waitFor("the call gets to its point", () => point.isThere({ server, answer, body }));
    const tookMs = await leave(server, call);
    console.log(`left ${name}: seen by the server after ${tookMs.toFixed(1)} ms`);
    if ("code" in (await within("the call ends", head))) expect(body.end).toBeUndefined();
    else await within("the body ends", body.over);
    if (answer !== undefined) expect(body.end).toBe("broken");
    expect(body.violation).toBeUndefined();
    await expectUnused(server);
  });

  test("in the turn in which it began reaches no server", async () => {
    using server = new ScriptedServer(() => [answerOf("next")]);
    const call = ask(client.transport, backendAt(server.url));
    call.abort();
    expect(await within("the call ends", headOf(call))).toMatchObject({ code: expect.any(String) });
    await turns(20);
    expect(server.requests).toHaveLength(0);
    await waitFor("the connection is closed", () => server.openConnections === 0);
  });

  test("before anybody waits for its answer breaks nothing", async () => {
    using server = new ScriptedServer(() => [answerOf("next")]);
    ask(client.transport, backendAt(server.url)).abort();
    await turns(20);
    await outcomeOf(ask(client.transport, backendAt(server.url)));
    expect(server.violations).toEqual([]);
  });

  test("while it connects waits no longer", async () => {
    const host = await startSilentHost();
    if (host === undefined) return;
    await using _ = host;
    const call = ask(client.transport, backendAt(host.url));
    const head = headOf(call);
    await turns(20);
    expect(await call.connects(50)).toBe(false);
    call.abort();
    expect(await within("the call ends", head)).toMatchObject({ code: expect.any(String) });
  });

  test("twice is left once", async () => {
    using server = new ScriptedServer(({ place }) => (place === 0 ? [HALF_LENGTH] : [answerOf("next")]));
    const call = ask(client.transport, backendAt(server.url));
    const body = new Collector();
    (await call.answer).read(body);
    call.abort();
    call.abort();
    await within("the body ends", body.over);
    call.abort();
    expect(body.violation).toBeUndefined();
    expect(body.end).toBe("broken");
  });

  test("by its receiver is left at that byte", async () => {
    using server = new ScriptedServer(({ connection }) =>
      connection.number === 0
        ? ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n"]
        : [answerOf("next")],
    );
    const call = ask(client.transport, backendAt(server.url));
    const body = new Collector();
    const answer = await call.answer;
    answer.read({
      received(piece) {
        body.received(piece);
        if (body.pieces.length === 1) call.abort();
      },
      ended: () => body.ended(),
      failed: (error) => body.failed(error),
    });
    await within("the body ends", body.over);
    await turns(20);
    expect(body).toMatchObject({ end: "broken", violation: undefined });
    expect(body.pieces).toHaveLength(1);
    await expectUnused(server);
  });

  test("when its answer is over leaves nothing: the connection serves the next", async () => {
    using server = new ScriptedServer(() => [answerOf("next")]);
    const backend = backendAt(server.url);
    const calls: BackendCall[] = [];
    for (let each = 0; each < 5; each++) {
      const call = ask(client.transport, backend);
      expect(await outcomeOf(call)).toMatchObject({ end: "complete" });
      calls.push(call);
      for (const over of calls) over.abort();
    }
    expect(server.connections).toHaveLength(1);
  });

  test("by the end of its own body leaves nothing", async () => {
    using server = new ScriptedServer(() => [answerOf("next")]);
    const backend = backendAt(server.url);
    for (let each = 0; each < 5; each++) {
      const call = ask(client.transport, backend);
      const over = Promise.withResolvers<void>();
      (await call.answer).read({
        received() {},
        ended() {
          call.abort();
          over.resolve();
        },
        failed: over.reject,
      });
      await over.promise;
    }
    expect(server.connections).toHaveLength(1);
  });

  test("when all of its body in gzip has come, but its reader pauses, is told so once", async () => {
    using server = new ScriptedServer(() => [
      answerOf(gzipSync(Buffer.alloc(16 * MEBIBYTE)), ["Content-Encoding: gzip"]),
    ]);
    const call = ask(client.transport, backendAt(server.url));
    const answer = await call.answer;
    const body = new Collector();
    answer.read({
      received(piece) {
        body.received(piece);
        answer.pause();
      },
      ended: () => body.ended(),
      failed: (error) => body.failed(error),
    });
    await waitFor("a piece", () => body.bytes > 0);
    await turns(20);
    call.abort();
    await within("the body ends", body.over);
    answer.resume();
    await turns(20);
    expect(body).toMatchObject({ end: "broken", violation: undefined });
  });

  test("does nothing to the call that has its connection now", async () => {
    using server = new ScriptedServer(({ place }) =>
      place === 0 ? [answerOf("first")] : ["HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nne", { turns: 10 }, "xt"],
    );
    const backend = backendAt(server.url);
    const first = ask(client.transport, backend);
    await outcomeOf(first);
    const second = ask(client.transport, backend);
    const answer = await second.answer;
    first.abort();
    const body = new Collector();
    answer.read(body);
    await within("the body ends", body.over);
    expect(body.body.toString()).toBe("next");
    expect(server.connections).toHaveLength(1);
  });
});
