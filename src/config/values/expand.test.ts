// Expansion of ${VARIABLE}: a table of forms, and properties for any text.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { expandVariables } from "./expand.ts";

const ENV = { NAME: "value", EMPTY: "", OTHER: "${NAME}", BRACE: "a}b" };

describe("expandVariables", () => {
  test.each([
    ["plain", "plain"],
    ["${NAME}", "value"],
    ["a ${NAME} b ${NAME}", "a value b value"],
    ["${EMPTY}", ""],
    ["${MISSING:-default}", "default"],
    ["${MISSING:-}", ""],
    ["${EMPTY:-default}", "default"],
    ["${NAME:-default}", "value"],
    ["${MISSING:-http://${NAME}:80}/x", "http://value:80/x"],
    ["${MISSING:-${ALSO:-deep}}", "deep"],
    ["${NAME:-${MISSING}}", "value"],
    ["${OTHER}", "${NAME}"],
    ["${BRACE}", "a}b"],
    ["$${NAME}", "${NAME}"],
    ["$NAME $ {NAME} }", "$NAME $ {NAME} }"],
  ])("%s becomes %s", (text, expected) => {
    expect(expandVariables(text, ENV)).toMatchObject({ text: expected, problems: [] });
  });

  test.each([
    ["${MISSING}", "the environment variable MISSING is not set", "MISSING"],
    ["${MISSING:-${ALSO}}", "the environment variable ALSO is not set", "ALSO"],
    ["${constructor}", "the environment variable constructor is not set", "constructor"],
    ["${__proto__}", "the environment variable __proto__ is not set", "__proto__"],
    ["${NAME", "${ must start ${VARIABLE} or ${VARIABLE:-default}; write $${ for a literal ${", undefined],
    ["${1}", "${ must start ${VARIABLE} or ${VARIABLE:-default}; write $${ for a literal ${", undefined],
    ["${}", "${ must start ${VARIABLE} or ${VARIABLE:-default}; write $${ for a literal ${", undefined],
    ["${NAME-x}", "${ must start ${VARIABLE} or ${VARIABLE:-default}; write $${ for a literal ${", undefined],
    ["${MISSING:-open", "the default of ${MISSING:-…} has no closing brace", undefined],
    ["${NAME:-open", "the default of ${NAME:-…} has no closing brace", undefined],
  ])("%s is a problem", (text, message, variable) => {
    expect(expandVariables(text, ENV).problems).toEqual([{ message, ...(variable && { variable }) }]);
  });

  test("names the variables whose contents were used", () => {
    expect(expandVariables("${NAME}${MISSING:-x}${NAME:-y}", ENV).variables).toEqual(["NAME", "NAME"]);
  });

  test("thousands of nested defaults are a problem, not a stack overflow", () => {
    expect(expandVariables("${A:-".repeat(50_000), {}).problems).not.toEqual([]);
  });

  test("property: text without ${ stays as it is", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        fc.pre(!text.includes("${"));
        expect(expandVariables(text, ENV)).toEqual({ text, variables: [], problems: [] });
      }),
    );
  });

  test("property: escaping gives any text back", () => {
    const text = fc.array(fc.constantFrom("$", "{", "}", "NAME", ":-", "x")).map((parts) => parts.join(""));
    fc.assert(
      fc.property(text, (original) => {
        expect(
          expandVariables(
            original.replaceAll("${", () => "$${"),
            ENV,
          ),
        ).toMatchObject({
          text: original,
          problems: [],
        });
      }),
    );
  });

  test("property: contents are inserted literally, whatever they are", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (content, around) => {
        fc.pre(!around.includes("$") && !around.includes("{"));
        expect(expandVariables(`${around}\${X}${around}`, { X: content }).text).toBe(around + content + around);
      }),
    );
  });
});
