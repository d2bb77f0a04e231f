// Which fallback chains are refused, at which place, and which are warned of.

import { describe, expect, test } from "bun:test";
import { type ConfigDocument, documentSchema } from "../config/sections/registry.ts";
import { chainWarnings, configuredChainWarnings, fallbackProblems } from "./fallback-checks.ts";

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

describe("models that no backend is configured for", () => {
  const chains = { fallback_chains: { m: ["other", "nowhere"] } };
  const nowhere = 'fallback.fallback_chains.m[1]: no backend serves a model "nowhere" now';

  test("are warned of before any backend is asked, beside other mistakes", () => {
    const document = {
      backends: [
        { name: "a", type: "openaii", models: ["m", 3], bogus: null },
        { name: "a", type: "azure", deployments: { other: "o" } },
        { name: "off", enabled: false, models: ["nowhere"] },
        { name: "off too", enabled: false },
      ],
      fallback: { ...chains, fallback_policy: "loud" },
    };
    expect(configuredChainWarnings(document)).toEqual([nowhere]);
  });

  test("are known by the other names of a model that its backend knows", () => {
    const fallback = { fallback_chains: { "llama3:latest": ["llama3"] } };
    expect(configuredChainWarnings({ backends: [{ type: "ollama", models: ["llama3"] }], fallback })).toEqual([]);
    expect(configuredChainWarnings({ backends: [{ type: "vllm", models: ["llama3"] }], fallback })).toHaveLength(1);
  });

  test("cannot be known while an enabled backend lists its models itself, or chains are off or no chains", () => {
    const named = [{ models: ["m", "other"] }];
    expect(configuredChainWarnings({ backends: named, fallback: chains })).toEqual([nowhere]);
    expect(configuredChainWarnings({ fallback: chains })).toHaveLength(3);
    for (const document of [
      { backends: [...named, { type: "vllm" }], fallback: chains },
      { backends: [...named, { models: [] }], fallback: chains },
      { backends: [...named, "a"], fallback: chains },
      { backends: "a", fallback: chains },
      { backends: named, fallback: { ...chains, enabled: false } },
      { backends: named, fallback: { fallback_chains: ["m"] } },
      { backends: named, fallback: { fallback_chains: { m: null } } },
      { backends: named },
    ]) {
      expect(configuredChainWarnings(document)).toEqual([]);
    }
  });
});
