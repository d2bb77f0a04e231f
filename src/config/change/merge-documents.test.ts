// The merge of an edited file with what runs: field by field, and entry by entry where entries have names.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { documentJsonSchema, type JsonSchema } from "../schema/schema-export.ts";
import type { Mapping } from "../values/values.ts";
import { entryNameKey } from "./entries.ts";
import { mergeDocuments } from "./merge-documents.ts";

const merged = (base: Mapping, file: Mapping, running: Mapping) => {
  const { document, replaced } = mergeDocuments({ base, file, running });
  return [document, replaced.map((path) => path.join("."))];
};

const backend = (name: string, more: Mapping = {}) => ({ name, url: `http://${name}`, ...more });

describe("what the file changed is brought in, and all else stays", () => {
  const cases: [string, Mapping, Mapping, Mapping, Mapping, string[]?][] = [
    [
      "another section",
      { logging: { level: "info" } },
      { logging: { level: "debug" } },
      { logging: { level: "info" }, retry: { max_attempts: 5 } },
      { logging: { level: "debug" }, retry: { max_attempts: 5 } },
    ],
    [
      "another field of the section",
      { retry: { max_attempts: 3 } },
      { retry: { max_attempts: 3, jitter: false } },
      { retry: { max_attempts: 5 } },
      { retry: { max_attempts: 5, jitter: false } },
    ],
    [
      "the same field: the file wins and it is named",
      { retry: { max_attempts: 3 } },
      { retry: { max_attempts: 4 } },
      { retry: { max_attempts: 5 } },
      { retry: { max_attempts: 4 } },
      ["retry.max_attempts"],
    ],
    [
      "the same field to the same value",
      { retry: { max_attempts: 3 } },
      { retry: { max_attempts: 5 } },
      { retry: { max_attempts: 5 } },
      { retry: { max_attempts: 5 } },
    ],
    [
      "a section that the file removes keeps what the API added to it",
      { retry: { max_attempts: 3 } },
      {},
      { retry: { max_attempts: 3, jitter: false } },
      { retry: { jitter: false } },
    ],
    [
      "a section that the API removed stays removed, but for what the file changed",
      { retry: { max_attempts: 3, jitter: false } },
      { retry: { max_attempts: 4, jitter: false } },
      {},
      { retry: { max_attempts: 4 } },
      ["retry.max_attempts"],
    ],
    [
      "backends by their names, in the order of the file where it changed",
      { backends: [backend("a"), backend("b")] },
      { backends: [backend("b"), backend("a", { weight: 2 }), backend("c")] },
      { backends: [backend("a"), backend("api"), backend("b", { weight: 5 })] },
      { backends: [backend("b", { weight: 5 }), backend("a", { weight: 2 }), backend("api"), backend("c")] },
    ],
    [
      "a backend that the file removes is gone, whatever the API changed of it",
      { backends: [backend("a"), backend("b")] },
      { backends: [backend("a")] },
      { backends: [backend("a"), backend("b", { weight: 5 })] },
      { backends: [backend("a")] },
      ["backends.b"],
    ],
    [
      "a backend that the API removed returns only when the file changes it",
      { backends: [backend("a"), backend("b")] },
      { backends: [backend("a", { weight: 2 }), backend("b")] },
      { backends: [] },
      { backends: [backend("a", { weight: 2 })] },
      ["backends.a"],
    ],
    [
      "all backends of the file removed: those of the API stay",
      { backends: [backend("a")] },
      {},
      { backends: [backend("a"), backend("api")] },
      { backends: [backend("api")] },
    ],
    [
      "keys without an id by their secrets",
      { api_keys: { keys: [{ key: "sekret-1" }] } },
      { api_keys: { keys: [{ key: "sekret-1", models: ["m"] }, { key: "sekret-2" }] } },
      { api_keys: { keys: [{ key: "sekret-1" }, { key: "sekret-api", id: "api" }] } },
      {
        api_keys: { keys: [{ key: "sekret-1", models: ["m"] }, { key: "sekret-2" }, { key: "sekret-api", id: "api" }] },
      },
    ],
    [
      "chains by their models",
      { fallback: { fallback_chains: { a: ["b"], c: ["d"] } } },
      { fallback: { fallback_chains: { a: ["x"], c: ["d"] } } },
      { fallback: { fallback_chains: { a: ["b"], c: ["y"], e: ["f"] } } },
      { fallback: { fallback_chains: { a: ["x"], c: ["y"], e: ["f"] } } },
    ],
    [
      "a conflict of a key without an id is named by its list, never by its secret",
      { api_keys: { keys: [{ key: "sekret-1", models: ["a"] }] } },
      { api_keys: { keys: [{ key: "sekret-1", models: ["b"] }] } },
      { api_keys: { keys: [{ key: "sekret-1", models: ["c"] }] } },
      { api_keys: { keys: [{ key: "sekret-1", models: ["b"] }] } },
      ["api_keys.keys.models"],
    ],
    [
      "a list without names is one field",
      { server: { trusted_proxies: ["10.0.0.1"] } },
      { server: { trusted_proxies: ["10.0.0.1", "10.0.0.2"] } },
      { server: { trusted_proxies: ["10.0.0.3"] } },
      { server: { trusted_proxies: ["10.0.0.1", "10.0.0.2"] } },
      ["server.trusted_proxies"],
    ],
  ];
  test.each(cases)("%s", (_name, base, file, running, expected, replaced = []) => {
    expect(merged(base, file, running)).toEqual([expected, replaced]);
  });
});

/** Small documents with every form that is merged in a way of its own. */
const documents = fc.record(
  {
    retry: fc.record({ max_attempts: fc.nat(2), jitter: fc.boolean() }, { requiredKeys: [] }),
    backends: fc.uniqueArray(fc.record({ name: fc.constantFrom("a", "b", "c", "d"), weight: fc.nat(2) }), {
      selector: ({ name }) => name,
    }),
    model_aliases: fc.dictionary(fc.constantFrom("x", "y", "z", "__proto__"), fc.constantFrom("m", "n")),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<Mapping>;

test("a side that did not change leaves the other as it is, and equal changes are no conflict", () => {
  fc.assert(
    fc.property(documents, documents, (base, changed) => {
      expect(merged(base, changed, base)).toEqual([changed, []]);
      expect(merged(base, base, changed)).toEqual([changed, []]);
      expect(merged(base, changed, changed)).toEqual([changed, []]);
    }),
  );
});

test("every backend is what the side says that changed it, and the file's where both did", () => {
  const entriesOf = ({ backends = [] }: { backends?: { name: string; weight: number }[] }) =>
    new Map(backends.map(({ name, weight }) => [name, weight]));
  fc.assert(
    fc.property(documents, documents, documents, (base, file, running) => {
      const { document } = mergeDocuments({ base, file, running });
      const [bases, files, runnings, results] = [base, file, running, document].map(entriesOf);
      for (const name of ["a", "b", "c", "d"]) {
        const isFromFile = files?.get(name) !== bases?.get(name);
        expect(results?.get(name)).toBe((isFromFile ? files : runnings)?.get(name) as number);
      }
    }),
  );
});

test("every list whose entries have a name or an id says so in its section", () => {
  const nameless: string[] = [];
  function look(schema: JsonSchema | undefined, path: (string | number)[]): void {
    if (schema === undefined) return;
    const { properties = {}, additionalProperties, items } = schema;
    for (const [key, child] of Object.entries(properties)) look(child, [...path, key]);
    if (typeof additionalProperties === "object") look(additionalProperties, [...path, "*"]);
    if (items === undefined) return;
    if (items.properties !== undefined && entryNameKey(path) === undefined) nameless.push(path.join("."));
    look(items, [...path, 0]);
  }
  look(documentJsonSchema(), []);
  expect(nameless).toEqual([]);
});
