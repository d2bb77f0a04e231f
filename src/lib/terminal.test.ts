// Which outputs count as a terminal.

import { expect, test } from "bun:test";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { isTerminal } from "./terminal.ts";

test("neither a file, nor the null device, nor a closed output is a terminal", () => {
  for (const path of [import.meta.path, "/dev/null"]) {
    const fileDescriptor = openSync(path, "r");
    expect(isTerminal(fileDescriptor)).toBe(false);
    closeSync(fileDescriptor);
    expect(isTerminal(fileDescriptor)).toBe(false);
  }
});

test("a terminal is one", () => {
  const program = `import { isTerminal } from ${JSON.stringify(join(import.meta.dir, "terminal.ts"))}; console.log(String(isTerminal(1)));`;
  const command = `'${process.execPath}' -e '${program}'`;
  const terminal = Bun.spawnSync(["script", "-qefc", command, "/dev/null"], { stdin: "ignore", timeout: 10_000 });
  expect(terminal.stdout.toString().trim()).toBe("true");
});
