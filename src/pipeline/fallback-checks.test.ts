// Which fallback chains are refused, at which place, and which are warned of.

import { describe, expect, test } from "bun:test";
import { type ConfigDocument, documentSchema } from "../config/sections/registry.ts";
import { chainWarnings, fallbackProblems } from "./fallback-checks.ts";

type Backends = NonNullable<ConfigDocument["backends"]>;

function problems(fallback_chains: Record<string, string[]>, backends: Backends = []) {
  const settings = documentSchema.parse({ backends, fallback: { fallback_chains } });
  return fallbackProblems(settings).map(({ path, message }) => [path.slice(2).join("."), message]);
}

describe("circles", () => {
  const cases: [title: string, chains: Record<string, string[]>, found: [path: string, way: string][]][] = [
    ["none", { a: ["b", "c"], b: ["c"] }, []],
    ["two ways to one model are none", { a: ["b", "c"], b: ["d"], c: ["d"] }, []],
    ["to itself", { a: ["a"] }, [["a.0", "a -> a"]]],
    [
      "of two",
      { a: ["x", "b"], b: ["a"] },
      [
        ["a.1", "a -> b -> a"],
        ["b.0", "b -> a -> b"],
      ],
    ],
    [
      "behind the chain, told where it is",
      { a: ["b"], b: ["c"], c: ["b"] },
      [
        ["b.0", "b -> c -> b"],
        ["c.0", "c -> b -> c"],
      ],
    ],
    [
      "names of the language are ordinary names",
      { constructor: ["toString"], toString: ["constructor"] },
      [
        ["constructor.0", "constructor -> toString -> constructor"],
        ["toString.0", "toString -> constructor -> toString"],
      ],
    ],
  ];
  test.each(cases)("%s", (_title, chains, found) => {
    expect(problems(chains)).toEqual(found.map(([path, way]) => [path, `the chains run in a circle: ${way}`]));
  });
});

test("a model that is in a chain twice", () => {
  expect(problems({ a: ["b", "c", "b"] })).toEqual([["a.2", '"b" is in this chain twice']]);
});

describe("models that nobody serves now", () => {
  function warnings(fallback: ConfigDocument["fallback"], ids: readonly string[]): string[] {
    return chainWarnings(documentSchema.parse({ fallback }), { ids, serves: (model) => ids.includes(model) });
  }

  test("are warned of with the nearest name, both as key and as stand-in, and are no problem", () => {
    const fallback_chains = { large: ["small"], larg: ["large", "smal", "quite-another"] };
    expect(warnings({ fallback_chains }, ["large", "small"])).toEqual([
      'fallback.fallback_chains.larg: no backend serves a model "larg" now; did you mean "large"?',
      'fallback.fallback_chains.larg[1]: no backend serves a model "smal" now; did you mean "small"?',
      'fallback.fallback_chains.larg[2]: no backend serves a model "quite-another" now',
    ]);
    expect(problems(fallback_chains, [{ name: "b", url: "http://h", models: ["large", "small"] }])).toEqual([]);
  });

  test("are nobody's business while fallback is off", () => {
    expect(warnings({ enabled: false, fallback_chains: { a: ["b"] } }, [])).toEqual([]);
  });
});
