import { expect, test } from "bun:test";
import { bestMatches } from "./search-words.ts";

const find = (query: string, names: readonly string[]) => bestMatches(query, names, (name) => name, 3);

test("what is typed finds whole words before parts, and parts before scattered letters", () => {
  const names = ["my-gpu-backend", "gpu-1", "grand-piano-unit", "claude"];
  expect(find("gpu", names)).toEqual(["gpu-1", "my-gpu-backend", "grand-piano-unit"]);
  expect(find("backend GPU", names)).toEqual(["my-gpu-backend"]);
  expect(find("xyz", names)).toEqual([]);
});

test("nothing typed is everything, up to the limit", () => {
  expect(find("  ", ["a", "b", "c", "d"])).toEqual(["a", "b", "c"]);
});
