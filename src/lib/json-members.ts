// Changes single members of a JSON object in its own bytes, so that all else stays as it was written: spacing, order,
// and numbers that JavaScript cannot hold.

import { endOfString } from "./json-shape.ts";

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

const decoder = new TextDecoder();
const encoder = new TextEncoder();

interface JsonMember {
  key: string;
  keyStart: number;
  valueStart: number;
  valueEnd: number;
}

/**
 * The object with the given top-level members set to new values (JSON values, serialised here; undefined removes the
 * member). A member that is written twice is changed twice; one that is missing is added at the end. The bytes must be a
 * valid JSON object.
 */
export function withMembers(bytes: Uint8Array, changes: Readonly<Record<string, unknown>>): Uint8Array {
  const members = topLevelMembers(bytes);
  const kept = members.filter(({ key }) => !(Object.hasOwn(changes, key) && changes[key] === undefined));
  const missing = new Set(Object.keys(changes).filter((key) => changes[key] !== undefined));
  const pieces: Uint8Array[] = [];
  // The bytes between the members are kept too, unless a member goes.
  const isComplete = kept.length === members.length;
  let copied = 0;
  if (!isComplete) pieces.push(encoder.encode("{"));
  for (const [index, { key, keyStart, valueStart, valueEnd }] of kept.entries()) {
    if (!isComplete) {
      if (index > 0) pieces.push(encoder.encode(","));
      copied = keyStart;
    }
    if (Object.hasOwn(changes, key)) {
      missing.delete(key);
      pieces.push(bytes.subarray(copied, valueStart), encoder.encode(JSON.stringify(changes[key])));
      copied = valueEnd;
    } else if (!isComplete) pieces.push(bytes.subarray(copied, valueEnd));
  }
  const end = bytes.lastIndexOf(CLOSE_BRACE);
  if (isComplete) pieces.push(bytes.subarray(copied, end));
  if (missing.size > 0) {
    const added = [...missing].map((key) => `${JSON.stringify(key)}:${JSON.stringify(changes[key])}`).join(",");
    pieces.push(encoder.encode((kept.length > 0 ? "," : "") + added));
  }
  pieces.push(bytes.subarray(end));
  return Buffer.concat(pieces);
}

/** The same for members of an object that is a member itself. */
export function withMembersInside(
  bytes: Uint8Array,
  holder: string,
  changes: Readonly<Record<string, unknown>>,
): Uint8Array {
  const found = topLevelMembers(bytes).findLast(({ key }) => key === holder);
  if (found === undefined) return bytes;
  const { valueStart, valueEnd } = found;
  const inside = withMembers(bytes.subarray(valueStart, valueEnd), changes);
  return Buffer.concat([bytes.subarray(0, valueStart), inside, bytes.subarray(valueEnd)]);
}

/** The first name that a second member of the outermost object has too, however the two are spelt. */
export function repeatedMember(bytes: Uint8Array): string | undefined {
  const names = new Set<string>();
  for (const { key } of topLevelMembers(bytes)) {
    if (names.has(key)) return key;
    names.add(key);
  }
  return undefined;
}

/** The bytes of the value of a top-level member, the last of that name. The bytes must be a valid JSON object. */
export function memberBytes(bytes: Uint8Array, name: string): Uint8Array | undefined {
  const found = topLevelMembers(bytes).findLast(({ key }) => key === name);
  return found && bytes.subarray(found.valueStart, found.valueEnd);
}

/** Where the values of the outermost object stand. */
function topLevelMembers(bytes: Uint8Array): JsonMember[] {
  const members: JsonMember[] = [];
  let position = bytes.indexOf(OPEN_BRACE) + 1;
  for (;;) {
    position = skipSpace(bytes, position);
    if (bytes[position] === COMMA) position = skipSpace(bytes, position + 1);
    if (bytes[position] !== QUOTE) return members; // the closing brace
    const keyEnd = endOfString(bytes, position + 1, bytes.length);
    const key = JSON.parse(decoder.decode(bytes.subarray(position, keyEnd))) as string;
    const colon = skipSpace(bytes, keyEnd);
    if (bytes[colon] !== COLON) throw new SyntaxError("not a JSON object");
    const valueStart = skipSpace(bytes, colon + 1);
    const valueEnd = endOfValue(bytes, valueStart);
    members.push({ key, keyStart: position, valueStart, valueEnd });
    position = valueEnd;
  }
}

function skipSpace(bytes: Uint8Array, from: number): number {
  let position = from;
  while (isSpace(bytes[position])) position++;
  return position;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 32 || byte === 10 || byte === 13 || byte === 9;
}

function endOfValue(bytes: Uint8Array, start: number): number {
  let depth = 0;
  let position = start;
  while (position < bytes.length) {
    const byte = bytes[position];
    if (byte === QUOTE) {
      position = endOfString(bytes, position + 1, bytes.length);
      if (depth === 0) return position;
      continue;
    }
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      if (depth === 0) return position; // a number or word that the outer object's brace ends
      if (--depth === 0) return position + 1;
    } else if (depth === 0 && (byte === COMMA || isSpace(byte))) return position;
    position++;
  }
  return position;
}
