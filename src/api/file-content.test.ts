import { expect, test } from "bun:test";
import { disposition, readRange } from "./file-content.ts";

const ranges: [text: string, bytes: number, range: ReturnType<typeof readRange>][] = [
  ["bytes=0-0", 10, { start: 0, end: 1 }],
  ["bytes=2-4", 10, { start: 2, end: 5 }],
  ["Bytes=2-", 10, { start: 2, end: 10 }],
  ["bytes= 2-99999999999999999999999 ", 10, { start: 2, end: 10 }],
  ["bytes=-3", 10, { start: 7, end: 10 }],
  ["bytes=-30", 10, { start: 0, end: 10 }],
  ["bytes=9-9", 10, { start: 9, end: 10 }],
  ["bytes=10-", 10, "unsatisfiable"],
  ["bytes=99999999999999999999999-", 10, "unsatisfiable"],
  ["bytes=-0", 10, "unsatisfiable"],
  ["bytes=0-", 0, "unsatisfiable"],
  ["bytes=-5", 0, "unsatisfiable"],
  ["bytes=4-2", 10, undefined],
  ["bytes=0-1,3-4", 10, undefined],
  ["bytes=-", 10, undefined],
  ["bytes=a-b", 10, undefined],
  ["bytes=1.5-2", 10, undefined],
  ["lines=0-1", 10, undefined],
  ["", 10, undefined],
];
test.each(ranges)("the range %j of %d bytes", (text, bytes, range) => {
  expect(readRange(text, bytes)).toEqual(range);
});

const names: [filename: string, header: string][] = [
  ["notes.txt", 'attachment; filename="notes.txt"'],
  ["two words.txt", 'attachment; filename="two words.txt"'],
  ['a"b.txt', `attachment; filename="a_b.txt"; filename*=UTF-8''a%22b.txt`],
  ["50%.txt", `attachment; filename="50_.txt"; filename*=UTF-8''50%25.txt`],
  ["Übung's (1)*.pdf", `attachment; filename="_bung's (1)*.pdf"; filename*=UTF-8''%C3%9Cbung%27s%20%281%29%2A.pdf`],
  ["📎", `attachment; filename="_"; filename*=UTF-8''%F0%9F%93%8E`],
  // Marks that belong to a language stay; those that turn the order around would hide what the file is.
  ["\u05d0\u200f.txt", `attachment; filename="__.txt"; filename*=UTF-8''%D7%90%E2%80%8F.txt`],
  ["a\u202egnp.exe", `attachment; filename="a_gnp.exe"`],
  ["\u2066\u00e9\u2069\u2028", `attachment; filename="____"; filename*=UTF-8''_%C3%A9__`],
  ["a\ud800b", `attachment; filename="a_b"; filename*=UTF-8''a%EF%BF%BDb`],
];
test.each(names)("the file name %j", (filename, header) => {
  expect(disposition(filename)).toBe(header);
  expect(header).toMatch(/^[\x20-\x7e]+$/);
});
