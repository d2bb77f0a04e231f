import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  answerWith,
  backendAt,
  bodyOf,
  failureOf,
  HELLO,
  POST,
  startSocketBed,
} from "../../../test/support/socket-bed.ts";
import { waitFor } from "../../../test/support/wait-for.ts";
import type { TransportRequest } from "../../backends/transport.ts";
import { createSocketClient } from "./socket-client.ts";

describe("requests", () => {
  test("are written with their headers, a length, and what their address says", async () => {
    await using bed = await startSocketBed({ onRequest: answerWith(HELLO) });
    const backend = backendAt(`${bed.raw.url.replace("//", "//us%20er:pass@")}/pre`);
    expect(await bodyOf(bed.client.call(backend, "/a b?c=ü", { ...POST, body: "hellö" }))).toBe("hello");
    const [head, body] = bed.raw.connections[0]!.received.split("\r\n\r\n");
    expect(head?.split("\r\n")[0]).toBe("POST /pre/a%20b?c=%C3%BC HTTP/1.1");
    expect(head?.split("\r\n").slice(1).sort()).toEqual([
      "accept: */*",
      `authorization: Basic ${btoa("us er:pass")}`,
      "content-length: 6",
      "content-type: text/plain",
      `host: 127.0.0.1:${bed.raw.port}`,
      expect.stringMatching(/^user-agent: signalbox\//),
    ]);
    expect(Buffer.from(body ?? "", "latin1").toString()).toBe("hellö");
  });

  test("say themselves who is asked, and not how long they are", async () => {
    await using bed = await startSocketBed({ onRequest: answerWith(HELLO) });
    const headers = { host: "other", "user-agent": "me", accept: "x", "content-length": "99", "x-a": "\xe4" };
    await bodyOf(bed.call({ method: "GET", headers }));
    expect(bed.raw.connections[0]!.received).toBe(
      "GET /v1/x HTTP/1.1\r\nhost: other\r\nuser-agent: me\r\naccept: x\r\nx-a: \xe4\r\n\r\n",
    );
  });

  test("without a body announce none, but where one is expected", async () => {
    await using bed = await startSocketBed({ onRequest: answerWith(HELLO) });
    await bodyOf(bed.call({ method: "POST", headers: {} }));
    expect(bed.raw.connections[0]!.received).toContain("\r\ncontent-length: 0\r\n");
  });

  const refused: [string, string, TransportRequest][] = [
    ["a header's value", "/", { ...POST, headers: { a: "b\r\nc: d" } }],
    ["a value with NUL", "/", { ...POST, headers: { a: "b\0" } }],
    ["a value beyond Latin-1", "/", { ...POST, headers: { a: "日" } }],
    ["a header's name", "/", { ...POST, headers: { "a\r\nb": "c" } }],
    ["a name with a colon", "/", { ...POST, headers: { "a:b": "c" } }],
    ["the path", "/a\r\nb", POST],
    ["a path with NUL", "/a\0b", POST],
    ["a path that leads elsewhere", "@other/", POST],
    ["the method", "/", { ...POST, method: "GET / HTTP/1.1\r\n\r\nGET" }],
  ];
  test.each(refused)("that are not one are not sent: %s", async (_name, path, request) => {
    await using bed = await startSocketBed({ onRequest: answerWith(HELLO) });
    expect(await failureOf(bed.call(request, path))).toBe("ERR_INVALID_HTTP_HEADER");
    expect([bed.client.open, bed.raw.connections.length]).toEqual([0, 0]);
  });

  test("of any size arrive as they are", async () => {
    await using bed = await startSocketBed({ onRequest: answerWith(HELLO) });
    for (const length of [0, 1, 60_000, 65_536, 70_000, 8_000_000]) {
      const body = Buffer.alloc(length, "0123456789é");
      for (const each of [new Uint8Array(body), body.toString("latin1")]) {
        expect(await bodyOf(bed.call({ ...POST, body: each }))).toBe("hello");
        const received = bed.raw.connections[0]!.received.split("\r\n\r\n").at(-1) ?? "";
        expect(Buffer.from(received, "latin1").equals(Buffer.from(each as string))).toBe(true);
      }
    }
    expect(bed.raw.connections.length).toBe(1);
  });

  test("go through unix sockets", async () => {
    const socketPath = join(tmpdir(), `signalbox-client-${process.pid}.sock`);
    try {
      await using bed = await startSocketBed({ socketPath, onRequest: answerWith(HELLO) });
      expect(await bodyOf(bed.client.call(backendAt("http://localhost", socketPath), "/", POST))).toBe("hello");
    } finally {
      rmSync(socketPath, { force: true });
    }
  });
});

describe("connections", () => {
  test("are used again, the one that was used last first", async () => {
    await using bed = await startSocketBed({ onRequest: answerWith(HELLO) });
    await Promise.all([bodyOf(bed.call()), bodyOf(bed.call())]);
    expect([bed.client.open, bed.client.idle]).toEqual([2, 2]);
    for (let round = 0; round < 3; round++) expect(await bodyOf(bed.call())).toBe("hello");
    expect(bed.raw.connections.map(({ requests }) => requests).sort()).toEqual([1, 4]);
  });

  test("wait in no greater number than wanted", async () => {
    await using bed = await startSocketBed({ onRequest: answerWith(HELLO) }, { maxIdle: 1 });
    await Promise.all([bodyOf(bed.call()), bodyOf(bed.call()), bodyOf(bed.call())]);
    expect([bed.client.open, bed.client.idle]).toEqual([1, 1]);
    await waitFor("two of them are closed", () => bed.raw.connections.filter(({ end }) => end === "fin").length === 2);
  });

  test("are closed when nobody needed them for long", async () => {
    let nowMs = 0;
    await using bed = await startSocketBed({ onRequest: answerWith(HELLO) }, { maxIdleMs: 20, now: () => nowMs });
    await bodyOf(bed.call());
    nowMs = 19;
    expect(await bodyOf(bed.call())).toBe("hello");
    expect(bed.client.idle).toBe(1);
    nowMs = 40;
    await waitFor("the connection is closed", () => bed.client.open === 0 && bed.raw.connections[0]?.end === "fin");
  });

  test("that the backend closes are forgotten", async () => {
    await using bed = await startSocketBed({ onRequest: answerWith(HELLO) });
    await bodyOf(bed.call());
    bed.raw.connections[0]!.socket.end();
    await waitFor("it is gone", () => bed.client.open === 0);
  });

  test("that bring what nobody asked for are closed", async () => {
    await using bed = await startSocketBed({ onRequest: answerWith(HELLO) });
    await bodyOf(bed.call());
    bed.raw.connections[0]!.send(HELLO);
    await waitFor("it is gone", () => bed.client.open === 0);
  });

  const last: [string, string][] = [
    ["says so", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"],
    ["brings more than its answer", `${HELLO}HTTP/1.1 200 OK\r\n`],
    ["speaks HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"],
  ];
  test.each(last)("are not used again when the backend %s", async (_name, text) => {
    await using bed = await startSocketBed({ onRequest: answerWith(text) });
    expect(await bodyOf(bed.call())).toBe("hello");
    expect(bed.client.open).toBe(0);
    expect(await bodyOf(bed.call())).toBe("hello");
    expect(bed.raw.connections.length).toBe(2);
  });

  for (const how of ["end", "resetAndDestroy"] as const) {
    test(`that were stale are replaced once, unseen: ${how}`, async () => {
      await using bed = await startSocketBed({
        onRequest(connection) {
          if (bed.raw.requests <= 2 || bed.raw.connections.length > 2) connection.send(HELLO);
          else connection.socket[how]();
        },
      });
      await Promise.all([bodyOf(bed.call()), bodyOf(bed.call())]);
      expect(await bodyOf(bed.call())).toBe("hello");
      expect(bed.raw.connections.length).toBe(3);
      // What waited beside it is as old, and not trusted.
      expect([bed.client.open, bed.client.idle]).toEqual([1, 1]);
    });

    test(`that break when they are new are not replaced: ${how}`, async () => {
      await using bed = await startSocketBed({ onRequest: ({ socket }) => void socket[how]() });
      expect(await failureOf(bed.call())).toBe("ECONNRESET");
      expect([bed.raw.connections.length, bed.client.open]).toEqual([1, 0]);
    });
  }

  test("that break twice are not replaced twice", async () => {
    let isBroken = false;
    await using bed = await startSocketBed({
      onRequest: (connection) => (isBroken ? connection.socket.end() : connection.send(HELLO)),
    });
    await bodyOf(bed.call());
    isBroken = true;
    expect(await failureOf(bed.call())).toBe("ECONNRESET");
    expect(bed.raw.requests).toBe(3);
  });

  test("that break long after they were asked are not replaced", async () => {
    let nowMs = 0;
    await using bed = await startSocketBed(
      { onRequest: (connection) => connection.send(bed.raw.requests === 1 ? HELLO : "") },
      { now: () => nowMs },
    );
    await bodyOf(bed.call());
    const call = bed.call();
    await waitFor("it is asked", () => bed.raw.requests === 2);
    nowMs = 10_000;
    bed.raw.connections[0]!.socket.resetAndDestroy();
    expect(await failureOf(call)).toBe("ECONNRESET");
    expect(bed.raw.requests).toBe(2);
  });

  test("that break after a byte of the answer are not replaced", async () => {
    await using bed = await startSocketBed({
      onRequest(connection, number) {
        connection.send(number === 0 ? HELLO : "H");
        if (number === 1) connection.socket.end();
      },
    });
    await bodyOf(bed.call());
    expect(await failureOf(bed.call())).toBe("ECONNRESET");
    expect(bed.raw.requests).toBe(2);
  });

  test("that cannot be made say why", async () => {
    const client = createSocketClient({ maxIdle: 1 });
    expect(await failureOf(client.call(backendAt("http://127.0.0.1:1"), "/", POST))).toBe("ECONNREFUSED");
    expect(await failureOf(client.call(backendAt("http://nowhere.invalid"), "/", POST))).toBe("ENOTFOUND");
    const noSocket = backendAt("http://localhost", join(tmpdir(), "signalbox-nothing.sock"));
    expect(await failureOf(client.call(noSocket, "/", POST))).toBe("ENOENT");
    expect(client.open).toBe(0);
  });

  test("that wait keep no process from its end, and those in use do", async () => {
    await using bed = await startSocketBed({ onRequest: answerWith(HELLO) });
    const script = `
      const { createSocketClient } = await import(${JSON.stringify(join(import.meta.dir, "socket-client.ts"))});
      const call = createSocketClient({ maxIdle: 1 }).call({ rootUrl: "${bed.raw.url}" }, "/", { method: "GET", headers: {} });
      call.answer.then((answer) => answer.read({ received() {}, failed() {}, ended: () => console.log("ended") }));
    `;
    const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", timeout: 10_000 });
    expect(await new Response(child.stdout).text()).toBe("ended\n");
    expect(await child.exited).toBe(0);
  });

  test("end with the client: idle ones now, others after their answer", async () => {
    await using bed = await startSocketBed({
      onRequest: (connection) => connection.send(bed.raw.requests === 1 ? HELLO : ""),
    });
    await bodyOf(bed.call());
    const call = bed.call();
    const second = bed.call();
    await waitFor("both are asked", () => bed.raw.requests === 3);
    second.abort();
    expect(await failureOf(second)).toBe("ABORT_ERR");
    bed.client.close();
    expect(bed.client.open).toBe(1);
    bed.raw.connections[0]!.send(HELLO);
    expect(await bodyOf(call)).toBe("hello");
    expect(bed.client.open).toBe(0);
  });
});
