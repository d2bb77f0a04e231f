// How a body is handed on: nothing lost, nothing twice, and no more of it in memory than a slow reader leaves unread.

import { afterAll, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import type { BackendAnswer } from "../../src/backends/transport.ts";
import { waitFor, within } from "../support/wait-for.ts";
import { answerOf, chunkedOf } from "./answers.ts";
import { bodyOf, Collector } from "./outcome.ts";
import { ScriptedServer } from "./scripted-server.ts";
import { filler, turns } from "./server-connection.ts";
import { ask, backendAt, newClient } from "./subject.ts";

const KIBIBYTE = 1024;
const MEBIBYTE = 1024 * KIBIBYTE;
/** What the buffers of both systems and a client may hold together of a body that nobody reads. */
const HELD_BYTES = 24 * MEBIBYTE;

const client = newClient();
afterAll(() => client.close());

async function answerFrom(server: ScriptedServer): Promise<BackendAnswer> {
  return await within("an answer", ask(client.transport, backendAt(server.url)).answer);
}

/** Once the server could send nothing for a while. */
async function heldBack(server: ScriptedServer): Promise<number> {
  let last = -1;
  return await waitFor("the server is held back", async () => {
    const sent = server.connections.at(-1)?.sentBytes ?? 0;
    await Bun.sleep(20);
    const isStill = sent > 0 && sent === last;
    last = sent;
    return isStill && sent;
  });
}

const GREAT = 96 * MEBIBYTE;
const FRAMES: Readonly<Record<string, string>> = {
  "of known length": `HTTP/1.1 200 OK\r\nContent-Length: ${GREAT}\r\n\r\n`,
  "in one chunk": `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${GREAT.toString(16)}\r\n`,
  "that ends with the connection": "HTTP/1.1 200 OK\r\n\r\n",
};

function greatServer(head: string): ScriptedServer {
  const end = head.includes("chunked") ? ["\r\n0\r\n\r\n"] : head.includes("Length") ? [] : (["fin"] as const);
  return new ScriptedServer(() => [head, { fill: GREAT }, ...end]);
}

/** Counts and compares with what the server fills with, without keeping it. */
class Checker extends Collector {
  isRight = true;
  override received(piece: Uint8Array): void {
    if (!filler(piece.length, this.bytes).subarray(0, piece.length).equals(piece)) this.isRight = false;
    this.bytes += piece.length;
  }
}

describe.each(Object.entries(FRAMES))("a great body %s", (_name, head) => {
  test("that nobody reads holds the server back", async () => {
    using server = greatServer(head);
    const answer = await answerFrom(server);
    expect(await heldBack(server)).toBeLessThan(HELD_BYTES);
    const body = new Checker();
    answer.read(body);
    await within("the end of the body", body.over);
    expect(body).toMatchObject({ bytes: GREAT, isRight: true, end: "complete", violation: undefined });
  });

  test("that is paused again and again holds the server back each time, and comes whole", async () => {
    using server = greatServer(head);
    const answer = await answerFrom(server);
    const body = new Checker();
    answer.read(body);
    let before = process.memoryUsage.rss();
    let growth = 0;
    for (let round = 0; round < 4; round++) {
      await waitFor("more of the body", () => body.bytes > (round * GREAT) / 5);
      answer.pause();
      const { bytes } = body;
      const sent = await heldBack(server);
      expect(body.bytes).toBe(bytes);
      expect(sent - bytes).toBeLessThan(HELD_BYTES);
      growth = Math.max(growth, process.memoryUsage.rss() - before);
      if (round === 0) before = process.memoryUsage.rss();
      answer.resume();
    }
    await within("the end of the body", body.over);
    expect(body).toMatchObject({ bytes: GREAT, isRight: true, end: "complete", violation: undefined });
    expect(growth).toBeLessThan(GREAT / 2);
  });
});

describe("a body", () => {
  test("that is complete before anybody reads it waits for its reader", async () => {
    using server = new ScriptedServer(() => [chunkedOf(["one ", "two ", "three"])]);
    const answer = await answerFrom(server);
    await turns(20);
    const body = new Collector();
    answer.read(body);
    // What has come is handed over within the call.
    expect(body.body.toString()).toBe("one two three");
    await within("the end of the body", body.over);
    expect(body).toMatchObject({ end: "complete", violation: undefined });
  });

  test("that broke off before anybody reads it is told as far as it came, and that it broke off", async () => {
    using server = new ScriptedServer(() => [
      "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
      { turns: 3 },
      "reset",
    ]);
    const answer = await answerFrom(server);
    await waitFor("the server is gone", () => server.openConnections === 0);
    await turns(20);
    const body = new Collector();
    answer.read(body);
    await within("the end of the body", body.over);
    expect(body).toMatchObject({ end: "broken", violation: undefined });
    expect(["", "half"]).toContain(body.body.toString());
  });

  test("goes on to another reader where the first paused it", async () => {
    using server = new ScriptedServer(() => [
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
      ...Array.from({ length: 200 }, (_, each) => [
        `3\r\n${String(each).padStart(3, "0")}\r\n`,
        { turns: each % 3 },
      ]).flat(),
      "0\r\n\r\n",
    ]);
    const answer = await answerFrom(server);
    let text = "";
    for (;;) {
      const part = new Collector();
      const some = Promise.withResolvers<void>();
      answer.read({
        received(piece) {
          part.received(piece);
          answer.pause();
          some.resolve();
        },
        ended: () => part.ended(),
        failed: (error) => part.failed(error),
      });
      answer.resume();
      await within("more of the body, or its end", Promise.race([some.promise, part.over]));
      await turns(2);
      text += part.body.toString();
      expect(part.violation).toBeUndefined();
      if (part.end !== undefined) {
        expect(part.end).toBe("complete");
        break;
      }
    }
    expect(text).toBe(Array.from({ length: 200 }, (_, each) => String(each).padStart(3, "0")).join(""));
  });

  test("that is paused by its receiver tells nothing until it is resumed", async () => {
    using server = new ScriptedServer(() => [chunkedOf(["a", "b", "c"])]);
    const answer = await answerFrom(server);
    const body = new Collector();
    answer.read({
      received(piece) {
        body.received(piece);
        answer.pause();
      },
      ended: () => body.ended(),
      failed: (error) => body.failed(error),
    });
    let pieces = 0;
    while (body.end === undefined) {
      await waitFor("a piece, or the end", () => body.pieces.length > pieces || body.end !== undefined);
      pieces = body.pieces.length;
      await turns(10);
      expect(body.pieces).toHaveLength(pieces);
      answer.resume();
    }
    expect(body.body.toString()).toBe("abc");
    expect(body).toMatchObject({ end: "complete", violation: undefined });
  });

  test("that ends while it is paused tells its end when it is resumed", async () => {
    using server = new ScriptedServer(() => ["HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha", { turns: 10 }, "lf"]);
    const answer = await answerFrom(server);
    const body = new Collector();
    answer.read(body);
    answer.pause();
    await waitFor("all is sent", () => server.connections[0]?.sentBytes === 42);
    await turns(20);
    expect(body.end).toBeUndefined();
    answer.resume();
    await within("the end of the body", body.over);
    expect(body.body.toString()).toBe("half");
  });

  test("gives its memory away: what was received is never written to again", async () => {
    const piece = (each: number) => String.fromCharCode(97 + (each % 26)).repeat(1 + ((each * 7919) % 4_000));
    const chunks = Array.from({ length: 500 }, (_, each) => piece(each));
    using server = new ScriptedServer(() => [
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
      ...chunks.flatMap((chunk, each) => [`${chunk.length.toString(16)}\r\n${chunk}\r\n`, { turns: each % 2 }]),
      "0\r\n\r\n",
    ]);
    const { body, end } = await within("the body", bodyOf(await answerFrom(server)), 20_000);
    expect(end).toBe("complete");
    expect(Bun.hash(body)).toBe(Bun.hash(chunks.join("")));
  });

  test("may be overwritten where it was received, without harm to what follows", async () => {
    const chunks = Array.from({ length: 300 }, (_, each) => String(each).repeat(1 + ((each * 31) % 50)));
    for (const framing of [answerOf(chunks.join("")), chunkedOf(chunks)]) {
      using server = new ScriptedServer(() => [framing.subarray(0, 999), { turns: 2 }, framing.subarray(999)]);
      let text = "";
      const over = Promise.withResolvers<void>();
      (await answerFrom(server)).read({
        received(piece) {
          text += Buffer.from(piece).toString();
          piece.fill(0);
        },
        ended: over.resolve,
        failed: over.reject,
      });
      await within("the end of the body", over.promise);
      expect(text).toBe(chunks.join(""));
    }
  });

  test("that nobody has read yet keeps its connection from others", async () => {
    using server = new ScriptedServer(({ target }) => [answerOf(target)]);
    const backend = backendAt(server.url);
    const unread: BackendAnswer[] = [];
    for (const path of ["/1", "/2", "/3"]) unread.push(await ask(client.transport, backend, { path }).answer);
    await turns(20);
    const bodies = await within("all bodies", Promise.all(unread.map(bodyOf)));
    expect(bodies.map(({ body }) => body.toString())).toEqual(["/1", "/2", "/3"]);
    expect(server.connections).toHaveLength(3);
  });

  test("leads to the next request from within its pieces and its end, which do not meet", async () => {
    using server = new ScriptedServer(({ target }) => [chunkedOf([`${target}a`, `${target}b`])]);
    const backend = backendAt(server.url);
    const told: string[] = [];
    const all = Promise.withResolvers<void>();
    let left = 0;
    async function follow(path: string, depth: number): Promise<void> {
      left++;
      const answer = await ask(client.transport, backend, { path }).answer;
      let text = "";
      answer.read({
        received(piece) {
          text += Buffer.from(piece).toString();
          if (depth > 0) void follow(`${path}p`, depth - 1);
          answer.pause();
          answer.resume();
        },
        ended() {
          told.push(text);
          if (text !== `${path}a${path}b`) all.reject(new Error(`${path}: ${text}`));
          if (depth > 0) void follow(`${path}e`, depth - 1);
          left--;
          if (left === 0) all.resolve();
        },
        failed: all.reject,
      });
    }
    void follow("/", 4);
    await within("all bodies", all.promise);
    expect(told.length).toBeGreaterThan(30);
    expect(server.violations).toEqual([]);
  });

  test("that is paused is not resumed by another reader, nor by one that comes first", async () => {
    for (const framing of [answerOf("all of it"), answerOf(gzipSync("all of it"), ["Content-Encoding: gzip"])]) {
      using server = new ScriptedServer(() => [framing]);
      const answer = await answerFrom(server);
      answer.pause();
      const readers = [new Collector(), new Collector()] as const;
      for (const reader of readers) {
        answer.read(reader);
        await turns(10);
        expect({ bytes: reader.bytes, end: reader.end }).toEqual({ bytes: 0, end: undefined });
      }
      answer.resume();
      await within("the end of the body", readers[1].over);
      expect(readers[1].body.toString()).toBe("all of it");
      expect(readers[0]).toMatchObject({ bytes: 0, end: undefined });
    }
  });

  test("that is resumed before anybody reads it waits for its reader", async () => {
    using server = new ScriptedServer(() => [answerOf("all of it")]);
    const answer = await answerFrom(server);
    answer.pause();
    answer.resume();
    await turns(10);
    const { body, end } = await within("the body", bodyOf(answer));
    expect({ end, text: body.toString() }).toEqual({ end: "complete", text: "all of it" });
  });

  test.each([
    ["as it is", (text: string) => answerOf(text)],
    ["in gzip", (text: string) => answerOf(gzipSync(text), ["Content-Encoding: gzip"])],
  ])("that comes %s and broke off is told of as broken to everybody who reads it after", async (_name, framed) => {
    using server = new ScriptedServer(() => [framed("x".repeat(1_000)).subarray(0, -5)]);
    const call = ask(client.transport, backendAt(server.url));
    const answer = await within("an answer", call.answer);
    const first = new Collector();
    answer.read(first);
    answer.pause();
    call.abort();
    await within("the end of the body", first.over);
    for (const reader of [new Collector(), new Collector()]) {
      answer.read(reader);
      await within("the end of the body", reader.over);
      expect(reader).toMatchObject({ end: "broken", bytes: 0, violation: undefined });
    }
    expect(first).toMatchObject({ end: "broken", violation: undefined });
  });

  test("is handed to another reader by the first, in the middle of what has come", async () => {
    using server = new ScriptedServer(() => [chunkedOf(["a", "b", "c", "d"])]);
    const answer = await answerFrom(server);
    const second = new Collector();
    const first: string[] = [];
    answer.read({
      received(piece) {
        first.push(Buffer.from(piece).toString());
        answer.read(second);
      },
      ended: () => first.push("end"),
      failed: () => first.push("failure"),
    });
    await within("the end of the body", second.over);
    expect(first).toEqual(["a"]);
    expect(second.body.toString()).toBe("bcd");
    expect(second.end).toBe("complete");
  });

  test("in gzip that grows a thousandfold is not held whole for a slow reader", async () => {
    const packed = gzipSync(Buffer.alloc(GREAT));
    using server = new ScriptedServer(() => [answerOf(packed, ["Content-Encoding: gzip"])]);
    const answer = await answerFrom(server);
    let largest = 0;
    let bytes = 0;
    const over = Promise.withResolvers<void>();
    answer.read({
      received(piece) {
        bytes += piece.length;
        largest = Math.max(largest, piece.length);
        answer.pause();
        setImmediate(() => answer.resume());
      },
      ended: over.resolve,
      failed: over.reject,
    });
    await within("the end of the body", over.promise);
    expect(bytes).toBe(GREAT);
    expect(largest).toBeLessThan(GREAT / 8);
  });

  test("in gzip that comes faster than it can be unpacked holds the server back", async () => {
    const packed = gzipSync(Buffer.alloc(GREAT, "0123456789abcdef"), { level: 0 });
    using server = new ScriptedServer(() => [answerOf(packed, ["Content-Encoding: gzip"])]);
    const answer = await answerFrom(server);
    const body = new Checker();
    let ahead = 0;
    answer.read({
      received(piece) {
        body.received(piece);
        ahead = Math.max(ahead, (server.connections[0]?.sentBytes ?? 0) - body.bytes);
      },
      ended: () => body.ended(),
      failed: (error) => body.failed(error),
    });
    await within("the end of the body", body.over);
    expect(body).toMatchObject({ bytes: GREAT, isRight: true, end: "complete" });
    expect(ahead).toBeLessThan(HELD_BYTES);
  });

  test("in gzip is paused, resumed, and handed to another reader", async () => {
    const text = Array.from({ length: 20_000 }, (_, each) => `${each} `).join("");
    const packed = answerOf(gzipSync(text), ["Content-Encoding: gzip"]);
    using server = new ScriptedServer(() => [packed.subarray(0, 5_000), { turns: 3 }, packed.subarray(5_000)]);
    const answer = await answerFrom(server);
    const readers: Collector[] = [];
    for (;;) {
      const reader = new Collector();
      readers.push(reader);
      const some = Promise.withResolvers<void>();
      answer.read({
        received(piece) {
          reader.received(piece);
          answer.pause();
          some.resolve();
        },
        ended: () => reader.ended(),
        failed: (error) => reader.failed(error),
      });
      answer.resume();
      await within("more of the body, or its end", Promise.race([some.promise, reader.over]));
      await turns(3);
      if (reader.end !== undefined) break;
    }
    expect(readers.at(-1)?.end).toBe("complete");
    expect(Buffer.concat(readers.map(({ body }) => body)).toString()).toBe(text);
  });

  test("in gzip that comes byte by byte comes out as it went in", async () => {
    const text = "words and more words, ".repeat(50);
    const packed = answerOf(gzipSync(text), ["Content-Encoding: gzip"]);
    using server = new ScriptedServer(() => [...packed].flatMap((byte) => [Buffer.from([byte]), { turns: 1 }]));
    const { body, end } = await within("the body", bodyOf(await answerFrom(server)));
    expect({ end, text: body.toString() }).toEqual({ end: "complete", text });
  });
});
