// Addresses of results in a text.

import { expect, test } from "bun:test";
import { citedResults } from "./citations.ts";

const HITS = [
  { url: "https://a.test/page", title: "A" },
  { url: "https://b.test/", title: "B" },
];

const CASES: [text: string, found: string[]][] = [
  ["nothing", []],
  ["see https://a.test/page.", ["A:https://a.test/page"]],
  ["[page](https://a.test/page), [b](https://b.test)", ["A:https://a.test/page", "B:https://b.test"]],
  [
    "https://b.test/ and https://a.test/page/ and https://b.test",
    ["B:https://b.test/", "A:https://a.test/page/", "B:https://b.test"],
  ],
  ["https://a.test/pages", []],
  ["https://a.test/page/other", []],
  ["https://a.test/page?q=1", []],
  ["https://b.test.org", []],
  ["https://b.test:8080/", []],
  ["(https://b.test)", ["B:https://b.test"]],
  ["**https://b.test**", ["B:https://b.test"]],
];

test.each(CASES)("%p", (text, found) => {
  const citations = citedResults(text, HITS);
  expect(citations.map(({ title, startIndex, endIndex }) => `${title}:${text.slice(startIndex, endIndex)}`)).toEqual(
    found,
  );
});

test("a result that was found twice is cited once at each place", () => {
  expect(citedResults("https://b.test", [...HITS, ...HITS])).toHaveLength(1);
});
