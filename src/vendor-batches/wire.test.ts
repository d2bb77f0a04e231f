// The ids that vendors know lines by.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { lineId, positionIn } from "./wire.ts";

const name = fc.stringMatching(/^[A-Za-z0-9_-]{1,40}$/);

test("a line is found by its id, and no other id is one", () => {
  fc.assert(
    fc.property(name, name, fc.nat(999_999_999), fc.anything(), (own, other, position, anything) => {
      expect(positionIn({ name: own }, lineId({ name: own }, position))).toBe(position);
      if (!`${other}-`.startsWith(`${own}-`)) {
        expect(positionIn({ name: own }, lineId({ name: other }, position))).toBeUndefined();
      }
      if (typeof anything !== "string") expect(positionIn({ name: own }, anything)).toBeUndefined();
    }),
  );
});
