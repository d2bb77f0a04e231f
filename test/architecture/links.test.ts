// Links between the pages lead somewhere, and every page can be reached from the index.

import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { root } from "./source-files.ts";

const PAGES = [
  "README.md",
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  "AGENTS.md",
  "CHANGELOG.md",
  "deploy/README.md",
  ...[...new Bun.Glob("docs/**/*.md").scanSync(root)].sort(),
];

const texts = new Map(
  await Promise.all(PAGES.map(async (page) => [page, await Bun.file(join(root, page)).text()] as const)),
);

interface Link {
  page: string;
  target: string;
  anchor: string | undefined;
}

function linksOf(page: string): Link[] {
  const prose = withoutCode(texts.get(page) ?? "");
  return [...prose.matchAll(/\]\(([^()\s]+)\)/g)].flatMap(([, link = ""]) => {
    if (/^[a-z]+:/.test(link)) return [];
    const [path = "", anchor] = link.split("#");
    return [{ page, target: path === "" ? page : relative(root, join(root, dirname(page), path)), anchor }];
  });
}

function withoutCode(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```/gm, "").replaceAll(/`[^`\n]*`/g, (code) => code.replaceAll(/[[\]()]/g, ""));
}

/** As they are made from headings on the usual sites: lower case, no punctuation, "-" for blanks, numbers for repetitions. */
function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  const prose = (texts.get(page) ?? "").replaceAll(/^```[\s\S]*?^```/gm, "");
  for (const [, title = ""] of prose.matchAll(/^#{1,6} (.+)$/gm)) {
    const plain = title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-");
    let anchor = plain;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${plain}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}

const links = PAGES.flatMap(linksOf);

test("there are many, and the check finds those that lead nowhere", () => {
  expect(links.length).toBeGreaterThan(200);
  expect(anchorsOf("docs/scaling.md")).toContain("behind-a-balancer");
  expect(anchorsOf("docs/scaling.md")).not.toContain("nowhere");
});

test("every link leads to a file", () => {
  expect(
    links.filter(({ target }) => !existsSync(join(root, target))).map(({ page, target }) => `${page}: ${target}`),
  ).toEqual([]);
});

test("every link to a chapter leads to one", () => {
  const wrong = links.filter(
    ({ target, anchor }) => anchor !== undefined && texts.has(target) && !anchorsOf(target).has(anchor),
  );
  expect(wrong.map(({ page, target, anchor }) => `${page}: ${target}#${anchor}`)).toEqual([]);
});

test("the index leads to every page of the documentation", () => {
  const named = new Set(links.filter(({ page }) => page === "docs/index.md").map(({ target }) => target));
  const pages = PAGES.filter((page) => /^docs\/[^/]+\.md$/.test(page) && page !== "docs/index.md");
  expect(pages.filter((page) => !named.has(page))).toEqual([]);
  expect(links.some(({ page, target }) => page === "README.md" && target === "docs/index.md")).toBe(true);
});
