// Replacing a text at exactly one place of a file. Pure.

import { ToolError } from "../tool.ts";

interface Replaced {
  text: string;
  /** Line of the replaced text, counted from 1. */
  line: number;
}

/** Further places are not counted. */
const MAX_PLACES = 100;
/** Further places are not listed in the error. */
const MAX_NAMED = 10;

/**
 * Lines of a file that end in CRLF throughout are written as LF by models: both texts are taken in the file's own form, so
 * that it keeps it. Throws ToolError when the old text is nowhere or at several places.
 */
export function replaceOnce(text: string, oldText: string, newText: string): Replaced {
  if (oldText === "") throw new ToolError("old_text is empty: name the text to replace, or write the whole file.");
  const [from, to] = hasCrlf(text) ? [asCrlf(oldText), asCrlf(newText)] : [oldText, newText];
  if (from === to) throw new ToolError("old_text and new_text are the same: there is nothing to change.");
  const places = placesOf(text, from);
  const [place] = places;
  if (place === undefined) throw new ToolError(notFound(text, from));
  if (places.length > 1) throw new ToolError(ambiguous(text, places));
  return { text: text.slice(0, place) + to + text.slice(place + from.length), line: lineAt(text, place) };
}

/** Overlapping ones too: of two places that share letters neither is the one that is meant. */
function placesOf(text: string, part: string): number[] {
  const places: number[] = [];
  for (let at = text.indexOf(part); at >= 0 && places.length <= MAX_PLACES; at = text.indexOf(part, at + 1))
    places.push(at);
  return places;
}

/** True if every line ends in CRLF. */
function hasCrlf(text: string): boolean {
  return text.includes("\r\n") && !/(?<!\r)\n/.test(text);
}

function asCrlf(text: string): string {
  return text.replace(/\r?\n/g, "\r\n");
}

function notFound(text: string, part: string): string {
  const hint = "Read the file again and copy the text exactly, with all spaces and line breaks.";
  const first = part
    .split("\n")
    .map((line) => line.trim())
    .find((line) => line !== "");
  const similar = first === undefined ? -1 : text.split("\n").findIndex((line) => line.trim() === first);
  const where =
    similar < 0 ? "" : ` Its first line stands in line ${similar + 1}, but with other spaces, or what follows differs.`;
  return `old_text is not in the file (0 places).${where} ${hint}`;
}

function ambiguous(text: string, places: readonly number[]): string {
  const count = places.length > MAX_PLACES ? `more than ${MAX_PLACES}` : `${places.length}`;
  const lines = places.slice(0, MAX_NAMED).map((place) => lineAt(text, place));
  const more = places.length > MAX_NAMED ? ", ..." : "";
  return `old_text is at ${count} places (lines ${lines.join(", ")}${more}). Give more of the lines around it, so that it is at one place only.`;
}

function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < offset; at = text.indexOf("\n", at + 1)) line++;
  return line;
}
