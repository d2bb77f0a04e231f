// No function is longer than can be read at once.

import { expect, test } from "bun:test";
import { sourceFiles, sourceText } from "./source-files.ts";

/** Lines of a function without those of the functions inside it: a factory may hold as many functions as a class. */
const MAX_LINES = 80;

/** In a comment before a longer function, with the reason behind it. */
const REASON = "Long because";

/** The first line of a function or a method, as the formatter writes it. */
const START =
  /^(\s*)(?:export )?(?:async )?(?:function\*? ?(\w*)|const (\w+)\b[^=]* = (?:async )?(?:\(|\w+ =>)|(?:static |async |get |set |\*)*(#?\w+)(?:<[^>]*>)?\()/;

const NOT_FUNCTIONS: ReadonlySet<string> = new Set(["if", "for", "while", "switch", "return", "catch", "super"]);

interface Piece {
  name: string;
  /** Indexes of its first and its last line. */
  first: number;
  last: number;
}

function functionsOf(lines: readonly string[]): Piece[] {
  const found: Piece[] = [];
  for (const [first, line] of lines.entries()) {
    const [, indent, ...names] = START.exec(line) ?? [];
    const name = names.find((each) => each !== undefined && each !== "");
    if (indent === undefined || name === undefined || NOT_FUNCTIONS.has(name)) continue;
    const open = openingLine(lines, first, indent);
    if (open === undefined) continue;
    const last = lines.findIndex((each, index) => index > open && each.startsWith(`${indent}}`));
    if (last > open) found.push({ name, first, last });
  }
  return found;
}

/** The line on which the body begins; undefined for what has none, such as a call or a type. */
function openingLine(lines: readonly string[], first: number, indent: string): number | undefined {
  if (lines[first]?.endsWith("{")) return first;
  for (let index = first + 1; index < lines.length; index++) {
    const line = lines[index] as string;
    if (line.startsWith(`${indent} `)) continue;
    return /^\s*[)}].*\{$/.test(line) ? index : undefined;
  }
  return undefined;
}

/** Its own lines. */
function lengthOf({ first, last }: Piece, all: readonly Piece[]): number {
  let length = last - first + 1;
  let covered = first;
  for (const inner of all) {
    if (inner.first <= covered || inner.last > last || inner.first === first) continue;
    if (inner.first > last) break;
    length -= inner.last - inner.first + 1;
    covered = inner.last;
  }
  return length;
}

test("functions are at most 80 lines long, or say why not", async () => {
  const long: string[] = [];
  let count = 0;
  for (const file of sourceFiles) {
    const lines = (await sourceText(file)).split("\n");
    const functions = functionsOf(lines);
    count += functions.length;
    for (const each of functions) {
      const length = lengthOf(each, functions);
      const before = lines.slice(Math.max(0, each.first - 12), each.first).join("\n");
      const comment = before.slice(before.lastIndexOf("/**"));
      if (length > MAX_LINES && !comment.includes(REASON)) long.push(`${file}: ${each.name} has ${length} lines`);
    }
  }
  expect(long).toEqual([]);
  expect(count).toBeGreaterThan(2_000); // else they were not found
});
