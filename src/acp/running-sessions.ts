// The sessions of all agents that share a data folder: each process writes its own into a small file there, and a reader of
// them leaves out, and removes, those of processes that are gone.

import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from "node:fs";
import { readFile, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { replaceFile } from "../lib/replace-file.ts";
import type { SessionRecord } from "./parts.ts";

/** A session, and the process that has it. */
export type RunningSession = SessionRecord & { pid: number };

interface SessionTelling {
  /** Replaces what was written before. Never waits, never throws. */
  tell(sessions: readonly SessionRecord[]): void;
  /** Removes all that this process has written. */
  stop(): Promise<void>;
}

interface TellingParts {
  dataDir: string;
  log: { warn(fields: object, message: string): void };
  heartbeatMs?: number;
}

const HEARTBEAT_MS = 10_000;
/** For processes of other machines and containers, of which nothing else can be seen. */
const SILENT_MS = 45_000;
const MAX_SESSIONS = 1_000;
const MAX_FILE_BYTES = 1024 * 1024;
const MAX_FILES = 1_000;
const FILE_NAME = /^\d+-[0-9a-f-]{36}\.json$/;

const fileSchema = z.object({
  format: z.literal(1),
  pid: z.int(),
  /** Where the pid means something, and since when it has been this process; null: not known. */
  place: z.string().nullable(),
  began: z.string().nullable(),
  sessions: z
    .array(
      z.object({
        sessionId: z.string(),
        createdAt: z.string(),
        updatedAt: z.string(),
        mode: z.string(),
        model: z.string(),
        historyLength: z.number(),
        isBusy: z.boolean(),
      }),
    )
    .max(MAX_SESSIONS),
});

export function tellSessions({ dataDir, log, heartbeatMs = HEARTBEAT_MS }: TellingParts): SessionTelling {
  const { pid } = process;
  const folder = folderIn(dataDir);
  const path = join(folder, `${pid}-${crypto.randomUUID()}.json`);
  const about = { format: 1, pid, place: placeOfPids() ?? null, began: beginOf(pid) ?? null };
  let told: readonly SessionRecord[] = [];
  let writing: Promise<void> | undefined;
  let isStale = false;
  let hasFile = false;
  let hasWarned = false;
  let timer: Timer | undefined;

  async function write(): Promise<void> {
    while (isStale) {
      isStale = false;
      try {
        // No gateway could read it here, and an agent makes no folder in a user's project.
        if (!isFolder(dataDir)) continue;
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        if (told.length === 0) remove(path);
        else await replaceFile(path, JSON.stringify({ ...about, sessions: told.slice(0, MAX_SESSIONS) }), 0o600);
        hasFile = told.length > 0;
      } catch (error) {
        if (!hasWarned) log.warn({ folder, err: error }, "the sessions of this agent cannot be told to the admin API");
        hasWarned = true;
      }
    }
  }

  function changed(): void {
    isStale = true;
    writing ??= write().finally(() => {
      writing = undefined;
      if (isStale) changed();
    });
  }

  async function beat(): Promise<void> {
    if (told.length === 0 || writing !== undefined) return;
    const now = new Date();
    // It fails where the file is gone: after a long sleep of the machine this process may have been taken for dead.
    await utimes(path, now, now).catch(changed);
  }

  return {
    tell(sessions) {
      told = sessions;
      if (timer === undefined) {
        timer = setInterval(() => void beat(), heartbeatMs);
        timer.unref();
      }
      if (sessions.length > 0 || hasFile || writing !== undefined) changed();
    },
    async stop() {
      clearInterval(timer);
      told = [];
      isStale = false;
      await writing;
      remove(path);
    },
  };
}

function folderIn(dataDir: string): string {
  return join(dataDir, "acp", "running");
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Newest first. Files of processes that are gone are removed; what is no such file is left alone. */
export async function readRunningSessions(dataDir: string, nowMs = Date.now()): Promise<RunningSession[]> {
  const folder = folderIn(dataDir);
  const found: RunningSession[] = [];
  for (const name of fileNames(folder)) found.push(...(await sessionsIn(join(folder, name), nowMs)));
  return found.sort((one, other) => (one.updatedAt < other.updatedAt ? 1 : -1));
}

function fileNames(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => FILE_NAME.test(name))
      .slice(0, MAX_FILES);
  } catch {
    return []; // no agent has ever run here
  }
}

async function sessionsIn(path: string, nowMs: number): Promise<RunningSession[]> {
  try {
    const { size, mtimeMs } = await stat(path);
    if (size > MAX_FILE_BYTES) return [];
    const { pid, place, began, sessions } = fileSchema.parse(JSON.parse(await readFile(path, "utf8")));
    if (isAlive({ pid, place, began }, nowMs - mtimeMs)) return sessions.map((session) => ({ ...session, pid }));
    remove(path);
    return [];
  } catch {
    return []; // it went in this moment, or a newer version has written it
  }
}

function isAlive(told: { pid: number; place: string | null; began: string | null }, silentMs: number): boolean {
  if (told.place === null || told.began === null || told.place !== placeOfPids()) return silentMs < SILENT_MS;
  // The same pid at another time is another process.
  return beginOf(told.pid) === told.began;
}

/** Identifies the boot of the machine and the container in which process ids count. Undefined where this is not Linux. */
function placeOfPids(): string | undefined {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${boot} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return undefined;
  }
}

/** When a process began, in ticks since the boot (proc(5), stat, field 22); undefined: there is none, or it is a zombie. */
function beginOf(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is a name in parentheses, which may hold anything.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

/** A file that cannot be removed is not reported: its process is gone, so the file says nothing wrong. */
function remove(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {} // the folder cannot be written
}
