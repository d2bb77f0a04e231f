// Masked secrets: never shown, and kept when they come back.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Mapping } from "../values/values.ts";
import { compareDocuments, diffDocuments } from "./diff.ts";
import { MASK, maskedSecretProblems, maskSecrets, unmask } from "./mask.ts";

const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,10}$/);
const secret = fc.stringMatching(/^sk-[a-zA-Z0-9]{12,20}$/);

const backend = fc.record(
  {
    name,
    api_key: secret,
    weight: fc.nat(100),
    headers: fc.dictionary(name, secret),
    url: fc.constant("http://u:p@h/"),
  },
  { requiredKeys: ["name"] },
);
const key = fc.record({ key: secret, id: name, user_id: name, enabled: fc.boolean() }, { requiredKeys: ["key"] });
const document: fc.Arbitrary<Mapping> = fc.record(
  {
    backends: fc.uniqueArray(backend, { selector: (entry) => entry.name, maxLength: 5 }),
    api_keys: fc.record({
      keys: fc.uniqueArray(key, { selector: (entry) => entry.id ?? entry.key, maxLength: 5 }),
    }),
    rate_limiting: fc.record({ bypass_keys: fc.uniqueArray(secret, { maxLength: 4 }) }),
    admin: fc.record({ auth: fc.record({ token: secret, password: secret, username: name }) }),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<Mapping>;

function secretsOf(value: unknown): string[] {
  return JSON.stringify(value).match(/sk-[a-zA-Z0-9]{12,}/g) ?? [];
}

describe("masks", () => {
  test("no secret is left in a view, and what is sent back is what was there", () => {
    fc.assert(
      fc.property(document, (original) => {
        const masked = maskSecrets(original) as Mapping;
        expect(secretsOf(masked)).toEqual([]);
        expect(JSON.stringify(masked)).not.toContain("u:p@");
        // Keys without an id that look alike stand where they stood.
        expect(unmask(masked, original)).toMatchObject({ document: original, problems: [] });
        expect(maskSecrets(masked)).toEqual(masked);
      }),
    );
  });

  test("entries with names are found in any order", () => {
    fc.assert(
      fc.property(document, (original) => {
        const masked = maskSecrets(original) as { backends?: unknown[] };
        if (masked.backends === undefined) return;
        const turned = { ...original, backends: [...masked.backends].reverse() };
        const { document: restored, problems } = unmask(turned, original);
        expect(problems).toEqual([]);
        expect(restored.backends).toEqual([...(original.backends as unknown[])].reverse());
      }),
    );
  });

  test("a diff shows no secret, and none where nothing differs", () => {
    fc.assert(
      fc.property(document, document, (from, to) => {
        expect(secretsOf(diffDocuments(from, to))).toEqual([]);
        expect(diffDocuments(from, structuredClone(from))).toEqual([]);
        expect(diffDocuments(from, to).length === 0).toBe(Bun.deepEquals(from, to));
      }),
    );
  });
});

test("a reference is no secret, but its default may be one", () => {
  const backends = [
    { name: "a", api_key: `\${KEY}` },
    { name: "b", api_key: `\${KEY:-sk-default}` },
  ];
  expect(maskSecrets({ backends })).toEqual({
    backends: [
      { name: "a", api_key: `\${KEY}` },
      { name: "b", api_key: MASK },
    ],
  });
});

describe("a masked form without a certain secret behind it is refused", () => {
  const keys = (...list: unknown[]): Mapping => ({ api_keys: { keys: list } });
  test.each([
    [
      { backends: [{ name: "new", api_key: MASK }] },
      { backends: [{ name: "old", api_key: "sk-old" }] },
      "backends.0.api_key",
    ],
    [
      { backends: [{ name: "a", url: `http://${MASK}@h` }] },
      { backends: [{ name: "a", url: "http://h" }] },
      "backends.0.url",
    ],
    [
      { rate_limiting: { bypass_keys: [MASK] } },
      { rate_limiting: { bypass_keys: ["one", "two"] } },
      "rate_limiting.bypass_keys.0",
    ],
    [
      keys({ key: MASK, user_id: "x" }, { key: MASK, user_id: "y" }),
      keys({ key: "k1", user_id: "a" }, { key: "k2", user_id: "b" }),
      "api_keys.keys.0.key",
    ],
  ])("%j", (next, previous, path) => {
    expect(unmask(next, previous).problems[0]?.path.join(".")).toBe(path);
  });

  test("one entry that changed, or moved, is certain", () => {
    const previous = keys({ key: "k1", user_id: "a" }, { key: "k2", user_id: "b" });
    const changed = unmask(keys({ key: MASK, user_id: "b" }, { key: MASK, user_id: "new" }), previous);
    expect(changed).toEqual({
      document: keys({ key: "k2", user_id: "b" }, { key: "k1", user_id: "new" }),
      problems: [],
      kept: [0, 1].map((index) => ["api_keys", "keys", index, "key"]),
    });
  });
});

test("a file with masked secrets is told so", () => {
  const problems = maskedSecretProblems({ backends: [{ name: "a", api_key: MASK, url: `http://${MASK}@h/` }] });
  expect(problems.map(({ path }) => path.join("."))).toEqual(["backends.0.api_key", "backends.0.url"]);
});

describe("diff", () => {
  test("goes by names in lists that have them, and tells a changed order as a whole", () => {
    const from = { backends: [{ name: "a", weight: 1 }, { name: "b" }] };
    const to = {
      backends: [
        { name: "a", weight: 2 },
        { name: "c", api_key: "sk-new" },
      ],
    };
    expect(diffDocuments(from, to).map(({ section, field, from, to }) => [section, field, from, to])).toEqual([
      ["backends", "a.weight", 1, 2],
      ["backends", "b", { name: "b" }, null],
      ["backends", "c", null, { name: "c", api_key: MASK }],
    ]);
    const turned = diffDocuments(from, { backends: [...from.backends].reverse() });
    expect(turned.map(({ field }) => field)).toEqual([""]);
  });

  test("applied to the old document it gives the new one", () => {
    const plain = fc.dictionary(fc.stringMatching(/^[a-z]{1,4}$/), fc.jsonValue({ maxDepth: 3 }));
    fc.assert(
      fc.property(plain, plain, (from, to) => {
        const result = structuredClone(from) as Mapping;
        for (const { path, to: value } of compareDocuments(from as Mapping, to as Mapping)) {
          let parent = result;
          for (const segment of path.slice(0, -1)) parent = parent[segment] as Mapping;
          const last = path.at(-1) as string;
          if (value === undefined) delete parent[last];
          else Object.defineProperty(parent, last, { value, enumerable: true, configurable: true, writable: true });
        }
        expect(result).toEqual(to as Mapping);
      }),
    );
  });
});
