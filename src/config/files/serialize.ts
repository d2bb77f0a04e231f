// Documents as text and back, for export and import.

import type { Problem } from "../values/problems.ts";
import { unsafeValue } from "../values/unsafe-value.ts";
import { formatPath, isMapping, isNestedTooDeeply, type Mapping } from "../values/values.ts";
import { parseDocumentText } from "./parse-document.ts";
import type { ParsedDocument } from "./parsed-document.ts";

export const DOCUMENT_FORMATS = ["yaml", "json", "toml"] as const;

export type DocumentFormat = (typeof DOCUMENT_FORMATS)[number];

export const MAXIMUM_IMPORT_BYTES = 2 ** 20;

export async function serializeDocument(document: Mapping, format: DocumentFormat): Promise<string> {
  switch (format) {
    case "json":
      return `${JSON.stringify(document, null, 2)}\n`;
    case "toml":
      return Bun.TOML.stringify(withoutNothing(document)) as string;
    case "yaml": {
      const { stringify } = await import("yaml");
      // No anchors for repeated values: other programs read the text too.
      return stringify(document, { aliasDuplicateObjects: false, lineWidth: 0 });
    }
  }
}

/** TOML has no null; in a document null and nothing mean the same. */
function withoutNothing(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter((entry) => entry !== null).map(withoutNothing);
  if (!isMapping(value)) return value;
  const entries = Object.entries(value).filter(([, entry]) => entry !== null && entry !== undefined);
  return Object.fromEntries(entries.map(([key, entry]) => [key, withoutNothing(entry)]));
}

type ParseResult = { ok: true; document: Mapping } | { ok: false; tooLarge: boolean; problems: Problem[] };

/** Nothing of the text is repeated in a problem: it may be a secret. */
export async function parseDocument(content: string, format: DocumentFormat): Promise<ParseResult> {
  const refused = (message: string, tooLarge = false): ParseResult => ({
    ok: false,
    tooLarge,
    problems: [{ path: [], message }],
  });
  const isTooLarge = Buffer.byteLength(content) > MAXIMUM_IMPORT_BYTES;
  if (isTooLarge) return refused(`is larger than ${MAXIMUM_IMPORT_BYTES} bytes`, true);
  // Half a surrogate pair is no text.
  if (!content.isWellFormed()) return refused("is not valid UTF-8 text");
  const parsed = await parseText(content.replace(/^\uFEFF/, ""), format);
  if (parsed.problems.length > 0) return { ok: false, tooLarge: false, problems: parsed.problems };
  const document = parsed.value ?? {};
  if (!isMapping(document)) return refused("expected a mapping of sections at the top level");
  if (isNestedTooDeeply(document)) return refused("is nested too deeply");
  const unsafe = unsafeValue(document);
  if (unsafe === undefined) return { ok: true, document };
  return refused(`${formatPath(unsafe.path)}: ${unsafe.message}`);
}

async function parseText(text: string, format: DocumentFormat): Promise<ParsedDocument> {
  if (format === "json") return (await import("./json-document.ts")).parseJson(text);
  return await parseDocumentText(`import.${format}`, text);
}
