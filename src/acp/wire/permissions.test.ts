// Every form of an answer that either protocol knows.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { decodePermission } from "./permissions.ts";

test("all forms of all answers", () => {
  for (const answer of ["allow_once", "allow_always", "reject_once", "reject_always"] as const) {
    const forms = [
      answer,
      { outcome: answer },
      { optionId: answer },
      { decision: answer },
      { outcome: { outcome: "selected", optionId: answer } },
      { outcome: "selected", optionId: answer },
    ];
    for (const form of forms) expect(decodePermission(form)).toBe(answer);
  }
});

test("cancelled is cancelled, whatever stands beside it", () => {
  for (const form of [
    "cancelled",
    { outcome: "cancelled" },
    { outcome: { outcome: "cancelled", optionId: "allow_once" } },
  ]) {
    expect(decodePermission(form)).toBe("cancelled");
  }
});

test("property: anything else is a no", () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => expect(decodePermission(value)).toBe("reject_once")));
  for (const form of [undefined, {}, { outcome: { outcome: "selected" } }, { optionId: "allow" }, true]) {
    expect(decodePermission(form)).toBe("reject_once");
  }
});
