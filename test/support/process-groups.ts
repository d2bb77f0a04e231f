// Which processes are alive, as ps tells it: tests of children that must not be left behind.

import { programPath } from "../../scripts/debian-packages.ts";

/** The rows that ps prints for these columns, of these processes. */
export function listProcesses(columns: string, ...which: string[]): string[] {
  const { stdout } = Bun.spawnSync([programPath("ps"), ...which, "-o", columns]);
  return stdout.toString().split("\n").filter(Boolean);
}

/** Pids of its members; the dead whom nobody has collected do not count. */
export function groupMembers(group: number): number[] {
  return listProcesses("pid=,pgid=,stat=", "-A")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, pgid, state = "Z"]) => Number(pgid) === group && !state.startsWith("Z"))
    .map(([pid]) => Number(pid));
}

export function isAlive(pid: number): boolean {
  const [state = ""] = listProcesses("stat=", "-p", String(pid));
  return state !== "" && !state.startsWith("Z");
}
