// One connection of a scripted server: reads requests as strictly as it answers freely, and performs the steps of a script.

import type { Socket } from "bun";

/** What happens on the connection, one after another. Text is written byte by byte, as latin-1. */
export type Step =
  | string
  | Uint8Array
  /** So many turns of the event loop pass. */
  | { turns: number }
  /** So many bytes follow, written as the client takes them. */
  | { fill: number }
  /** Runs when it is reached, and holds up what follows until it is done. */
  | { run: () => unknown }
  /** The answer is complete: the client may ask again, and what follows happens only as long as it has not. */
  | "idle"
  | "fin"
  | "reset";

export interface ReceivedRequest {
  method: string;
  target: string;
  /** Names in lower case. */
  headers: Record<string, string>;
  body: Buffer;
  /** How many requests came before it over the same connection. */
  place: number;
  connection: ServerConnection;
}

export type Script = (request: ReceivedRequest) => readonly Step[] | Promise<readonly Step[]>;

export interface ScriptedServerOptions {
  script: Script;
  /** When the script is asked: at the end of the head, whatever becomes of the body, or at the end of the request. */
  at?: "head" | "request";
  /** What happens as soon as a connection stands. */
  onOpen?: (connection: ServerConnection) => readonly Step[];
  /** Keeps no requests: for runs of very many. */
  forgets?: boolean;
  tls?: { cert: string; key: string };
  /** Path of a unix socket; else a free port of the host. */
  unix?: string;
  /** A loopback address; 127.0.0.1 by default. */
  host?: string;
}

/** A request whose body may still be coming. */
interface RequestHead extends ReceivedRequest {
  bodyBytes: number;
}

/** Whose connection it is. */
interface ConnectionHost {
  readonly options: ScriptedServerOptions;
  readonly requests: ReceivedRequest[];
  readonly violations: string[];
}

const HEAD_END = Buffer.from("\r\n\r\n");
const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\/[\x21-\x7e]*) HTTP\/1\.1$/;
const HEADER_LINE =
  /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*((?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?)[ \t]*$/;
const FILLER = Buffer.alloc(64 * 1024, "0123456789abcdef");

export class ServerConnection {
  readonly number: number;
  /** Milliseconds of the clock of performance.now() at which the client's end of the connection was seen. */
  leftAtMs: number | undefined;
  isClosed = false;
  /** Its answer is not complete. */
  isBusy = false;
  receivedBytes = 0;
  sentBytes = 0;
  requestCount = 0;
  /** For scripts that remember something of a connection. */
  note: string | undefined;
  readonly #server: ConnectionHost;
  readonly #socket: Socket<ServerConnection>;
  /** What has come and was not taken. */
  #pieces: Buffer[] = [];
  #pieceBytes = 0;
  /** Whose body is still coming. */
  #head: RequestHead | undefined;
  #unsent: Buffer[] = [];
  /** Its FIN was sent. */
  #isFinished = false;
  #drained: PromiseWithResolvers<void> | undefined;

  constructor(server: ConnectionHost, socket: Socket<ServerConnection>, number: number) {
    this.#server = server;
    this.#socket = socket;
    this.number = number;
  }

  opened(): void {
    const steps = this.#server.options.onOpen?.(this);
    if (steps !== undefined) void this.perform(steps);
  }

  /** Takes no more bytes from the client. */
  stopReading(): void {
    this.#socket.pause();
  }

  received(bytes: Buffer): void {
    this.receivedBytes += bytes.length;
    this.#pieces.push(Buffer.from(bytes));
    this.#pieceBytes += bytes.length;
    while (this.#takeRequest());
  }

  /** Whether a request was taken out of the input, and there is more. */
  #takeRequest(): boolean {
    if (this.#head === undefined && !this.#takeHead()) return false;
    const head = this.#head as RequestHead;
    if (this.#pieceBytes < head.bodyBytes) return false;
    if (this.#isFinished && this.#server.options.at !== "head") {
      // Nobody reads there any more, which a system tells with a reset.
      this.#socket.terminate();
      return false;
    }
    const input = this.#input();
    head.body = input.subarray(0, head.bodyBytes);
    this.#keep(input.subarray(head.bodyBytes));
    this.#head = undefined;
    if (this.#server.options.at !== "head") this.#answer(head);
    return this.#pieceBytes > 0;
  }

  /** Whether the input had a whole head. */
  #takeHead(): boolean {
    const input = this.#input();
    const end = input.indexOf(HEAD_END);
    if (end < 0) return false;
    if (this.isBusy) this.#violated("a request came before the answer to the last one was complete");
    this.#head = this.#readHead(input.toString("latin1", 0, end));
    this.#keep(input.subarray(end + HEAD_END.length));
    if (this.#server.options.at === "head") this.#answer(this.#head);
    return true;
  }

  /** All that has come and was not taken. */
  #input(): Buffer {
    if (this.#pieces.length !== 1) this.#keep(Buffer.concat(this.#pieces));
    return this.#pieces[0] as Buffer;
  }

  #keep(input: Buffer): void {
    this.#pieces = [input];
    this.#pieceBytes = input.length;
  }

  #readHead(text: string): RequestHead {
    const [requestLine = "", ...lines] = text.split("\r\n");
    const [, method = "", target = ""] = REQUEST_LINE.exec(requestLine) ?? [];
    if (method === "") this.#violated(`request line ${JSON.stringify(requestLine)}`);
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const [, name = "", value = ""] = HEADER_LINE.exec(line) ?? [];
      const key = name.toLowerCase();
      if (name === "") this.#violated(`header line ${JSON.stringify(line)}`);
      else if (key in headers) this.#violated(`two headers ${key}`);
      headers[key] = value;
    }
    if (headers.host === undefined) this.#violated("no Host");
    if (headers["transfer-encoding"] !== undefined) this.#violated("a chunked request: its length was known");
    const length = headers["content-length"] ?? "0";
    if (!/^\d+$/.test(length)) this.#violated(`Content-Length ${length}`);
    const body = Buffer.alloc(0);
    return { method, target, headers, body, bodyBytes: Number(length), place: this.requestCount, connection: this };
  }

  #violated(what: string): void {
    this.#server.violations.push(`connection ${this.number}: ${what}`);
  }

  #answer(request: ReceivedRequest): void {
    this.requestCount++;
    this.isBusy = true;
    if (this.#server.options.forgets !== true) this.#server.requests.push(request);
    void this.#perform(this.#server.options.script(request));
  }

  async #perform(steps: ReturnType<Script>): Promise<void> {
    const { requestCount } = this;
    await this.perform(steps instanceof Promise ? await steps : steps);
    if (this.requestCount === requestCount) this.isBusy = false;
  }

  /** Ends early when the connection is closed, or another request has come. */
  async perform(steps: readonly Step[]): Promise<void> {
    const { requestCount } = this;
    for (const step of steps) {
      if (this.isClosed || this.requestCount !== requestCount) return;
      if (step === "idle") this.isBusy = false;
      else if (step === "fin") this.#finish();
      else if (step === "reset") this.#socket.terminate();
      else if (typeof step === "string") this.#write(Buffer.from(step, "latin1"));
      else if (step instanceof Uint8Array) this.#write(Buffer.from(step));
      else if ("turns" in step) await turns(step.turns);
      else if ("run" in step) await step.run();
      else await this.#fill(step.fill);
      if (step !== "idle" && this.#unsent.length > 0) await this.#allSent();
    }
  }

  #finish(): void {
    this.#isFinished = true;
    this.#socket.shutdown();
  }

  async #fill(total: number): Promise<void> {
    for (let sent = 0; sent < total && !this.isClosed; sent += FILLER.length) {
      this.#write(FILLER.subarray(0, Math.min(FILLER.length, total - sent)));
      if (this.#unsent.length > 0) await this.#allSent();
    }
  }

  #write(bytes: Buffer): void {
    this.#unsent.push(bytes);
    this.flush();
  }

  flush(): void {
    while (this.#unsent.length > 0 && !this.isClosed) {
      const first = this.#unsent[0] as Buffer;
      const written = Math.max(0, this.#socket.write(first));
      this.sentBytes += written;
      if (written < first.length) {
        this.#unsent[0] = first.subarray(written);
        return;
      }
      this.#unsent.shift();
    }
    this.#drained?.resolve();
  }

  async #allSent(): Promise<void> {
    if (this.isClosed) return;
    this.#drained = Promise.withResolvers();
    await this.#drained.promise;
  }

  /** The client has sent its FIN: nobody there asks half-open, so that it is the end. */
  ended(): void {
    this.leftAtMs ??= performance.now();
    this.#socket.end();
  }

  closed(): void {
    this.leftAtMs ??= performance.now();
    this.isClosed = true;
    this.#unsent = [];
    this.#drained?.resolve();
  }
}

/** Resolves after so many turns of the event loop. */
export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** The bytes of `fill` from a place on, to compare with. */
export function filler(length: number, from = 0): Buffer {
  const bytes = Buffer.alloc(length + (from % 16), "0123456789abcdef");
  return bytes.subarray(from % 16);
}
