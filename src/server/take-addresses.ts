// Addresses for processes that share ports: no other gateway has them, and none gets them while this process lives.

import { listen, NOT_YET, type Server } from "./listener.ts";
import { probePort } from "./port-probe.ts";

type Taken =
  | {
      ok: true;
      /** For printing, in the order of the configuration. */
      addresses: string[];
      /** Addresses that the workers open. */
      shared: string[];
      /** Ports that the kernel has chosen, open here until the workers have opened them. No client knows them yet. */
      held: Server[];
      /** Unix sockets, which cannot be shared: the primary serves them. */
      own: Server[];
      release(): void;
    }
  | { ok: false; message: string };

/**
 * Makes sure that no other process has the addresses: each port is probed, and a lock of the kernel is held for each as long
 * as this process lives, so that of two gateways that start at the same moment one gives way. Nothing here listens on a port
 * that clients know: the kernel would reset the connections that it takes for a listener that is closed again.
 */
export async function takeAddresses(bound: readonly string[], baseDir: string, socketMode: number): Promise<Taken> {
  const taken = { addresses: [] as string[], shared: [] as string[], held: [] as Server[], own: [] as Server[] };
  const { addresses, shared, held, own } = taken;
  const locks: { stop(): void }[] = [];
  const release = () => {
    for (const lock of locks) lock.stop();
  };
  async function take(bindAddress: string): Promise<string | undefined> {
    const open = (sharesPort: boolean) => listen(bindAddress, baseDir, NOT_YET, socketMode, sharesPort);
    const isUnix = bindAddress.startsWith("unix:");
    let address = bindAddress;
    if (isUnix || bindAddress.endsWith(":0")) {
      const result = await open(!isUnix);
      if (!result.ok) return result.message;
      ({ address } = result);
      (isUnix ? own : held).push(result.server);
    } else {
      const message = await probePort(bindAddress);
      if (message !== undefined) return message;
    }
    addresses.push(address);
    if (isUnix) return undefined;
    shared.push(address);
    const lock = lockAddress(address);
    if (lock === undefined)
      return `server.bind_address: cannot listen on ${bindAddress}: another gateway is starting there.`;
    locks.push(lock);
    return undefined;
  }
  for (const bindAddress of bound) {
    const message = await take(bindAddress);
    if (message === undefined) continue;
    release();
    await Promise.all([...own, ...held].map((server) => server.stop(true)));
    return { ok: false, message };
  }
  return { ok: true, ...taken, release };
}

/** Undefined when another process holds it. The name is in the abstract namespace: it goes with the process. */
function lockAddress(address: string): { stop(): void } | undefined {
  try {
    return Bun.listen({ unix: `\0signalbox:${address}`, socket: { open: (socket) => void socket.end(), data() {} } });
  } catch {
    return undefined;
  }
}
