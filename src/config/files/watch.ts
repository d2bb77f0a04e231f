// Notices edits of files: in place, by atomic replacement, by a swap of symbolic links, or after a moment of absence.

import { type FSWatcher, watch } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { createSerial } from "../../lib/serial.ts";
import { contentHash, readBytes } from "./read-text.ts";

export interface FileWatchOptions {
  /** Absolute; asked before every look. */
  files(): readonly string[];
  /**
   * Files whose content is another than at the last look. Resolves to the paths of those that are wrong, and are perhaps
   * only half written: they are reported again when they change, and for the last time when they have stayed so for `graceMs`.
   */
  changed(files: readonly ChangedFile[]): Promise<readonly string[]>;
  /**
   * Hash of the content that is in use, where that is known: a file that was edited between a look and the reading of it
   * counts as changed, also when it is put back as it was.
   */
  contentInUse?(path: string): string | undefined;
  /** The content must rest this long; editors write in several steps. */
  debounceMs?: number;
  /** For file systems that report nothing, and for folders that are replaced themselves. */
  pollMs?: number;
  /** A file that is missing, empty or wrong is taken so only after this long: a rewrite passes through all of that. */
  graceMs?: number;
}

export interface ChangedFile {
  path: string;
  /** Hash of the content that was seen; the file may have changed again since. */
  content: string;
  /** From now on it is what it is, also if that is wrong. */
  isLastTime: boolean;
}

export interface FileWatcher {
  check(): Promise<void>;
  stop(): void;
}

interface FileState {
  /** Changes with every write. */
  stamp: string;
  content: string;
  /** The content was read long after the last write: as long as the stamp stays, so does the content. */
  isSettled: boolean;
  /** Since when it has been missing or empty, without that being told. */
  absentSinceMs: number | undefined;
  /** It was reported, and is wrong: since when this content, and since when any. */
  doubt: { contentSinceMs: number; sinceMs: number } | undefined;
}

/** So many times the grace, and a file that is wrong and written all the time is reported for the last time. */
const LONGEST_DOUBT = 3;

/** The first look only remembers what is there, and compares it with what is in use. */
export function watchFiles(options: FileWatchOptions): FileWatcher {
  const { debounceMs = 50, pollMs = 2_000, graceMs = 1_000 } = options;
  const states = new Map<string, FileState>();
  let watchers = new Map<string, FSWatcher>();
  let timer: Timer | undefined;
  const serial = createSerial(Number.POSITIVE_INFINITY);
  let isStopped = false;

  const poll = setInterval(() => schedule(0), pollMs);
  poll.unref();

  function schedule(delayMs: number): void {
    if (isStopped || timer !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      void check();
    }, delayMs);
    timer.unref();
  }

  /** One look at a time; who asks during one gets another one after it. */
  async function check(): Promise<void> {
    await serial.run(look);
  }

  async function look(): Promise<void> {
    if (isStopped) return;
    const files = options.files();
    for (const path of states.keys()) if (!files.includes(path)) states.delete(path);
    await watchFolders(files);
    const changed: ChangedFile[] = [];
    for (const path of files) {
      const file = await lookAt(path);
      if (file !== undefined) changed.push(file);
    }
    if (changed.length === 0 || isStopped) return;
    const wrong = await options.changed(changed);
    for (const { path, isLastTime } of changed) noteDoubt(path, wrong.includes(path) && !isLastTime);
  }

  function noteDoubt(path: string, isWrong: boolean): void {
    const state = states.get(path);
    if (state === undefined) return;
    const nowMs = performance.now();
    state.doubt = isWrong ? { contentSinceMs: nowMs, sinceMs: state.doubt?.sinceMs ?? nowMs } : undefined;
    if (isWrong) schedule(Math.min(debounceMs, graceMs));
  }

  /** How long a file that is wrong may still be so, and how long it may stay as it is. */
  function patienceMs({ doubt }: FileState): { overall: number; asItIs: number } {
    if (doubt === undefined) return { overall: Number.POSITIVE_INFINITY, asItIs: Number.POSITIVE_INFINITY };
    const nowMs = performance.now();
    const overall = doubt.sinceMs + LONGEST_DOUBT * graceMs - nowMs;
    return { overall, asItIs: Math.min(doubt.contentSinceMs + graceMs - nowMs, overall) };
  }

  /** Undefined when there is nothing to tell, or not yet. */
  async function lookAt(path: string): Promise<ChangedFile | undefined> {
    const { stamp, isOld } = await stampOf(path);
    const state = states.get(path);
    if (state === undefined) {
      const content = await contentOf(path);
      const isInUse = content === (options.contentInUse?.(path) ?? content);
      states.set(path, { stamp, content, isSettled: isOld && isInUse, absentSinceMs: undefined, doubt: undefined });
      if (!isInUse) schedule(debounceMs);
      return undefined;
    }
    const patience = patienceMs(state);
    if (stamp !== state.stamp) {
      // Still being written: it counts when it has rested.
      state.stamp = stamp;
      state.isSettled = false;
      state.absentSinceMs = undefined;
      if (patience.overall > 0) {
        schedule(debounceMs);
        return undefined;
      }
    }
    if (state.isSettled && state.doubt === undefined) return undefined;
    const content = await contentOf(path);
    if (content === (options.contentInUse?.(path) ?? state.content)) {
      state.content = content;
      state.isSettled = isOld;
      state.absentSinceMs = undefined;
      if (state.doubt === undefined) return undefined;
      if (patience.asItIs <= 0) return { path, content, isLastTime: true };
      schedule(Math.min(debounceMs, patience.asItIs));
      return undefined;
    }
    if (content === EMPTY || content === MISSING) {
      state.absentSinceMs ??= performance.now();
      const waitedMs = performance.now() - state.absentSinceMs;
      if (waitedMs < graceMs) {
        schedule(Math.min(debounceMs, graceMs - waitedMs));
        return undefined;
      }
    }
    const hasRested = state.absentSinceMs !== undefined;
    state.absentSinceMs = undefined;
    state.content = content;
    return { path, content, isLastTime: hasRested || patience.overall <= 0 };
  }

  /** The folders of the files, and those that symbolic links lead to. */
  async function watchFolders(files: readonly string[]): Promise<void> {
    const wanted = new Map<string, string>();
    for (const path of files) {
      for (const folder of new Set([dirname(path), dirname(await realPathOf(path))])) {
        // A folder that was replaced has another number, and its watch has gone blind.
        wanted.set(`${folder}\0${await folderNumber(folder)}`, folder);
      }
    }
    const kept = new Map<string, FSWatcher>();
    for (const [key, watcher] of watchers) {
      if (wanted.has(key)) kept.set(key, watcher);
      else watcher.close();
    }
    for (const [key, folder] of wanted) {
      if (kept.has(key) || isStopped) continue;
      const watcher = tryWatch(folder, () => schedule(debounceMs));
      if (watcher !== undefined) kept.set(key, watcher);
    }
    watchers = kept;
    if (isStopped) closeAll();
  }

  function closeAll(): void {
    for (const watcher of watchers.values()) watcher.close();
    watchers = new Map();
  }

  void check();
  return {
    check,
    stop() {
      isStopped = true;
      clearInterval(poll);
      clearTimeout(timer);
      timer = undefined;
      closeAll();
    },
  };
}

/** Stands for the hash of a file that is not there. */
export const MISSING = "missing";
const EMPTY = contentHash(new Uint8Array());

/** Where it fails, the poll alone must do. */
function tryWatch(folder: string, changed: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(folder, { persistent: false }, changed);
    watcher.on("error", () => watcher.close());
    return watcher;
  } catch {
    return undefined; // no such folder, or the system's number of watches is used up
  }
}

/** Two writes within one tick of the file system's clock have one stamp. */
const CLOCK_TICK_MS = 1_000;

async function stampOf(path: string): Promise<{ stamp: string; isOld: boolean }> {
  try {
    const { mtimeNs, ctimeNs, size, ino, dev } = await stat(path, { bigint: true });
    const stamp = [mtimeNs, ctimeNs, size, ino, dev].join(" ");
    return { stamp, isOld: Date.now() - Number(ctimeNs / 1_000_000n) > CLOCK_TICK_MS };
  } catch (error) {
    return { stamp: (error as NodeJS.ErrnoException).code ?? MISSING, isOld: false };
  }
}

/** A hash of what is in the file, or what is wrong with it. */
async function contentOf(path: string): Promise<string> {
  try {
    const bytes = await readBytes(path);
    return bytes === undefined ? "too large" : contentHash(bytes);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === undefined || code === "ENOENT" ? MISSING : code;
  }
}

async function realPathOf(path: string): Promise<string> {
  return await realpath(path).catch(() => path);
}

async function folderNumber(folder: string): Promise<string> {
  return await stat(folder).then(
    ({ dev, ino }) => `${dev} ${ino}`,
    () => MISSING,
  );
}
