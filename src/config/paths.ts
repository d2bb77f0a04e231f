// Paths as operators write them.

import { resolve } from "node:path";

/** A leading `~` stands for the home folder, where one is known; `~user` is left as it is. */
export function expandHome(path: string, home: string | undefined): string {
  if (home === undefined || home === "" || !/^~(\/|$)/.test(path)) return path;
  return home.replace(/\/+$/, "") + path.slice(1);
}

export function resolvePath(path: string, baseDir: string, home: string | undefined): string {
  return resolve(baseDir, expandHome(path, home));
}
