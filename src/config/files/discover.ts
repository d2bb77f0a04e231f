// Where the configuration file is looked for when none is named.

import { stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import type { Environment } from "../values/expand.ts";

const FILE_NAMES = ["config.yaml", "config.yml", "config.toml"];
const SYSTEM_FOLDER = "/etc/signalbox";

interface FileSearchOptions {
  env: Environment;
  cwd: string;
  home: string | undefined;
  /** For tests; default /etc/signalbox. */
  systemFolder?: string;
}

/** Every path that is tried, in order. */
function discoveryPaths(options: FileSearchOptions): string[] {
  const folders = [options.cwd, userFolder(options), options.systemFolder ?? SYSTEM_FOLDER];
  return folders.flatMap((folder) => (folder === undefined ? [] : FILE_NAMES.map((name) => join(folder, name))));
}

/** The XDG base directory specification says that a relative XDG_CONFIG_HOME is to be ignored. */
function userFolder({ env, home }: FileSearchOptions): string | undefined {
  const configHome = env.XDG_CONFIG_HOME;
  if (configHome !== undefined && isAbsolute(configHome)) return join(configHome, "signalbox");
  return home ? join(home, ".config", "signalbox") : undefined;
}

/**
 * The first path that exists, as whatever: a folder of that name (a container runtime makes one for a missing mount)
 * is a mistake to be reported, not to be passed over.
 */
export async function discover(options: FileSearchOptions): Promise<string | undefined> {
  for (const path of discoveryPaths(options)) {
    const exists = await stat(path).then(
      () => true,
      () => false, // a folder that may not be entered holds nothing for us
    );
    if (exists) return path;
  }
  return undefined;
}
