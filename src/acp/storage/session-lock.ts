// Which process holds a session. Each puts a file of its own name beside the session's and looks then whether there is
// another one's: of two that come at the same time at least one sees the other, and a file of a dead process locks nothing.
// This holds for the processes of one machine.

import { closeSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

const SUFFIX = ".lock";

/** `<session>.<pid>-<start>.lock` */
const NAME = /^([0-9a-f-]{36})\.(\d+)-(\d+)\.lock$/;

interface Holder {
  session: string;
  pid: number;
  /** When the process began, in ticks: ids of processes are used again. "0" where the system does not tell. */
  start: string;
  file: string;
}

/** Gives it back; undefined: another live process holds the session. */
export function holdSession(folder: string, sessionId: string): (() => void) | undefined {
  const own = join(folder, `${sessionId}.${process.pid}-${startOf(process.pid)}${SUFFIX}`);
  closeSync(openSync(own, "a", 0o600));
  const giveBack = () => rmSync(own, { force: true });
  if (!isHeldByOthers(folder, sessionId)) return giveBack;
  giveBack();
  return undefined;
}

/** Files of dead processes are removed on the way. */
export function isHeldByOthers(folder: string, sessionId: string): boolean {
  return holders(folder).some((holder) => {
    if (holder.session !== sessionId || isOwn(holder)) return false;
    if (isAlive(holder)) return true;
    rmSync(join(folder, holder.file), { force: true });
    return false;
  });
}

/** Ids of sessions that a live process holds, this one included. */
export function heldSessions(folder: string): ReadonlySet<string> {
  return new Set(holders(folder).flatMap((holder) => (isAlive(holder) ? holder.session : [])));
}

function holders(folder: string): Holder[] {
  return readdirSync(folder).flatMap((file) => {
    const [, session, pid, start] = NAME.exec(file) ?? [];
    if (session === undefined || pid === undefined || start === undefined) return [];
    return { session, pid: Number(pid), start, file };
  });
}

function isOwn({ pid, start }: Holder): boolean {
  return pid === process.pid && start === startOf(process.pid);
}

function isAlive({ pid, start }: Holder): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
  }
  return start === "0" || startOf(pid) === "0" || startOf(pid) === start;
}

/** Field 22 of /proc/<pid>/stat; the name of the program before it may have spaces and brackets. */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "0";
  } catch {
    return "0"; // another system, or the process is gone
  }
}
