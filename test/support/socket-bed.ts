// The socket client in front of a raw server, and what tests ask of the two.

import type { Backend } from "../../src/backends/backend.ts";
import type { BackendAnswer, BackendCall, TransportRequest } from "../../src/backends/transport.ts";
import {
  createSocketClient,
  type SocketClient,
  type SocketClientOptions,
} from "../../src/upstream/http/socket-client.ts";
import { type RawServerConnection, type RawServerOptions, startRawServer } from "./raw-server.ts";
import { within } from "./wait-for.ts";

export const POST: TransportRequest = { method: "POST", headers: { "content-type": "text/plain" }, body: "hello" };
export const HELLO = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

export type SocketBed = Awaited<ReturnType<typeof startSocketBed>>;

export async function startSocketBed(server: RawServerOptions, options: Partial<SocketClientOptions> = {}) {
  const raw = await startRawServer(server);
  const client: SocketClient = createSocketClient({ maxIdle: 8, ...options });
  const backend = backendAt(raw.url, server.socketPath);
  return {
    raw,
    client,
    call: (request = POST, path = "/v1/x") => client.call(backend, path, request),
    async [Symbol.asyncDispose]() {
      client.close();
      await raw[Symbol.asyncDispose]();
    },
  };
}

/** All that the client reads of a backend. */
export function backendAt(rootUrl: string, socketPath?: string): Backend {
  return { rootUrl, socketPath } as Backend;
}

export interface Recorded {
  pieces: string[];
  bytes: number;
  /** "ended", or the code of the failure; undefined while there is neither. */
  endedAs: string | undefined;
  readonly end: Promise<string>;
}

/** Writes down what comes of a body, as Latin-1. */
export function record(answer: BackendAnswer): Recorded {
  const end = Promise.withResolvers<string>();
  const seen: Recorded = { pieces: [], bytes: 0, endedAs: undefined, end: end.promise };
  const settle = (how: string) => {
    if (seen.endedAs !== undefined) throw new Error(`${how} after ${seen.endedAs}`);
    seen.endedAs = how;
    end.resolve(how);
  };
  answer.read({
    received(piece) {
      if (seen.endedAs !== undefined) throw new Error(`a piece after ${seen.endedAs}`);
      seen.bytes += piece.length;
      seen.pieces.push(Buffer.from(piece).toString("latin1"));
    },
    ended: () => settle("ended"),
    failed: (error) => settle(codeOf(error)),
  });
  return seen;
}

/** The whole body; a failure's code stands behind it, with an exclamation mark before. */
export async function bodyOf(call: BackendCall): Promise<string> {
  const seen = record(await within("an answer", call.answer));
  const end = await within("the end of the body", seen.end);
  return end === "ended" ? seen.pieces.join("") : `${seen.pieces.join("")}!${end}`;
}

/** The code with which there is no answer. */
export function failureOf(call: BackendCall): Promise<string> {
  return within(
    "a failure",
    call.answer.then(() => "an answer", codeOf),
  );
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown }).code);
}

export function answerWith(text: string) {
  return (connection: RawServerConnection) => connection.send(text);
}
