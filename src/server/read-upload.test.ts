// Uploads over real connections: what reaches the target, how fast it is asked for, and how each kind of trouble is told.

import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { BOUNDARY, type FormPart, formOf } from "../../test/support/multipart-forms.ts";
import { RawConnection } from "../../test/support/raw-http.ts";
import { waitFor } from "../../test/support/wait-for.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { createDeadlines } from "../lib/deadlines.ts";
import { createBodyDrain } from "./drain-body.ts";
import { readUpload, type Upload, type UploadTarget } from "./read-upload.ts";

const now = () => performance.now();
const deadlines = createDeadlines(now);
const drain = createBodyDrain({ deadlines, now });

/** Counts what it gets, and keeps a hash of it. */
class CountingTarget implements UploadTarget {
  bytes = 0;
  pieces = 0;
  largest = 0;
  hash = new Bun.CryptoHasher("sha256");
  write(piece: Uint8Array): void | Promise<void> {
    this.bytes += piece.length;
    this.pieces++;
    this.largest = Math.max(this.largest, piece.length);
    this.hash.update(piece);
  }
}

let server: Bun.Server<undefined>;
let results: (Upload | Error)[] = [];
let target = new CountingTarget();
let timeoutMs = 60_000;
let maxBytes = 1024 * 1024 * 1024;

beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    async fetch(request) {
      try {
        results.push(await readUpload(request, { deadlines, now, timeoutMs, maxBytes }, target));
        return new Response("read");
      } catch (error) {
        results.push(error as Error);
        const { status = 500, headers = {}, message = "" } = error instanceof GatewayError ? error : {};
        return drain.behind(request, new Response(message, { status, headers }));
      }
    },
  });
});
afterAll(() => server.stop(true));
afterEach(async () => {
  results = [];
  target = new CountingTarget();
  timeoutMs = 60_000;
  maxBytes = 1024 * 1024 * 1024;
  await waitFor("no deadline is left", () => deadlines.size === 0);
});

const TYPE = `multipart/form-data; boundary=${BOUNDARY}`;
const HEAD = `POST / HTTP/1.1\r\nHost: h\r\nContent-Type: ${TYPE}\r\n`;
const START = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n`;

async function post(
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = { "content-type": TYPE },
) {
  const response = await fetch(server.url, { method: "POST", body, headers });
  await response.text();
  return results[0] as Upload | Error;
}
const postParts = (parts: readonly FormPart[]) => post(formOf(parts));

describe("forms that are read", () => {
  test("texts before and behind a file, whose bytes go to the target", async () => {
    const upload = await postParts([
      { name: "purpose", content: "user_data" },
      { name: "file", filename: "a%22.pdf", contentType: "application/pdf", content: "%PDF-1.7 sample" },
      { name: "tag", content: "1" },
      { name: "tag", content: "" },
    ]);
    expect(upload).toEqual({
      fields: { purpose: "user_data", tag: ["1", ""] },
      file: { name: "file", filename: 'a".pdf', contentType: "application/pdf", bytes: 15 },
    });
    expect(target.hash.digest("hex")).toBe(new Bun.CryptoHasher("sha256").update("%PDF-1.7 sample").digest("hex"));
  });

  test("without a file, with an empty one, and with names of objects' own", async () => {
    expect(await postParts([{ name: "__proto__", content: "1" }])).toMatchObject({ file: undefined });
    expect(Object.entries((results[0] as Upload).fields)).toEqual([["__proto__", "1"]]);
    results = [];
    expect(await postParts([{ name: "file", filename: "", content: "" }])).toMatchObject({ file: { bytes: 0 } });
    expect(target.pieces).toBe(0);
  });

  test("as fetch writes them", async () => {
    const form = new FormData();
    form.set("purpose", "größe");
    form.set("file", new File([new Uint8Array(200_000).fill(13)], '文 "x".bin', { type: "image/png" }));
    const response = await fetch(server.url, { method: "POST", body: form });
    expect(response.status).toBe(200);
    expect(results[0]).toEqual({
      fields: { purpose: "größe" },
      file: { name: "file", filename: '文 "x".bin', contentType: "image/png", bytes: 200_000 },
    });
  });

  test("in chunks of one byte", async () => {
    const connection = await RawConnection.open(server.port as number);
    const body = formOf([{ name: "file", filename: "a", content: `x\r\n--${BOUNDARY}y` }]);
    connection.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
    connection.write(Buffer.concat([...body].map((byte) => Buffer.from([49, 13, 10, byte, 13, 10]))));
    connection.write("0\r\n\r\n");
    expect((await connection.response()).status).toBe(200);
    expect(results[0]).toMatchObject({ file: { bytes: 5 + BOUNDARY.length + 1 } });
    connection.abort();
  });

  test("large files arrive whole, in pieces, with pauses of the target", async () => {
    const content = new Uint8Array(8 * 1024 * 1024).map((_, index) => index * 31 + (index >> 9));
    const write = target.write.bind(target);
    let isWriting = false;
    target.write = async (piece) => {
      expect(isWriting).toBe(false);
      isWriting = true;
      const copy = piece.slice();
      await new Promise((resolve) => setImmediate(resolve));
      expect(Buffer.from(piece).equals(copy)).toBe(true);
      await write(piece);
      isWriting = false;
    };
    expect(await postParts([{ name: "file", filename: "a", content }])).toMatchObject({
      file: { bytes: content.length },
    });
    expect(target.hash.digest("hex")).toBe(new Bun.CryptoHasher("sha256").update(content).digest("hex"));
    expect(target.pieces).toBeGreaterThan(4);
  });

  test("nothing more is taken from a client while the target is busy, and its time does not run", async () => {
    timeoutMs = 100;
    const released = Promise.withResolvers<void>();
    const write = target.write.bind(target);
    target.write = async (piece) => {
      await released.promise;
      await write(piece);
    };
    const connection = await RawConnection.open(server.port as number);
    const bytes = new Uint8Array(48 * 1024 * 1024);
    const end = `\r\n--${BOUNDARY}--\r\n`;
    connection.write(`${HEAD}Content-Length: ${START.length + bytes.length + end.length}\r\n\r\n${START}`);
    connection.write(bytes);
    connection.write(end);
    let unsent = -1;
    await waitFor("the client is held up", async () => {
      const before = unsent;
      unsent = connection.unsentBytes;
      await Bun.sleep(250); // longer than the client may pause
      return unsent === before;
    });
    expect(unsent).toBeGreaterThan(24 * 1024 * 1024);
    expect(results).toEqual([]);
    released.resolve();
    expect((await connection.response()).status).toBe(200);
    expect(target.bytes).toBe(bytes.length);
    connection.abort();
  });
});

describe("forms that are refused", () => {
  const file: FormPart = { name: "file", filename: "a", content: "x" };
  const text = (bytes: number, name = "note"): FormPart => ({ name, content: "x".repeat(bytes) });
  const cases: [title: string, parts: FormPart[], param: string | undefined, message: string][] = [
    ["two files", [file, { ...file, name: "image" }], "image", "more than one file"],
    ["a long text", [text(64 * 1024 + 1)], "note", "is larger than 65536 bytes"],
    ["long texts", Array.from({ length: 5 }, () => text(60_000)), "note", "262144"],
    ["101 parts", Array.from({ length: 101 }, () => text(1)), undefined, "more than 100 parts"],
    ["a part without a name", [{ ...file, name: "" }], undefined, "part without a name"],
    ["a text that is none", [{ name: "note", content: Uint8Array.of(255) }], "note", "text in UTF-8"],
  ];
  test.each(cases)("%s", async (_title, parts, param, message) => {
    const error = await postParts(parts);
    expect(error).toBeInstanceOf(GatewayError);
    expect(error).toMatchObject({ status: 400, type: "invalid_request_error", param });
    expect((error as Error).message).toContain(message);
  });

  const others: [title: string, headers: Record<string, string>, body: string, message: string][] = [
    ["JSON", { "content-type": "application/json" }, "{}", "multipart/form-data"],
    ["no boundary", { "content-type": "multipart/form-data" }, "--x--", "no valid boundary"],
    ["another boundary", { "content-type": TYPE }, "--x--", "does not contain the boundary"],
    ["nothing", { "content-type": TYPE }, "", "does not contain the boundary"],
    ["no final boundary", { "content-type": TYPE }, `${START}abc\r\n`, "cut off"],
    ["compressed", { "content-type": TYPE, "content-encoding": "gzip" }, "x", "Content-Encoding 'gzip'"],
  ];
  test.each(others)("%s", async (_title, headers, body, message) => {
    const error = await post(body, headers);
    expect(error).toMatchObject({ status: 400, type: "invalid_request_error" });
    expect((error as Error).message).toContain(message);
  });

  test("what the target throws, at once and later, and the next request on a new connection works", async () => {
    const full = new GatewayError({ status: 503, type: "service_unavailable", code: "full" }, "full");
    for (const write of [
      () => {
        throw full;
      },
      () => Promise.reject(full),
    ]) {
      target.write = write;
      const content = new Uint8Array(4 * 1024 * 1024);
      const response = await fetch(server.url, {
        method: "POST",
        body: formOf([{ name: "file", filename: "a", content }]),
        headers: { "content-type": TYPE },
      });
      expect([response.status, await response.text()]).toEqual([503, "full"]);
      expect(results.pop()).toBe(full);
      target = new CountingTarget();
      expect(await postParts([file])).toMatchObject({ file: { bytes: 1 } });
      results = [];
    }
  });

  test("a length beyond the limit before anything came, and chunks as soon as they are beyond it", async () => {
    maxBytes = 100_000;
    const declared = await RawConnection.open(server.port as number);
    declared.write(`${HEAD}Content-Length: 100001\r\n\r\n`);
    await waitFor("the refusal", () => results.length === 1);
    expect(results[0]).toMatchObject({ status: 413 });
    declared.abort();
    const endless = await RawConnection.open(server.port as number);
    endless.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
    const chunk = `${START}${"x".repeat(60_000)}\r\n`;
    for (let left = 3; left > 0; left--) endless.write(`${chunk.length.toString(16)}\r\n${chunk}\r\n`);
    await waitFor("the second refusal", () => results.length === 2);
    expect(results[1]).toMatchObject({ status: 413 });
    endless.abort();
  });

  test("parts that never end in number", async () => {
    const connection = await RawConnection.open(server.port as number);
    connection.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
    const part = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n`;
    for (let left = 110; left > 0; left--) connection.write(`${part.length.toString(16)}\r\n${part}\r\n`);
    await waitFor("the refusal", () => results.length === 1);
    expect(results[0]).toMatchObject({ status: 400 });
    connection.abort();
  });
});

describe("clients that do not send it all", () => {
  const framings: [name: string, head: string, body: (text: string) => string][] = [
    ["with a length", "Content-Length: 100000", (text) => text],
    ["in chunks", "Transfer-Encoding: chunked", (text) => `${text.length.toString(16)}\r\n${text}\r\n`],
  ];
  for (const [name, head, framed] of framings) {
    test(`${name}: those that pause are refused, and nothing is written of what comes later`, async () => {
      timeoutMs = 100;
      const connection = await RawConnection.open(server.port as number);
      connection.write(`${HEAD}${head}\r\n\r\n${framed(`${START}abc`)}`);
      const response = await connection.response();
      expect(response.status).toBe(408);
      expect(response.headers.connection).toBe("close");
      expect(results[0]).toMatchObject({ status: 408, type: "request_timeout" });
      expect((results[0] as Error).message).toContain("100 ms (timeouts.request_body)");
      expect(target.bytes).toBe(3);
      connection.write(framed("def"));
      await connection.closed;
      expect(target.bytes).toBe(3);
    });

    test(`${name}: time is counted from piece to piece`, async () => {
      timeoutMs = 400;
      const connection = await RawConnection.open(server.port as number);
      const startedMs = now();
      connection.write(`${HEAD}${head}\r\n\r\n${framed(START)}`);
      for (let count = 1; now() - startedMs < 900; count++) {
        connection.write(framed("x"));
        await waitFor("the piece is written", () => target.bytes === count);
        await Bun.sleep(50); // the pause of a slow client
      }
      expect(results).toEqual([]);
      connection.abort();
      await waitFor("the end", () => results.length === 1);
    });

    test(`${name}: those that leave are settled at once`, async () => {
      const connection = await RawConnection.open(server.port as number);
      connection.write(`${HEAD}${head}\r\n\r\n${framed(`${START}abc`)}`);
      await waitFor("something is written", () => target.bytes === 3);
      connection.abort();
      await waitFor("the end", () => results.length === 1);
      expect(results[0]).toBeInstanceOf(GatewayError);
      expect((results[0] as Error).message).toBe("The client closed the request.");
    });
  }
});
