// Who is alive in a process group, as /proc or ps tell it: tests of children that must not be left behind.

/** Pids of its members; the dead whom nobody has collected do not count. */
export function groupMembers(group: number): number[] {
  const { stdout } = Bun.spawnSync(["ps", "-A", "-o", "pid=,pgid=,stat="]);
  return stdout
    .toString()
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, pgid, state = "Z"]) => Number(pgid) === group && !state.startsWith("Z"))
    .map(([pid]) => Number(pid));
}

export function isAlive(pid: number): boolean {
  const { stdout } = Bun.spawnSync(["ps", "-o", "stat=", "-p", String(pid)]);
  const state = stdout.toString().trim();
  return state !== "" && !state.startsWith("Z");
}
