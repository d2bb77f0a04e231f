// One owner per state: nothing at module level may change.

import { expect, test } from "bun:test";
import { sourceFiles, sourceText } from "./source-files.ts";

/** A constant of a collection type that is not declared as one that cannot change, or a signal. */
const COLLECTION =
  /^(?:export )?const (\w+)(: [^=]*)? = (?:new (?:Map|Set|WeakMap|WeakSet|Array)\b|\[\];|\{\};|signal(?:<.*>)?\()/;

test("nothing mutable at module level", async () => {
  const mutable: string[] = [];
  for (const file of sourceFiles) {
    for (const line of (await sourceText(file)).split("\n")) {
      const variable = /^(?:export )?(?:let|var) (\w+)/.exec(line)?.[1];
      const [, constant, type = ""] = COLLECTION.exec(line) ?? [];
      const isFixed = /readonly|Readonly|JsonSchema/.test(type);
      const name = variable ?? (isFixed ? undefined : constant);
      if (name !== undefined) mutable.push(`${file}: ${name}`);
    }
  }
  expect(mutable).toEqual([]);
});
