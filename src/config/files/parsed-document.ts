// A configuration file as text, whatever its format: its value, its syntax problems, and where each key stands.

import type { Path } from "../values/values.ts";

export interface SyntaxProblem {
  message: string;
  line?: number;
}

export interface ParsedDocument {
  /** Undefined when the text cannot be understood at all. */
  value: unknown;
  problems: SyntaxProblem[];
  /** The line, counted from 1, of a key or list entry, or of the nearest one around it. */
  lineOf(path: Path): number | undefined;
}
