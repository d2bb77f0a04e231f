// One reader of the live events, over real sockets: it gets what is sent, or is dropped when it does not read.

import { afterAll, expect, test } from "bun:test";
import { waitFor } from "../../test/support/wait-for.ts";
import { createEventListener, type EventListener } from "./event-listener.ts";

const PIECE = new Uint8Array(64 * 1024).fill(120);
const listeners: EventListener[] = [];
const ends: boolean[] = [];
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  development: false, // else the runtime prints why it broke a connection
  fetch() {
    const listener = createEventListener(new TextEncoder().encode("hello\n"), (isDropped) => ends.push(isDropped));
    listeners.push(listener);
    return new Response(listener.body);
  },
});
afterAll(() => server.stop(true));

async function open() {
  const before = listeners.length;
  let isClosed = false;
  let received = 0;
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port: server.port as number,
    socket: {
      data(_, bytes) {
        received += bytes.length;
      },
      close() {
        isClosed = true;
      },
      error() {},
    },
  });
  socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await waitFor("the first bytes are there", () => received > 0 && listeners.length > before);
  return {
    socket,
    listener: listeners.at(-1) as EventListener,
    isClosed: () => isClosed,
    received: () => received,
  };
}

test("one that does not read is dropped, and nothing piles up for it", async () => {
  const slow = await open();
  const quick = await open();
  const endsBefore = ends.length;
  slow.socket.pause();
  const before = process.memoryUsage.rss();
  let sent = 0;
  while (ends.length === endsBefore && sent < 1_000) {
    slow.listener.send(PIECE);
    quick.listener.send(PIECE);
    sent++;
    // Whoever reads has the time to.
    await waitFor("the quick one has it", () => quick.received() >= sent * PIECE.length);
  }
  expect(ends.slice(endsBefore)).toEqual([true]);
  expect(sent).toBeLessThan(1_000);
  expect(quick.isClosed()).toBe(false);
  for (let count = 0; count < 2_000; count++) slow.listener.send(PIECE);
  expect(process.memoryUsage.rss() - before).toBeLessThan(64 * 1024 * 1024);
  slow.socket.resume();
  await waitFor("its connection is closed", slow.isClosed);
  quick.listener.end();
});

test("one that leaves is over once, and one that is ended ends in order", async () => {
  const leaving = await open();
  const endsBefore = ends.length;
  leaving.socket.end();
  await waitFor("it is over", () => ends.length > endsBefore);
  leaving.listener.send(PIECE);
  leaving.listener.end();
  const response = await fetch(server.url);
  const reader = response.body?.getReader();
  await reader?.read();
  listeners.at(-1)?.end();
  expect((await reader?.read())?.done).toBe(true);
  expect(ends.slice(endsBefore)).toEqual([false, false]);
});
