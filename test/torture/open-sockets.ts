// How many sockets this process has open, as the system counts them.

import { readdirSync, readlinkSync } from "node:fs";

const FOLDER = "/proc/self/fd";

/** Undefined where the system does not tell. */
export function openSockets(): number | undefined {
  if (process.platform !== "linux") return undefined;
  return readdirSync(FOLDER).filter((name) => linkOf(name).startsWith("socket:")).length;
}

function linkOf(name: string): string {
  try {
    return readlinkSync(`${FOLDER}/${name}`);
  } catch {
    return ""; // closed since it was listed
  }
}
