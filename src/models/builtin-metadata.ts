// The metadata that comes with Signalbox; embedded as text, so that the compiled binary carries it.

import type { MetadataEntry } from "../config/sections/metadata-entry.ts";
import { lazily } from "../lib/lazily.ts";
import text from "./builtin-metadata.yaml" with { type: "text" };

type BuiltinEntry = Pick<MetadataEntry, "id" | "metadata"> & Partial<MetadataEntry>;

/** Read when it is first asked for, and checked by a test only: the first request of a gateway waits for it. */
export const builtinMetadata = lazily((): readonly MetadataEntry[] => {
  // The type of the import is that of a parsed YAML file; `type: "text"` makes it the text itself.
  const { models } = Bun.YAML.parse(text as unknown as string) as { models: readonly BuiltinEntry[] };
  return models.map((entry) => ({ aliases: [], ...entry }));
});
