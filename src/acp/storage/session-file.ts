// The file of one session: a line of JSON for each thing that happened. A half last line is what a crash leaves, and counts
// as not written; any other line that cannot be read is damage.

import { closeSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { Message } from "../../generation/content.ts";
import { isEffort } from "../../generation/reasoning-effort.ts";
import { isObject, type JsonObject, parseObject } from "../../lib/json.ts";
import { otherWork } from "../../lib/other-work.ts";
import { isMode } from "../wire/config-options.ts";
import { withResults } from "./open-calls.ts";
import type { SessionHead, SessionLog, SessionRecord, StoredChoices, StoredSession } from "./store.ts";

const FORMAT_VERSION = 1;
const LINE_FEED = 10;

/** Where the head of a session and its title stand. */
const HEAD_BYTES = 16 * 1024;

/** Others go on after so much of a long conversation. */
const PIECE_BYTES = 1024 * 1024;

const encoder = new TextEncoder();

/** The content of the file cannot be read. */
export class DamagedFile extends Error {
  override readonly name = "DamagedFile";
}

/** Creates the file; it must not be there yet. Throws the file system's error. */
export function createSessionFile(path: string, session: SessionHead & StoredChoices): SessionLog {
  const descriptor = openSync(path, "ax", 0o600);
  const log = logTo(descriptor, 0);
  const { sessionId, createdAt, cwd, additionalDirectories, mode, model, effort } = session;
  const head = { sessionId, createdAt, cwd, additionalDirectories, mode, model, effort };
  try {
    log.write({ type: "session", version: FORMAT_VERSION, ...head });
  } catch (error) {
    log.close();
    throw error;
  }
  return log;
}

/** For what comes next; a half last line is cut off. */
export function appendToSessionFile(path: string, wholeBytes: number): SessionLog {
  const descriptor = openSync(path, "a", 0o600);
  try {
    if (fstatSync(descriptor).size > wholeBytes) ftruncateSync(descriptor, wholeBytes);
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
  return logTo(descriptor, wholeBytes);
}

function logTo(descriptor: number, startBytes: number): SessionLog & { write(record: object): void } {
  let sizeBytes = startBytes;
  let isOpen = true;
  function write(record: object): void {
    if (!isOpen) return;
    const line = encoder.encode(`${JSON.stringify(record)}\n`);
    try {
      for (let written = 0; written < line.length; ) written += writeSync(descriptor, line, written);
    } catch (error) {
      // A full disk may have taken a part of it.
      ftruncateSync(descriptor, sizeBytes);
      throw error;
    }
    sizeBytes += line.length;
  }
  return {
    write,
    append: write,
    get sizeBytes() {
      return sizeBytes;
    },
    close() {
      if (isOpen) closeSync(descriptor);
      isOpen = false;
    },
  };
}

/** Throws DamagedFile. `wholeBytes`: up to the end of the last whole line. */
export async function readSessionFile(path: string): Promise<{ session: StoredSession; wholeBytes: number }> {
  const bytes = new Uint8Array(await readFile(path));
  let session: StoredSession | undefined;
  let start = 0;
  let pauseAt = PIECE_BYTES;
  for (let end = bytes.indexOf(LINE_FEED); end >= 0; end = bytes.indexOf(LINE_FEED, start)) {
    const record = parseObject(new TextDecoder().decode(bytes.subarray(start, end)));
    if (record === undefined) throw new DamagedFile(`the line at byte ${start} is no JSON object`);
    if (session === undefined) session = readHead(record);
    else apply(session, record, start);
    start = end + 1;
    if (start < pauseAt) continue;
    pauseAt = start + PIECE_BYTES;
    await otherWork();
  }
  if (session === undefined) throw new DamagedFile("it has no first line");
  session.history = withResults(session.history);
  return { session, wholeBytes: start };
}

/** The head alone, from the first part of the file; undefined where it cannot be read. */
export function readSessionHead(path: string): SessionHead | undefined {
  const descriptor = openSync(path, "r");
  try {
    const bytes = new Uint8Array(HEAD_BYTES);
    const count = readSync(descriptor, bytes);
    const lines = new TextDecoder().decode(bytes.subarray(0, count)).split("\n").slice(0, -1);
    const [first, ...rest] = lines.map(parseObject);
    if (first === undefined) return undefined;
    const session = readHead(first);
    for (const record of rest) if (record?.type === "title" || record?.type === "place") apply(session, record, 0);
    return { ...session, updatedAt: fstatSync(descriptor).mtime.toISOString() };
  } catch (error) {
    if (error instanceof DamagedFile) return undefined;
    throw error;
  } finally {
    closeSync(descriptor);
  }
}

function readHead(record: JsonObject): StoredSession {
  const { type, version, sessionId, createdAt, cwd } = record;
  if (type !== "session" || typeof sessionId !== "string" || typeof createdAt !== "string" || typeof cwd !== "string") {
    throw new DamagedFile("its first line is no head of a session");
  }
  if (version !== FORMAT_VERSION)
    throw new DamagedFile(`its format is version ${version}, which this release cannot read`);
  return {
    sessionId,
    createdAt,
    updatedAt: createdAt,
    cwd,
    additionalDirectories: textsOf(record.additionalDirectories),
    title: undefined,
    mode: "code",
    model: undefined,
    ...choicesOf(record),
    effort: isEffort(record.effort) ? record.effort : undefined,
    history: [],
    calls: new Map(),
  };
}

/** Records of a kind that this release does not know are left out. */
function apply(session: StoredSession, written: JsonObject, at: number): void {
  const record = written as Partial<SessionRecord> & JsonObject;
  if (typeof record.at === "string") session.updatedAt = record.at;
  switch (record.type) {
    case "message":
      if (!isMessage(record.message)) throw new DamagedFile(`the line at byte ${at} holds no message`);
      session.history.push(record.message);
      return;
    case "choices":
      Object.assign(session, choicesOf(record), { effort: isEffort(record.effort) ? record.effort : undefined });
      return;
    case "title":
      if (typeof record.title === "string") session.title = record.title;
      return;
    case "place":
      if (typeof record.cwd === "string") session.cwd = record.cwd;
      session.additionalDirectories = textsOf(record.additionalDirectories);
      return;
    case "call": {
      const { id, title, kind, locations } = record;
      if (id !== undefined && title !== undefined && kind !== undefined && locations !== undefined) {
        session.calls.set(id, { title, kind, locations });
      }
    }
  }
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

function choicesOf({ mode, model }: JsonObject): Partial<StoredChoices> {
  return { ...(isMode(mode) && { mode }), ...(typeof model === "string" && { model }) };
}

function isMessage(value: unknown): value is Message {
  if (!isObject(value) || !Array.isArray(value.parts)) return false;
  return ["user", "assistant", "system"].includes(value.role as string) && value.parts.every(isObject);
}
