// Which places of a call lie outside of the session's folders, links followed: what an editor opens at a path is what the
// path leads to. Files of an editor on another machine are not here, and their paths count as they are written.

import { readlink, realpath } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { isInside } from "./paths.ts";
import type { ToolLocation } from "./updates.ts";

/** Linux follows as many links in one path. */
const MAX_LINKS = 40;

/** The true folders of those places: of a file, the one that it lies in. */
export async function outsideFolders(
  locations: readonly ToolLocation[],
  folders: readonly string[],
): Promise<string[]> {
  if (locations.length === 0) return [];
  const own = await Promise.all(folders.map((folder) => truePath(folder)));
  const places = await Promise.all(
    locations.map(async ({ path, isFolder }) => ({ path: await truePath(path), isFolder })),
  );
  const outside = places.filter(({ path }) => !own.some((folder) => isInside(path, folder)));
  return [...new Set(outside.map(({ path, isFolder }) => (isFolder === true ? path : dirname(path))))];
}

/** Also of what is not there yet, as far as its folders are; a link to what is not there leads there. */
export async function truePath(path: string, links = 0): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    if (path === "/") return path;
  }
  const parent = await truePath(dirname(path), links);
  const here = `${parent === "/" ? "" : parent}/${basename(path)}`;
  const target = links < MAX_LINKS ? await readlink(here).catch(() => undefined) : undefined;
  if (target === undefined) return here;
  return await truePath(target.startsWith("/") ? target : `${parent}/${target}`, links + 1);
}
