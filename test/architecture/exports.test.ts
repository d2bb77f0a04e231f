// What a file shows to others has a user there: what nobody imports is its own affair, or dead.

import { expect, test } from "bun:test";
import { join } from "node:path";
import { root, sourceFiles, sourceText } from "./source-files.ts";

const EXPORT = /^export (?:async )?(?:const|function\*?|class|interface|type|enum) (\w+)/gm;

const users = [...new Bun.Glob("{src,test,bench,scripts}/**/*.{ts,tsx}").scanSync(root)];

test("every export has a user in another file", async () => {
  const filesWith = new Map<string, Set<string>>();
  for (const file of users) {
    for (const [word] of (await Bun.file(join(root, file)).text()).matchAll(/\b[A-Za-z_]\w*\b/g)) {
      const files = filesWith.get(word);
      if (files === undefined) filesWith.set(word, new Set([file]));
      else files.add(file);
    }
  }
  const unused: string[] = [];
  for (const file of sourceFiles) {
    for (const [, name = ""] of (await sourceText(file)).matchAll(EXPORT)) {
      if ((filesWith.get(name)?.size ?? 0) < 2) unused.push(`${file}: ${name}`);
    }
  }
  expect(unused).toEqual([]);
});
