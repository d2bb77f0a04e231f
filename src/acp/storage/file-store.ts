// A folder with one file per session, which several processes may share. Names are made of UUIDs and of nothing else that a
// client says.
//
// It holds 1,000 sessions and 1 GiB: when another one is created, those that were changed longest ago go first. One that a
// process holds stays, and so does one that cannot be read, because it may still be repaired.

import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "../../logging/logger.ts";
import { RPC, RpcError } from "../rpc-error.ts";
import {
  appendToSessionFile,
  createSessionFile,
  DamagedFile,
  readSessionFile,
  readSessionHead,
} from "./session-file.ts";
import { heldSessions, holdSession, isHeldByOthers } from "./session-lock.ts";
import type { SessionLog, SessionStore } from "./store.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const SUFFIX = ".jsonl";

interface StoreLimits {
  maxSessions: number;
  maxBytes: number;
  /** A file beyond this is not read: it would take too much memory. */
  maxFileBytes: number;
}

const LIMITS: StoreLimits = { maxSessions: 1_000, maxBytes: 1024 ** 3, maxFileBytes: 256 * 1024 ** 2 };

interface StoredEntry {
  sessionId: string;
  bytes: number;
  changedMs: number;
}

export function fileStore(folder: string, log: Logger, limits: StoreLimits = LIMITS): SessionStore {
  const pathOf = (sessionId: string) => join(folder, sessionId + SUFFIX);

  async function makeRoom(): Promise<void> {
    const entries = entriesOf(folder);
    let bytes = entries.reduce((sum, each) => sum + each.bytes, 0);
    let count = entries.length;
    if (count < limits.maxSessions && bytes < limits.maxBytes) return;
    const held = heldSessions(folder);
    for (const entry of entries.reverse()) {
      if (count < limits.maxSessions && bytes < limits.maxBytes) return;
      const { sessionId } = entry;
      if (held.has(sessionId) || !(await canBeRead(pathOf(sessionId)))) continue;
      rmSync(pathOf(sessionId), { force: true });
      count--;
      bytes -= entry.bytes;
      log.info({ sessionId }, "an old ACP session was removed to make room");
    }
  }

  return {
    async create(session) {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      await makeRoom();
      const giveBack = holdSession(folder, session.sessionId);
      if (giveBack === undefined) throw inUse(session.sessionId);
      return held(giveBack, () => createSessionFile(pathOf(session.sessionId), session));
    },
    async open(sessionId) {
      const path = pathOf(sessionId);
      if (!UUID.test(sessionId) || !existsSync(path)) return undefined;
      const giveBack = holdSession(folder, sessionId);
      if (giveBack === undefined) throw inUse(sessionId);
      try {
        if (statSync(path).size > limits.maxFileBytes) throw new DamagedFile("it is too large to be read");
        const { session, wholeBytes } = await readSessionFile(path);
        if (session.sessionId !== sessionId) throw new DamagedFile("it holds another session");
        return { session, log: held(giveBack, () => appendToSessionFile(path, wholeBytes)) };
      } catch (error) {
        giveBack();
        if (!(error instanceof DamagedFile)) throw error;
        log.error({ sessionId, path, problem: error.message }, "the file of an ACP session cannot be read");
        throw damaged(sessionId, error);
      }
    },
    async *list() {
      for (const { sessionId } of entriesOf(folder)) {
        const head = headOf(pathOf(sessionId));
        if (head?.sessionId === sessionId) yield head;
      }
    },
    delete(sessionId) {
      const path = pathOf(sessionId);
      if (!UUID.test(sessionId) || !existsSync(path)) return false;
      if (isHeldByOthers(folder, sessionId)) throw inUse(sessionId);
      rmSync(path, { force: true });
      return true;
    },
  };
}

/** Gives the lock back when the log is closed, or cannot be opened. */
function held(giveBack: () => void, open: () => SessionLog): SessionLog {
  let log: SessionLog;
  try {
    log = open();
  } catch (error) {
    giveBack();
    throw error;
  }
  return {
    append: (record) => log.append(record),
    get sizeBytes() {
      return log.sizeBytes;
    },
    close() {
      log.close();
      giveBack();
    },
  };
}

/** The latest first. */
function entriesOf(folder: string): StoredEntry[] {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder).flatMap((file): StoredEntry | StoredEntry[] => {
    const sessionId = file.slice(0, -SUFFIX.length);
    if (!file.endsWith(SUFFIX) || !UUID.test(sessionId)) return [];
    const stat = statSync(join(folder, file), { throwIfNoEntry: false });
    return stat === undefined ? [] : { sessionId, bytes: stat.size, changedMs: Math.floor(stat.mtimeMs) };
  });
  return entries.sort((one, other) => other.changedMs - one.changedMs || (one.sessionId < other.sessionId ? -1 : 1));
}

/** Another process may have removed it just now. */
function headOf(path: string) {
  try {
    return readSessionHead(path);
  } catch {
    return undefined;
  }
}

async function canBeRead(path: string): Promise<boolean> {
  try {
    await readSessionFile(path);
    return true;
  } catch {
    return false;
  }
}

function inUse(sessionId: string): RpcError {
  const message = "Another process holds this session: close it there first.";
  return new RpcError(RPC.application, message, { reason: "session_in_use", sessionId });
}

function damaged(sessionId: string, cause: DamagedFile): RpcError {
  const message = `The file of this session cannot be read: ${cause.message}. It was left as it is; the log names it.`;
  return new RpcError(RPC.application, message, { reason: "session_damaged", sessionId }, cause);
}
