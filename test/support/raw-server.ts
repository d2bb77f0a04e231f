// A server that speaks in bytes: what it answers, and how it closes, is up to the test.

import { createServer, type Socket } from "node:net";
import { waitFor } from "./wait-for.ts";

export interface RawServerConnection {
  readonly socket: Socket;
  /** Everything that has come, as Latin-1. */
  readonly received: string;
  /** Whole requests that have come: heads, each with the body that its length announces. */
  readonly requests: number;
  /** How the client has ended it: a FIN, a reset, or not yet. */
  end: "open" | "fin" | "reset";
  send(text: string | Uint8Array): void;
}

export interface RawServer extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  /** In the order in which they came. */
  readonly connections: RawServerConnection[];
  /** Requests over all connections. */
  readonly requests: number;
  /** The connection with this number, from 0, once it is there. */
  connection(number: number): Promise<RawServerConnection>;
  /** Refuses connections from now on; those that are open stay. Resolves once it does. */
  stopListening(): Promise<void>;
}

export interface RawServerOptions {
  /** Listens there in place of a port. */
  socketPath?: string;
  /** Called with each request once it is there in whole. */
  onRequest?(connection: RawServerConnection, number: number): void;
  /** Called with each connection. */
  onConnection?(connection: RawServerConnection): void;
}

export async function startRawServer({ socketPath, onRequest, onConnection }: RawServerOptions): Promise<RawServer> {
  const connections: RawServerConnection[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let told = 0;
    let received = "";
    const seen = { count: 0, at: 0 };
    const connection: RawServerConnection = {
      socket,
      end: "open",
      get received() {
        return received;
      },
      get requests() {
        return seen.count;
      },
      send: (text) => void socket.write(typeof text === "string" ? Buffer.from(text, "latin1") : text),
    };
    connections.push(connection);
    socket.on("data", (bytes) => {
      received += bytes.toString("latin1");
      readRequests(seen, received);
      for (; told < seen.count; told++) onRequest?.(connection, told);
    });
    socket.on("end", () => {
      connection.end = "fin";
      socket.end();
    });
    socket.on("error", () => {
      connection.end = "reset";
    });
    onConnection?.(connection);
  });
  await new Promise<void>((resolve) => {
    if (socketPath === undefined) server.listen(0, "127.0.0.1", resolve);
    else server.listen(socketPath, resolve);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    connections,
    get requests() {
      return connections.reduce((sum, { requests }) => sum + requests, 0);
    },
    connection: (number) => waitFor(`connection ${number}`, () => connections[number]),
    async stopListening() {
      server.close();
      await waitFor("the port is closed", () => !server.listening);
    },
    async [Symbol.asyncDispose]() {
      for (const { socket } of connections) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The requests in a text, and where the next one begins. */
function readRequests(seen: { count: number; at: number }, text: string): void {
  for (;;) {
    const end = text.indexOf("\r\n\r\n", seen.at);
    if (end < 0) return;
    const length = /\r\ncontent-length: (\d+)/.exec(text.slice(seen.at, end))?.[1] ?? "0";
    const next = end + 4 + Number(length);
    if (next > text.length) return;
    seen.at = next;
    seen.count++;
  }
}
