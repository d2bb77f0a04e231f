// The section hooks: its defaults, and what is wrong with an entry, by the name of the field.

import { expect, test } from "bun:test";
import { hooksSection } from "./hooks.ts";

const problemsOf = (entry: object) => {
  const parsed = hooksSection.schema.safeParse([{ name: "h", ...entry }]);
  return parsed.success ? [] : parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
};

test("a hook of a module has defaults", () => {
  expect(hooksSection.schema.parse([{ name: "h", module: "./h.ts", match: { key: "k" } }])).toEqual([
    {
      name: "h",
      module: "./h.ts",
      match: { key: ["k"] },
      timeout: 200,
      on_error: "refuse",
      max_memory: 256 * 1024 * 1024,
      options: {},
    },
  ]);
});

test.each([
  [{}, "0.module: name a module or a url"],
  [{ module: "./h.ts", url: "https://a.example/", events: ["end"] }, "0.url: cannot stand beside module"],
  [{ url: "https://a.example/" }, "0.events: is required with url"],
  [{ module: "./h.ts", secret: "s" }, "0.secret: belongs to url"],
  [{ module: "./h.ts", headers: { a: "b" } }, "0.headers: belongs to url"],
  [{ module: "builtin:unknown" }, "0.module: expected a path, a package, or one of builtin:redact"],
  [{ url: "ftp://a.example/", events: ["end"] }, "0.url: expected an http or https URL"],
  [{ url: "https://user:password@a.example/", events: ["end"] }, "0.url: expected an http or https URL without"],
  [{ module: "./h.ts", events: [] }, "0.events: name at least one event"],
  [{ module: "./h.ts", timeout: "0s" }, "0.timeout: must be longer than zero"],
  [{ module: "./h.ts", timeout: "1h" }, "0.timeout: must be at most 10m"],
])("%j is refused", (entry, problem) => {
  expect(problemsOf(entry)).toEqual([expect.stringContaining(problem)]);
});
