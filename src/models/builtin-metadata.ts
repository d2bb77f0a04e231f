// The metadata that comes with Signalbox; embedded as text, so that the compiled binary carries it.

import type { MetadataEntry } from "../config/model-metadata.ts";
import text from "./builtin-metadata.yaml" with { type: "text" };
import { parseModelMetadata } from "./metadata-file.ts";

export function builtinMetadata(): readonly MetadataEntry[] {
  // The type of the import is that of a parsed YAML file; `type: "text"` makes it the text itself.
  const parsed = parseModelMetadata(text as unknown as string);
  if (!parsed.ok) throw new Error(`the built-in metadata is wrong: ${parsed.problems.join("; ")}`);
  return parsed.entries;
}
