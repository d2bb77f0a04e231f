// A scripted HTTP backend on raw sockets: it can answer well, badly, slowly, half or not at all, and records everything.

import type { Socket, TCPSocketListener, UnixSocketListener } from "bun";
import { parseBody, parseHead } from "./http-message.ts";
import { chat, models } from "./openai-answers.ts";

/** How one request is answered. Everything left out is what a healthy backend would do. */
export interface Answer {
  status?: number;
  headers?: Record<string, string>;
  /** An array is written piece by piece, each piece one HTTP chunk when the framing is chunked. */
  body?: string | Uint8Array | readonly (string | Uint8Array)[];
  /** length: Content-Length (default for one piece). chunked (default for an array). close: until the connection ends. */
  framing?: "length" | "chunked" | "close";
  /** A Content-Length that need not be true. */
  contentLength?: number;
  beforeHeadersMs?: number;
  beforeFirstChunkMs?: number;
  betweenChunksMs?: number;
  /** Headers wait for this. */
  headersAfter?: Promise<unknown>;
  /** Awaited before the piece with that index is written. */
  beforeChunk?: (index: number) => Promise<unknown> | undefined;
  /** The body is cut into pieces of this size. */
  chunkBytes?: number;
  /** The connection breaks after so many bytes of the body (framing not counted). */
  breakAfterBytes?: number;
  /** reset: an RST, also without breakAfterBytes, then before anything was written. fin: an orderly end. */
  breakWith?: "reset" | "fin";
  /** Nothing is ever written. */
  hang?: boolean;
  /** Written as they are, instead of head and body; then the connection ends. */
  rawBytes?: string | Uint8Array;
  /** The connection is ended after the answer, with "Connection: close". */
  close?: boolean;
}

export type Responder = Answer | ((request: RecordedRequest) => Answer | Promise<Answer>);

export interface RecordedRequest {
  method: string;
  /** With its query. */
  path: string;
  headers: Record<string, string>;
  rawHeaders: [name: string, value: string][];
  body: Buffer;
  text: string;
  json: <Shape = Record<string, unknown>>() => Shape;
  connectionId: number;
  receivedAtMs: number;
  /** When the connection that carried it has closed, whoever closed it. */
  closed: Promise<void>;
  isClosed: boolean;
  closedAtMs: number | undefined;
  /** Whether the whole scripted answer was handed to the socket before the connection closed. */
  answerComplete: boolean;
}

interface Connection {
  id: number;
  socket: Socket<Connection>;
  incoming: Buffer;
  busy: boolean;
  /** Bytes that the socket did not take yet. */
  outgoing: Buffer;
  drained: (() => void) | undefined;
  closed: PromiseWithResolvers<void>;
  isClosed: boolean;
  requests: RecordedRequest[];
}

export interface FakeBackendOptions {
  /** Answer of operations (POST) for which nothing is queued. */
  answer?: Responder;
  /** Models listed by GET /v1/models. */
  models?: readonly string[];
  unixPath?: string;
}

export class FakeBackend {
  /** Operations in order of arrival; GET and HEAD requests and questions about models are in `probes`. */
  readonly requests: RecordedRequest[] = [];
  readonly probes: RecordedRequest[] = [];
  connectionsOpened = 0;
  answer: Responder;
  readonly #firstAnswer: Responder;
  /** Answers GET and HEAD requests; default: model lists and healthy probes. */
  probeAnswer: Responder;
  readonly #queue: Responder[] = [];
  readonly #connections = new Set<Connection>();
  readonly #unixPath: string | undefined;
  #listener: TCPSocketListener<Connection> | UnixSocketListener<Connection> | undefined;
  #port = 0;

  constructor(options: FakeBackendOptions = {}) {
    this.#firstAnswer = options.answer ?? chat("hello");
    this.answer = this.#firstAnswer;
    this.#unixPath = options.unixPath;
    const modelIds = options.models ?? ["m"];
    this.probeAnswer = (request) => defaultProbeAnswer(request, modelIds);
    this.start();
  }

  get port(): number {
    return this.#port;
  }

  get url(): string {
    return this.#unixPath === undefined ? `http://127.0.0.1:${this.#port}` : `unix:${this.#unixPath}`;
  }

  get openConnections(): number {
    return this.#connections.size;
  }

  /** Connections that carry a request which is not answered yet. */
  get busyConnections(): number {
    return [...this.#connections].filter((connection) => connection.busy).length;
  }

  get lastRequest(): RecordedRequest {
    const last = this.requests.at(-1);
    if (!last) throw new Error("the backend received no request");
    return last;
  }

  /** Answers of the next operations, once each, before `answer` applies again. */
  queue(...answers: Responder[]): void {
    this.#queue.push(...answers);
  }

  /** Forgets what was recorded and queued; without an answer the first one applies again. */
  reset(answer: Responder = this.#firstAnswer): void {
    this.requests.length = 0;
    this.probes.length = 0;
    this.#queue.length = 0;
    this.answer = answer;
  }

  /** Listens, after stop() on the same port again. */
  start(): void {
    if (this.#listener) return;
    const socket = {
      open: (raw: Socket<Connection>) => this.#open(raw),
      data: (raw: Socket<Connection>, bytes: Buffer) => this.#receive(raw.data, bytes),
      drain: (raw: Socket<Connection>) => flush(raw.data),
      close: (raw: Socket<Connection>) => this.#closed(raw.data),
      error: () => {}, // close follows
    };
    if (this.#unixPath === undefined) {
      const listener = Bun.listen<Connection>({ hostname: "127.0.0.1", port: this.#port, socket });
      this.#port = listener.port;
      this.#listener = listener;
    } else {
      this.#listener = Bun.listen<Connection>({ unix: this.#unixPath, socket });
    }
  }

  /** Refuses connections and resets those that are open. */
  stop(): void {
    this.#listener?.stop(true);
    this.#listener = undefined;
    this.dropConnections();
  }

  /** Resets what is open and goes on listening. */
  dropConnections(): void {
    for (const connection of this.#connections) connection.socket.terminate();
  }

  [Symbol.dispose](): void {
    this.stop();
  }

  #open(socket: Socket<Connection>): void {
    this.connectionsOpened += 1;
    const connection: Connection = {
      id: this.connectionsOpened,
      socket,
      incoming: Buffer.alloc(0),
      busy: false,
      outgoing: Buffer.alloc(0),
      drained: undefined,
      closed: Promise.withResolvers<void>(),
      isClosed: false,
      requests: [],
    };
    socket.data = connection;
    socket.setNoDelay(true);
    this.#connections.add(connection);
  }

  #closed(connection: Connection | undefined): void {
    if (!connection || connection.isClosed) return;
    connection.isClosed = true;
    this.#connections.delete(connection);
    for (const request of connection.requests) {
      request.isClosed = true;
      request.closedAtMs = performance.now();
    }
    connection.drained?.();
    connection.closed.resolve();
  }

  #receive(connection: Connection, bytes: Buffer): void {
    connection.incoming = Buffer.concat([connection.incoming, bytes]);
    if (!connection.busy) void this.#serveNext(connection);
  }

  async #serveNext(connection: Connection): Promise<void> {
    const head = parseHead(connection.incoming);
    const body = head && parseBody(connection.incoming, head.length, head.headers);
    if (!head || !body) return;
    connection.busy = true;
    const [method = "", path = ""] = head.startLine.split(" ");
    const bodyBytes = Buffer.from(body.body);
    connection.incoming = Buffer.from(connection.incoming.subarray(head.length + body.length));
    const request: RecordedRequest = {
      method,
      path,
      headers: head.headers,
      rawHeaders: head.rawHeaders,
      body: bodyBytes,
      get text() {
        return bodyBytes.toString("utf8");
      },
      json: () => JSON.parse(bodyBytes.toString("utf8")),
      connectionId: connection.id,
      receivedAtMs: performance.now(),
      closed: connection.closed.promise,
      isClosed: false,
      closedAtMs: undefined,
      answerComplete: false,
    };
    connection.requests.push(request);
    const isProbe = method === "GET" || method === "HEAD" || path === "/api/show";
    (isProbe ? this.probes : this.requests).push(request);
    const responder = isProbe ? this.probeAnswer : (this.#queue.shift() ?? this.answer);
    const answer = typeof responder === "function" ? await responder(request) : responder;
    const mayContinue = await respond(connection, request, answer);
    connection.busy = false;
    if (!connection.isClosed && mayContinue && connection.incoming.length > 0) void this.#serveNext(connection);
  }
}

/** Writes the answer; the result says whether the connection may carry another request. */
async function respond(connection: Connection, request: RecordedRequest, answer: Answer): Promise<boolean> {
  if (answer.hang) {
    await connection.closed.promise;
    return false;
  }
  if (answer.beforeHeadersMs !== undefined) await pause(connection, Bun.sleep(answer.beforeHeadersMs));
  if (answer.headersAfter) await pause(connection, answer.headersAfter);
  if (connection.isClosed) return false;
  if (answer.rawBytes !== undefined) {
    await write(connection, toBuffer(answer.rawBytes));
    return finish(connection, answer.breakWith ?? "fin");
  }
  if (answer.breakWith === "reset" && answer.breakAfterBytes === undefined) return finish(connection, "reset");

  const pieces = bodyPieces(answer);
  const framing = answer.framing ?? (Array.isArray(answer.body) ? "chunked" : "length");
  const bodyLength = pieces.reduce((sum, piece) => sum + piece.length, 0);
  await write(connection, headBytes(answer, framing, bodyLength));
  if (answer.beforeFirstChunkMs !== undefined) await pause(connection, Bun.sleep(answer.beforeFirstChunkMs));

  let written = 0;
  for (const [index, piece] of pieces.entries()) {
    if (index > 0 && answer.betweenChunksMs !== undefined) await pause(connection, Bun.sleep(answer.betweenChunksMs));
    const gate = answer.beforeChunk?.(index);
    if (gate) await pause(connection, gate);
    if (connection.isClosed) return false;
    const allowed = answer.breakAfterBytes === undefined ? piece.length : answer.breakAfterBytes - written;
    const part = piece.subarray(0, Math.max(0, Math.min(piece.length, allowed)));
    if (part.length > 0 && request.method !== "HEAD") {
      // A chunk that is cut announces its whole length, as a backend does that dies while it writes.
      await write(connection, framing === "chunked" ? chunkBytes(part, piece.length) : part);
    }
    written += part.length;
    if (part.length < piece.length) return finish(connection, answer.breakWith ?? "fin");
  }
  if (answer.breakAfterBytes !== undefined) return finish(connection, answer.breakWith ?? "fin");
  if (framing === "chunked" && request.method !== "HEAD") await write(connection, Buffer.from("0\r\n\r\n"));
  request.answerComplete = !connection.isClosed;
  if (framing === "close" || answer.close) return finish(connection, "fin");
  if (answer.contentLength !== undefined && answer.contentLength !== bodyLength) return finish(connection, "fin");
  return true;
}

function headBytes(answer: Answer, framing: "length" | "chunked" | "close", bodyLength: number): Buffer {
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (framing === "length") headers["Content-Length"] = String(answer.contentLength ?? bodyLength);
  if (framing === "chunked") headers["Transfer-Encoding"] = "chunked";
  if (framing === "close" || answer.close) headers.Connection = "close";
  const lines = Object.entries({ ...headers, ...answer.headers }).map(([name, value]) => `${name}: ${value}`);
  return Buffer.from(`HTTP/1.1 ${answer.status ?? 200} Scripted\r\n${lines.join("\r\n")}\r\n\r\n`);
}

function chunkBytes(part: Buffer, announcedLength: number): Buffer {
  const end = part.length === announcedLength ? "\r\n" : "";
  return Buffer.concat([Buffer.from(`${announcedLength.toString(16)}\r\n`), part, Buffer.from(end)]);
}

function bodyPieces(answer: Answer): Buffer[] {
  const body = answer.body ?? "";
  const pieces = (typeof body === "string" || body instanceof Uint8Array ? [body] : body).map(toBuffer);
  const size = answer.chunkBytes;
  if (size === undefined) return pieces.filter((piece) => piece.length > 0);
  const whole = Buffer.concat(pieces);
  const count = Math.ceil(whole.length / size);
  return Array.from({ length: count }, (_, index) => whole.subarray(index * size, (index + 1) * size));
}

function toBuffer(bytes: string | Uint8Array): Buffer {
  return typeof bytes === "string" ? Buffer.from(bytes) : Buffer.from(bytes);
}

/** Waits for something, but not longer than the connection lives. */
async function pause(connection: Connection, something: Promise<unknown>): Promise<void> {
  await Promise.race([something, connection.closed.promise]);
}

async function write(connection: Connection, bytes: Buffer): Promise<void> {
  if (connection.isClosed) return;
  connection.outgoing = connection.outgoing.length === 0 ? bytes : Buffer.concat([connection.outgoing, bytes]);
  flush(connection);
  while (connection.outgoing.length > 0 && !connection.isClosed) {
    await new Promise<void>((resolve) => {
      connection.drained = resolve;
    });
  }
}

function flush(connection: Connection): void {
  if (connection.isClosed || connection.outgoing.length === 0) return;
  const written = connection.socket.write(connection.outgoing);
  connection.outgoing = connection.outgoing.subarray(Math.max(0, written));
  if (connection.outgoing.length === 0) connection.drained?.();
}

function finish(connection: Connection, how: "reset" | "fin"): false {
  if (connection.isClosed) return false;
  if (how === "reset") connection.socket.terminate();
  else connection.socket.end();
  return false;
}

function defaultProbeAnswer(request: RecordedRequest, modelIds: readonly string[]): Answer {
  const path = request.path.split("?")[0] ?? "";
  if (path.endsWith("/models")) return models(modelIds);
  if (path === "/api/tags")
    return { body: JSON.stringify({ models: modelIds.map((name) => ({ name, model: name })) }) };
  if (path === "/health") return { body: JSON.stringify({ status: "ok" }) };
  if (path === "/") return { headers: { "Content-Type": "text/plain" }, body: "Ollama is running" };
  return { status: 404, body: JSON.stringify({ error: { message: "no such path", type: "not_found", code: 404 } }) };
}
