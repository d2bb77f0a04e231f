// Follows the configuration file: an edit becomes a version, a broken file changes nothing and is told.

import type { Clock } from "../lib/clock.ts";
import { describeChangeError } from "./change.ts";
import type { ConfigLog } from "./listeners.ts";
import { readConfigFile } from "./load.ts";
import type { ConfigStore } from "./store.ts";
import type { Path } from "./values.ts";
import { type ChangedFile, type FileWatcher, type WatchOptions, watchFiles } from "./watch.ts";

export interface ReloadFailure {
  atMs: number;
  file: string;
  /** One per problem, without values of settings. */
  problems: string[];
}

export interface ReloadStatus {
  /** False without a file. */
  enabled: boolean;
  path: string | undefined;
  /** Times that an edit was applied, or found to change nothing. */
  reloads: number;
  failures: number;
  lastReloadMs: number | undefined;
  /** Why the file as it is now does not run; undefined when it does. */
  lastFailure: ReloadFailure | undefined;
}

export interface FileReloaderOptions {
  store: ConfigStore;
  clock: Clock;
  log: ConfigLog;
  /** Of the file as it was read at start, so that an edit during the start is not lost. */
  fileHash: string | undefined;
  /** Further files that other parts read, such as prompts; absolute. */
  otherFiles?: () => readonly string[];
  otherFilesChanged?: (paths: readonly string[]) => Promise<void>;
  /** Told of every edit: whether it is in force now. */
  reloaded?: (isOk: boolean) => void;
  timing?: Pick<WatchOptions, "debounceMs" | "pollMs" | "graceMs">;
}

export interface FileReloader {
  status(): ReloadStatus;
  /** Looks at the files at once. */
  check(): Promise<void>;
  stop(): void;
}

const MAXIMUM_PROBLEMS = 20;
/** The hash of no file. */
const NOTHING_READ = "";

export function followConfigFile(options: FileReloaderOptions): FileReloader {
  const { store, clock, log, otherFiles = () => [] } = options;
  const { path } = store.current;
  const status: ReloadStatus = {
    enabled: path !== undefined,
    path,
    reloads: 0,
    failures: 0,
    lastReloadMs: undefined,
    lastFailure: undefined,
  };
  let readHash = options.fileHash;

  const included = (): readonly string[] => store.current.includedFiles ?? [];

  /** What is wrong with the file; undefined when it is in force. */
  async function reload(file: string, seenHash: string): Promise<string[] | undefined> {
    const read = await readConfigFile(file);
    if (read.hash !== undefined && read.hash !== seenHash) {
      // It is being written, and half of it, or nothing, may be a valid configuration.
      readHash = NOTHING_READ;
      return ["was changed while it was read"];
    }
    readHash = read.hash;
    const problems = read.problems.map(({ line, message }) =>
      line === undefined ? message : `line ${line}: ${message}`,
    );
    if (read.document === undefined || problems.length > 0) return problems;
    const lineOf = (at: Path): number | undefined => read.parsed?.lineOf(at);
    const result = await store.applyFile(read.document, { hash: read.hash ?? "", lineOf });
    if (result.ok) return undefined;
    const { error } = result;
    if (error.kind !== "validation") return [describeChangeError(error)];
    return error.errors.map(({ line, field, message }) => {
      const place = [...(line === undefined ? [] : [`line ${line}`]), ...(field === "" ? [] : [field])];
      return [...place, message].join(": ");
    });
  }

  async function refresh(files: readonly string[]): Promise<string[] | undefined> {
    const result = await store.refresh(`changed: ${files.join(", ")}`);
    return result.ok ? undefined : [describeChangeError(result.error)];
  }

  function succeeded(file: string): void {
    status.reloads++;
    options.reloaded?.(true);
    status.lastReloadMs = clock.wallTime();
    // The main file includes the others; they do not include it.
    if (file === path || status.lastFailure?.file === file) status.lastFailure = undefined;
  }

  function failed(file: string, problems: readonly string[]): void {
    status.failures++;
    options.reloaded?.(false);
    status.lastFailure = { atMs: clock.wallTime(), file, problems: problems.slice(0, MAXIMUM_PROBLEMS) };
    const message = "the edited configuration is refused; the running one stays";
    log.error({ file, problems: status.lastFailure.problems }, message);
  }

  /** A file that is wrong may be half written: it is refused only when it stays so. */
  async function changed(files: readonly ChangedFile[]): Promise<readonly string[]> {
    const doubted: string[] = [];
    const judge = (judged: readonly ChangedFile[], problems: readonly string[] | undefined): void => {
      const paths = judged.map((file) => file.path);
      if (problems === undefined) succeeded(paths.join(", "));
      else if (judged.every(({ isLastTime }) => isLastTime)) failed(paths.join(", "), problems);
      else doubted.push(...paths);
    };
    try {
      const main = files.find((file) => file.path === path);
      if (main !== undefined) judge([main], await reload(main.path, main.content));
      const further = files.filter((file) => file !== main);
      // Reading the main file has read what it includes as well, but its content may be the same as before.
      const includedFiles = further.filter((file) => included().includes(file.path));
      if (includedFiles.length > 0) judge(includedFiles, await refresh(includedFiles.map((file) => file.path)));
      const others = further.map((file) => file.path).filter((other) => !included().includes(other));
      const followed = others.filter((other) => otherFiles().includes(other));
      if (followed.length > 0) await options.otherFilesChanged?.(followed);
    } catch (error) {
      log.error({ err: error }, "an edited file could not be followed");
    }
    return doubted;
  }

  const watcher: FileWatcher = watchFiles({
    ...options.timing,
    files: () => [...new Set([...(path === undefined ? [] : [path]), ...included(), ...otherFiles()])],
    changed,
    contentInUse: (file) => (file === path ? readHash : undefined),
  });

  return {
    status: () => ({ ...status }),
    check: () => watcher.check(),
    stop: () => watcher.stop(),
  };
}
