// Log lines in batches: when they leave, and that neither their reader nor the end of the process loses or stops anything.

import { afterEach, describe, expect, test } from "bun:test";
import { closeSync, mkdtempSync, openSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor, within } from "../../test/support/wait-for.ts";
import { batchedOutput } from "./batched-output.ts";

const folder = mkdtempSync(join(tmpdir(), "batched-output-"));
const descriptors: number[] = [];
let files = 0;
afterEach(() => {
  for (const descriptor of descriptors.splice(0)) closeSync(descriptor);
});

function outputToFile() {
  const path = join(folder, `log-${++files}`);
  const descriptor = openSync(path, "w");
  descriptors.push(descriptor);
  return { output: batchedOutput(descriptor, (count) => `${count} lost\n`), written: () => readFileSync(path, "utf8") };
}

/** A program that logs to its standard error, run by a shell command in which $PROGRAM stands for it. */
function runProgram(program: string, command = "$PROGRAM") {
  const script = `
    import { batchedOutput } from ${JSON.stringify(join(import.meta.dir, "batched-output.ts"))};
    const output = batchedOutput(2, (count) => count + " lost\\n");
    ${program}`;
  const path = join(folder, `program-${++files}.ts`);
  return Bun.write(path, script).then(() => {
    const shell = command.replaceAll("$PROGRAM", `"${process.execPath}" "${path}"`);
    return Bun.spawn(["sh", "-c", shell], { stdout: "pipe", stderr: "pipe" });
  });
}

describe("lines", () => {
  test("gather, and leave together after a moment, in order", async () => {
    const { output, written } = outputToFile();
    output.write("one\n");
    output.write("zwei ü\n");
    expect(written()).toBe("");
    await waitFor("the lines are written", () => written() !== "");
    expect(written()).toBe("one\nzwei ü\n");
    output.write("three\n");
    await waitFor("the next batch", () => written() === "one\nzwei ü\nthree\n");
  });

  test("leave at once when they are many", () => {
    const { output, written } = outputToFile();
    const line = `${"x".repeat(1_023)}\n`;
    for (let count = 0; count < 15; count++) output.write(line);
    expect(written()).toBe("");
    output.write(line);
    expect(written()).toBe(line.repeat(16));
  });

  test("leave at once when asked to, and only once", async () => {
    const { output, written } = outputToFile();
    output.write("now\n");
    output.flush();
    expect(written()).toBe("now\n");
    output.flush();
    output.write("later\n");
    await waitFor("the next batch", () => written() === "now\nlater\n");
  });
});

describe("the end of the process", () => {
  test.each([
    ["by itself", ""],
    ["by process.exit", "process.exit(0);"],
    ["by an exception", "throw new Error('unexpected');"],
  ])("%s loses no line", async (_title, ending) => {
    const child = await runProgram(`output.write("last words\\n"); ${ending}`);
    await within("the program ends", child.exited);
    expect(await new Response(child.stderr).text()).toContain("last words\n");
  });

  test("is not held up by the lines that wait", async () => {
    const child = await runProgram(`output.write("x\\n"); console.log(process.uptime() < 60);`);
    expect(await within("the program ends", child.exited)).toBe(0);
  });
});

describe("the reader", () => {
  const MANY_LINES = `for (let count = 0; count < 2_000; count++) output.write("x".repeat(200) + "\\n"); output.flush();`;

  test("that reads slowly gets every line", async () => {
    const child = await runProgram(MANY_LINES, "$PROGRAM 2>&1 >/dev/null | (sleep 0.02; cat)");
    const text = await within("the program ends", new Response(child.stdout).text(), 10_000);
    expect(text).toBe(`${"x".repeat(200)}\n`.repeat(2_000));
  });

  test("that has gone away does not end the process", async () => {
    const child = await runProgram(`${MANY_LINES} console.log("alive");`, "{ $PROGRAM 2>&1 >&3 | true; } 3>&1");
    expect(await within("the program ends", new Response(child.stdout).text(), 10_000)).toBe("alive\n");
  });

  test("that never reads does not stop the process", async () => {
    const child = await runProgram(
      `${MANY_LINES} console.log("alive");`,
      "{ $PROGRAM 2>&1 >&3 | sleep 6 >/dev/null 3>&-; } 3>&1",
    );
    try {
      const { value } = await within("the program goes on", child.stdout.getReader().read(), 4_000);
      expect(new TextDecoder().decode(value)).toBe("alive\n");
    } finally {
      child.kill();
    }
  }, 10_000);
});
