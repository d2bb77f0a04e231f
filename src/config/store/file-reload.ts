// Follows the configuration file: an edit becomes a version, a broken file changes nothing and is reported.

import type { Clock } from "../../lib/clock.ts";
import { describeChangeError } from "../change/change.ts";
import { AttachmentProblem } from "../compile/attachments.ts";
import { readConfigFile } from "../compile/load.ts";
import { type ChangedFile, type FileWatcher, type FileWatchOptions, watchFiles } from "../files/watch.ts";
import { describeProblem, type Problem, toFieldProblem } from "../values/problems.ts";
import type { ConfigLog } from "./listeners.ts";
import type { ConfigStore } from "./store.ts";

interface ReloadFailure {
  atMs: number;
  file: string;
  /** One per problem, without values of settings. */
  problems: string[];
}

export interface ReloadStatus {
  enabled: boolean;
  path: string | undefined;
  /** Times that an edit was applied, or found to change nothing. */
  reloads: number;
  failures: number;
  lastReloadMs: number | undefined;
  /** Why the file as it is now does not run; undefined when it does. */
  lastFailure: ReloadFailure | undefined;
}

export interface FileReloaderParts {
  store: ConfigStore;
  clock: Clock;
  log: ConfigLog;
  /** Of the file as it was read at start, so that an edit during the start is not lost. */
  fileHash: string | undefined;
  /** Called after each edit: whether it is in force now. */
  reloaded?: (isOk: boolean) => void;
  /** An edit was refused; the problems hold no values of settings. */
  refused?: (file: string, problems: readonly string[]) => void;
  timing?: Pick<FileWatchOptions, "debounceMs" | "pollMs" | "graceMs">;
}

export interface FileReloader extends FileWatcher {
  status(): ReloadStatus;
}

const MAXIMUM_PROBLEMS = 20;
/** Equals the hash of no file. */
const NOTHING_READ = "";

export function followConfigFile(options: FileReloaderParts): FileReloader {
  const { store, clock, log } = options;
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

  const included = () => store.current.includedFiles;
  const attached = () => store.current.attachments.files;
  /** Contents of further files that could not be used, by path: the watcher counts them as seen. */
  const refused = new Map<string, string>();

  /** Returns the problems of the file; undefined when it is in force. */
  async function reload(file: string, seenHash: string): Promise<string[] | undefined> {
    const read = await readConfigFile(file);
    if (read.hash !== undefined && read.hash !== seenHash) {
      // It is being written, and half of it, or nothing, may be a valid configuration.
      readHash = NOTHING_READ;
      return ["was changed while it was read"];
    }
    readHash = read.hash;
    if (read.document === undefined || read.problems.length > 0) return read.problems.map(tell);
    // An empty file is a failed save, not a request for the defaults.
    if (read.isEmpty) return ["is empty; write {} for the defaults"];
    const { document, hash = "", lineOf } = read;
    const result = await store.applyFile(document, { hash, lineOf });
    if (result.ok) return undefined;
    const { error } = result;
    return error.kind === "validation" ? error.problems.map(tell) : [describeChangeError(error)];
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
    options.refused?.(file, status.lastFailure.problems);
  }

  /** A file that is wrong may be half written: it is refused only when it stays so. */
  async function changed(files: readonly ChangedFile[]): Promise<readonly string[]> {
    const doubted: string[] = [];
    for (const known of refused.keys()) if (!included().has(known) && !attached().has(known)) refused.delete(known);
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
      for (const { path: seen, content } of further) refused.set(seen, content);
      const includedFiles = further.filter((file) => included().has(file.path));
      if (includedFiles.length > 0) {
        const result = await store.refresh(`changed: ${includedFiles.map((file) => file.path).join(", ")}`);
        if (result.ok) for (const file of includedFiles) refused.delete(file.path);
        judge(includedFiles, result.ok ? undefined : [describeChangeError(result.error)]);
      }
      const others = further.filter((file) => !included().has(file.path) && attached().has(file.path));
      if (others.length > 0) {
        const problem = await store.reattach();
        if (problem !== undefined) throw new AttachmentProblem(problem);
        for (const file of others) refused.delete(file.path);
        log.info({ files: others.map((file) => file.path) }, "files that the configuration names were read again");
      }
    } catch (error) {
      log.error({ err: error }, "an edited file could not be followed");
    }
    return doubted;
  }

  const watcher = watchFiles({
    ...options.timing,
    files: () => [...new Set([...(path === undefined ? [] : [path]), ...included().keys(), ...attached().keys()])],
    changed,
    contentInUse: (file) =>
      file === path ? readHash : (refused.get(file) ?? included().get(file) ?? attached().get(file)),
  });

  return { ...watcher, status: () => ({ ...status }) };
}

function tell(problem: Problem): string {
  const { line } = toFieldProblem(problem);
  return line === undefined ? describeProblem(problem) : `line ${line}: ${describeProblem(problem)}`;
}
