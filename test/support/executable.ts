// The executable of npm run build: the one that npm test has built already, or a new one.

import { copyFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "..", "..");

/** For tests that start it themselves, away from what npm test has built. */
export async function copyExecutable(path: string): Promise<void> {
  const built = process.env.GATEWAY_EXECUTABLE;
  if (built !== undefined) return copyFileSync(built, path);
  const build = Bun.spawn([process.execPath, "scripts/build.ts", `--outfile=${path}`], {
    cwd: ROOT,
    stdio: ["ignore", "ignore", "inherit"],
  });
  if ((await build.exited) !== 0) throw new Error("the executable cannot be built");
}
