// A few thousand random answers to our client and to fetch; `long.ts` does the same with a hundred thousand.

import { afterAll, expect, test } from "bun:test";
import { compare } from "./differential.ts";
import { newClient } from "./subject.ts";

const client = newClient({ maxIdle: 0 });
afterAll(() => client.close());

test("random answers are read as fetch reads them, but for differences that have a name", async () => {
  const { unexplained, violations, read, refused, differences } = await compare(client.transport, 1, 3_000);
  console.log({ read, refused, differences });
  expect(unexplained.join("\n")).toBe("");
  expect(violations).toEqual([]);
  expect(read).toBeGreaterThan(1_500);
  expect(refused).toBeGreaterThan(500);
});
