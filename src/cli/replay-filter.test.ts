import { expect, test } from "bun:test";
import fc from "fast-check";
import { parseReplayFilter } from "./replay-filter.ts";

const written = (value: string) => `"${value.replaceAll(/["\\]/g, "\\$&")}"`;

test("what was written is read", () => {
  const name = fc.stringMatching(/^[a-z_]{1,12}$/);
  fc.assert(
    fc.property(
      fc.dictionary(name, fc.string({ unit: "binary" }), { maxKeys: 6 }),
      fc.constantFrom(" ", "  ", "\t"),
      (pairs, space) => {
        const text = Object.entries(pairs).map(([key, value]) => `${key}=${written(value)}`);
        expect(parseReplayFilter(text.join(space))).toEqual(Object.fromEntries(Object.entries(pairs)));
      },
    ),
  );
});

test("a name that every object has is a name like any other", () => {
  expect(Object.entries(parseReplayFilter("__proto__=x"))).toEqual([["__proto__", "x"]]);
});

test("values without spaces need no quotes", () => {
  expect(parseReplayFilter(' model=gpt-4o  text="refund policy" since=2026-11-01T00:00:00Z ')).toEqual({
    model: "gpt-4o",
    text: "refund policy",
    since: "2026-11-01T00:00:00Z",
  });
  expect(parseReplayFilter("")).toEqual({});
});

test.each(["model", "model=", 'text="open', "a=b c", 'a="b"c', "a=1 a=2", "A=1"])("%s is refused", (text) => {
  expect(parseReplayFilter(text)).toHaveProperty("error");
});

test("any text is read or refused", () => {
  fc.assert(fc.property(fc.string(), (text) => typeof parseReplayFilter(text) === "object"));
});
