// The exported JSON Schema, and the guide for operators, whose keys are those of the schema.

import { expect, test } from "bun:test";
import { allPaths } from "../../../test/support/schema-paths.ts";
import { backendSchema } from "../sections/backends.ts";
import { SECTIONS } from "../sections/registry.ts";
import { documentJsonSchema, sectionJsonSchema } from "./schema-export.ts";
import { schemaAt } from "./schema-path.ts";

const GUIDE = `${import.meta.dir}/../../../docs/configuration.md`;

test("is draft-07, knows every section, and refuses unknown keys", () => {
  const schema = documentJsonSchema();
  expect(schema.$schema).toBe("http://json-schema.org/draft-07/schema#");
  expect(Object.keys(schema.properties ?? {})).toEqual(SECTIONS.map(({ name }) => name));
  expect(schema.additionalProperties).toBe(false);
  expect(schema.properties?.backends?.description).toBe("The model servers behind the gateway.");
  expect(schema.properties?.timeouts?.properties?.connect).toMatchObject({ type: "string", default: "5s" });
});

test("docs/configuration.md names no key that does not exist", async () => {
  const page = await Bun.file(GUIDE).text();
  const named = [...page.matchAll(/^\| `([a-z_]+[.[][^`]+)` \|/gm)].map(([, name]) => name as string);
  const keys = new Set(allPaths(documentJsonSchema()).map(({ path }) => path.join(".").replaceAll(".[]", "[]")));
  expect(named.length).toBeGreaterThan(40);
  expect(named.filter((name) => !keys.has(name))).toEqual([]);
});

test("names the types of backends as people write them, and none of the specification's own names", () => {
  const { enum: types } = schemaAt(documentJsonSchema(), ["backends", 0, "type"]) ?? {};
  expect(types).toEqual(expect.arrayContaining(["openai", "azure-openai", "google", "llama.cpp", "lm-studio"]));
  expect(String(types)).not.toMatch(/kind_|-style|-compatible|local-studio|federated-router/);
  for (const type of ["kind_a", "vllm-style", "llama-server-compatible", "local-studio", "federated-router"]) {
    expect(backendSchema.safeParse({ name: "a", type }).success).toBe(true);
  }
});

test("one section", () => {
  for (const { name, description } of SECTIONS) {
    expect(sectionJsonSchema(name)).toMatchObject({
      $schema: "http://json-schema.org/draft-07/schema#",
      title: name,
      description,
    });
  }
  expect(sectionJsonSchema("retry")?.properties?.max_attempts).toMatchObject({ type: "integer", default: 3 });
  expect(sectionJsonSchema("nine")).toBeUndefined();
});
