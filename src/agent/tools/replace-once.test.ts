// Edits: exactly one place, and the file keeps its line ends.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { replaceOnce } from "./replace-once.ts";

const piece = fc
  .array(fc.constantFrom("a", "b", " ", "\n", "\r\n", "$&", "😀"), { maxLength: 6 })
  .map((all) => all.join(""));

describe("any edit", () => {
  test("of a text that is there once changes this place and nothing else, and can be taken back", () => {
    fc.assert(
      fc.property(piece, piece, piece, (before, after, changed) => {
        const [head, old, tail] = [before.replaceAll("\r", ""), "<old\ntext>", after.replaceAll("\r", "")];
        const fresh = `<${changed.replaceAll("\r", "")}>`;
        const file = head + old + tail;
        const { text, line } = replaceOnce(file, old, fresh);
        expect(text).toBe(head + fresh + tail);
        expect(line).toBe(head.split("\n").length);
        const back = text.split(fresh).length === 2 ? replaceOnce(text, fresh, old).text : file;
        expect(back).toBe(file);
      }),
      { numRuns: 300 },
    );
  });

  test("of a file with CRLF keeps CRLF in every line", () => {
    fc.assert(
      fc.property(piece, piece, piece, (before, after, changed) => {
        const crlf = (text: string) => text.replace(/\r?\n/g, "\r\n").replace(/\r(?!\n)/g, "");
        const file = `${crlf(before)}\r\n<old\r\ntext>${crlf(after)}`;
        const { text } = replaceOnce(file, "<old\ntext>", `<${changed}>`);
        expect(text).toBe(`${crlf(before)}\r\n<${changed.replace(/\r?\n/g, "\r\n")}>${crlf(after)}`);
        expect(text).not.toMatch(/(?<!\r)\n/);
      }),
      { numRuns: 300 },
    );
  });

  test("is refused unless the text is there exactly once", () => {
    fc.assert(
      fc.property(piece, piece, (file, old) => {
        fc.pre(old !== "" && !file.includes("\r") && !old.includes("\r"));
        let places = 0;
        for (let at = 0; at <= file.length; at++) if (file.startsWith(old, at)) places++;
        const edit = () => replaceOnce(file, old, "new");
        if (places === 1) expect(edit().text.length).toBe(file.length - old.length + 3);
        else expect(edit).toThrow(places === 0 ? "(0 places)" : `at ${places} places`);
      }),
      { numRuns: 500 },
    );
  });
});

describe("the model is told", () => {
  test.each([
    ["", "x", "old_text is empty"],
    ["x", "x", "nothing to change"],
    ["two\n  three", "x", "Its first line stands in line 2"],
    ["o", "x", "at 2 places (lines 1, 2)"],
  ])("%j -> %j: %s", (old, fresh, message) => {
    expect(() => replaceOnce("one\n  two\nthree", old, fresh)).toThrow(message);
  });

  test("of places without end, in few words", () => {
    expect(() => replaceOnce("a".repeat(1_000_000), "a", "b")).toThrow("more than 100 places");
  });
});
