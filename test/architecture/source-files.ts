// The source files that the rules of the house are checked on.

import { join } from "node:path";

export const root = join(import.meta.dir, "../..");

/** Below src, without the tests. */
export const sourceFiles: readonly string[] = [...new Bun.Glob("**/*.{ts,tsx}").scanSync(join(root, "src"))]
  .filter((file) => !/\.test\.tsx?$/.test(file))
  .sort();

export async function sourceText(file: string): Promise<string> {
  return await Bun.file(join(root, "src", file)).text();
}
