// The tables behind the fence: whoever adds a path, or a place that secrets are sent to, has to say so in the section.

import { expect, test } from "bun:test";
import { documentJsonSchema, type JsonSchema } from "../schema/schema-export.ts";
import { filePathUse, specOf } from "../schema/section-patterns.ts";
import { SECTIONS, type SectionSpec } from "../sections/registry.ts";
import { namesVariable } from "../values/expand.ts";
import type { Path } from "../values/values.ts";

/** Every key of the schema, lists and mappings with "*". */
function* keysOf(schema: JsonSchema | undefined, path: Path = []): Generator<Path> {
  if (schema === undefined) return;
  if (path.length > 0) yield path;
  for (const [key, child] of Object.entries(schema.properties ?? {})) yield* keysOf(child, [...path, key]);
  if (typeof schema.additionalProperties === "object") yield* keysOf(schema.additionalProperties, [...path, "*"]);
  if (schema.items !== undefined) yield* keysOf(schema.items as JsonSchema, [...path, "*"]);
}

const PATH_NAME = /(^|_)(path|file|dir|folder|socket|ca)$/;

test("every key that sounds like a path is fenced, or can only be set in the file", () => {
  const open = [...keysOf(documentJsonSchema())].filter((path) => {
    const [section, ...rest] = path;
    if (!PATH_NAME.test(String(rest.at(-1)))) return false;
    if (specOf(section)?.fileOnlyFields?.includes(rest.join("."))) return false;
    return filePathUse(path) === undefined;
  });
  expect(open).toEqual([]);
});

test("every section with a URL and a secret says what its secrets depend on", () => {
  const specs: readonly SectionSpec[] = SECTIONS;
  const silent = specs.filter(({ urlPaths, secretPaths, sentTo }) => urlPaths && secretPaths && !sentTo);
  expect(silent.map(({ name }) => name)).toEqual([]);
});

test.each([
  ["${A}", true],
  ["a ${A:-b}", true],
  ["$${A}", false],
  ["$$${A}", false],
  ["$${A} ${B}", true],
  ["$A", false],
])("%s names a variable: %p", (text, isNamed) => {
  expect(namesVariable(text)).toBe(isNamed);
});
