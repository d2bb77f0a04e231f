// What the kernel knows of connections that are still being made.

import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";

/** SYN-SENT in the tables of the kernel. */
const PENDING = "02";

/** How many connections a process is making to a port of this machine; undefined where the kernel does not tell. */
export function pendingConnects(pid: number, port: number): number | undefined {
  if (!existsSync(`/proc/${pid}/net/tcp`)) return undefined;
  const own = new Set(readdirSync(`/proc/${pid}/fd`).map((descriptor) => inodeOf(`/proc/${pid}/fd/${descriptor}`)));
  const lines = readFileSync(`/proc/${pid}/net/tcp`, "latin1").split("\n");
  return lines.filter((line) => {
    const [, , remote, state, , , , , , inode] = line.trim().split(/\s+/);
    return state === PENDING && Number.parseInt(remote?.split(":")[1] ?? "", 16) === port && own.has(inode);
  }).length;
}

function inodeOf(descriptor: string): string | undefined {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(descriptor))?.[1];
  } catch {
    return undefined; // closed meanwhile
  }
}
