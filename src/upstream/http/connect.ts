// Where sockets come from, and what the runtime tells of them.

import type { LookupFunction, Socket as NodeSocket } from "node:net";
import type { Socket as RuntimeSocket } from "bun";
import { connectionReset, HttpError } from "./http-error.ts";
import type { Address, HostAddress } from "./target.ts";

export type Socket = RuntimeSocket<SocketUser>;

/** Receives what becomes of a socket, in this order. */
export interface SocketUser {
  /** There is a socket that can be used; with TLS, its certificate is good. */
  opened(socket: Socket): void;
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

/** Gives up to connect; the user hears nothing more. To be called at most until there is a socket that can be used. */
export type GiveUp = () => void;

/** Begins to connect. The user hears nothing before this returns. */
export function connect(address: Address, lookup: LookupFunction, data: SocketUser): GiveUp {
  try {
    return "unix" in address ? connectToPath(address, data) : connectToHost(address, lookup, data);
  } catch (error) {
    queueMicrotask(() => data.broke(error)); // such as a certificate that is none
    return ignore;
  }
}

/** The kernel answers at once: there is nothing to give up. */
function connectToPath({ unix }: { unix: string }, data: SocketUser): GiveUp {
  Bun.connect({ unix, data, socket: HANDLERS }).catch(ignore); // connectError() tells of it
  return ignore;
}

/**
 * Bun.connect cannot be stopped before there is an answer, which takes two minutes where a host does not exist; node:net
 * can. What it has connected is a socket of the same kind, which is taken over with the handlers of this file.
 */
function connectToHost(
  { hostname: host, port, tls: secure }: HostAddress,
  lookup: LookupFunction,
  data: SocketUser,
): GiveUp {
  let isOver = false;
  const where = { host, port, lookup, autoSelectFamily: true };
  // Loaded with the first connection: a start does not need them.
  const opening =
    secure === undefined
      ? process.getBuiltinModule("node:net").connect(where)
      : process.getBuiltinModule("node:tls").connect({ ...where, ...secure });
  opening.on("error", (error: NodeJS.ErrnoException) => {
    if (isOver) return;
    isOver = true;
    data.broke(NO_TLS.test(error.code ?? "") ? new HttpError("EPROTO", error.message) : error);
  });
  opening.once(secure === undefined ? "connect" : "secureConnect", () => {
    // Behind the handler of node:net that tells of it, which still looks at the socket.
    queueMicrotask(() => {
      if (isOver) return;
      isOver = true;
      const socket = takenOver(opening, data);
      if (socket === null) data.broke(connectionReset());
      else data.opened(socket);
    });
  });
  return () => {
    isOver = true;
    opening.destroy();
  };
}

/** The runtime's own socket inside one of node:net, which has no part in it from now on; null: it is closed already. */
function takenOver(opening: NodeSocket, data: SocketUser): Socket | null {
  const holder = opening as unknown as { _handle: Socket | null };
  const socket = holder._handle;
  if (socket === null) return null;
  holder._handle = null;
  socket.reload({ socket: HANDLERS });
  socket.data = data;
  return socket;
}

/** Handshakes that fail for another reason than a certificate, such as with a port that does not speak TLS. */
const NO_TLS = /^ERR_SSL_(?!.*CERT)/;

/** One object for all sockets. */
const HANDLERS = {
  binaryType: "uint8array" as const,
  open: (socket: Socket) => socket.data.opened(socket),
  data: (socket: Socket, bytes: Uint8Array) => socket.data.received(bytes),
  drain: (socket: Socket) => socket.data.drained(socket),
  end(socket: Socket) {
    socket.data.ended();
    socket.close(); // a socket of node:net stays open in its own direction
  },
  close: (socket: Socket, error?: Error) => socket.data.closed(error),
  error: (socket: Socket, error: Error) => socket.data.broke(error),
  // It may come from within Bun.connect.
  connectError: ({ data }: Socket, error: Error) => queueMicrotask(() => data.broke(error)),
};

function ignore(): void {}
