// Members change in place, and everything else keeps its bytes.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { withMembers } from "./json-members.ts";

const change = (text: string, changes: Record<string, unknown>) =>
  new TextDecoder().decode(withMembers(new TextEncoder().encode(text), changes));

test("the value is replaced, spacing, order and large numbers stay", () => {
  expect(change('{ "big": 12345678901234567890, "model" : "a" ,\n"x":[1.0,{"model":"b"}]}', { model: "z" })).toBe(
    '{ "big": 12345678901234567890, "model" : "z" ,\n"x":[1.0,{"model":"b"}]}',
  );
});

test("a value of any kind can be replaced by one of any kind", () => {
  for (const old of ["1e3", "null", "true", '"a\\"}b\\\\"', '{"a":[{}]}', "[[],{}]", '""']) {
    expect(change(`{"a":${old},"b":2}`, { a: [1] })).toBe('{"a":[1],"b":2}');
    expect(change(`{"b":2,"a":${old}}`, { a: [1] })).toBe('{"b":2,"a":[1]}');
  }
});

test("a missing member is added, also to an empty object", () => {
  expect(change("{}", { model: "z" })).toBe('{"model":"z"}');
  expect(change('{"a":1} ', { model: "z", n: 2 })).toBe('{"a":1,"model":"z","n":2} ');
});

test("a member written twice is changed twice, also when its key is escaped", () => {
  expect(change('{"model":"a","mod\\u0065l":"b"}', { model: "z" })).toBe('{"model":"z","mod\\u0065l":"z"}');
});

test("a member set to undefined goes, with its comma; what is left stays as it was written", () => {
  expect(change('{"a":1, "b" : 2,"c":3}', { a: undefined })).toBe('{"b" : 2,"c":3}');
  expect(change('{"a":1,"b":2,"c":3}', { c: undefined, b: 5 })).toBe('{"a":1,"b":5}');
  expect(change('{"a":1}', { a: undefined, z: 9 })).toBe('{"z":9}');
  expect(change('{"a":1}', { a: undefined, missing: undefined })).toBe("{}");
  expect(change('{"a":12345678901234567890}', { missing: undefined })).toBe('{"a":12345678901234567890}');
});

test("property: the result parses to the object with the change, for any JSON object", () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.string(),
      fc.jsonValue(),
      fc.constantFrom(undefined, 1, 2, "\t"),
      (object, key, value, indent) => {
        const text = JSON.stringify(object, null, indent);
        const expected = JSON.parse(text);
        Object.defineProperty(expected, key, {
          value: JSON.parse(JSON.stringify(value)),
          enumerable: true,
          configurable: true,
          writable: true,
        });
        const changes = Object.create(null);
        changes[key] = value;
        expect(JSON.parse(change(text, changes))).toEqual(expected);
      },
    ),
    { numRuns: 500 },
  );
});
