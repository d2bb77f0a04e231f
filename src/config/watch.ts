// Notices edits of files: in place, by atomic replacement, by a swap of symbolic links, or after a moment of absence.

import { type FSWatcher, watch } from "node:fs";
import { open, realpath, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { contentHash, MAXIMUM_FILE_BYTES } from "./read-text.ts";

export interface WatchOptions {
  /** Absolute; asked before every look. */
  files(): readonly string[];
  /** Paths whose content is another than at the last look. */
  changed(paths: readonly string[]): Promise<void>;
  /**
   * Hash of the content that is in use, where that is known: a file that was edited between a look and the reading of it
   * counts as changed, also when it is put back as it was.
   */
  contentInUse?(path: string): string | undefined;
  /** The content must rest this long; editors write in several steps. */
  debounceMs?: number;
  /** For file systems that report nothing, and for folders that are replaced themselves. */
  pollMs?: number;
  /** A file that is missing or empty is taken so only after this long: a rewrite begins with an empty file. */
  graceMs?: number;
}

export interface FileWatcher {
  /** Looks at once. */
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
}

/** The first look only remembers what is there, and compares it with what is in use. */
export function watchFiles(options: WatchOptions): FileWatcher {
  const { debounceMs = 50, pollMs = 2_000, graceMs = 1_000 } = options;
  const states = new Map<string, FileState>();
  let watchers = new Map<string, FSWatcher>();
  let timer: Timer | undefined;
  let running: Promise<void> | undefined;
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
  function check(): Promise<void> {
    const next = (running ?? Promise.resolve()).then(look);
    running = next.finally(() => {
      if (running === next) running = undefined;
    });
    return next;
  }

  async function look(): Promise<void> {
    if (isStopped) return;
    const files = options.files();
    for (const path of states.keys()) if (!files.includes(path)) states.delete(path);
    await watchFolders(files);
    const changed: string[] = [];
    for (const path of files) if (await isChanged(path)) changed.push(path);
    if (changed.length > 0 && !isStopped) await options.changed(changed);
  }

  async function isChanged(path: string): Promise<boolean> {
    const { stamp, isOld } = await stampOf(path);
    const state = states.get(path);
    if (state === undefined) {
      const content = await contentOf(path);
      const isInUse = content === (options.contentInUse?.(path) ?? content);
      states.set(path, { stamp, content, isSettled: isOld && isInUse, absentSinceMs: undefined });
      if (!isInUse) schedule(debounceMs);
      return false;
    }
    if (stamp !== state.stamp) {
      // Still being written: it counts when it has rested.
      state.stamp = stamp;
      state.isSettled = false;
      schedule(debounceMs);
      return false;
    }
    if (state.isSettled) return false;
    const content = await contentOf(path);
    if (content === (options.contentInUse?.(path) ?? state.content)) {
      state.content = content;
      state.isSettled = isOld;
      state.absentSinceMs = undefined;
      return false;
    }
    if (content === EMPTY || content === MISSING) {
      state.absentSinceMs ??= performance.now();
      const waitedMs = performance.now() - state.absentSinceMs;
      if (waitedMs < graceMs) {
        schedule(Math.min(debounceMs, graceMs - waitedMs));
        return false;
      }
    }
    state.absentSinceMs = undefined;
    state.content = content;
    return true;
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

  const first = check();
  return {
    async check() {
      await first;
      await check();
    },
    stop() {
      isStopped = true;
      clearInterval(poll);
      clearTimeout(timer);
      timer = undefined;
      closeAll();
    },
  };
}

const MISSING = "missing";
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
    const file = await open(path, "r");
    try {
      const { size } = await file.stat();
      if (size > MAXIMUM_FILE_BYTES) return "too large";
      const bytes = await file.readFile();
      return contentHash(bytes);
    } finally {
      await file.close();
    }
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
