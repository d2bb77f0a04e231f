// Sections global_prompts, model_aliases and model_metadata as operators write them.

import { describe, expect, test } from "bun:test";
import { compileDocument } from "../compile/compile.ts";
import { formatPath, type Mapping } from "../values/values.ts";

function problemsOf(document: Mapping): string[] {
  return compileDocument(document, {}).problems.map(({ path, message }) => `${formatPath(path)}: ${message}`);
}

const settingsOf = (document: Mapping) => compileDocument(document, {}).settings;

describe("global_prompts", () => {
  test("a prompt needs a text or a file", () => {
    expect(problemsOf({ global_prompts: { models: { m: {} } } })).toEqual([
      "global_prompts.models.m: needs prompt or prompt_file",
    ]);
  });

  test("an unknown strategy is refused", () => {
    expect(problemsOf({ global_prompts: { merge_strategy: "prefix" } })).toEqual([
      "global_prompts.merge_strategy: expected one of prepend, append, replace",
    ]);
  });
});

describe("model_aliases", () => {
  test("are names", () => {
    expect(settingsOf({ model_aliases: { haiku: "m" } })?.model_aliases).toEqual({ haiku: "m" });
    expect(problemsOf({ model_aliases: { haiku: 7 } })).toEqual([
      "model_aliases.haiku: expected a string, found a number",
    ]);
    expect(problemsOf({ model_aliases: { haiku: "" } })).toEqual(["model_aliases.haiku: must not be empty"]);
  });
});

describe("model_metadata", () => {
  test.each([
    [{ model_metadata: { file: "m.yaml" } }],
    [{ model_metadata: { model_metadata_file: "m.yaml" } }],
    [{ model_metadata_file: "m.yaml" }],
    [{ model_metadata_file: "m.yaml", model_metadata: { enrichment: true } }],
    [{ model_metadata_file: "m.yaml", model_metadata: null }],
  ])("%j names the file", (document) => {
    expect(problemsOf(document)).toEqual([]);
    expect(settingsOf(document)?.model_metadata).toEqual({ file: "m.yaml", enrichment: true });
  });

  test("two spellings at once, and a wrong value, are told at the key that was written", () => {
    expect(problemsOf({ model_metadata_file: "a", model_metadata: { file: "b" } })).toEqual([
      "model_metadata_file: is another spelling of model_metadata.file, which is given too",
    ]);
    expect(problemsOf({ model_metadata_file: 7 })).toEqual(["model_metadata_file: expected a string, found a number"]);
  });

  test("model_configs have the shape of a metadata file, and mistakes are told without values", () => {
    const backend = (metadata: object) => ({
      backends: [{ name: "b", type: "demo", model_configs: [{ id: "m", metadata }] }],
    });
    expect(settingsOf(backend({ thinking: { pattern: "standard" } }))?.backends[0]?.model_configs[0]).toEqual({
      id: "m",
      aliases: [],
      metadata: {
        thinking: {
          pattern: "standard",
          start_marker: "<think>",
          end_marker: "</think>",
          assume_reasoning_first: false,
        },
      },
    });
    expect(problemsOf(backend({ limit: {} }))).toEqual([
      "backends[0].model_configs[0].metadata.limit: unknown key `limit`; did you mean `limits`?",
    ]);
    expect(problemsOf(backend({ limits: { max_output: 0 } }))).toEqual([
      "backends[0].model_configs[0].metadata.limits.max_output: must be at least 1",
    ]);
  });
});
