// Reads the prompt files that the configuration names: only from inside prompts_dir, and only so much.

import { realpath, stat } from "node:fs/promises";
import { isAbsolute, relative, sep } from "node:path";
import { contentHash } from "../config/files/read-text.ts";
import type { Settings } from "../config/sections/registry.ts";
import { resolvePath } from "../config/values/paths.ts";
import type { Problem } from "../config/values/problems.ts";

/** Name as written in the configuration -> text. */
export type PromptFiles = ReadonlyMap<string, string>;

export const LARGEST_PROMPT_BYTES = 1024 * 1024;
export const LARGEST_PROMPTS_BYTES = 50 * 1024 * 1024;

type PromptFilesResult =
  /** `hashes`: of what was read, as contentHash() makes them. */
  { ok: true; files: PromptFiles; hashes: ReadonlyMap<string, string> } | { ok: false; problems: Problem[] };

export interface PromptFolder {
  /** Folder of the configuration file. */
  baseDir: string;
  home: string | undefined;
}

/** Every problem names the key at fault. */
export async function loadPromptFiles(
  settings: Settings["global_prompts"],
  { baseDir, home }: PromptFolder,
): Promise<PromptFilesResult> {
  const files = new Map<string, string>();
  const hashes = new Map<string, string>();
  const named = namedFiles(settings);
  if (named.length === 0) return { ok: true, files, hashes };
  const folder = await realPath(resolvePath(settings.prompts_dir, baseDir, home));
  if (folder === undefined) {
    const message = "there is no such folder; create it, or name the folder of the prompt files";
    return { ok: false, problems: [{ path: ["global_prompts", "prompts_dir"], message }] };
  }

  const problems: Problem[] = [];
  let totalBytes = 0;
  for (const { path, name } of named) {
    if (files.has(name)) continue;
    const read = await readPrompt(resolvePath(name, folder, home), folder);
    if ("message" in read) {
      problems.push({ path, message: read.message });
      continue;
    }
    totalBytes += read.bytes;
    files.set(name, read.text);
    hashes.set(name, read.hash);
    if (totalBytes > LARGEST_PROMPTS_BYTES) {
      problems.push({ path, message: "the prompt files are larger than 50 MiB together; shorten them" });
      break;
    }
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, files, hashes };
}

interface NamedFile {
  /** The key of the configuration that names it. */
  path: Problem["path"];
  name: string;
}

/** Every file that the settings name, once for each key that names it. */
export function namedFiles(settings: Settings["global_prompts"]): NamedFile[] {
  const found: NamedFile[] = [];
  if (settings.default_file !== undefined) {
    found.push({ path: ["global_prompts", "default_file"], name: settings.default_file });
  }
  for (const group of ["backends", "models"] as const) {
    for (const [key, { prompt_file }] of Object.entries(settings[group])) {
      if (prompt_file !== undefined) {
        found.push({ path: ["global_prompts", group, key, "prompt_file"], name: prompt_file });
      }
    }
  }
  return found;
}

/** Throws TypeError for bytes that are not UTF-8. */
export function toPrompt(bytes: Uint8Array): string {
  // Removes a byte order mark; the line break at the end of a file is not part of the prompt.
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes).trimEnd();
}

/** The path behind all symbolic links; undefined when there is nothing. */
export async function realPath(path: string): Promise<string | undefined> {
  try {
    return await realpath(path);
  } catch {
    return undefined; // no such file is an answer here, not an error
  }
}

type Read = { text: string; hash: string; bytes: number } | { message: string };

async function readPrompt(path: string, folder: string): Promise<Read> {
  const outside = { message: "is outside prompts_dir; move the file into that folder, links do not count" };
  // Told apart only inside the folder, so that what exists elsewhere is not revealed.
  if (!isInside(path, folder)) return outside;
  const real = await realPath(path);
  if (real === undefined) return { message: "there is no such file in prompts_dir" };
  if (!isInside(real, folder)) return outside;
  try {
    const { size, mode } = await stat(real);
    if ((mode & 0o170000) !== 0o100000) return { message: "is not a file" };
    if (size > LARGEST_PROMPT_BYTES) return { message: "is larger than 1 MiB; shorten it" };
    const bytes = await Bun.file(real).slice(0, LARGEST_PROMPT_BYTES).bytes();
    return { text: toPrompt(bytes), hash: contentHash(bytes), bytes: bytes.length };
  } catch (error) {
    if (error instanceof TypeError) return { message: "is not valid UTF-8 text; save it as UTF-8" };
    return { message: `cannot be read: ${(error as NodeJS.ErrnoException).code ?? "unknown error"}` };
  }
}

export function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
