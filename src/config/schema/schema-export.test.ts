// The exported JSON Schema, and the operator's reference that must name every key of it.

import { expect, test } from "bun:test";
import { allPaths } from "../../../test/support/schema-paths.ts";
import { backendSchema } from "../sections/backends.ts";
import { SECTIONS } from "../sections/registry.ts";
import { documentJsonSchema, sectionJsonSchema } from "./schema-export.ts";
import { schemaAt } from "./schema-path.ts";

const REFERENCE = `${import.meta.dir}/../../../docs/configuration.md`;

test("is draft-07, knows every section, and refuses unknown keys", () => {
  const schema = documentJsonSchema();
  expect(schema.$schema).toBe("http://json-schema.org/draft-07/schema#");
  expect(Object.keys(schema.properties ?? {})).toEqual(SECTIONS.map(({ name }) => name));
  expect(schema.additionalProperties).toBe(false);
  expect(schema.properties?.backends?.description).toBe("The model servers behind the gateway.");
  expect(schema.properties?.timeouts?.properties?.connect).toMatchObject({ type: "string", default: "5s" });
});

test("docs/configuration.md names every key with its default, and no key that does not exist", async () => {
  const rows = new Map<string, string>();
  for (const match of (await Bun.file(REFERENCE).text()).matchAll(/^\| `([a-z_]+[.[][^`]+)` \| ([^|]*) \|/gm)) {
    rows.set(match[1] as string, (match[2] as string).trim());
  }
  const entries = allPaths(documentJsonSchema()).map(
    ({ path, schema }) => [path.join(".").replaceAll(".[]", "[]"), schema.default] as const,
  );
  const defaults = new Map(entries.filter(([name]) => /[.[]/.test(name) && !/(\[\]|<name>)$/.test(name)));
  expect([...rows.keys()].sort()).toEqual([...defaults.keys()].sort());
  for (const [name, shown] of rows) {
    const value = defaults.get(name);
    const isPlain = typeof value !== "object" && value !== undefined;
    if (isPlain) expect(`${name} ${shown}`).toBe(`${name} \`${String(value).replaceAll("\n", "\\n")}\``);
    else if (Array.isArray(value)) expect(`${name} ${shown}`).toBe(`${name} \`[${value.join(", ")}]\``);
    else expect(`${name} ${shown}`).toMatch(/ (required|none|by kind|per key|`\{\}`)$/);
  }
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
