// Where sockets come from, and what the runtime tells of them.

import type { Socket as RuntimeSocket } from "bun";
import { connectionReset } from "./http-error.ts";
import type { Address } from "./target.ts";

export type Socket = RuntimeSocket<SocketUser>;

/** Who is told what becomes of a socket, in this order. */
export interface SocketUser {
  /** There is a socket. With TLS, nothing can be sent yet. */
  opened(socket: Socket): void;
  /** With TLS: the certificate is good, and the socket can be used. */
  secured(socket: Socket): void;
  /** The bytes are the user's own. */
  received(bytes: Uint8Array): void;
  /** The socket takes more. */
  drained(socket: Socket): void;
  /** The other side has closed its half in order; closed() follows. */
  ended(): void;
  closed(error: Error | undefined): void;
  /** The socket could not be made, or is of no use. Other calls may follow. */
  broke(error: unknown): void;
}

/** Begins to connect, which cannot be stopped. The user hears nothing before this returns. */
export function connect(address: Address, data: SocketUser): void {
  const options = { data, socket: HANDLERS };
  try {
    const socket =
      "unix" in address ? Bun.connect({ ...address, ...options }) : Bun.connect({ ...address, ...options });
    socket.catch(ignore); // connectError() tells of it
  } catch (error) {
    queueMicrotask(() => data.broke(error)); // such as a certificate that is none
  }
}

/** One object for all sockets. */
const HANDLERS = {
  binaryType: "uint8array" as const,
  open: (socket: Socket) => socket.data.opened(socket),
  handshake(socket: Socket, _success: boolean, error: Error | null) {
    if (error === null && socket.authorized) socket.data.secured(socket);
    else socket.data.broke(error ?? connectionReset());
  },
  data: (socket: Socket, bytes: Uint8Array) => socket.data.received(bytes),
  drain: (socket: Socket) => socket.data.drained(socket),
  end: (socket: Socket) => socket.data.ended(),
  close: (socket: Socket, error?: Error) => socket.data.closed(error),
  error: (socket: Socket, error: Error) => socket.data.broke(error),
  // It may come from within Bun.connect.
  connectError: ({ data }: Socket, error: Error) => queueMicrotask(() => data.broke(error)),
};

function ignore(): void {}
