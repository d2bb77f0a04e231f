// Which fallback chains are refused at load, and at which place.

import { describe, expect, test } from "bun:test";
import { type ConfigDocument, documentSchema } from "../config/sections/registry.ts";
import { fallbackProblems } from "./fallback-checks.ts";

type Backends = NonNullable<ConfigDocument["backends"]>;

function problems(fallback_chains: Record<string, string[]>, backends: Backends = []) {
  const settings = documentSchema.parse({ backends, fallback: { fallback_chains } });
  return fallbackProblems(settings).map(({ path, message }) => [path.slice(2).join("."), message]);
}

const serving = (...models: string[]): Backends => [{ name: "b", url: "http://h", models }];

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

describe("models that no backend serves", () => {
  const unknown = (path: string, model: string) => [path, `no backend serves a model "${model}"`];

  test("are told, both as key and as stand-in", () => {
    expect(problems({ a: ["b"], x: ["a", "y"] }, serving("a", "b"))).toEqual([unknown("x", "x"), unknown("x.1", "y")]);
    expect(problems({ a: ["b"] }, serving("a", "b"))).toEqual([]);
  });

  test("cannot be told while a backend's models are only known at run time", () => {
    const backends: Backends = [...serving("a"), { name: "free", url: "http://h" }];
    expect(problems({ a: ["b"], x: ["y"] }, backends)).toEqual([]);
    expect(problems({ x: ["y"] })).toEqual([]);
  });

  test("deployments count as models", () => {
    const azure: Backends = [{ name: "z", type: "azure", url: "http://h", deployments: { d: "deployment" } }];
    expect(problems({ a: ["d"] }, [...serving("a"), ...azure])).toEqual([]);
    expect(problems({ a: ["e"] }, [...serving("a"), ...azure])).toEqual([unknown("a.0", "e")]);
  });
});
