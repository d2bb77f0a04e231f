import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readTestRun } from "./test-run.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "test-run-")));
afterAll(() => rmSync(folder, { recursive: true }));

/** What the runner itself says of such files. */
async function run(files: Record<string, string>, options: readonly string[]) {
  const names = Object.keys(files);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const child = Bun.spawn([process.execPath, "test", ...options, ...names.map((name) => `./${name}`)], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, NO_COLOR: "1" },
  });
  const printed = await child.stderr.text();
  return readTestRun(printed, await child.exited);
}

const IMPORT = `import { beforeAll, describe, expect, test } from "bun:test";\n`;

describe.each([
  ["what the test runner prints", []],
  ["what several at once print", ["--parallel=2", "--no-isolate"]],
])("%s", (_, options) => {
  test("is counted, and each failed test has its file", async () => {
    const first = `${IMPORT}describe("a", () => { test("b [1]", () => expect(1).toBe(2)); test("c", () => {}); });`;
    const second = `${IMPORT}test("d", () => {}); test.skip("e", () => {}); test("f", () => { throw new Error("(fail) g"); });`;
    expect(await run({ "first.test.ts": first, "second.test.ts": second }, options)).toEqual({
      passed: 2,
      failed: 2,
      skipped: 1,
      failures: [
        { file: "first.test.ts", name: "a > b [1]" },
        { file: "second.test.ts", name: "f" },
      ],
    });
  });

  test("names each failed test once, though a long run lists them again", async () => {
    const first = `${IMPORT}test("a", () => expect(1).toBe(2));`;
    const second = `${IMPORT}test.each(Array.from({ length: 200 }, (_, index) => index))("%d", () => {});`;
    expect(await run({ "first.test.ts": first, "second.test.ts": second }, options)).toEqual({
      passed: 200,
      failed: 1,
      skipped: 0,
      failures: [{ file: "first.test.ts", name: "a" }],
    });
  });

  test("is a failure when nothing was tested", async () => {
    expect(await run({ "empty.test.ts": IMPORT }, options)).toMatchObject({ passed: 0, failed: 1, failures: [] });
  });

  test("is a failure when the runner dies", async () => {
    const deadly = `${IMPORT}test("a", () => {}); test("b", () => process.kill(process.pid, "SIGKILL"));`;
    const fine = `${IMPORT}test("c", () => {});`;
    const found = await run({ "deadly.test.ts": deadly, "fine.test.ts": fine }, options);
    expect(found).toMatchObject({
      failed: 1,
      failures: options.length === 0 ? [] : [{ file: "deadly.test.ts", name: "(the runner died)" }],
    });
  });

  test("is a failure when a file cannot be read", async () => {
    const files = { "broken.test.ts": `import { x } from "./nowhere.ts"; x();` };
    expect(await run(files, options)).toMatchObject({
      failed: 1,
      failures: [{ file: "broken.test.ts", name: "(outside of any test)" }],
    });
  });
});
