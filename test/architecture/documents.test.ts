// The pages that describe the house name what is there.

import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { LAYERS } from "./layers.ts";
import { root } from "./source-files.ts";

/** Every file of the repository that a page could name. */
const files = ["src", "test", "bench", "scripts", "docs", "deploy", "bin"].flatMap((folder) =>
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
    const mentioned = (await page(name)).match(/(?<![\w>./-])[\w.][\w./-]*\.(?:ts|yaml|sh)\b/g) ?? [];
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

describe("ARCHITECTURE.md", () => {
  test("has an entry for every folder of src", async () => {
    const text = await page("ARCHITECTURE.md");
    const tops = new Set(files.flatMap((file) => /^src\/([\w-]+)\//.exec(file)?.[1] ?? []));
    expect([...tops].filter((top) => !text.includes(`src/${top}/`))).toEqual([]);
  });

  test("tells the layers as they are tested", async () => {
    const rule = (await page("ARCHITECTURE.md")).split("**Imports go down only**")[1]?.split("```")[1] ?? "";
    const told = rule
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "" && line !== "text");
    expect(told).toEqual(LAYERS.map((layer) => layer.join(", ")));
  });

  test("walks through at most nine rooms in one direction, through none of them twice", async () => {
    const walks = (await page("ARCHITECTURE.md")).split("## Five walks")[1]?.split("\n## ")[0] ?? "";
    const ways = [...walks.matchAll(/^- (?:There|Back): ((?:`[\w/-]+`(?: -> )?)+)/gm)].map(([, rooms = ""]) =>
      rooms.split(" -> ").map((room) => room.replaceAll("`", "")),
    );
    expect(ways.length).toBe(10);
    for (const rooms of ways) {
      expect(rooms.filter((room) => !folders.has(`src/${room}`))).toEqual([]);
      expect(rooms.length).toBeLessThanOrEqual(9);
      expect(rooms).toEqual([...new Set(rooms)]);
    }
  });
});
