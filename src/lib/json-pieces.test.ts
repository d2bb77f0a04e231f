// The outcome of parsing in pieces is that of JSON.parse, whatever the text and wherever it is cut.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseInPieces } from "./json-pieces.ts";

const encoder = new TextEncoder();
const NO_PAUSE = () => Promise.resolve();

type Outcome = { value: unknown } | { error: string };

async function inPieces(bytes: Uint8Array, pieceBytes: number): Promise<Outcome> {
  try {
    return { value: await parseInPieces(bytes, { pieceBytes, pause: NO_PAUSE }) };
  } catch (error) {
    return { error: (error as Error).name };
  }
}

function atOnce(bytes: Uint8Array): Outcome {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return typeof value === "object" && value !== null ? { value } : { error: "SyntaxError" };
  } catch (error) {
    return { error: (error as Error).name };
  }
}

/** Equal in the order of members too. */
function same(one: Outcome, other: Outcome): void {
  expect(JSON.stringify(one)).toBe(JSON.stringify(other));
}

/** Names and texts of all lengths, with what is escaped, what takes several bytes, and names that repeat. */
const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 80 }),
  fc.string({ unit: fc.constantFrom("\\", '"', "\n", "é", "漢", "🚂", "\ud83d", "x"), maxLength: 80 }),
  fc.constantFrom("__proto__", "a", "b", "1", ""),
);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 5 }, text, fc.double(), fc.boolean(), fc.constant(null), tie("list"), tie("object")),
  list: fc.array(tie("value"), { maxLength: 12 }),
  object: fc.array(fc.tuple(text, tie("value")), { maxLength: 8 }).map((members) => ({ members })),
}));

/** JSON of it with repeated names, blanks, and escapes that nobody needs. */
function write(of: unknown, blank: string, escaped: boolean): string {
  if (typeof of === "string") {
    const json = JSON.stringify(of);
    return escaped
      ? json.replaceAll("x", "\\u0078").replaceAll("é", "\\u00E9").replaceAll("🚂", "\\ud83d\\ude82")
      : json;
  }
  if (Array.isArray(of))
    return `[${of.map((entry) => blank + write(entry, blank, escaped) + blank).join(",")}${blank}]`;
  if (typeof of !== "object" || of === null) return JSON.stringify(of);
  const { members } = of as { members: [string, unknown][] };
  const written = members.map(
    ([name, member]) => `${blank}${write(name, blank, escaped)}${blank}:${blank}${write(member, blank, escaped)}`,
  );
  return `{${written.join(",")}${blank}}`;
}

const document = fc
  .tuple(value, fc.constantFrom("", " ", "\n\t  ", " ".repeat(40)), fc.boolean())
  .map(([of, blank, escaped]) => blank + write(of, blank, escaped) + blank);
const pieceBytes = fc.integer({ min: 16, max: 200 });

describe("parsing in pieces", () => {
  test("makes what JSON.parse makes", async () => {
    await fc.assert(
      fc.asyncProperty(document, pieceBytes, async (json, size) => {
        const bytes = encoder.encode(json);
        same(await inPieces(bytes, size), atOnce(bytes));
      }),
      { numRuns: 2_000 },
    );
  });

  test("refuses what JSON.parse refuses", async () => {
    const damage = fc.record({
      at: fc.nat(),
      removed: fc.integer({ min: 0, max: 3 }),
      added: fc.constantFrom("", ",", "]", "}", "[", "{", '"', ":", "\\", "\\u12", "0", "\u0001", "x"),
    });
    await fc.assert(
      fc.asyncProperty(document, damage, pieceBytes, async (json, { at, removed, added }, size) => {
        const place = at % (json.length + 1);
        const bytes = encoder.encode(json.slice(0, place) + added + json.slice(place + removed));
        same(await inPieces(bytes, size), atOnce(bytes));
      }),
      { numRuns: 4_000 },
    );
  });

  test.each([
    "[1,,2]",
    "[1,2,]",
    '{"a":1,}',
    '{"a" 1}',
    "[1 2]",
    '["a" "b"]',
    "[[1] [2]]",
    "[1}",
    '{"a":1]',
    "[1]]",
    "[1] x",
    "[",
    '"a',
  ])("refuses %s with long texts at every place", async (json) => {
    const long = JSON.stringify("long ".repeat(20));
    for (const variant of [
      json,
      json.replace("1", long),
      json.replace("1", `[${long},${long}]`),
      json.replace('"a"', long),
    ]) {
      const bytes = encoder.encode(variant);
      expect(atOnce(bytes)).toEqual({ error: "SyntaxError" });
      expect(await inPieces(bytes, 16)).toEqual({ error: "SyntaxError" });
    }
  });

  test("reads past a byte order mark, and keeps one inside a text", async () => {
    const bytes = encoder.encode(`\ufeff{"a":"${"\ufeff".repeat(40)}"}`);
    same(await inPieces(bytes, 16), atOnce(bytes));
  });

  test("bytes that are no UTF-8 are a TypeError, wherever they stand", async () => {
    const bytes = encoder.encode(JSON.stringify({ a: "x".repeat(100), b: ["y".repeat(100)] }));
    for (let at = 0; at < bytes.length; at++) {
      const broken = bytes.slice();
      broken[at] = 0xff;
      expect(await inPieces(broken, 16)).toHaveProperty("error");
    }
  });

  test("pauses after every piece, also where containers of almost a piece stand in each other", async () => {
    const filler = `${JSON.stringify("x".repeat(900))},`;
    const json = `${`[${filler}`.repeat(100)}1${"]".repeat(100)}`;
    let pauses = 0;
    const pause = () => Promise.resolve(void pauses++);
    expect(await parseInPieces(encoder.encode(json), { pieceBytes: 1_024, pause })).toEqual(JSON.parse(json));
    expect(pauses).toBeGreaterThan(80);
  });
});
