// Sources of metadata in their order, and the model list with and without it.

import { describe, expect, test } from "bun:test";
import type { MetadataEntry } from "../config/sections/metadata-entry.ts";
import type { ModelListEntry } from "./list.ts";
import { createListEnricher, createModelMetadata } from "./metadata.ts";

function entry(id: string, displayName: string, aliases: string[] = []): MetadataEntry {
  return { id, aliases, metadata: { display_name: displayName } };
}

const metadata = createModelMetadata({
  backends: [
    { name: "a", type: "generic", model_configs: [entry("gpt-4o", "a's"), entry("m", "a's m")] },
    { name: "b", type: "generic", model_configs: [] },
  ],
  external: [entry("m", "the file's m"), entry("gpt-4.1", "the file's")],
  facts: [],
});

describe("sources", () => {
  test("model_configs of the backend, then the file, then what is built in", () => {
    expect(metadata.of("gpt-4o", "a")?.display_name).toBe("a's");
    expect(metadata.of("gpt-4o", "b")?.display_name).toBe("GPT-4o");
    expect(metadata.of("m", "b")?.display_name).toBe("the file's m");
    expect(metadata.of("gpt-4.1", "a")?.display_name).toBe("the file's");
    expect(metadata.of("unknown", "a")).toBeUndefined();
  });

  test("each field comes from the first that has it; prices stay together", () => {
    const own = { id: "gpt-4o", aliases: [], metadata: { pricing: { input_tokens: 9 }, limits: { max_output: 7 } } };
    const file = { id: "gpt-4o", aliases: [], metadata: { summary: "the file's", limits: { context_window: 5 } } };
    const merged = createModelMetadata({
      backends: [
        { name: "a", type: "generic", model_configs: [own] },
        { name: "b", type: "generic", model_configs: [] },
      ],
      external: [file],
      facts: [],
    });
    expect(merged.of("gpt-4o", "a")).toMatchObject({
      display_name: "GPT-4o",
      summary: "the file's",
      pricing: { input_tokens: 9 },
      limits: { max_output: 7, context_window: 5 },
    });
    expect(Object.keys(merged.of("gpt-4o", "a")?.pricing ?? {})).toEqual(["input_tokens"]);
    expect(merged.of("gpt-4o", "b")?.pricing).toMatchObject({ input_tokens: 0.0025 });
    expect(merged.of("gpt-4o", "a")).toBe(merged.ofAny("gpt-4o", ["b", "a"]) as NonNullable<unknown>);
  });

  test("of several backends the first with words of its own counts, and no other backend does", () => {
    expect(metadata.ofAny("m", ["b", "a"])?.display_name).toBe("a's m");
    expect(metadata.ofAny("m", ["b"])?.display_name).toBe("the file's m");
    expect(metadata.ofAny("gpt-4o", [])?.display_name).toBe("GPT-4o");
  });
});

describe("the model list", () => {
  const listed: ModelListEntry = {
    id: "m",
    object: "model",
    created: 1,
    owned_by: "x",
    permission: [],
    root: "m",
    parent: null,
    backends: ["b", "a"],
  };
  const unknown = { ...listed, id: "unknown", backends: ["b"] };

  test("with enrichment shows backends, and metadata where there is some", () => {
    expect(createListEnricher(metadata, true)([listed, unknown])).toEqual([
      { ...listed, metadata: { display_name: "a's m" } },
      unknown,
    ]);
  });

  test("without enrichment shows neither", () => {
    const [shown] = createListEnricher(metadata, false)([listed]);
    expect(Object.keys(shown ?? {})).toEqual(["id", "object", "created", "owned_by", "permission", "root", "parent"]);
  });

  test("the same list is made once", () => {
    const enrich = createListEnricher(metadata, true);
    const list = [listed];
    expect(enrich(list)).toBe(enrich(list));
    expect(enrich([listed])).not.toBe(enrich(list));
  });
});
