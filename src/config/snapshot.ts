// One immutable view of the configuration; a request reads the one that was current when it began.

import type { ConfigDocument, Settings } from "./sections/registry.ts";

export interface ConfigSnapshot {
  /** Increases by one with every applied change. */
  version: number;
  /** As written, secrets unexpanded. */
  document: ConfigDocument;
  settings: Settings;
  appliedAtMs: number;
  /** File it was read from; undefined without one. */
  path: string | undefined;
  /** Relative paths in the configuration are relative to this folder. */
  baseDir: string;
}
