// Reads YAML 1.2 (core schema) and finds the line of any path.

import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from "yaml";
import type { Problem } from "../values/problems.ts";
import { isNestedTooDeeply, type Path } from "../values/values.ts";
import type { ParsedDocument } from "./parsed-document.ts";

const TOO_DEEP = "is nested too deeply";
const MAXIMUM_PROBLEMS = 10;

/** The parser's own messages quote the text at fault, which may be a secret. */
const MESSAGES: Record<string, string> = {
  ALIAS_PROPS: "an alias cannot have an anchor or a tag",
  BAD_ALIAS: 'a value that starts with "*" is an alias; quote it if it is meant as text',
  BAD_DIRECTIVE: "this directive is not valid",
  BAD_DQ_ESCAPE: "unknown escape in a double-quoted text; use single quotes or double the backslash",
  BAD_INDENT: "the indentation does not fit the lines around it, or a bracket is not closed",
  BAD_PROP_ORDER: "an anchor or tag stands in the wrong place",
  BAD_SCALAR_START: "a text cannot start with this character; quote it",
  BLOCK_AS_IMPLICIT_KEY: "a mapping inside a line; a text with a colon and a blank in it must be quoted",
  BLOCK_IN_FLOW: "an indented list or mapping cannot stand inside brackets",
  COLLECTION_SIZE: "there are too many entries",
  DUPLICATE_KEY: "this key is given twice",
  KEY_OVER_1024_CHARS: "a key is longer than 1024 characters",
  MISSING_CHAR: "something is missing here: a colon, a closing quote or a closing bracket",
  MULTILINE_IMPLICIT_KEY: "a key must stand on one line, with a colon and a blank behind it",
  MULTIPLE_ANCHORS: "a value cannot have two anchors",
  MULTIPLE_DOCS: "there must be one document only; remove the second ---",
  MULTIPLE_TAGS: "a value cannot have two tags",
  NON_STRING_KEY: "a key must be plain text",
  RESOURCE_EXHAUSTION: TOO_DEEP,
  TAB_AS_INDENT: "a tab in the indentation; use blanks",
  TAG_RESOLVE_FAILED: "tags (words that start with !) are not supported; quote the value if it is meant as text",
  UNEXPECTED_TOKEN: "this is not valid YAML here",
};

export function parseYaml(text: string): ParsedDocument {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, {
    lineCounter,
    schema: "core",
    stringKeys: true,
    resolveKnownTags: false,
    prettyErrors: false,
    logLevel: "error",
  });
  const lineAt = (offset: number): number => lineCounter.linePos(offset).line;

  const problems: Problem[] = [];
  let isReadable = true;
  for (const { code, message, pos } of [...document.errors, ...document.warnings]) {
    const line = lineAt(pos[0]);
    if (code !== "DUPLICATE_KEY") isReadable = false;
    // One mistake often makes the parser stumble several times.
    if (problems.length >= MAXIMUM_PROBLEMS || problems.some((known) => known.line === line)) continue;
    const isTooDeep = message.includes("call stack");
    problems.push({ path: [], message: isTooDeep ? TOO_DEEP : (MESSAGES[code] ?? "this is not valid YAML"), line });
  }

  let value: unknown;
  if (isReadable) {
    try {
      value = document.toJS();
    } catch (error) {
      problems.push(conversionProblem(error, document, lineAt));
    }
    if (isNestedTooDeeply(value)) {
      value = undefined;
      problems.push({ path: [], message: TOO_DEEP });
    }
  }
  return { value, problems, lineOf: (path) => lineOf(document, path, lineAt) };
}

/** Aliases are resolved only now; the limit on them stops a few lines from becoming gigabytes. */
function conversionProblem(error: unknown, document: Document, lineAt: (offset: number) => number): Problem {
  if (!(error instanceof ReferenceError)) return { path: [], message: TOO_DEEP };
  if (error.message.includes("Excessive")) return { path: [], message: "its aliases expand to too much" };
  let line: number | undefined;
  visit(document, {
    Alias(_key, alias) {
      if (alias.resolve(document) !== undefined) return undefined;
      line = alias.range ? lineAt(alias.range[0]) : undefined;
      return visit.BREAK;
    },
  });
  return { path: [], message: MESSAGES.BAD_ALIAS as string, ...(line !== undefined && { line }) };
}

function lineOf(document: Document, path: Path, lineAt: (offset: number) => number): number | undefined {
  let node: unknown = document.contents;
  let line: number | undefined;
  for (const segment of path) {
    if (isAlias(node)) node = node.resolve(document);
    let place: unknown;
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => (isScalar(key) ? String(key.value) : key) === String(segment));
      place = pair?.key;
      node = pair?.value;
    } else if (isSeq(node) && typeof segment === "number") {
      place = node.items[segment];
      node = place;
    } else return line;
    const range = (place as Node | undefined)?.range;
    if (!range) return line;
    line = lineAt(range[0]);
  }
  return line;
}
