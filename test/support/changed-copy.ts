// A copy of the program with a few changes of its source: what a rule promises about changes is tried on it.

import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";

const ROOT = join(import.meta.dir, "../..");

export interface ChangedCopy {
  folder: string;
  /** Its `bin/signalbox`. */
  command: string;
  /** What the compiler says of it, or of one file and what that imports, a line each; none for a program that is right. */
  typeErrors(file?: string): Promise<string[]>;
  remove(): void;
}

export interface Change {
  file: string;
  /** A line that the file has once, and what is put in before it. */
  before: string;
  insert: string;
}

/** @param added - files of the tests that become some of the program; what they import of `src` they find there, too */
export function changedCopy(changes: readonly Change[], added: readonly { file: string; as: string }[]): ChangedCopy {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-copy-"));
  cpSync(join(ROOT, "bin"), join(folder, "bin"), { recursive: true });
  cpSync(join(ROOT, "src"), join(folder, "src"), {
    recursive: true,
    filter: (path) => !path.endsWith(".test.ts"),
  });
  cpSync(join(ROOT, "tsconfig.json"), join(folder, "tsconfig.json"));
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  for (const { file, before, insert } of changes) {
    const path = join(folder, file);
    const [start, rest, ...more] = readFileSync(path, "utf8").split(`${before}\n`);
    if (start === undefined || rest === undefined || more.length > 0)
      throw new Error(`${file} has no single ${before}`);
    writeFileSync(path, `${start}${insert}\n${before}\n${rest}`);
  }
  for (const { file, as } of added) {
    const path = join(folder, as);
    const toSource = relative(dirname(as), "src");
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, readFileSync(join(ROOT, file), "utf8").replaceAll(/"(?:\.\.\/)+src\//g, `"${toSource}/`));
  }
  return {
    folder,
    command: join(folder, "bin/signalbox"),
    async typeErrors(file) {
      const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
      const project = join(folder, file === undefined ? "tsconfig.json" : "one-file.json");
      if (file !== undefined) {
        writeFileSync(project, JSON.stringify({ extends: "./tsconfig.json", files: [file], include: [] }));
      }
      const run = Bun.spawn([process.execPath, "run", compiler, "--singleThreaded", "-p", project], {
        cwd: folder,
        stdout: "pipe",
      });
      const text = await run.stdout.text();
      await run.exited;
      return text.split("\n").filter((line) => line !== "");
    },
    remove: () => rmSync(folder, { recursive: true }),
  };
}
