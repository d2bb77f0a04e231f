import { describe, expect, test } from "bun:test";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { pendingConnects } from "../../../test/support/pending-connects.ts";
import { startSilentHost } from "../../../test/support/silent-host.ts";
import {
  answerWith,
  backendAt,
  bodyOf,
  failureOf,
  HELLO,
  POST,
  record,
  startSocketBed,
} from "../../../test/support/socket-bed.ts";
import { waitFor, within } from "../../../test/support/wait-for.ts";
import { createSocketClient } from "./socket-client.ts";

const CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const ENDLESS = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n";

describe("answers", () => {
  test("come piece by piece, as the backend sends them", async () => {
    await using bed = await startSocketBed({ onRequest: answerWith(`${CHUNKED}1\r\na\r\n`) });
    const call = bed.call();
    const seen = record(await call.answer);
    for (const letter of ["b", "c"]) {
      await waitFor("the last piece", () => seen.pieces.join("").endsWith(letter === "b" ? "a" : "b"));
      bed.raw.connections[0]!.send(`1\r\n${letter}\r\n`);
    }
    bed.raw.connections[0]!.send("0\r\n\r\n");
    expect(await within("the end", seen.end)).toBe("ended");
    expect(seen.pieces).toEqual(["a", "b", "c"]);
    expect(bed.client.idle).toBe(1);
  });

  test("to HEAD have no body, and interim ones are not seen", async () => {
    await using bed = await startSocketBed({
      onRequest: (connection, number) =>
        connection.send(
          number === 0 ? "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" : `HTTP/1.1 103 Early\r\n\r\n${HELLO}`,
        ),
    });
    expect(await bodyOf(bed.call({ ...POST, method: "HEAD" }))).toBe("");
    expect(await bodyOf(bed.call())).toBe("hello");
    expect(bed.raw.connections.length).toBe(1);
  });

  test("without a length end with the connection, if that ends in order", async () => {
    let how: "end" | "resetAndDestroy" = "end";
    await using bed = await startSocketBed({
      onRequest({ socket }) {
        socket.write("HTTP/1.1 200 OK\r\n\r\nall of it", () => setTimeout(() => socket[how](), 10));
      },
    });
    expect(await bodyOf(bed.call())).toBe("all of it");
    how = "resetAndDestroy";
    expect(await bodyOf(bed.call())).toBe("all of it!ECONNRESET");
    expect(bed.client.open).toBe(0);
  });

  const halves: [string, string][] = [
    ["length", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"],
    ["chunks", `${CHUNKED}4\r\nhalf\r\n`],
  ];
  test.each(halves)("that are not whole have failed: %s", async (_name, text) => {
    await using bed = await startSocketBed({ onRequest: ({ socket }) => void socket.end(text) });
    expect(await bodyOf(bed.call())).toBe("half!ECONNRESET");
  });

  const none: [string, string][] = [
    ["Malformed_HTTP_Response", "SSH-2.0-OpenSSH\r\n"],
    ["Malformed_HTTP_Response", "HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n"],
    ["InvalidContentLength", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"],
    ["UnsupportedContentEncoding", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Encoding: lzma\r\n\r\nx"],
  ];
  test.each(none)("that are none are refused with %s, and their connection is closed: %j", async (code, text) => {
    await using bed = await startSocketBed({ onRequest: answerWith(text) });
    expect(await failureOf(bed.call())).toBe(code);
    expect(bed.client.open).toBe(0);
    await waitFor("the backend sees it", () => bed.raw.connections[0]?.end !== "open");
  });

  test("that go wrong in their body fail there", async () => {
    await using bed = await startSocketBed({ onRequest: answerWith(`${CHUNKED}1\r\na\r\nx\r\n`) });
    expect(await bodyOf(bed.call())).toBe("a!Malformed_HTTP_Response");
    expect(bed.client.open).toBe(0);
  });

  test("may come before the request was sent, and the connection ends then", async () => {
    await using bed = await startSocketBed({
      onConnection({ socket }) {
        socket.pause();
        socket.write(HELLO);
      },
    });
    expect(await bodyOf(bed.call({ ...POST, body: new Uint8Array(20_000_000) }))).toBe("hello");
    expect(bed.client.open).toBe(0);
  });

  test("may come before the request was sent and go on until it was", async () => {
    await using bed = await startSocketBed({
      onConnection: ({ socket }) => void socket.write(`${CHUNKED}1\r\na\r\n`),
      onRequest: answerWith("1\r\nb\r\n0\r\n\r\n"),
    });
    expect(await bodyOf(bed.call({ ...POST, body: new Uint8Array(20_000_000) }))).toBe("ab");
    expect(bed.client.idle).toBe(1);
  });
});

describe("a reader that pauses", () => {
  test("holds the backend back, whose bytes do not gather here", async () => {
    let sent = 0;
    await using bed = await startSocketBed({
      onRequest({ socket }) {
        const block = Buffer.alloc(64 * 1024);
        const pump = () => {
          while (socket.write(block)) sent += block.length;
          sent += block.length;
        };
        socket.on("drain", pump);
        socket.write(ENDLESS);
        pump();
      },
    });
    const call = bed.call();
    const answer = await call.answer;
    for (const isReader of [false, true]) {
      if (isReader) {
        const seen = record(answer);
        await waitFor("much was read", () => seen.bytes > 20_000_000);
        answer.pause();
        const readBytes = seen.bytes;
        await untilStill(() => sent);
        expect(seen.bytes).toBe(readBytes);
      }
      await untilStill(() => sent);
      // What both sides of the kernel hold, and what was read.
      expect(sent).toBeLessThan(isReader ? 60_000_000 : 20_000_000);
    }
    answer.resume();
    const stoppedAt = sent;
    await waitFor("the backend goes on", () => sent > stoppedAt + 20_000_000);
    call.abort();
  });

  test("hears everything in order when it goes on, the end included", async () => {
    await using bed = await startSocketBed({
      onRequest: ({ socket }) => void socket.end(`${CHUNKED}1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n`),
    });
    const answer = await bed.call().answer;
    const heard: string[] = [];
    answer.read({
      received(piece) {
        heard.push(Buffer.from(piece).toString());
        answer.pause();
      },
      ended: () => heard.push("ended"),
      failed: () => heard.push("failed"),
    });
    for (const expected of ["a", "ab", "abc", "abcended"]) {
      expect(heard.join("")).toBe(expected);
      await Bun.sleep(0); // whatever the socket has to say
      expect(heard.join("")).toBe(expected);
      answer.resume();
    }
    expect(bed.client.open).toBe(0);
  });

  for (const how of ["end", "resetAndDestroy"] as const) {
    test(`hears of a failure when it goes on, after what came before: ${how}`, async () => {
      await using bed = await startSocketBed({
        onRequest: ({ socket }) => void socket.write(`${CHUNKED}1\r\na\r\n1\r\nb\r\n`, () => socket[how]()),
      });
      const answer = await bed.call().answer;
      await waitFor("it is closed", () => bed.raw.connections[0]?.socket.destroyed === true || how === "end");
      await untilStill(() => 0);
      const seen = record(answer);
      expect(await within("the failure", seen.end)).toBe("ECONNRESET");
      expect(seen.pieces).toEqual(["a", "b"]);
    });
  }

  test("and goes on at once hears each piece once", async () => {
    await using bed = await startSocketBed({ onRequest: answerWith(`${CHUNKED}1\r\na\r\n1\r\nb\r\n0\r\n\r\n`) });
    const answer = await bed.call().answer;
    const heard: string[] = [];
    answer.read({
      received(piece) {
        heard.push(Buffer.from(piece).toString());
        answer.pause();
        answer.resume();
      },
      ended: () => heard.push("ended"),
      failed: () => heard.push("failed"),
    });
    await waitFor("the end", () => heard.includes("ended"));
    expect(heard).toEqual(["a", "b", "ended"]);
  });

  test("gives its place to another, who gets the rest", async () => {
    await using bed = await startSocketBed({ onRequest: answerWith(`${CHUNKED}1\r\na\r\n1\r\nb\r\n0\r\n\r\n`) });
    const answer = await bed.call().answer;
    const first: string[] = [];
    answer.read({
      received(piece) {
        first.push(Buffer.from(piece).toString());
        answer.pause();
      },
      ended: () => first.push("ended"),
      failed: () => first.push("failed"),
    });
    const second = record(answer);
    answer.resume();
    expect(await second.end).toBe("ended");
    expect([first, second.pieces]).toEqual([["a"], ["b"]]);
  });

  test("may pause and resume what is over, which touches nobody else", async () => {
    await using bed = await startSocketBed({ onRequest: answerWith(HELLO) });
    const first = bed.call();
    expect(await bodyOf(first)).toBe("hello");
    const second = bed.call();
    (await first.answer).pause();
    (await first.answer).resume();
    first.abort();
    expect(await bodyOf(second)).toBe("hello");
    expect([bed.raw.connections.length, bed.client.idle]).toEqual([1, 1]);
  });
});

describe("a call that is given up", () => {
  test("while it connects", async () => {
    await using bed = await startSocketBed({ onRequest: answerWith(HELLO) });
    const call = bed.call();
    call.abort();
    expect(await failureOf(call)).toBe("ABORT_ERR");
    expect(bed.client.open).toBe(0);
    expect(await bodyOf(bed.call())).toBe("hello");
    const [last, ...others] = bed.raw.connections.toReversed();
    expect([last?.requests, others.map(({ received }) => received).join("")]).toEqual([1, ""]);
  });

  test("while it connects to a host that does not answer: nothing is left of the attempt", async () => {
    await using host = await startSilentHost();
    if (host === undefined) return;
    const port = Number(new URL(host.url).port);
    const before = pendingConnects(process.pid, port); // what has filled the queue
    if (before === undefined) return;
    const client = createSocketClient({ maxIdle: 8 });
    const secure = backendAt(host.url.replace("http:", "https:"));
    const calls = [backendAt(host.url), secure].flatMap((backend) =>
      Array.from({ length: 10 }, () => client.call(backend, "/", POST)),
    );
    await waitFor("the attempts are made", () => pendingConnects(process.pid, port) === before + calls.length);
    for (const call of calls) call.abort();
    expect(pendingConnects(process.pid, port)).toBe(before);
    expect(client.open).toBe(0);
  });

  test("while its request is sent", async () => {
    await using bed = await startSocketBed({ onConnection: ({ socket }) => void socket.pause() });
    const call = bed.call({ ...POST, body: new Uint8Array(20_000_000) });
    const connection = await bed.raw.connection(0);
    await untilStill(() => 0);
    call.abort();
    expect(await failureOf(call)).toBe("ABORT_ERR");
    connection.socket.resume();
    await waitFor("the backend sees it", () => connection.end === "reset");
  });

  test("while it waits for the answer", async () => {
    await using bed = await startSocketBed({});
    const call = bed.call();
    const connection = await bed.raw.connection(0);
    await waitFor("the request is there", () => connection.requests === 1);
    call.abort();
    call.abort();
    expect(await failureOf(call)).toBe("ABORT_ERR");
    await waitFor("the backend sees it", () => connection.end === "reset");
    expect(bed.client.open).toBe(0);
  });

  test("before its body is read", async () => {
    await using bed = await startSocketBed({ onRequest: answerWith(HELLO) });
    const call = bed.call();
    const answer = await call.answer;
    call.abort();
    expect(record(answer).endedAs).toBe("ABORT_ERR");
    expect(bed.client.open).toBe(0);
  });

  test("in the body, from within a piece of it: nothing comes after that", async () => {
    await using bed = await startSocketBed({ onRequest: answerWith(`${CHUNKED}1\r\na\r\n1\r\nb\r\n0\r\n\r\n`) });
    const call = bed.call();
    const heard: string[] = [];
    (await call.answer).read({
      received(piece) {
        heard.push(Buffer.from(piece).toString());
        call.abort();
      },
      ended: () => heard.push("ended"),
      failed: (error) => heard.push((error as { code: string }).code),
    });
    await waitFor("the backend sees it", () => bed.raw.connections[0]?.end === "reset");
    expect(heard).toEqual(["a", "ABORT_ERR"]);
    expect([bed.client.open, bed.client.idle]).toEqual([0, 0]);
  });

  test("while its reader pauses", async () => {
    await using bed = await startSocketBed({ onRequest: answerWith(`${CHUNKED}1\r\na\r\n`) });
    const call = bed.call();
    const answer = await call.answer;
    const seen = record(answer);
    answer.pause();
    call.abort();
    expect(seen.endedAs).toBe("ABORT_ERR");
    answer.resume();
    expect(seen.pieces).toEqual(["a"]);
  });

  test("when it is over, to no effect", async () => {
    await using bed = await startSocketBed({ onRequest: answerWith(HELLO) });
    const call = bed.call();
    const seen = record(await call.answer);
    await seen.end;
    call.abort();
    expect([seen.endedAs, bed.client.idle]).toEqual(["ended", 1]);
  });
});

describe("whether a backend can be reached", () => {
  test("a new connection shows", async () => {
    await using bed = await startSocketBed({});
    const call = bed.call();
    expect(await call.connects(5_000)).toBe(true);
    expect(await call.connects(0)).toBe(true);
    call.abort();
    await failureOf(call);
    expect(bed.raw.connections.length).toBe(1);
  });

  test("another connection shows where one is used again, which is kept", async () => {
    await using bed = await startSocketBed({
      onRequest: (connection) => connection.send(bed.raw.requests <= 2 ? HELLO : ""),
    });
    await Promise.all([bodyOf(bed.call()), bodyOf(bed.call())]);
    const calls = [bed.call(), bed.call()];
    expect(await Promise.all(calls.map((call) => call.connects(5_000)))).toEqual([true, true]);
    expect([bed.raw.connections.length, bed.client.idle]).toEqual([3, 1]);
    for (const call of calls) {
      call.abort();
      await failureOf(call);
    }
    expect(bed.client.open).toBe(1);
  });

  test("a refusal is an answer", async () => {
    const client = createSocketClient({ maxIdle: 1 });
    const call = client.call(backendAt("http://127.0.0.1:1"), "/", POST);
    expect(await call.connects(5_000)).toBe(true);
    expect(await failureOf(call)).toBe("ECONNREFUSED");
  });

  test("silence is none, and the attempt is forgotten", async () => {
    await using host = await startSilentHost();
    if (host === undefined) return;
    const client = createSocketClient({ maxIdle: 1 });
    const call = client.call(backendAt(host.url), "/", POST);
    expect(await call.connects(50)).toBe(false);
    call.abort();
    expect(await failureOf(call)).toBe("ABORT_ERR");
    expect(client.open).toBe(0);
  });
});

describe("compressed answers", () => {
  const text = "hello ".repeat(100_000);
  const codings: [string, (text: string) => Uint8Array][] = [
    ["gzip", gzipSync],
    ["x-gzip", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync],
    ["deflate", deflateRawSync],
    ["GZIP", gzipSync],
  ];
  test.each(codings)("are shown as they were: %s", async (coding, compress) => {
    const body = compress(text);
    await using bed = await startSocketBed({
      onRequest(connection) {
        connection.send(
          `HTTP/1.1 200 OK\r\nA: b\r\nContent-Encoding: ${coding}\r\nContent-Length: ${body.length}\r\n\r\n`,
        );
        connection.send(body);
      },
    });
    const call = bed.call();
    const answer = await call.answer;
    expect(["content-encoding", "content-length", "a"].map((name) => answer.header(name))).toEqual([null, null, "b"]);
    expect((await bodyOf(call)) === text).toBe(true);
    expect(bed.client.idle).toBe(1);
  });

  test("that only say so are as they are", async () => {
    const text = "HTTP/1.1 200 OK\r\nContent-Encoding: Identity\r\nContent-Length: 5\r\n\r\nhello";
    await using bed = await startSocketBed({ onRequest: answerWith(text) });
    const call = bed.call();
    expect(await bodyOf(call)).toBe("hello");
    expect((await call.answer).header("content-length")).toBe("5");
  });

  test("that are not, fail", async () => {
    const head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n";
    await using bed = await startSocketBed({
      onRequest: (connection, number) =>
        connection.send(number === 0 ? `${head}Content-Length: 0\r\n\r\n` : `${head}Content-Length: 5\r\n\r\nhello`),
    });
    expect(await bodyOf(bed.call())).toBe("");
    expect(await bodyOf(bed.call())).toBe("!ZlibError");
  });

  test("do not gather here either when their reader pauses", async () => {
    const bomb = gzipSync(new Uint8Array(200_000_000));
    await using bed = await startSocketBed({
      onRequest(connection) {
        connection.send(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`);
        connection.send(bomb);
      },
    });
    const call = bed.call();
    const answer = await call.answer;
    let bytes = 0;
    const end = Promise.withResolvers<string>();
    answer.read({
      received(piece) {
        bytes += piece.length;
        if (bytes === piece.length) answer.pause();
      },
      ended: () => end.resolve("ended"),
      failed: () => end.resolve("failed"),
    });
    await waitFor("something has come", () => bytes > 0);
    await untilStill(() => bytes);
    expect(bytes).toBeLessThan(1_000_000);
    call.abort();
    expect(await within("the end", end.promise)).toBe("failed");
  });
});

/** Waits until a number no longer changes. */
async function untilStill(read: () => number): Promise<void> {
  for (let last = Number.NaN, same = 0; same < 8; ) {
    await Bun.sleep(10);
    const now = read();
    same = now === last ? same + 1 : 0;
    last = now;
  }
}
