// Paths as operators write them.

import { resolve } from "node:path";

/** The database of the configuration, in server.data_dir. */
export const DATABASE_NAME = "config.db";

/** A leading `~` stands for the home folder, where one is known; `~user` is left as it is. */
export function expandHome(path: string, home: string | undefined): string {
  if (home === undefined || home === "" || !/^~(\/|$)/.test(path)) return path;
  return home.replace(/\/+$/, "") + path.slice(1);
}

export function resolvePath(path: string, baseDir: string, home: string | undefined): string {
  return resolve(baseDir, expandHome(path, home));
}

/**
 * A path of something that is written: below "./data", the folder of the defaults, it lies in server.data_dir, wherever
 * that is.
 */
export function resolveDataPath(
  path: string,
  { dataDir, baseDir, home }: { dataDir: string; baseDir: string; home: string | undefined },
): string {
  const inside = /^(?:\.\/)?data\/(.+)$/.exec(path)?.[1];
  return inside === undefined ? resolvePath(path, baseDir, home) : resolve(resolvePath(dataDir, baseDir, home), inside);
}
