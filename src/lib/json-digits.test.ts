// Which JSON is not the same after it was parsed and written.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { mayLoseDigits } from "./json-digits.ts";

test.each([
  ['{"a":9007199254740993}', true],
  ['{"a":[1e400]}', true],
  ['{"a":123456789.123456789}', true],
  ['{"a":123456789012345,"b":-1.5e10}', false],
  ['{"a":"9007199254740993 \\"1e400\\" 9007199254740993"}', false],
])("%s: %p", (json, expected) => {
  expect(mayLoseDigits(json)).toBe(expected);
});

test("whatever loses digits is found", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), fc.string(), (number, text) => {
      const json = `{"a":${JSON.stringify(text)},"b":[${number}]}`;
      if (BigInt(JSON.parse(json).b[0]) !== number) expect(mayLoseDigits(json)).toBe(true);
    }),
  );
});
