// Proofs of reasoning through encrypted_content and back.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { openSealToken, sealToken } from "./reasoning-seal.ts";

test("any proof of another protocol comes back", () => {
  const optional = fc.option(fc.string({ minLength: 1, unit: "grapheme" }), { nil: undefined });
  const origin = fc.constantFrom("messages" as const, "generate-content" as const, "chat" as const);
  fc.assert(
    fc.property(origin, optional, optional, fc.string(), (from, signature, sealed, text) => {
      const proof = {
        origin: from,
        ...(signature !== undefined && { signature }),
        ...(sealed !== undefined && { sealed }),
      };
      const token = sealToken(proof, text);
      if (signature === undefined && sealed === undefined) {
        expect(token).toBeUndefined();
      } else {
        expect(openSealToken(token ?? "", "x")).toEqual({ ...proof, ...(text !== "" && { text }) });
      }
    }),
  );
});

test("that of a Responses backend is no token of the gateway", () => {
  expect(sealToken({ origin: "responses", sealed: "gAAA" })).toBe("gAAA");
  expect(openSealToken("gAAA", "x")).toEqual({ origin: "responses", sealed: "gAAA" });
});

test("thoughts without a proof have no token", () => {
  expect(sealToken({}, "text")).toBeUndefined();
});

test.each(["signalbox.1.", "signalbox.1.bm90IGpzb24", "signalbox.1.eyJvcmlnaW4iOiJlbHNld2hlcmUifQ"])(
  "%s is refused",
  (token) => {
    expect(() => openSealToken(token, "input[2].encrypted_content")).toThrow("input[2].encrypted_content");
  },
);
