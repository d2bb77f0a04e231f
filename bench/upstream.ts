// The model server of the benchmark: answers at once over raw sockets, streams paced by one timer, nothing else.
// Started by main.ts; prints its port on the first line; ends when its standard input closes.

import type { Socket } from "bun";
import { type Answer, answerFor, plainBody, STREAM_CHUNK, STREAM_END } from "./wire.ts";

interface Connection {
  /** Bytes of a request head that is not complete yet. */
  head: Buffer | undefined;
  /** Body bytes that are still to come. */
  bodyLeft: number;
  /** Start of the body; the model's name stands in it. */
  bodyStart: string;
  /** What the kernel did not take yet. */
  unsent: Buffer | undefined;
  chunksLeft: number;
  everyMs: number;
}

const LONGEST_PAUSE_MS = 4095;
const BODY_START_BYTES = 4096;

const HEAD_END = Buffer.from("\r\n\r\n");
const STREAM_HEAD = Buffer.from(
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n",
);
const CHUNK_FRAME = frame(STREAM_CHUNK);
const END_FRAME = Buffer.concat([frame(STREAM_END), Buffer.from("0\r\n\r\n")]);
const MODEL_LIST = whole(200, JSON.stringify({ object: "list", data: [] }));
const plainAnswers = new Map<number, Buffer>();

function frame(text: string): Buffer {
  return Buffer.from(`${text.length.toString(16)}\r\n${text}\r\n`);
}

function whole(status: number, body: string): Buffer {
  return Buffer.from(
    `HTTP/1.1 ${status} Bench\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
}

function plainAnswer(bytes: number): Buffer {
  let answer = plainAnswers.get(bytes);
  if (!answer) {
    answer = whole(200, plainBody(bytes));
    plainAnswers.set(bytes, answer);
  }
  return answer;
}

// One wheel of 1 ms slots paces all streams, so that a thousand open streams cost one timer.
const wheel: Set<Socket<Connection>>[] = Array.from({ length: LONGEST_PAUSE_MS + 1 }, () => new Set());
let openStreams = 0;
let phase = 0;
let slotNow = Math.floor(performance.now());
let timer: ReturnType<typeof setInterval> | undefined;

function schedule(socket: Socket<Connection>, inMs: number): void {
  wheel[(slotNow + inMs) % wheel.length]!.add(socket);
}

function turnWheel(): void {
  const now = Math.floor(performance.now());
  while (slotNow < now) {
    slotNow++;
    const due = wheel[slotNow % wheel.length]!;
    if (due.size === 0) continue;
    wheel[slotNow % wheel.length] = new Set();
    for (const socket of due) writeNextChunk(socket);
  }
}

function writeNextChunk(socket: Socket<Connection>): void {
  const connection = socket.data;
  if (connection.chunksLeft > 0) {
    connection.chunksLeft--;
    send(socket, CHUNK_FRAME);
    schedule(socket, connection.everyMs);
    return;
  }
  send(socket, END_FRAME);
  streamEnded();
}

function startStream(socket: Socket<Connection>, chunks: number, everyMs: number): void {
  if (openStreams++ === 0) {
    slotNow = Math.floor(performance.now());
    timer = setInterval(turnWheel, 1);
  }
  // Head and first chunk leave at once but apart, as engines do; each stream then has its own place in the beat.
  send(socket, STREAM_HEAD);
  send(socket, CHUNK_FRAME);
  socket.data.chunksLeft = chunks - 1;
  socket.data.everyMs = everyMs;
  schedule(socket, 1 + ((phase++ * 7) % everyMs));
}

function streamEnded(): void {
  if (--openStreams === 0) clearInterval(timer);
}

function send(socket: Socket<Connection>, bytes: Buffer): void {
  const connection = socket.data;
  if (connection.unsent) {
    connection.unsent = Buffer.concat([connection.unsent, bytes]);
    return;
  }
  const written = Math.max(0, socket.write(bytes));
  if (written < bytes.length) connection.unsent = bytes.subarray(written);
}

function answer(socket: Socket<Connection>, plan: Answer | undefined): void {
  if (plan?.kind === "plain") send(socket, plainAnswer(plan.bytes));
  else if (plan?.kind === "stream") startStream(socket, plan.chunks, plan.everyMs);
  else send(socket, whole(400, '{"error":{"message":"the model names no answer of the benchmark"}}'));
}

function read(socket: Socket<Connection>, data: Buffer): void {
  const connection = socket.data;
  let rest = connection.head ? Buffer.concat([connection.head, data]) : data;
  connection.head = undefined;
  while (rest.length > 0) {
    if (connection.bodyLeft === 0) {
      const end = rest.indexOf(HEAD_END);
      if (end < 0) {
        connection.head = Buffer.from(rest);
        return;
      }
      const head = rest.toString("latin1", 0, end);
      rest = rest.subarray(end + HEAD_END.length);
      if (!head.startsWith("POST ")) {
        send(socket, MODEL_LIST);
        continue;
      }
      connection.bodyLeft = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
      connection.bodyStart = "";
      if (connection.bodyLeft === 0) {
        send(socket, whole(411, '{"error":{"message":"the benchmark wants a content-length"}}'));
        continue;
      }
    }
    const part = rest.subarray(0, connection.bodyLeft);
    rest = rest.subarray(part.length);
    connection.bodyLeft -= part.length;
    const wanted = BODY_START_BYTES - connection.bodyStart.length;
    if (wanted > 0) connection.bodyStart += part.toString("latin1", 0, Math.min(wanted, part.length));
    if (connection.bodyLeft === 0) {
      const model = /"model"\s*:\s*"([^"]+)"/.exec(connection.bodyStart)?.[1];
      answer(socket, model === undefined ? undefined : answerFor(model));
    }
  }
}

const server = Bun.listen<Connection>({
  hostname: "127.0.0.1",
  port: 0,
  socket: {
    open(socket) {
      socket.data = { head: undefined, bodyLeft: 0, bodyStart: "", unsent: undefined, chunksLeft: 0, everyMs: 0 };
    },
    data: read,
    drain(socket) {
      const { unsent } = socket.data;
      socket.data.unsent = undefined;
      if (unsent) send(socket, unsent);
    },
    close(socket) {
      for (const slot of wheel) if (slot.delete(socket)) streamEnded();
    },
    error() {},
  },
});

console.log(server.port);
process.stdin.on("end", () => process.exit(0)).resume();
