// A type has one name, and a name stands for one type: no two rooms declare types of the same name.

import { expect, test } from "bun:test";
import { sourceFiles, sourceText } from "./source-files.ts";

const DECLARATION = /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)/gm;

test("no name of a type is declared in two rooms; name it by what it is in its room", async () => {
  const places = new Map<string, string[]>();
  for (const file of sourceFiles) {
    const text = await sourceText(file);
    for (const [, name = ""] of text.matchAll(DECLARATION)) places.set(name, [...(places.get(name) ?? []), file]);
  }
  const roomOf = (file: string) => file.split("/")[0];
  const doubles = [...places].filter(([, files]) => new Set(files.map(roomOf)).size > 1);
  expect(doubles.map(([name, files]) => `${name}: ${files.join(", ")}`)).toEqual([]);
});
