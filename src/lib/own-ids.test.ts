import { expect, test } from "bun:test";
import { createOwnIds } from "./own-ids.ts";

test("ids are short, safe in a path and in a header, and never the same", () => {
  const makers = [createOwnIds(Math.random), createOwnIds(Math.random)];
  const ids = makers.flatMap((newId) => Array.from({ length: 2_000 }, newId));
  expect(new Set(ids).size).toBe(4_000);
  for (const id of ids) expect(id).toMatch(/^[0-9a-z]{8}-\d{1,4}$/);
});
