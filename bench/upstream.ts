// The model server of the benchmark: answers at once over raw sockets, streams paced by one timer, nothing else.
// Started by main.ts; prints its port on the first line; ends when its standard input closes.

import type { Socket } from "bun";
import { BACKEND_FORMATS, type BackendFormatName, plainBody } from "./formats.ts";
import { type Answer, answerFor } from "./wire.ts";

interface Connection {
  /** Bytes of a request head that is not complete yet. */
  head: Buffer | undefined;
  /** Body bytes that are still to come. */
  bodyLeft: number;
  /** Start of the body; the model's name stands in it. */
  bodyStart: string;
  path: string;
  /** Of the running stream. */
  frames: StreamFrames | undefined;
  /** What the kernel did not take yet. */
  unsent: Buffer | undefined;
  chunksLeft: number;
  everyMs: number;
}

const LONGEST_PAUSE_MS = 4095;
const BODY_START_BYTES = 4096;

const HEAD_END = Buffer.from("\r\n\r\n");
const STREAM_HEAD =
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";

interface StreamFrames {
  head: Buffer;
  chunk: Buffer;
  end: Buffer;
}

const STREAM_FRAMES: Record<BackendFormatName, StreamFrames> = {
  chat: streamFrames("chat"),
  messages: streamFrames("messages"),
  "generate-content": streamFrames("generate-content"),
};
const MODEL_LIST = whole(200, JSON.stringify({ object: "list", data: [] }));
const plainAnswers = new Map<string, Buffer>();

function frame(text: string): string {
  return text === "" ? "" : `${text.length.toString(16)}\r\n${text}\r\n`;
}

function streamFrames(format: BackendFormatName): StreamFrames {
  const { opening, chunk, end } = BACKEND_FORMATS[format];
  return {
    head: Buffer.from(STREAM_HEAD + frame(opening)),
    chunk: Buffer.from(frame(chunk)),
    end: Buffer.from(`${frame(end)}0\r\n\r\n`),
  };
}

function whole(status: number, body: string): Buffer {
  return Buffer.from(
    `HTTP/1.1 ${status} Bench\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
}

function plainAnswer(format: BackendFormatName, bytes: number): Buffer {
  const key = `${format} ${bytes}`;
  let answer = plainAnswers.get(key);
  if (!answer) {
    answer = whole(200, plainBody(format, bytes));
    plainAnswers.set(key, answer);
  }
  return answer;
}

function formatOf(path: string): BackendFormatName {
  if (path === "/v1/messages") return "messages";
  return path.includes(":") ? "generate-content" : "chat";
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
  const { chunk, end } = connection.frames!;
  if (connection.chunksLeft > 0) {
    connection.chunksLeft--;
    send(socket, chunk);
    schedule(socket, connection.everyMs);
    return;
  }
  send(socket, end);
  streamEnded();
}

function startStream(socket: Socket<Connection>, frames: StreamFrames, chunks: number, everyMs: number): void {
  if (openStreams++ === 0) {
    slotNow = Math.floor(performance.now());
    timer = setInterval(turnWheel, 1);
  }
  // Head and first chunk leave at once but apart, as engines do; each stream then has its own place in the beat.
  send(socket, frames.head);
  send(socket, frames.chunk);
  socket.data.frames = frames;
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
  const format = formatOf(socket.data.path);
  if (plan?.kind === "plain") send(socket, plainAnswer(format, plan.bytes));
  else if (plan?.kind === "stream") startStream(socket, STREAM_FRAMES[format], plan.chunks, plan.everyMs);
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
      connection.path = head.slice("POST ".length, head.indexOf(" HTTP/"));
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
      const { path, bodyStart } = connection;
      const model = (/\/models\/([^:]+):/.exec(path) ?? /"model"\s*:\s*"([^"]+)"/.exec(bodyStart))?.[1];
      answer(socket, model === undefined ? undefined : answerFor(model));
    }
  }
}

const server = Bun.listen<Connection>({
  hostname: "127.0.0.1",
  port: 0,
  socket: {
    open(socket) {
      socket.data = {
        head: undefined,
        bodyLeft: 0,
        bodyStart: "",
        path: "",
        frames: undefined,
        unsent: undefined,
        chunksLeft: 0,
        everyMs: 0,
      };
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
