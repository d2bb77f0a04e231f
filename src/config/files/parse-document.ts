// The text of a configuration file -> a document, by the parser of its format, which is loaded where it is used.

import type { ParsedDocument } from "./parsed-document.ts";

/** TOML by its extension; all else is YAML, of which JSON is a part. */
export async function parseDocumentText(path: string, text: string): Promise<ParsedDocument> {
  if (path.toLowerCase().endsWith(".toml")) return (await import("./toml-document.ts")).parseToml(text);
  // The YAML parser would cost every start without a YAML file some milliseconds.
  return (await import("./yaml-document.ts")).parseYaml(text);
}
