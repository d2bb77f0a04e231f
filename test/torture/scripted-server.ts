// A server on raw sockets that answers each request with the bytes, pauses and endings that a script names.

import type { Socket, TCPSocketListener, UnixSocketListener } from "bun";
import {
  type ReceivedRequest,
  type Script,
  type ScriptedServerOptions,
  ServerConnection,
} from "./server-connection.ts";

export class ScriptedServer implements Disposable {
  readonly url: string;
  readonly port: number;
  /** All that were ever accepted, unless the server forgets. */
  readonly connections: ServerConnection[] = [];
  /** All that came, unless the server forgets. */
  readonly requests: ReceivedRequest[] = [];
  /** What clients did that HTTP does not allow. */
  readonly violations: string[] = [];
  readonly options: ScriptedServerOptions;
  readonly #open = new Set<ServerConnection>();
  readonly #listener: TCPSocketListener<ServerConnection> | UnixSocketListener<ServerConnection>;
  accepted = 0;

  constructor(options: ScriptedServerOptions | Script) {
    this.options = typeof options === "function" ? { script: options } : options;
    const { tls, unix, host = "127.0.0.1" } = this.options;
    const common = {
      allowHalfOpen: true,
      socket: {
        open: (socket: Socket<ServerConnection>) => {
          const connection = new ServerConnection(this, socket, this.accepted++);
          socket.data = connection;
          this.#open.add(connection);
          if (this.options.forgets !== true) this.connections.push(connection);
          connection.opened();
        },
        data: (socket: Socket<ServerConnection>, bytes: Buffer) => socket.data.received(bytes),
        drain: (socket: Socket<ServerConnection>) => socket.data.flush(),
        end: (socket: Socket<ServerConnection>) => socket.data.ended(),
        close: (socket: Socket<ServerConnection>) => {
          // A connection whose TLS handshake failed may never have been opened.
          if (socket.data === undefined) return;
          this.#open.delete(socket.data);
          socket.data.closed();
        },
        error: () => {}, // close follows
      },
    };
    if (unix !== undefined) {
      this.#listener = Bun.listen({ ...common, unix });
      this.port = 0;
      this.url = `unix:${unix}`;
    } else {
      const listener = Bun.listen({ ...common, hostname: host, port: 0, ...(tls !== undefined && { tls }) });
      this.#listener = listener;
      this.port = listener.port;
      this.url = `${tls === undefined ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${this.port}`;
    }
  }

  get openConnections(): number {
    return this.#open.size;
  }

  /** Connections that stand go on. */
  stopListening(): void {
    this.#listener.stop();
  }

  stop(): void {
    this.#listener.stop(true);
  }

  [Symbol.dispose](): void {
    this.stop();
  }
}
