// Code in the documentation can be pasted: it is code, in a language of its readers, for one address, and leaves no file where
// it was pasted. What it does is tried in test/clients/snippets.test.ts.

import { expect, test } from "bun:test";
import { parseAllDocuments } from "yaml";
import { readSnippets } from "../support/snippets.ts";
import { root } from "./source-files.ts";

const snippets = await readSnippets();
const of = (...languages: string[]) => snippets.filter(({ language }) => languages.includes(language));
/** With continued lines put together. */
const commands = of("sh", "console").flatMap(({ page, code }) =>
  code
    .replaceAll("\\\n", " ")
    .split("\n")
    .map((line) => ({ page, line })),
);
const curls = commands.filter(({ line }) => /^\s*curl\s/.test(line));
const shown = ({ page, line }: { page: string; line: string }) => `${page}: ${line.trim()}`;

test("there are many", () => {
  expect(snippets.length).toBeGreaterThan(60);
  expect(curls.length).toBeGreaterThan(15);
});

test("shell commands are shell", async () => {
  const checked = of("sh").map(async ({ page, code }) => {
    const shell = Bun.spawn(["sh", "-n"], { stdin: Buffer.from(code), stdout: "ignore", stderr: "pipe" });
    const problem = await new Response(shell.stderr).text();
    return problem === "" ? [] : [`${page}: ${problem}\n${code}`];
  });
  expect((await Promise.all(checked)).flat()).toEqual([]);
});

test("JSON and YAML are JSON and YAML, where nothing is left out", () => {
  const whole = of("json", "yaml").filter(({ code }) => !code.includes("…"));
  expect(whole.length).toBeGreaterThan(20);
  const wrong = whole.flatMap(({ page, language, code }) => {
    const problems = parseAllDocuments(code).flatMap(({ errors }) => errors.map(({ message }) => message));
    if (language === "yaml") return problems.map((message) => `${page}: ${message}`);
    try {
      JSON.parse(code);
      return [];
    } catch (error) {
      return [`${page}: ${error}`];
    }
  });
  expect(wrong).toEqual([]);
});

test("the language of programs is that of Node and Python, and what imports the package is typed, as hooks are", () => {
  const typed = of("ts", "typescript", "javascript").filter(({ page }) => page !== "docs/hooks.md");
  expect(typed.filter(({ code }) => !/from "signalbox(?:\/\w+)?"/.test(code)).map(({ page }) => page)).toEqual([]);
  expect(of("js").filter(({ code }) => /\bBun\b|from "bun/.test(code))).toEqual([]);
});

test("the gateway has one address, that of its banner", async () => {
  const pages = [...new Set(snippets.map(({ page }) => page))];
  const texts = await Promise.all(pages.map((page) => Bun.file(`${root}/${page}`).text()));
  expect(pages.filter((_, index) => /\blocalhost:8080\b|\[::1\]:8080/.test(texts[index] as string))).toEqual([]);
});

test("curl fails where the gateway refuses, so that no error is taken for an answer", () => {
  expect(curls.filter(({ line }) => !/^\s*curl -f/.test(line)).map(shown)).toEqual([]);
});

test("nothing is written into the folder where it is pasted", () => {
  const outputs = commands.filter(({ line }) => /\bcurl\b.*(?:\s-o\s|--output\s|\s>\s)(?!\/tmp\/)|\s-O\b/.test(line));
  expect(outputs.map(shown)).toEqual([]);
  const writes = of("js").filter(({ code }) => /\bwriteFile(?:Sync)?\("(?!\/tmp\/)/.test(code));
  expect(writes).toEqual([]);
});
