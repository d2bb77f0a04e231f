// What a change through the admin API may not bring in, though the configuration file may: variables of the environment,
// paths outside of the gateway's own folders, new places for secrets that the caller does not know, and credentials that
// would make a caller without any an administrator.

import { realpath } from "node:fs/promises";
import { dirname, isAbsolute, join, parse, relative, sep } from "node:path";
import { withoutCredentials } from "../../lib/without-credentials.ts";
import { filePathUse, holdsSecrets, isSecret, isUrl, specOf } from "../schema/section-patterns.ts";
import { SECTIONS } from "../sections/registry.ts";
import type { FilePathUse } from "../sections/section.ts";
import { namesVariable, variableNames } from "../values/expand.ts";
import { DATABASE_NAME, resolveDataPath, resolvePath } from "../values/paths.ts";
import { elsewhere, type Problem } from "../values/problems.ts";
import { readRedisUrl } from "../values/redis-url.ts";
import { formatPath, isMapping, type Mapping, type Path, textsOf, valueAt } from "../values/values.ts";
import { entriesLike } from "./entries.ts";

interface FencedChange {
  /**
   * The document before the change, and further ones whose content has passed before, such as the version that a
   * rollback goes back to; defaults filled in.
   */
  olds: readonly [Mapping, ...Mapping[]];
  /** The document after the change, defaults filled in. */
  next: Mapping;
  /** Where a secret stayed that the caller did not give. */
  kept: readonly Path[];
  /** An authenticated administrator may make others administrators. */
  elevated: boolean;
  /** Variables that an authenticated administrator lets an import name, as secrets; undefined for any other change. */
  confirmedVariables: readonly string[] | undefined;
}

interface FencePlace {
  /** Folder of the configuration file, or the working folder. */
  baseDir: string;
  /** Without one there is no folder of the configuration. */
  hasFile: boolean;
  dataDir: string;
  home: string | undefined;
  /** Fields that the environment sets, which win over the document. */
  overrides: readonly { variable: string; path: Path }[];
}

export async function fenceProblems(change: FencedChange, place: FencePlace): Promise<Problem[]> {
  const problems: Problem[] = [];
  for (const { text, path } of newTexts(change.next, change.olds)) {
    const message = namesVariable(text) ? variableProblem(text, path, change) : await pathProblem(text, path, place);
    if (message !== undefined) problems.push({ path, message });
  }
  // A secret that may not stand there at all is refused as that, not as one that moves.
  const moved = [...movedSecrets(change), ...movedOverrides(change, place)];
  moved.push(...newPrivateTargets(change));
  moved.push(...newMachineTargets(change), ...newHooks(change));
  if (!change.elevated) moved.push(...newAdministrators(change));
  return [...elsewhere(moved, problems), ...problems];
}

const NEW_VARIABLE =
  "names a variable that does not stand there yet; name it in the configuration file, or give the value itself ($${ is a literal ${)";

/** Credentials of the gateway itself stand under such names. */
const OWN_VARIABLE = /^SIGNALBOX_/;

/** Only as a secret: that is masked wherever the configuration is shown, so that a variable cannot be read by its name. */
function variableProblem(text: string, path: Path, change: FencedChange): string | undefined {
  const missing = unconfirmedVariables(text, path, change);
  if (missing === undefined) return NEW_VARIABLE;
  if (missing.length === 0) return undefined;
  return `${NEW_VARIABLE}, or let the import name it: "confirm_variables": ${JSON.stringify(missing)}`;
}

/** Undefined: this change cannot confirm them. */
function unconfirmedVariables(
  text: string,
  path: Path,
  { elevated, confirmedVariables }: FencedChange,
): string[] | undefined {
  const names = variableNames(text);
  const isConfirmable = isSecret(path) && names.length > 0 && !names.some((name) => OWN_VARIABLE.test(name));
  if (confirmedVariables === undefined || !elevated || !isConfirmable) return undefined;
  return names.filter((name) => !confirmedVariables.includes(name));
}

/** Every text that does not stand at the same place of one of the old documents. */
function* newTexts(value: unknown, olds: readonly unknown[], path: Path = []): Generator<{ text: string; path: Path }> {
  if (typeof value === "string") {
    if (!olds.includes(value)) yield { text: value, path };
  } else if (Array.isArray(value)) {
    const oldEntries = olds.flatMap(entriesOf);
    for (const [index, entry] of value.entries()) {
      yield* newTexts(entry, entriesLike(entry, oldEntries, path), [...path, index]);
    }
  } else if (isMapping(value)) {
    for (const [key, entry] of Object.entries(value)) {
      yield* newTexts(
        entry,
        olds.map((old) => valueAt(old, [key])),
        [...path, key],
      );
    }
  }
}

/** Secrets that stay while the place that they are sent to changes. */
function* movedSecrets(change: FencedChange): Generator<Problem> {
  const keptPlaces = new Set(change.kept.map(formatPath));
  for (const { path, value, olds, sentTo } of senders(change.next, change.olds)) {
    const isSentAsBefore = olds.some((old) => changedFields(value, old, sentTo).length === 0);
    if (isSentAsBefore) continue;
    const changed = changedFields(value, olds[0], sentTo);
    for (const secret of textsOf(value, path)) {
      if (!isSecret(secret.path) && !isUrl(secret.path)) continue;
      const isGiven = namesVariable(secret.text)
        ? unconfirmedVariables(secret.text, secret.path, change)?.length === 0
        : !keptPlaces.has(formatPath(secret.path));
      if (isGiven) continue;
      const message = `would be sent to another place, because its ${changed.join(" and ")} ${changed.length === 1 ? "changes" : "change"}; give the secret itself with the change, or make the change in the configuration file`;
      yield { path: secret.path, message };
    }
  }
}

/** The same for secrets that the environment gives to whatever stands at their place. */
function* movedOverrides({ olds, next }: FencedChange, { overrides }: FencePlace): Generator<Problem> {
  for (const { variable, path } of overrides) {
    if (!isSecret(path) && !holdsSecrets(path)) continue;
    const sentTo = specOf(path[0])?.sentTo;
    if (sentTo === undefined) continue;
    const owner = typeof path[1] === "number" ? path.slice(0, 2) : path.slice(0, 1);
    const [changed] = changedFields(valueAt(next, owner), valueAt(olds[0], owner), sentTo);
    if (changed === undefined) continue;
    const message = `decides where the secret in ${variable} is sent; change it in the configuration file`;
    yield { path: [...owner, ...changed.split(".")], message };
  }
}

/** A caller without credentials must not create any: with them it could come back and see every secret. */
function* newAdministrators({ olds, next }: FencedChange): Generator<Problem> {
  const stood = (value: unknown, path: Path) => olds.some((old) => Bun.deepEquals(value, valueAt(old, path), true));
  const auth = ["admin", "auth"];
  if (!stood(valueAt(next, auth), auth)) {
    yield {
      path: auth,
      message: "cannot be changed without credentials of the role admin; change it in the configuration file",
    };
  }
  const keys = ["api_keys", "keys"];
  const oldKeys = olds.flatMap((old) => entriesOf(valueAt(old, keys)));
  for (const [index, key] of entriesOf(valueAt(next, keys)).entries()) {
    if (!entriesOf(valueAt(key, ["scopes"])).includes("admin")) continue;
    if (oldKeys.some((old) => Bun.deepEquals(key, old, true))) continue;
    const message =
      "admin cannot be given without credentials of the role admin, nor such a key be changed; do it in the configuration file";
    yield { path: [...keys, index, "scopes"], message };
  }
}

/** The operator opens an inner address for one URL of a webhook, not for another one that comes in by the API. */
function* newPrivateTargets({ olds, next }: FencedChange): Generator<Problem> {
  const before = olds.flatMap((old) => entriesOf(old.notifications));
  for (const [index, target] of entriesOf(next.notifications).entries()) {
    if (valueAt(target, ["allow_private"]) !== true) continue;
    const stood = (old: unknown) =>
      valueAt(old, ["allow_private"]) === true && valueAt(old, ["url"]) === valueAt(target, ["url"]);
    if (before.some(stood)) continue;
    yield {
      path: ["notifications", index, "allow_private"],
      message: "can be true only for a url that the configuration file has opened; set it there",
    };
  }
}

/** Hooks are code that runs here, and addresses that get whole conversations. */
function* newHooks({ olds, next }: FencedChange): Generator<Problem> {
  if (olds.some((old) => Bun.deepEquals(old.hooks, next.hooks, true))) return;
  yield { path: ["hooks"], message: "can only be set in the configuration file" };
}

/** The machine's own credentials are no secret of the document, so nothing there moves when they are sent elsewhere. */
function* newMachineTargets({ olds, next }: FencedChange): Generator<Problem> {
  for (const { name, machineCredentials } of SECTIONS) {
    if (machineCredentials === undefined) continue;
    const { of, unless, goTo } = machineCredentials;
    const mayGo = (entry: unknown) =>
      valueAt(entry, unless.split(".")) === undefined && of.some((key) => valueAt(entry, [key]) !== undefined);
    const before = olds.flatMap((old) => entriesOf(old[name]));
    for (const [index, entry] of entriesOf(next[name]).entries()) {
      const target = valueAt(entry, [goTo]);
      if (target === undefined || !mayGo(entry)) continue;
      if (before.some((old) => mayGo(old) && valueAt(old, [goTo]) === target)) continue;
      const message =
        "cannot be set here, because credentials of this machine are sent there; leave it out, or set it in the configuration file";
      yield { path: [name, index, goTo], message };
    }
  }
}

function entriesOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Everything that sends secrets somewhere, with the same thing in the documents before, as far as it is there. */
function* senders(next: Mapping, documents: readonly Mapping[]) {
  for (const { name, sentTo } of SECTIONS) {
    if (sentTo === undefined) continue;
    const value = next[name];
    const olds = documents.map((document) => document[name]);
    if (!Array.isArray(value)) yield { path: [name], value, olds, sentTo };
    else {
      const entries = olds.flatMap(entriesOf);
      for (const [index, entry] of value.entries()) {
        yield { path: [name, index], value: entry as unknown, olds: entriesLike(entry, entries, [name]), sentTo };
      }
    }
  }
}

/** Other credentials in a URL are no other place. */
function changedFields(value: unknown, old: unknown, fields: readonly string[]): string[] {
  const placeIn = (owner: unknown, field: string) => {
    const text = valueAt(owner, field.split("."));
    return typeof text === "string" ? withoutCredentials(text) : text;
  };
  return fields.filter((field) => placeIn(value, field) !== placeIn(old, field));
}

/** Why the API may not set this path; undefined when it may, or when it is none. */
async function pathProblem(text: string, path: Path, place: FencePlace): Promise<string | undefined> {
  const named = filePathUse(path);
  if (named === undefined) return undefined;
  if ("endings" in named) {
    const { endings, isContent } = named;
    if (isContent?.(text)) return undefined;
    if (!endings.some((ending) => text.toLowerCase().endsWith(ending))) {
      return `must end in ${endings.join(", ")}; name other files in the configuration file`;
    }
  }
  if (named.use === "prompt") return isHidden(text) ? "must not lead through names that begin with a dot" : undefined;
  const file = nameOfFile(named, text);
  if (file === undefined) return undefined;
  const { folders, target } = resolved(named, file, place);
  if (!file.split("/").includes("..") && (await isInsideOneOf(target, folders))) {
    const isTaken = named.use === "written" && parse(target).base === DATABASE_NAME;
    return isTaken ? "is the database of the configuration; name another file" : undefined;
  }
  return `must lie in ${isWritten(named) ? "the data folder" : "the folder of the configuration or the data folder"}; name other places in the configuration file`;
}

/** Undefined for an address on the network. */
function nameOfFile({ use }: FilePathUse, text: string): string | undefined {
  if (use === "redis-socket") return readRedisUrl(text)?.socketPath;
  if (use !== "socket") return text;
  return text.startsWith("unix:") ? text.slice("unix:".length) : undefined;
}

function isWritten({ use }: Pick<FilePathUse, "use">): boolean {
  return use === "written" || use === "data-folder";
}

function isHidden(text: string): boolean {
  return text.split("/").some((part) => part.startsWith("."));
}

function resolved(
  { use }: FilePathUse,
  text: string,
  { baseDir, hasFile, dataDir, home }: FencePlace,
): { folders: string[]; target: string } {
  if (isWritten({ use })) return { folders: [dataDir], target: resolveDataPath(text, { dataDir, baseDir, home }) };
  // Everything lies in the root folder, where a configuration of a container may stand.
  const isOwnFolder = hasFile && baseDir !== parse(baseDir).root;
  const target = resolvePath(text, baseDir, home);
  return { folders: [dataDir, ...(isOwnFolder ? [baseDir] : [])], target };
}

async function isInsideOneOf(path: string, folders: readonly string[]): Promise<boolean> {
  const real = await realTarget(path);
  for (const folder of folders) {
    const way = relative(await realTarget(folder), real);
    if (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way)) return true;
  }
  return false;
}

/** Where a path leads behind all symbolic links, as far as its parts exist. */
async function realTarget(path: string): Promise<string> {
  const found = await realpath(path).catch(() => undefined);
  if (found !== undefined) return found;
  const folder = dirname(path);
  return folder === path ? path : join(await realTarget(folder), parse(path).base);
}
