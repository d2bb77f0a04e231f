// Reads TOML and finds the line of a path by a small scan for `[table]` and `key =`: Bun's parser reports no positions.

import { commonLength, isMapping, isNestedTooDeeply, type Path, type PathSegment } from "../values/values.ts";
import type { ParsedDocument } from "./parsed-document.ts";

interface Statement {
  path: PathSegment[];
  line: number;
  offset: number;
}

export function parseToml(text: string): ParsedDocument {
  const statements = scanStatements(text);
  const lineOf = (path: Path): number | undefined => findLine(statements, path);
  let value: unknown;
  try {
    value = withPlainDates(Bun.TOML.parse(text));
  } catch (error) {
    const line = lineOfSyntaxError(text, statements);
    return { value: undefined, problems: [{ path: [], message: syntaxMessage(error), ...(line && { line }) }], lineOf };
  }
  return { value, problems: [], lineOf };
}

/** The parser's messages quote the text at fault, which may be a secret. */
function syntaxMessage(error: unknown): string {
  if (error instanceof RangeError || isTooDeep(error)) return "is nested too deeply";
  const message = error instanceof Error ? error.message : "";
  const known = message.replace(/^TOML Parse error: /, "").replace(/[:,]?\s*".*$/s, "");
  return known === "" ? "this is not valid TOML" : `${known.charAt(0).toLowerCase()}${known.slice(1)}`;
}

function isTooDeep(error: unknown): boolean {
  return error instanceof Error && error.message.includes("call stack");
}

/** Dates and times arrive as objects; as text they are what the operator wrote. */
function withPlainDates(value: unknown): unknown {
  if (isNestedTooDeeply(value)) throw new RangeError("nested too deeply");
  return convert(value);
}

function convert(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(convert);
  if (!isMapping(value)) return value;
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return String(value);
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, convert(entry)]));
}

/** The first statement that the text cannot be parsed with: found by parsing what stands before each. */
function lineOfSyntaxError(text: string, statements: readonly Statement[]): number | undefined {
  let low = 0; // the text before this statement is good
  let high = statements.length; // the whole text is not
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (isValid(text.slice(0, statements[middle]?.offset))) low = middle;
    else high = middle;
  }
  return statements[low]?.line;
}

function isValid(text: string): boolean {
  try {
    Bun.TOML.parse(text);
    return true;
  } catch {
    return false; // the question was whether it parses
  }
}

function findLine(statements: readonly Statement[], path: Path): number | undefined {
  let best: Statement | undefined;
  let bestLength = 0;
  for (const statement of statements) {
    // A table below the path also tells where the path begins, e.g. [a.b] for a.
    const length = commonLength(statement.path, path);
    if (length > bestLength) {
      best = statement;
      bestLength = length;
    }
  }
  return best?.line;
}

/** Every table header and every `key = value`, in order; broken text gives what can be recognised. */
function scanStatements(text: string): Statement[] {
  const statements: Statement[] = [];
  const counts = new Map<string, number>(); // entries of each [[list]] so far
  let table: PathSegment[] = [];
  let line = 1;
  let offset = 0;
  while (offset < text.length) {
    const end = statementEnd(text, offset);
    const source = text.slice(offset, end);
    const head = source.trimStart();
    const header = /^(\[\[?)([^\]\n]*)\]/.exec(head);
    if (header) {
      const keys = splitKeys(header[2] as string);
      table = withIndexes(keys, counts, header[1] === "[[");
      statements.push({ path: table, line, offset });
    } else if (head !== "" && !head.startsWith("#")) {
      statements.push({ path: [...table, ...splitKeys(head)], line, offset });
    }
    line += source.split("\n").length - 1 + (text[end] === "\n" ? 1 : 0);
    offset = end + 1;
  }
  return statements;
}

/** [backends.health_check] below [[backends]] means the newest entry of the list. */
function withIndexes(keys: readonly string[], counts: Map<string, number>, isListEntry: boolean): PathSegment[] {
  const path: PathSegment[] = [];
  keys.forEach((key, index) => {
    path.push(key);
    const name = JSON.stringify(path);
    if (isListEntry && index === keys.length - 1) counts.set(name, (counts.get(name) ?? 0) + 1);
    const count = counts.get(name);
    if (count !== undefined) path.push(count - 1);
  });
  return path;
}

/** The keys of `a.b."c.d"`, up to an equals sign. */
function splitKeys(source: string): string[] {
  const keys: string[] = [];
  const part = /\s*(?:"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'|([A-Za-z0-9_-]+))\s*(\.?)/y;
  for (let match = part.exec(source); match; match = part.exec(source)) {
    keys.push(match[1] ?? match[2] ?? (match[3] as string));
    if (match[4] === "") break;
  }
  return keys;
}

/** The end of the line on which the statement ends: strings in triple quotes and lists may span lines. */
function statementEnd(text: string, from: number): number {
  let depth = 0;
  let position = from;
  while (position < text.length) {
    const character = text[position] as string;
    if (character === "\n" && depth <= 0) return position;
    if (character === "#") {
      position = endOfLine(text, position);
      continue;
    }
    if (character === '"' || character === "'") {
      position = stringEnd(text, position, character);
      continue;
    }
    if (character === "[" || character === "{") depth++;
    if (character === "]" || character === "}") depth--;
    position++;
  }
  return text.length;
}

function stringEnd(text: string, from: number, quote: string): number {
  const triple = quote.repeat(3);
  const closing = text.startsWith(triple, from) ? triple : quote;
  for (let position = from + closing.length; position < text.length; position++) {
    if (text[position] === "\\" && quote === '"') position++;
    else if (text.startsWith(closing, position)) return position + closing.length;
    else if (closing === quote && text[position] === "\n") return position; // unterminated
  }
  return text.length;
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end === -1 ? text.length : end;
}
