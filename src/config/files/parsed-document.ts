// A configuration file as text, whatever its format: its value, its syntax problems, and where each key stands.

import type { Problem } from "../values/problems.ts";
import type { Path } from "../values/values.ts";

export interface ParsedDocument {
  /** Undefined when the text cannot be understood at all. */
  value: unknown;
  problems: Problem[];
  /** The line, counted from 1, of a key or list entry, or of the nearest one around it. */
  lineOf(path: Path): number | undefined;
}
