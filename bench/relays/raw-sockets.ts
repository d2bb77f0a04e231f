// Bytes from socket to socket, one backend connection for each client's: what the runtime's sockets cost without HTTP.

import type { Socket } from "bun";

interface End {
  /** The other side; undefined until the backend's connection stands. */
  peer: Socket<End> | undefined;
  /** What the kernel did not take yet. */
  unsent: Buffer | undefined;
}

/** Hands bytes on; a side that sends faster than the other reads is held back. */
function give(to: Socket<End>, bytes: Buffer): void {
  const written = Math.max(0, to.write(bytes));
  if (written === bytes.length) return;
  to.data.unsent = Buffer.from(bytes.subarray(written));
  to.data.peer?.pause();
}

const handlers = {
  data(socket: Socket<End>, bytes: Buffer) {
    give(socket.data.peer!, bytes);
  },
  drain(socket: Socket<End>) {
    const { unsent, peer } = socket.data;
    if (unsent === undefined) return;
    socket.data.unsent = undefined;
    peer?.resume();
    give(socket, unsent);
  },
  close(socket: Socket<End>) {
    socket.data.peer?.end();
  },
  error() {},
};

export function relaySockets(port: number, upstreamPort: number): void {
  Bun.listen<End>({
    hostname: "127.0.0.1",
    port,
    socket: {
      ...handlers,
      async open(client) {
        client.data = { peer: undefined, unsent: undefined };
        client.pause();
        client.data.peer = await Bun.connect<End>({
          hostname: "127.0.0.1",
          port: upstreamPort,
          data: { peer: client, unsent: undefined },
          socket: handlers,
        });
        client.resume();
      },
    },
  });
}
