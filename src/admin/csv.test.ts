// CSV: quoting by RFC 4180, and cells that a spreadsheet would calculate.

import { expect, test } from "bun:test";
import { toCsv } from "./csv.ts";

test("lines end with CRLF; commas, quotes and line ends are quoted", () => {
  expect(
    toCsv(
      ["a", "b"],
      [
        ["x, y", 1.5],
        ['say "hi"', 0],
        ["two\nlines", 1e-7],
      ],
    ),
  ).toBe('a,b\r\n"x, y",1.5\r\n"say ""hi""",0\r\n"two\nlines",1e-7\r\n');
});

test("nothing becomes a formula", () => {
  const dangerous = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    " =1",
    "\u0000=1",
    "\uFF1D1+1",
    '=HYPERLINK("http://evil.example","x")',
  ];
  for (const text of dangerous) {
    const [, line = ""] = toCsv(["a"], [[text]]).split(/(?<=^a\r\n)/);
    expect(line.replace(/^"/, "")).toStartWith("'");
  }
  // A table whose cells are parted by semicolons, or tabs, as some countries have it.
  expect(toCsv(["a"], [["x;=1+1;+2;y"]])).toBe("a\r\nx;'=1+1;'+2;y\r\n");
  expect(toCsv(["a"], [["x\t=1"]])).toBe("a\r\nx\t'=1\r\n");
  for (const text of ["a;b", "a; b-c", "gpt-4o", "a=b", "(none)", "team+b@example.com", ""])
    expect(toCsv(["a"], [[text]])).toBe(`a\r\n${text}\r\n`);
  // Numbers are none of ours to protect from.
  expect(toCsv(["a"], [[-1]])).toBe("a\r\n-1\r\n");
});
