// Whether a port can be opened, found out without listening there.

import { type AddressInfo, connect } from "node:net";
import { listenFailure, parseHostAndPort, type Server } from "./listener.ts";

/** Longer than a connection inside this machine takes. */
const PROBE_MS = 1_000;

/**
 * Says why a port cannot be opened, undefined if it can. A client's socket binds it for a moment: a socket that listened
 * would take connections, and the kernel would reset them when it is closed.
 */
export async function probePort(bindAddress: string): Promise<string | undefined> {
  const { hostname, port } = parseHostAndPort(bindAddress);
  let peer: Server & { address: AddressInfo };
  try {
    // A free port of the same host: it resolves the name, and is there to be connected to.
    peer = Bun.serve({ hostname, port: 0, fetch: () => new Response() }) as typeof peer;
  } catch (error) {
    return listenFailure(bindAddress, error);
  }
  const code = await bindBriefly(port, peer.address);
  await peer.stop(true);
  // Another failure is one of the connection, behind the bind.
  return code === "EADDRINUSE" || code === "EACCES" ? listenFailure(bindAddress, { code }) : undefined;
}

/** Resolves with the code of the failure, if there is one, when the port is free again. */
function bindBriefly(localPort: number, { address, port }: AddressInfo): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const socket = connect({ host: address, port, localAddress: address, localPort });
  let code: string | undefined;
  socket.once("error", (error: NodeJS.ErrnoException) => {
    code = error.code;
  });
  socket.once("connect", () => socket.resetAndDestroy());
  socket.setTimeout(PROBE_MS, () => socket.destroy());
  socket.once("close", () => resolve(code));
  return promise;
}
