// The metadata that comes with Signalbox; embedded as text, so that the compiled binary carries it.

import type { MetadataEntry } from "../config/sections/metadata-entry.ts";
import { lazily } from "../lib/lazily.ts";
import text from "./builtin-metadata.yaml" with { type: "text" };
import { checkModelMetadata } from "./metadata-file.ts";

/** Read when it is first asked for, with Bun's own parser: it tells no lines, but this file has no mistakes to be found. */
export const builtinMetadata = lazily((): readonly MetadataEntry[] => {
  // The type of the import is that of a parsed YAML file; `type: "text"` makes it the text itself.
  const checked = checkModelMetadata(Bun.YAML.parse(text as unknown as string));
  if (!checked.ok) throw new Error(`the built-in metadata is wrong: ${checked.problems.join("; ")}`);
  return checked.entries;
});
