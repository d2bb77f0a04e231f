// The five lookup steps in their order, date suffixes, and the fields of a single model.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { MetadataEntry } from "../config/sections/metadata-entry.ts";
import { createMetadataLookup, toModelFields, withoutDateSuffix } from "./metadata-lookup.ts";

/** An entry that can be told by its display name. */
function entry(id: string, aliases: string[] = [], displayName = id): MetadataEntry {
  return { id, aliases, metadata: { display_name: displayName } };
}

function finder(...sources: MetadataEntry[][]): (modelId: string) => string | undefined {
  const lookup = createMetadataLookup(sources);
  return (modelId) => lookup(modelId)?.display_name;
}

describe("the five steps", () => {
  test("1 before 2: the exact id wins over another entry's alias", () => {
    const find = finder([entry("other", ["gpt-4o"]), entry("gpt-4o")]);
    expect(find("gpt-4o")).toBe("gpt-4o");
  });

  test("2 before 3: an exact alias with a date wins over the name without it", () => {
    const find = finder([entry("gpt-4o"), entry("older", ["gpt-4o-2024-05-13"])]);
    expect(find("gpt-4o-2024-05-13")).toBe("older");
    expect(find("gpt-4o-2024-08-06")).toBe("gpt-4o");
  });

  test("2 before 4: an exact alias wins over a wildcard that stands first", () => {
    const find = finder([entry("family", ["claude-*"]), entry("exact", ["claude-fast"])]);
    expect(find("claude-fast")).toBe("exact");
    expect(find("claude-slow")).toBe("family");
  });

  test("3 before 4: the name without date wins over a wildcard", () => {
    const find = finder([entry("family", ["claude-*"]), entry("claude-haiku-4-5"), entry("alias", ["claude-x"])]);
    expect(find("claude-haiku-4-5-20251001")).toBe("claude-haiku-4-5");
    expect(find("claude-haiku-4-5@20251001")).toBe("claude-haiku-4-5");
    expect(find("claude-x-2501")).toBe("alias");
  });

  test("4 before 5: a wildcard over the whole name wins over the base name", () => {
    const find = finder([entry("everything of openai", ["openai/*"]), entry("gpt-4o")]);
    expect(find("openai/gpt-4o")).toBe("everything of openai");
    expect(find("azure/gpt-4o")).toBe("gpt-4o");
  });

  test("5: the base name goes through the same steps", () => {
    const find = finder([entry("gpt-4o", ["4o"]), entry("llama", ["llama-*"])]);
    expect(find("accounts/team/models/gpt-4o")).toBe("gpt-4o");
    expect(find("team/4o")).toBe("gpt-4o");
    expect(find("team/gpt-4o-2024-08-06")).toBe("gpt-4o");
    expect(find("meta/llama-3.1-8b")).toBe("llama");
    expect(find("team/")).toBeUndefined();
  });

  test("the most specific wildcard wins", () => {
    const find = finder([entry("all", ["*"]), entry("gpt", ["gpt-*"]), entry("gpt-4", ["gpt-4*"])]);
    expect(find("gpt-4.1")).toBe("gpt-4");
    expect(find("gpt-5")).toBe("gpt");
    expect(find("other")).toBe("all");
  });

  test("unknown names find nothing, names of object properties included", () => {
    const find = finder([entry("a")], []);
    expect(["b", "", "constructor", "__proto__", "/"].map(find)).toEqual(Array(5).fill(undefined));
  });
});

test("an earlier source wins by any step", () => {
  const find = finder([entry("a", ["gpt-*"], "operator")], [entry("gpt-4o", [], "built in"), entry("b")]);
  expect(find("gpt-4o")).toBe("operator");
  expect(find("b")).toBe("b");
});

describe("withoutDateSuffix", () => {
  test.each([
    ["claude-haiku-4-5-20251001", "claude-haiku-4-5"],
    ["claude-haiku-4-5@20251001", "claude-haiku-4-5"],
    ["gpt-4o-2024-08-06", "gpt-4o"],
    ["mistral-large-2411", "mistral-large"],
    ["gpt-4-0613", "gpt-4"],
    // Not dates.
    ["llama3-70b-8192", "llama3-70b-8192"],
    ["model-20251301", "model-20251301"],
    ["model-2024-08-32", "model-2024-08-32"],
    ["model@2411", "model@2411"],
    ["gpt-4o-2024-08-06-preview", "gpt-4o-2024-08-06-preview"],
    ["phi-12345678", "phi-12345678"],
    ["2411", "2411"],
  ])("%s is %s", (name, expected) => {
    expect(withoutDateSuffix(name)).toBe(expected);
  });

  test("takes off any date in any of the forms", () => {
    const date = fc.date({ min: new Date("2000-01-01"), max: new Date("2099-12-31"), noInvalidDate: true });
    const stem = fc.stringMatching(/^[a-z][a-z.]{0,20}$/);
    fc.assert(
      fc.property(stem, date, (name, when) => {
        const day = when.toISOString().slice(0, 10);
        const compact = day.replaceAll("-", "");
        for (const suffix of [`-${compact}`, `@${compact}`, `-${day}`, `-${compact.slice(2, 6)}`]) {
          expect(withoutDateSuffix(name + suffix)).toBe(name);
        }
      }),
    );
  });
});

test("repeated and very many lookups give the same answers as the first ones", () => {
  const entries = [entry("a", ["b"]), entry("c", ["d*"])];
  const shared = createMetadataLookup([entries]);
  fc.assert(
    fc.property(fc.array(fc.constantFrom("a", "b", "c", "dd", "x/a", "z", "a-2411")), (ids) => {
      for (const id of ids) expect(shared(id)).toBe(createMetadataLookup([entries])(id) as object);
    }),
  );
  for (let index = 0; index < 3_000; index++) expect(shared(`d${index}`)).toBe(entries[1]?.metadata as object);
  expect(shared(`d${"x".repeat(100_000)}`)).toBe(entries[1]?.metadata as object);
  expect(shared("a")).toBe(entries[0]?.metadata as object);
});

describe("toModelFields", () => {
  test("gives the fields of the specification and nothing else", () => {
    expect(
      toModelFields({
        display_name: "GPT-4o",
        developer: "OpenAI",
        summary: "Fast.",
        capabilities: ["chat", "tool", "embedding"],
        knowledge_cutoff: "2023-10",
        relative_speed: 4,
        pricing: { input_tokens: 0.0025, output_tokens: 0.01 },
        limits: { context_window: 128_000, max_output: 16_384 },
        thinking: { pattern: "standard", start_marker: "<t>", end_marker: "</t>", assume_reasoning_first: false },
      }),
    ).toEqual({
      supported_methods: ["chat.completions", "embeddings"],
      features: ["chat", "function_calling", "embedding"],
      max_tokens: 16_384,
      metadata: {
        display_name: "GPT-4o",
        developer: "OpenAI",
        summary: "Fast.",
        knowledge_cutoff: "2023-10",
        relative_speed: 4,
        pricing: { input_tokens: 0.0025, output_tokens: 0.01 },
        limits: { context_window: 128_000, max_output: 16_384 },
      },
    });
  });

  test("leaves out what is absent", () => {
    expect(Object.keys(toModelFields({}))).toEqual([]);
    expect(Object.keys(toModelFields({ capabilities: [] }))).toEqual([]);
    expect(JSON.stringify(toModelFields({ summary: "s", limits: { context_window: 5 } }))).toBe(
      '{"metadata":{"summary":"s","limits":{"context_window":5}}}',
    );
  });
});
