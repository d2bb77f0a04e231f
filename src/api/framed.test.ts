// A stream in another form on its way to a client, over a real socket: back pressure, clients that leave, and breaks.

import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { connect } from "node:net";
import { waitFor } from "../../test/support/wait-for.ts";
import type { Framing } from "../protocols/framing.ts";
import { framed } from "./framed.ts";

setDefaultTimeout(60_000);

const encoder = new TextEncoder();

/** A JSON value in each line. */
const LINES: Framing = {
  contentType: "application/x-ndjson",
  writer: () => ({ event: (data) => `${data.replaceAll("\n", " ")}\n`, end: () => "" }),
};

let server: Bun.Server<undefined> | undefined;
afterEach(() => server?.stop(true));

interface Source {
  written: number;
  isCancelled: boolean;
}

/** Events of 64 KiB of a direct stream, as relays write them; without `limit` they have no end. */
function serveEvents(limit = Number.POSITIVE_INFINITY, broken?: Error): { url: string; source: Source } {
  const source: Source = { written: 0, isCancelled: false };
  const event = encoder.encode(`: hush\n\ndata: "${"x".repeat(65_536)}"\n\n`);
  server = Bun.serve({
    port: 0,
    fetch() {
      const events: Bun.DirectUnderlyingSource<Uint8Array> = {
        type: "direct",
        async pull(client) {
          while (source.written < limit && !source.isCancelled) {
            const taken = client.write(event);
            source.written++;
            if (typeof taken !== "number") await taken;
            void client.flush();
          }
          client.close(broken);
        },
        cancel() {
          source.isCancelled = true;
        },
      };
      return new Response(framed(new ReadableStream(events), LINES));
    },
  });
  return { url: server.url.href, source };
}

test("all of it arrives, in lines", async () => {
  const { url } = serveEvents(100);
  const lines = (await (await fetch(url)).text()).split("\n");
  expect(lines).toHaveLength(101);
  expect(lines.at(-1)).toBe("");
  expect(new Set(lines.slice(0, -1).map((line) => (JSON.parse(line) as string).length))).toEqual(new Set([65_536]));
});

test("a client that reads nothing stops the stream, and one that leaves ends it", async () => {
  const { url, source } = serveEvents();
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  socket.pause();
  await waitFor("the first event", () => source.written > 0);
  // The buffers of the sockets hold some megabytes; what is written stops growing once they are full.
  let before = -1;
  await waitFor(
    "the stream to stand still",
    () => {
      const isStill = before === source.written;
      before = source.written;
      return isStill;
    },
    { intervalMs: 300 },
  );
  expect(source.written).toBeLessThan(1000);
  socket.destroy();
  await waitFor("the end of the source", () => source.isCancelled);
});

test("a client that leaves a silent stream ends it", async () => {
  let isCancelled = false;
  const events: Bun.DirectUnderlyingSource<Uint8Array> = {
    type: "direct",
    async pull(client) {
      void client.write(encoder.encode("data: 1\n\n"));
      void client.flush();
      await new Promise(() => {});
    },
    cancel() {
      isCancelled = true;
    },
  };
  server = Bun.serve({ port: 0, fetch: () => new Response(framed(new ReadableStream(events), LINES)) });
  const client = new AbortController();
  const response = await fetch(server.url, { signal: client.signal });
  const first = await response.body?.getReader().read();
  expect(new TextDecoder().decode(first?.value)).toBe("1\n");
  client.abort();
  await waitFor("the end of the source", () => isCancelled);
});

test("a stream that is never read is given up", async () => {
  let isCancelled = false;
  const events: Bun.DirectUnderlyingSource<Uint8Array> = {
    type: "direct",
    pull() {},
    cancel() {
      isCancelled = true;
    },
  };
  await framed(new ReadableStream(events), LINES).cancel();
  await waitFor("the end of the source", () => isCancelled);
});

test("a stream that breaks off does not end in order", async () => {
  const { url } = serveEvents(3, new Error("broken"));
  await expect(fetch(url).then((response) => response.text())).rejects.toThrow();
});
