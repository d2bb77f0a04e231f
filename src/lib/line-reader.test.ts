// Lines come out as they went in, wherever the bytes were split.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { type Line, LineReader } from "./line-reader.ts";

const encode = (text: string) => new TextEncoder().encode(text);

function readAll(reader: LineReader, chunks: readonly Uint8Array[]): string[] {
  const read: string[] = [];
  const told = (line: Line) =>
    line === "too-long" ? "(too long)" : new TextDecoder("utf-8", { fatal: true }).decode(line);
  for (const chunk of chunks) for (const line of reader.read(chunk)) read.push(told(line));
  return read;
}

function chunksOf(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((one, other) => one - other);
  // Copies that are overwritten after use show whether anything is kept without being copied.
  return places.slice(1).map((place, index) => bytes.slice(places[index], place));
}

test("property: any split, LF or CRLF, blank lines between: the lines are the same", () => {
  const line = fc
    .string({ unit: "grapheme", maxLength: 40 })
    .filter((text) => !/[\r\n]/.test(text) && text.trim() !== "");
  const end = fc.constantFrom("\n", "\r\n", "\n\n", "\n \t\r\n");
  fc.assert(
    fc.property(fc.array(fc.tuple(line, end)), fc.array(fc.nat()), (lines, cuts) => {
      const bytes = encode(lines.flat().join(""));
      const reader = new LineReader(1_000_000);
      const read: string[] = [];
      for (const chunk of chunksOf(bytes, cuts)) {
        read.push(...readAll(reader, [chunk]));
        chunk.fill(88);
      }
      expect(read).toEqual(lines.map(([text]) => text));
      expect(reader.end()).toBeUndefined();
    }),
  );
});

test("property: lines up to the limit come, longer ones are told of once, and the next ones come again", () => {
  const lengths = fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 20 });
  fc.assert(
    fc.property(lengths, fc.array(fc.nat()), (all, cuts) => {
      const bytes = encode(all.map((length) => `${"x".repeat(length)}\n`).join(""));
      const expected = all.map((length) => (length > 16 ? "(too long)" : "x".repeat(length)));
      expect(readAll(new LineReader(16), chunksOf(bytes, cuts))).toEqual(expected);
    }),
  );
});

test("a line that is too long is told of before its end has come, and nothing of it is kept", () => {
  const reader = new LineReader(1_000);
  expect(readAll(reader, [new Uint8Array(1_001).fill(120)])).toEqual(["(too long)"]);
  for (let count = 0; count < 100; count++) expect(readAll(reader, [new Uint8Array(1_000).fill(120)])).toEqual([]);
  expect(readAll(reader, [encode("\nnext\n")])).toEqual(["next"]);
});

test("a long line in single bytes costs no more than its length", () => {
  const reader = new LineReader(4_000_000);
  let lines = 0;
  const byte = encode("x");
  for (let count = 0; count < 2_000_000; count++) for (const _ of reader.read(byte)) lines++;
  expect(lines).toBe(0);
  expect(readAll(reader, [encode("\n")])[0]).toHaveLength(2_000_000);
});

test("the last line may have no end", () => {
  const reader = new LineReader(1_000_000);
  expect(readAll(reader, [encode("one\ntwo")])).toEqual(["one"]);
  expect(new TextDecoder().decode(reader.end())).toBe("two");
  expect(reader.end()).toBeUndefined();
});
