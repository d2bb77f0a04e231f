// A process group: sending it signals, and telling whether any of it is still alive.

import { readdirSync, readFileSync } from "node:fs";

/** A killed process needs a moment to vanish. */
const VANISH_MS = 1_500;

/** False: no process of the group is left. */
export function signalGroup(group: number, signal: "SIGTERM" | "SIGKILL" | 0): boolean {
  try {
    process.kill(-group, signal);
    return true;
  } catch {
    // No such group, or one that is not ours.
    return false;
  }
}

/** Resolves when no process of the group is alive, or after a moment. */
export async function groupVanished(group: number): Promise<void> {
  const untilMs = performance.now() + VANISH_MS;
  for (let waitMs = 1; signalGroup(group, 0) && hasLiving(group) && performance.now() < untilMs; waitMs *= 2)
    await Bun.sleep(waitMs);
}

/** Zombies still count as members; on Linux /proc tells them apart. */
function hasLiving(group: number): boolean {
  if (process.platform !== "linux") return true;
  return readdirSync("/proc").some((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const text = readFileSync(`/proc/${name}/stat`, "latin1");
      // The name in parentheses may hold anything: state, parent and group stand behind the last one.
      const [state = "Z", , member] = text.slice(text.lastIndexOf(")") + 2).split(" ");
      return Number(member) === group && state !== "Z" && state !== "X";
    } catch {
      // It has ended in the meantime.
      return false;
    }
  });
}
