// Every form of an answer that either protocol knows.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { decodePermission, encodePermissionRequest } from "./permissions.ts";

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

test("the question says for which folders an always holds", () => {
  const call = {
    toolCallId: "c",
    title: "Read a",
    kind: "read",
    status: "pending",
    content: [],
    locations: [],
  } as const;
  const names = (outside?: string[]) =>
    (encodePermissionRequest("s", { ...call, content: [], locations: [] }, outside).options as { name: string }[]).map(
      ({ name }) => name,
    );
  expect(names()).toEqual(["Allow", "Always allow in this session", "Reject", "Always reject in this session"]);
  expect(names(["/etc"])).toEqual(["Allow", "Always allow in /etc", "Reject", "Always reject in /etc"]);
});
