// What is remembered, held against a list that is searched in the plainest way.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { rememberedAnswers } from "./remembered.ts";

const folder = fc.constantFrom(undefined, "/", "/a", "/a/b", "/a/bc", "/c");
const tool = fc.constantFrom("read", "write");
const answer = fc.constantFrom("allow" as const, "reject" as const);

test("property: for a tool in a folder and below, rejections first, and never from inside to outside or back", () => {
  const given = fc.array(fc.record({ tool, folder, answer }), { maxLength: 8 });
  fc.assert(
    fc.property(given, tool, folder, (answers, asked, place) => {
      const remembered = rememberedAnswers();
      for (const each of answers) remembered.set(each.tool, each.answer, each.folder);
      const last = new Map(answers.map((each) => [JSON.stringify([each.tool, each.folder ?? null]), each]));
      const isBelow = (where: string | undefined) =>
        where === undefined || place === undefined
          ? where === place
          : `${place}/`.startsWith(where === "/" ? "/" : `${where}/`);
      const counting = [...last.values()].filter((each) => each.tool === asked && isBelow(each.folder));
      const expected = counting.some((each) => each.answer === "reject") ? "reject" : counting[0]?.answer;
      expect(remembered.get(asked, place)).toBe(expected as "allow");
    }),
  );
});

test("it is bounded: the oldest is asked for again", () => {
  const remembered = rememberedAnswers();
  for (let count = 0; count <= 1_000; count++) remembered.set("read", "allow", `/folder-${count}`);
  expect(remembered.get("read", "/folder-0")).toBeUndefined();
  expect(remembered.get("read", "/folder-1000")).toBe("allow");
});
