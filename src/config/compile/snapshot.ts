// One immutable view of the configuration; a request reads the one that was current when it began.

import type { ConfigDocument, Settings } from "../sections/registry.ts";
import type { Path } from "../values/values.ts";
import type { Attachments } from "./attachments.ts";

export interface Compiled {
  /** With secrets unexpanded. */
  document: ConfigDocument;
  settings: Settings;
  attachments: Attachments;
  /** Fields that the environment sets, whatever the document says. */
  overrides: readonly { variable: string; path: Path }[];
  /** Further files that the settings were read from, absolute, with the hashes of what was read. */
  includedFiles: ReadonlyMap<string, string | undefined>;
}

export interface ConfigSnapshot extends Compiled {
  /** Increases by one with every applied change. */
  version: number;
  appliedAtMs: number;
  /** File it was read from; undefined without one. */
  path: string | undefined;
  /** Relative paths in the configuration are relative to this folder. */
  baseDir: string;
  /** Fields that were changed and wait for a restart; the settings hold what runs. */
  pendingRestart?: readonly string[];
}
