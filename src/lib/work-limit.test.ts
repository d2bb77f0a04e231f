import { expect, test } from "bun:test";
import { createWorkLimit } from "./work-limit.ts";

test("so much work is under way at once, and the rest follows in its order, also behind work that fails", async () => {
  const limit = createWorkLimit(2);
  const begun: number[] = [];
  const ends = Array.from({ length: 5 }, () => Promise.withResolvers<number>());
  const works = ends.map(({ promise }, index) =>
    limit.run(() => {
      begun.push(index);
      return promise;
    }),
  );
  expect(begun).toEqual([]);
  const settled = Promise.allSettled(works);
  await Promise.resolve();
  expect(begun).toEqual([0, 1]);
  ends[1]?.reject(new Error("failed"));
  await works[1]?.catch(() => {});
  await Promise.resolve();
  expect(begun).toEqual([0, 1, 2]);
  for (const [index, { resolve }] of ends.entries()) resolve(index);
  expect((await settled).map(({ status }) => status)).toEqual([
    ...["fulfilled", "rejected", "fulfilled", "fulfilled", "fulfilled"],
  ] as never);
  expect(begun).toEqual([0, 1, 2, 3, 4]);
  expect(await limit.run(async () => "again")).toBe("again");
});
