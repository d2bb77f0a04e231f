// Fast streams to slow readers: the backend is held back, and the gateway keeps next to nothing of them.

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { chatEvents, eventStream } from "../support/openai-answers.ts";
import { postBytes } from "../support/raw-http.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const STREAMS = 8;
const EVENTS = 1_800;
const EVENT_BYTES = 20_000;
const STREAM_BYTES = EVENTS * EVENT_BYTES;
/** Read at once, and then nothing for a while. */
const READ_BYTES = 64 * 1024;
const REST_MS = 50;

/** Of the 288 MB of the streams; pieces on their way and what the garbage collector has not looked at yet. */
const MAX_GROWTH_BYTES = 120 * 1024 * 1024;

/** Reads a stream slowly; counts its bytes until its last chunk has come. */
async function readSlowly(port: number) {
  const reader = { bytes: 0, isOver: false };
  const request = { model: "m", stream: true, messages: [{ role: "user", content: "x" }] };
  let unrested = 0;
  let end = "";
  await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      open: (socket) => void socket.write(postBytes("/v1/chat/completions", JSON.stringify(request))),
      data(socket, bytes) {
        reader.bytes += bytes.length;
        end = (end + bytes.subarray(-64).toString("latin1")).slice(-64);
        if (end.endsWith("\r\n0\r\n\r\n")) {
          reader.isOver = true;
          socket.end();
        }
        unrested += bytes.length;
        if (unrested < READ_BYTES) return;
        unrested = 0;
        socket.pause();
        setTimeout(() => socket.resume(), REST_MS);
      },
    },
  });
  return reader;
}

function residentBytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1]) * 1024;
}

test("the memory stays flat, and every reader gets every byte", async () => {
  const events = chatEvents(Array.from({ length: EVENTS }, () => "x".repeat(EVENT_BYTES)));
  const backend = bed.backend({ answer: eventStream(events) });
  const gateway = await bed.process({ config: { backends: [{ name: "a", url: backend.url, models: ["m"] }] } });
  // What a process takes once for its first streams is not theirs.
  const first = await gateway.chat({ stream: true });
  expect((await first.text()).length).toBeGreaterThan(STREAM_BYTES);

  const before = residentBytes(gateway.pid);
  let most = before;
  const readers = await Promise.all(Array.from({ length: STREAMS }, () => readSlowly(gateway.port)));
  await waitFor(
    "every stream is over",
    () => {
      most = Math.max(most, residentBytes(gateway.pid));
      return readers.every(({ isOver }) => isOver);
    },
    { timeoutMs: 60_000, intervalMs: 20, explain: () => JSON.stringify(readers) },
  );
  for (const { bytes } of readers) expect(bytes).toBeGreaterThan(STREAM_BYTES);
  console.log(`${STREAMS} streams of ${STREAM_BYTES / 1e6} MB: ${((most - before) / 1e6).toFixed(1)} MB more memory`);
  expect(most - before).toBeLessThan(MAX_GROWTH_BYTES);
});
