// What is read from the end of a JSON text is what parsing the whole would have given, or nothing.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { objectNearEnd } from "./json-tail.ts";

const encoder = new TextEncoder();
const read = (text: string) => objectNearEnd(encoder.encode(text), "usage");
const usage = { prompt_tokens: 3, details: { cached: 1 } };

describe("an object near the end", () => {
  test("is found as the last member", () => {
    expect(read(JSON.stringify({ data: [1, 2, { a: "}" }], usage }))).toEqual(usage);
  });

  test("is found behind a long beginning that is not looked at", () => {
    expect(read(`{"data":["${"x".repeat(100_000)}"],"usage":{"n":1},"id":"a\\"}]"}\n`)).toEqual({ n: 1 });
  });

  test("is found with members behind it, and blanks between", () => {
    expect(read('{ "usage" : {"n": 1} , "system": "{\\"usage\\":{}}", "list": [[], {}] } \r\n')).toEqual({ n: 1 });
  });

  test.each([
    ["of an inner object", '{"data":{"usage":{"n":1}}}'],
    ["of an object in a list", '{"data":[{"usage":{"n":1}}]}'],
    ["that is only talked about", '{"text":"{\\"usage\\":{\\"n\\":1}}"}'],
    ["that is no object", '{"usage":[1]}'],
    ["that is null", '{"usage":null}'],
    ["that is a text of that name", '{"what":"usage","n":{}}'],
    ["that is cut", '{"usage":{"n":1}'],
    ["of which nothing is left", "{}"],
    ["in no text at all", ""],
  ])("is not one %s", (_title, text) => {
    expect(read(text)).toBeUndefined();
  });

  test("farther away than the tail is not looked for", () => {
    expect(read(`{"usage":{"n":1},"text":"${"x".repeat(10_000)}"}`)).toBeUndefined();
  });

  test("is the member of the outermost object, whatever the rest is", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom("a", "usage", '"', "\\", "b\\"), fc.jsonValue()),
        fc.boolean(),
        (rest, inner) => {
          const value = inner ? { outer: { ...rest, usage } } : { ...rest, usage };
          for (const indent of [0, 2]) {
            const text = JSON.stringify(value, undefined, indent);
            const found = read(text);
            const real = (JSON.parse(text) as Record<string, unknown>).usage;
            if (found !== undefined) expect(real).toEqual(found);
            else if (!inner) expect(text.length).toBeGreaterThan(8_000);
          }
        },
      ),
    );
  });
});
