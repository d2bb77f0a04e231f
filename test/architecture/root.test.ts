// What lies in the root of the repository: a file there is for a tool that looks for it, or for whoever comes first.

import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { root } from "./source-files.ts";

const PAGES = ["AGENTS.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md"];
const TOOLS = [
  ".gitignore",
  ".npmrc",
  "biome.json",
  "bunfig.toml",
  "package-lock.json",
  "package.json",
  "tsconfig.json",
];
/** In a work tree it says where the repository is. */
const GIT = ".git";

test("every file in the root has its reason", () => {
  const files = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isFile());
  const unknown = files.map(({ name }) => name).filter((name) => name !== GIT && !name.endsWith(".log"));
  expect(unknown.sort()).toEqual([...PAGES, ...TOOLS].sort());
});
