// The prompt files of prompts_dir as the admin API sees them: listed, read and written, and never a step outside of it.

import { constants, type Dirent } from "node:fs";
import { type FileHandle, mkdir, open, readdir, stat, unlink } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import { PROMPT_ENDINGS } from "../config/sections/global-prompts.ts";
import type { Settings } from "../config/sections/registry.ts";
import { resolvePath } from "../config/values/paths.ts";
import { formatPath } from "../config/values/values.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { replaceFile } from "../lib/replace-file.ts";
import {
  isInside,
  LARGEST_PROMPT_BYTES,
  LARGEST_PROMPTS_BYTES,
  namedFiles,
  type PromptFolder,
  realPath,
} from "../prompts/prompt-files.ts";

export interface PromptDirectory extends PromptFolder {
  settings: Settings["global_prompts"];
}

/** Only such files are read and written: a folder may hold others, which are not for the admin API. */
const EXTENSIONS: readonly string[] = PROMPT_ENDINGS;
const MAXIMUM_DEPTH = 8;
const MAXIMUM_PATH_BYTES = 1024;
const MAXIMUM_NAME_BYTES = 255;

/** Paths that are taken, as the document describes them; `partsOf` says which rule a path breaks. */
export const PROMPT_PATH_PATTERN = promptPathPattern();

function promptPathPattern(): string {
  const name = "[^\\x00-\\x1f\\x7f\\\\/.][^\\x00-\\x1f\\x7f\\\\/]*";
  const anyCase = (ending: string) => ending.replaceAll(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
  const endings = EXTENSIONS.map((extension) => anyCase(extension.slice(1))).join("|");
  return `^(${name}/){0,${MAXIMUM_DEPTH - 1}}${name}\\.(${endings})$`;
}
/** More files than anybody has prompts. */
const MAXIMUM_FILES = 1_000;
/** Entries of folders that are looked at, whatever they are. */
const MAXIMUM_LOOKS = 10_000;

/** All prompt files, by their paths below prompts_dir, with the keys that name them; without the folder there are none. */
export async function listPrompts(directory: PromptDirectory) {
  const root = await realPath(rootOf(directory));
  if (root === undefined) return [];
  const users = await usersOf(directory, root);
  const found = new Map<string, FoundFile>();
  for await (const file of walk(root)) found.set(file.path, file);
  // A file that the configuration names counts as a prompt whatever its name.
  for (const { path, real } of users) {
    const file = found.has(path) ? undefined : await fileAt(real, path);
    if (file !== undefined) found.set(path, file);
  }
  return [...found.values()]
    .sort((one, other) => (one.path < other.path ? -1 : 1))
    .map(({ path, real, size, modifiedMs }) => ({
      path,
      size,
      modified_at: new Date(modifiedMs).toISOString(),
      used_by: users.filter((user) => user.real === real).map(({ key }) => key),
    }));
}

/** Throws 400 for a path that is not allowed or no prompt, 404 where there is no file. */
export async function readPromptFile(directory: PromptDirectory, path: string) {
  const { parts, real } = await existingFile(directory, path);
  let file: FileHandle;
  try {
    // A pipe must not hold the answer, and a link that has come meanwhile is not followed.
    file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const message = `The prompt file cannot be read: ${code ?? "unknown error"}.`;
    throw new GatewayError(ERRORS.internal, message, { cause: error });
  }
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw refusal("leads to something that is not a file");
    if (stats.size > LARGEST_PROMPT_BYTES) throw refusal("leads to a file that is larger than 1 MiB");
    const bytes = await file.readFile();
    return {
      path: parts.join("/"),
      content: decode(bytes),
      size: bytes.length,
      modified_at: stats.mtime.toISOString(),
    };
  } finally {
    await file.close();
  }
}

/** Throws 404 where there is no file, and 409 while the configuration names it. One call at a time. */
export async function removePromptFile(directory: PromptDirectory, path: string): Promise<void> {
  const { parts, root, real } = await existingFile(directory, path);
  if (!(await stat(real)).isFile()) throw refusal("leads to something that is not a file");
  const users = (await usersOf(directory, root)).filter((user) => user.real === real).map(({ key }) => key);
  if (users.length > 0) {
    const message = `The prompt file is named by ${users.join(", ")}; change the configuration first.`;
    throw new GatewayError(ERRORS.conflict, message, { param: "path", details: { used_by: users } });
  }
  try {
    // Of a link the link goes, and what it leads to stays.
    await unlink(join(root, ...parts));
  } catch (error) {
    throw notWritten(error);
  }
}

/** Throws 400 for a path that is not allowed, 404 where nothing is. */
async function existingFile(directory: PromptDirectory, path: string) {
  const parts = partsOf(path);
  const root = await realPath(rootOf(directory));
  const real = root === undefined ? undefined : await realPath(join(root, ...parts));
  if (root === undefined || real === undefined) {
    const message = "There is no such prompt file; GET /admin/config/prompts lists them.";
    throw new GatewayError(ERRORS.routeNotFound, message, { param: "path" });
  }
  if (!isInside(real, root)) throw leadsOut();
  return { parts, root, real };
}

/**
 * Replaces the file as a whole, or creates it and the folders on its way. Throws 400, 413, and 503 when the file system
 * refuses. One call at a time: the sizes of all files together are bounded. `names` are those by which the configuration
 * calls this file.
 */
export async function writePromptFile(directory: PromptDirectory, path: string, content: string) {
  const parts = partsOf(path);
  if (!content.isWellFormed()) {
    const message = "'content' has halves of surrogate pairs, which no file can hold.";
    throw new GatewayError(ERRORS.invalidRequest, message, { param: "content" });
  }
  const bytes = Buffer.from(content);
  if (bytes.length > LARGEST_PROMPT_BYTES) throw tooLarge("A prompt file must not be larger than 1 MiB.");
  try {
    const root = await madeFolder(rootOf(directory));
    const target = join(root, ...parts);
    const existing = await realPath(target);
    if (existing !== undefined && !isInside(existing, root)) throw leadsOut();
    const before = existing === undefined ? undefined : await stat(existing);
    if (before !== undefined && !before.isFile()) throw refusal("leads to something that is not a file");
    await requireRoom(root, bytes.length, before?.size);
    const parent = existing === undefined ? await madeParent(root, dirname(target)) : dirname(existing);
    const real = existing ?? join(parent, basename(target));
    await replaceFile(real, bytes, before === undefined ? 0o644 : before.mode & 0o777);
    const users = await usersOf(directory, root);
    const names = users.filter((user) => user.real === real).map(({ name }) => name);
    return { wasCreated: before === undefined, names: [...new Set(names)] };
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    throw notWritten(error);
  }
}

function rootOf({ settings, baseDir, home }: PromptDirectory): string {
  return resolvePath(settings.prompts_dir, baseDir, home);
}

/** The parts of a decoded path from a client, every one of them an ordinary name. Throws 400. */
function partsOf(path: string): string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\0-\x1f\x7f\\]/.test(path)) throw refusal("must not contain control characters or backslashes");
  if (path.startsWith("/")) throw refusal("must be relative to prompts_dir");
  const parts = path.split("/");
  if (parts.some((part) => part === "" || part === "." || part === "..")) {
    throw refusal("must not contain empty parts, '.' or '..'; it is relative to prompts_dir");
  }
  if (parts.some((part) => part.startsWith("."))) throw refusal("must not contain names that begin with a dot");
  if (parts.length > MAXIMUM_DEPTH) throw refusal(`must not be deeper than ${MAXIMUM_DEPTH} folders`);
  const isLong = parts.some((part) => Buffer.byteLength(part) > MAXIMUM_NAME_BYTES);
  if (isLong || Buffer.byteLength(path) > MAXIMUM_PATH_BYTES) throw refusal("is too long");
  if (!isPromptName(path)) throw refusal(`must end in ${EXTENSIONS.join(", ")}`);
  return parts;
}

function isPromptName(name: string): boolean {
  return EXTENSIONS.some((extension) => name.toLowerCase().endsWith(extension));
}

interface FoundFile {
  /** Relative to prompts_dir, with slashes. */
  path: string;
  real: string;
  size: number;
  modifiedMs: number;
}

/** Undefined for what is not a file, or gone. */
async function fileAt(real: string, path: string): Promise<FoundFile | undefined> {
  try {
    const stats = await stat(real);
    return stats.isFile() ? { path, real, size: stats.size, modifiedMs: stats.mtimeMs } : undefined;
  } catch {
    return undefined; // removed while it was looked at
  }
}

/** Prompt files in a folder and in the folders below it; links lead to files, not to folders. */
async function* walk(root: string): AsyncGenerator<FoundFile> {
  const pending: { folder: string; depth: number }[] = [{ folder: root, depth: 1 }];
  let looks = 0;
  let files = 0;
  for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
    const { folder, depth } = next;
    for (const entry of await entriesOf(folder)) {
      if (++looks > MAXIMUM_LOOKS || files >= MAXIMUM_FILES) return;
      const path = join(folder, entry.name);
      if (entry.isDirectory() && depth < MAXIMUM_DEPTH) pending.push({ folder: path, depth: depth + 1 });
      if (!isPromptName(entry.name) || !(entry.isFile() || entry.isSymbolicLink())) continue;
      const real = entry.isSymbolicLink() ? await realPath(path) : path;
      if (real === undefined || !isInside(real, root)) continue;
      const file = await fileAt(real, wirePath(root, path));
      if (file === undefined) continue;
      files++;
      yield file;
    }
  }
}

/** Names that begin with a dot are those of editors, version control and mounts. */
async function entriesOf(folder: string): Promise<Dirent[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.filter(({ name }) => !name.startsWith(".")).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return []; // a folder that cannot be read has nothing to show
  }
}

interface PromptUser {
  /** The key that names the file, as it is written in messages. */
  key: string;
  name: string;
  real: string;
  path: string;
}

/** Which keys of the configuration name which files; those that lead nowhere or out of the folder are left out. */
async function usersOf({ settings, home }: PromptDirectory, root: string): Promise<PromptUser[]> {
  const users: PromptUser[] = [];
  for (const { path: key, name } of namedFiles(settings)) {
    const named = resolvePath(name, root, home);
    const real = isInside(named, root) ? await realPath(named) : undefined;
    if (real === undefined || !isInside(real, root)) continue;
    users.push({ key: formatPath(key), name, real, path: wirePath(root, named) });
  }
  return users;
}

function wirePath(root: string, path: string): string {
  return relative(root, path).split(sep).join("/");
}

/** Throws 413 when the files would be too many or too large together. */
async function requireRoom(root: string, bytes: number, bytesBefore: number | undefined): Promise<void> {
  // A change that makes the file smaller is always allowed, even in a folder that is too full already.
  if (bytesBefore !== undefined && bytes <= bytesBefore) return;
  let files = 0;
  let totalBytes = bytes - (bytesBefore ?? 0);
  for await (const { size } of walk(root)) {
    files++;
    totalBytes += size;
  }
  if (totalBytes > LARGEST_PROMPTS_BYTES) throw tooLarge("The prompt files must not be larger than 50 MiB together.");
  if (bytesBefore === undefined && files >= MAXIMUM_FILES) {
    throw tooLarge(`There are ${MAXIMUM_FILES} prompt files already, and may not be more.`);
  }
}

async function madeFolder(path: string): Promise<string> {
  await mkdir(path, { recursive: true });
  return (await realPath(path)) ?? path;
}

/** The folder of a new file. No link on its way leads out, also none that exists before a folder is made in it. */
async function madeParent(root: string, parent: string): Promise<string> {
  let nearest = parent;
  let real = await realPath(nearest);
  while (real === undefined && isInside(nearest, root)) {
    nearest = dirname(nearest);
    real = await realPath(nearest);
  }
  const isAllowed = (path: string): boolean => path === root || isInside(path, root);
  if (!isAllowed(real ?? nearest)) throw leadsOut();
  const made = await madeFolder(parent);
  if (!isAllowed(made)) throw leadsOut();
  return made;
}

/** Keeps the byte order mark, so that the client gets back the text that it wrote. */
function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw refusal("leads to a file that is not valid UTF-8 text");
  }
}

function refusal(problem: string): GatewayError {
  return new GatewayError(ERRORS.invalidRequest, `The path of the prompt file ${problem}.`, { param: "path" });
}

function leadsOut(): GatewayError {
  return refusal("leads out of prompts_dir; links that do are not followed");
}

function tooLarge(message: string): GatewayError {
  return new GatewayError(ERRORS.payloadTooLarge, message, { param: "content" });
}

const OF_THE_PATH: ReadonlySet<string | undefined> = new Set(["ENOTDIR", "EEXIST", "EISDIR", "ENAMETOOLONG", "ELOOP"]);

/** Blames the client for a path that goes through a file, and the file system for anything else. */
function notWritten(error: unknown): GatewayError {
  const { code } = error as NodeJS.ErrnoException;
  if (OF_THE_PATH.has(code)) return refusal("goes through something that is not a folder");
  return new GatewayError(
    ERRORS.changesUnavailable,
    `The prompt file cannot be written: ${code ?? "unknown error"}. Look at global_prompts.prompts_dir.`,
    { cause: error },
  );
}
