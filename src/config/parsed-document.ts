// A configuration file as text, whatever its format: its value, its syntax problems, and where each key stands.

import type { Path } from "./values.ts";

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

/** TOML by its extension; all else is YAML, of which JSON is a part. */
export async function parseDocumentText(path: string, text: string): Promise<ParsedDocument> {
  if (path.toLowerCase().endsWith(".toml")) return (await import("./toml-document.ts")).parseToml(text);
  // The YAML parser is loaded only where a YAML file is read: it would cost every other start some milliseconds.
  return (await import("./yaml-document.ts")).parseYaml(text);
}
