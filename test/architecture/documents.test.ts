// The pages that describe the house name what is there.

import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { MAP_PAGE, renderMap } from "../../scripts/map-page.ts";
import { ROOMS } from "../../scripts/rooms.ts";
import { root } from "./source-files.ts";

/** Every file of the repository that a page could name. */
const files = ["src", "test", "bench", "scripts", "docs", "deploy", "bin", "examples"].flatMap((folder) =>
  [...new Bun.Glob("**/*").scanSync(join(root, folder))].map((file) => `${folder}/${file}`),
);
const paths = new Set(files);
const folders = new Set(
  files.flatMap((file) => file.split("/").map((_, index, parts) => parts.slice(0, index).join("/"))),
);
const names = new Set(files.map((file) => file.slice(file.lastIndexOf("/") + 1)));

const decisions = [...new Bun.Glob("docs/decisions/*.md").scanSync(root)].sort();
const pages = ["ARCHITECTURE.md", "AGENTS.md", "CONTRIBUTING.md", ...decisions];
const page = (name: string) => Bun.file(join(root, name)).text();

/** Whether a path of a page, from the root or from src or from the end of some path, leads to a file or a folder. */
function exists(path: string): boolean {
  if (!path.includes("/")) return names.has(path);
  return (
    [path, `src/${path}`].some((whole) => paths.has(whole) || folders.has(whole)) ||
    files.some((file) => file.endsWith(`/${path}`))
  );
}

describe.each(pages)("%s", (name) => {
  test("names only files that exist", async () => {
    const mentioned = (await page(name)).match(/(?<![\w>./-])[\w.][\w./-]*\.(?:tsx?|yaml|sh)\b/g) ?? [];
    const missing = mentioned.map((path) => path.replace(/^\.\//, "")).filter((path) => !exists(path));
    expect([...new Set(missing)].filter((path) => !PLACEHOLDERS.has(path))).toEqual([]);
  });
});

/** Names that stand for any file of their kind, and files of operators. */
const PLACEHOLDERS: ReadonlySet<string> = new Set(["config.yaml", ".test.ts", "routes.ts", "x.ts"]);

test("docs/decisions/README.md lists every decision by its title", async () => {
  const titles = decisions
    .filter((name) => /\/\d{4}-[^/]+$/.test(name))
    .map(async (name) => {
      const [, number = "", title = ""] = /^# (\d{4}): (.+)$/m.exec(await page(name)) ?? [];
      return `- [${number}](${name.slice(name.lastIndexOf("/") + 1)}): ${title}`;
    });
  const listed = (await page("docs/decisions/README.md")).split("\n").filter((line) => line.startsWith("- "));
  expect(listed).toEqual(await Promise.all(titles));
});

test("CHANGELOG.md has what is unreleased first, then the version of package.json", async () => {
  const { version } = await Bun.file(join(root, "package.json")).json();
  const headings = [...(await page("CHANGELOG.md")).matchAll(/^## (.+)$/gm)].map(([, heading = ""]) => heading);
  expect(headings[0]).toBe("[Unreleased]");
  expect(headings[1]).toMatch(new RegExp(`^\\[${RegExp.escape(version)}\\] - \\d{4}-\\d{2}-\\d{2}$`));
});

describe("ARCHITECTURE.md", () => {
  test("has at most 15,000 bytes", () => {
    expect(Bun.file(join(root, "ARCHITECTURE.md")).size).toBeLessThanOrEqual(15_000);
  });

  test("has a row for every folder and file directly below src, and none for others", () => {
    const tops = files.flatMap((file) => /^src\/([^/]+)/.exec(file)?.[1] ?? []);
    expect(ROOMS.map(({ name }) => name).sort()).toEqual([...new Set(tops)].sort());
  });
});

test("docs/map.md is up to date; else run: sh bin/bun scripts/map.ts", async () => {
  expect(await Bun.file(MAP_PAGE).text()).toBe(renderMap());
});
