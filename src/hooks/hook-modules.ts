// Finds the files of the modules that the configuration names, so that their changes are seen.

import { readText } from "../config/files/read-text.ts";
import { BUILTIN_PREFIX, type HookSettings } from "../config/sections/hooks.ts";
import { resolvePath } from "../config/values/paths.ts";
import type { CheckPlace, Problem } from "../config/values/problems.ts";

interface FoundModules {
  /** Absolute paths by the names that the configuration gives them. */
  paths: ReadonlyMap<string, string>;
  /** The same paths, with the hashes of what they hold. */
  hashes: ReadonlyMap<string, string>;
  problems: readonly Problem[];
}

const PATH = /^(\.{0,2}\/|~)/;

export async function findHookModules(hooks: readonly HookSettings[], place: CheckPlace): Promise<FoundModules> {
  const paths = new Map<string, string>();
  const hashes = new Map<string, string>();
  const problems: Problem[] = [];
  for (const [index, { module }] of hooks.entries()) {
    if (module === undefined || module.startsWith(BUILTIN_PREFIX) || paths.has(module)) continue;
    const path = fileOf(module, place);
    const read = path === undefined ? undefined : await readText(path);
    if (path !== undefined && read !== undefined && "hash" in read) {
      paths.set(module, path);
      hashes.set(path, read.hash);
      continue;
    }
    const message =
      read === undefined || "hash" in read
        ? "no package of this name is found from the folder of the configuration"
        : read.message;
    problems.push({ path: ["hooks", index, "module"], message });
  }
  return { paths, hashes, problems };
}

/** Undefined for a package that is not installed. */
function fileOf(module: string, { baseDir, home }: CheckPlace): string | undefined {
  if (PATH.test(module)) return resolvePath(module, baseDir, home);
  try {
    return Bun.resolveSync(module, baseDir);
  } catch {
    return undefined;
  }
}
