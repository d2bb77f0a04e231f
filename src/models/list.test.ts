import { describe, expect, test } from "bun:test";
import { toBackend } from "../backends/backend.ts";
import { documentSchema } from "../config/sections/registry.ts";
import { aggregateModels, findRecord, readModelList } from "./list.ts";

const ids = (answer: unknown) => readModelList(answer)?.map((model) => model.id);

describe("shapes of model lists", () => {
  test.each([
    ["OpenAI", { object: "list", data: [{ id: "a" }, { id: "b/c d" }] }, ["a", "b/c d"]],
    ["Gemini", { models: [{ name: "models/gemini-2.5-flash" }] }, ["gemini-2.5-flash"]],
    ["LM Studio", { models: [{ key: "qwen/qwen3", display_name: "Qwen" }] }, ["qwen/qwen3"]],
    ["llama.cpp, both lists", { data: [{ id: "m" }], models: [{ name: "other" }] }, ["m"]],
    ["a file path as id", { data: [{ id: "models/x.gguf" }] }, ["models/x.gguf"]],
    ["a bare array", ["a", { id: "b" }], ["a", "b"]],
    ["an empty list", { data: [] }, []],
    ["null for an empty list", { object: "list", data: null }, []],
    ["entries that are no models", { data: [null, 1, {}, { id: "" }, { id: 7 }, { id: "a" }, { id: "a" }] }, ["a"]],
    ["names of object members", { data: [{ id: "__proto__" }, { id: "constructor" }] }, ["__proto__", "constructor"]],
  ])("%s", (_, answer, expected) => {
    expect(ids(answer)).toEqual(expected);
  });

  test.each([[{ error: { message: "no" } }], ["text"], [null], [7], [undefined], [{ data: "a" }]])(
    "%j is none",
    (answer) => {
      expect(readModelList(answer)).toBeUndefined();
    },
  );

  test.each([
    [{ created: 1_700_000_000 }, 1_700_000_000],
    [{ created: 1_700_000_000_500 }, 1_700_000_000],
    [{ created_at: "2023-11-14T22:13:20Z" }, 1_700_000_000],
    [{ created: 0 }, undefined],
    [{ created: "soon" }, undefined],
  ])("the time in %j", (fields, expected) => {
    expect(readModelList([{ id: "a", ...fields }])?.[0]?.created).toBe(expected);
  });
});

describe("one list of several", () => {
  const [vllm, generic] = documentSchema
    .parse({
      backends: [
        { name: "v", type: "vllm", url: "http://v" },
        { name: "g", url: "http://g" },
      ],
    })
    .backends.map(toBackend);

  test("no duplicates; configuration order, then the backend's; owners by kind", () => {
    const list = aggregateModels([
      {
        backend: vllm!,
        models: [
          { id: "b", created: 5, ownedBy: "someone" },
          { id: "a", created: 6, ownedBy: undefined },
        ],
      },
      {
        backend: generic!,
        models: [
          { id: "a", created: 7, ownedBy: "x" },
          { id: "c", created: 8, ownedBy: "acme" },
          { id: "d", created: 9, ownedBy: undefined },
        ],
      },
    ]);
    expect(list.map(({ id, created, owned_by }) => [id, created, owned_by])).toEqual([
      ["b", 5, "vllm"],
      ["a", 6, "vllm"],
      ["c", 8, "acme"],
      ["d", 9, "generic"],
    ]);
    expect(list[0]).toEqual({
      id: "b",
      object: "model",
      created: 5,
      owned_by: "vllm",
      permission: [],
      root: "b",
      parent: null,
      backends: ["v"],
    });
    expect(list.map(({ backends }) => backends)).toEqual([["v"], ["v", "g"], ["g"], ["g"]]);
  });
});

test("a record is found with and without the tag", () => {
  const models = [
    { id: "a:latest", created: 1, ownedBy: undefined },
    { id: "b", created: 2, ownedBy: undefined },
  ];
  expect(findRecord(models, "a")?.created).toBe(1);
  expect(findRecord(models, "b:latest")?.created).toBe(2);
  expect(findRecord(models, "c")).toBeUndefined();
});
