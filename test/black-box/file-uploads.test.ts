// Uploads under load: large ones in little memory, many at once, and refusals that a client reads that is still sending.

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { expectErrorBody } from "../support/expect-error.ts";
import type { GatewayParts } from "../support/gateway-parts.ts";
import type { ProcessGateway } from "../support/gateway-process.ts";
import { BOUNDARY } from "../support/multipart-forms.ts";
import { RawConnection, type RawResponse } from "../support/raw-http.ts";
import { type FileObject, FORM_TYPE, listedIds, uploadFile, waitUntilClean } from "../support/stored-files.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const MEBIBYTE = 1024 * 1024;

const HEAD =
  `--${BOUNDARY}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n` +
  `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="large.bin"\r\n\r\n`;
const TAIL = `\r\n--${BOUNDARY}--\r\n`;

function gatewayWith(more: GatewayParts["config"] = {}): Promise<ProcessGateway> {
  return bed.process({ config: { backends: [{ name: "demo", type: "demo" }], ...more } });
}

function residentBytes({ pid }: ProcessGateway): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
}

/** A form whose file is this piece again and again, made while it is sent. */
function formStream(piece: Uint8Array, count: number): ReadableStream<Uint8Array> {
  let sent = -1;
  return new ReadableStream(
    {
      pull(controller) {
        if (sent === -1) controller.enqueue(new TextEncoder().encode(HEAD));
        else if (sent < count) controller.enqueue(piece);
        else {
          controller.enqueue(new TextEncoder().encode(TAIL));
          controller.close();
        }
        sent++;
      },
    },
    { highWaterMark: 0 },
  );
}

function send(
  gateway: ProcessGateway,
  body: ReadableStream<Uint8Array>,
  headers: Record<string, string> = {},
): Promise<Response> {
  const all = { "Content-Type": FORM_TYPE, ...headers };
  return gateway.fetch("/v1/files", { method: "POST", headers: all, body });
}

test("300 MiB go to the disk and back in little memory", async () => {
  const gateway = await gatewayWith();
  const piece = crypto.getRandomValues(new Uint8Array(65_536));
  const pieces = (300 * MEBIBYTE) / piece.length;
  await (await send(gateway, formStream(piece, 64))).text();
  const before = residentBytes(gateway);
  let highest = before;
  const watch = setInterval(() => {
    highest = Math.max(highest, residentBytes(gateway));
  }, 5);
  const file = (await (await send(gateway, formStream(piece, pieces))).json()) as FileObject;
  expect(file.bytes).toBe(300 * MEBIBYTE);
  const hash = new Bun.CryptoHasher("sha256");
  for (let count = 0; count < pieces; count++) hash.update(piece);
  const whole = await gateway.fetch(`/v1/files/${file.id}/content`);
  expect(whole.headers.get("etag")).toBe(`"${hash.digest("hex")}"`);
  let at = 0;
  let isSame = true;
  for await (const bytes of whole.body as ReadableStream<Uint8Array>) {
    const start = at % piece.length;
    const compared = Math.min(bytes.length, piece.length - start);
    isSame &&= Buffer.from(bytes.subarray(0, compared)).equals(piece.subarray(start, start + compared));
    at += bytes.length;
  }
  clearInterval(watch);
  expect({ isSame, bytes: at }).toEqual({ isSame: true, bytes: file.bytes });
  expect((highest - before) / MEBIBYTE).toBeLessThan(32);
  const end = await gateway.fetch(`/v1/files/${file.id}/content`, { headers: { Range: "bytes=-65536" } });
  expect(Buffer.from(await end.bytes()).equals(piece)).toBe(true);
});

test("50 uploads side by side, each whole and its own", async () => {
  const gateway = await gatewayWith();
  const uploads = Array.from({ length: 50 }, async (_, index) => {
    const piece = new Uint8Array(40_000 + index).fill(index);
    const response = await send(gateway, formStream(piece, 10));
    const file = (await response.json()) as FileObject;
    expect(file.bytes).toBe(10 * piece.length);
    return { id: file.id, index };
  });
  const stored = await Promise.all(uploads);
  expect(new Set(stored.map(({ id }) => id)).size).toBe(50);
  await Promise.all(
    stored.map(async ({ id, index }) => {
      const bytes = await (await gateway.fetch(`/v1/files/${id}/content`)).bytes();
      expect(bytes.length).toBe(10 * (40_000 + index));
      expect(bytes.every((byte) => byte === index)).toBe(true);
    }),
  );
  expect((await listedIds(gateway)).length).toBe(50);
  await waitUntilClean(gateway);
});

describe("a client that looks at the answer only when it has sent everything reads its refusal", () => {
  const SENT = 80 * MEBIBYTE;
  const piece = Buffer.alloc(MEBIBYTE, "x");

  /** Sends all of it whatever comes, then reads. */
  async function sendAll(gateway: ProcessGateway, isAnnounced: boolean, more = ""): Promise<RawResponse> {
    const connection = await RawConnection.open(gateway.port);
    connection.pause();
    const length = HEAD.length + SENT + TAIL.length;
    const framing = isAnnounced ? `Content-Length: ${length}` : "Transfer-Encoding: chunked";
    connection.write(
      `POST /v1/files HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: ${FORM_TYPE}\r\n${framing}\r\n${more}\r\n`,
    );
    const put = (bytes: string | Buffer) => {
      if (!isAnnounced) connection.write(`${bytes.length.toString(16)}\r\n`);
      connection.write(bytes);
      if (!isAnnounced) connection.write("\r\n");
    };
    put(HEAD);
    for (let sent = 0; sent < SENT; sent += piece.length) {
      put(piece);
      await waitFor(
        "it is taken",
        () => {
          connection.flush();
          if (connection.isClosed) throw new Error(`closed after ${sent} bytes`);
          return connection.unsentBytes === 0;
        },
        { intervalMs: 0 },
      );
    }
    put(TAIL);
    if (!isAnnounced) connection.write("0\r\n\r\n");
    connection.resume();
    const response = await connection.response();
    connection.close();
    return response;
  }

  test("413, announced and in chunks", async () => {
    const gateway = await gatewayWith({ files: { max_file_size: MEBIBYTE } });
    for (const isAnnounced of [true, false]) {
      const response = await sendAll(gateway, isAnnounced);
      expect(expectErrorBody(response, response.text, 413).param).toBe("file");
      await waitUntilClean(gateway);
    }
    expect((await uploadFile(gateway, "the next one")).bytes).toBe(12);
  });

  test("401, and an announced length is refused before a byte is read", async () => {
    const gateway = await gatewayWith({ files: { require_key: true, max_file_size: MEBIBYTE } });
    const response = await sendAll(gateway, true);
    expectErrorBody(response, response.text, 401);
    const open = await gatewayWith({ files: { max_file_size: MEBIBYTE } });
    const connection = await RawConnection.open(open.port);
    connection.write(
      `POST /v1/files HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: ${FORM_TYPE}\r\nContent-Length: 600000000\r\n\r\n`,
    );
    await waitFor("the refusal is there", () => connection.received.includes("files.max_file_size"));
    expect(connection.received.toString()).toStartWith("HTTP/1.1 413");
    connection.close();
  });
});
