// Runs commands one after the other and stops at the first that fails; shared by check and test.

export interface Step {
  name: string;
  command: string[];
}

/** Runs a step with its output passed through; returns the exit code. */
export async function runStep({ name, command }: Step): Promise<number> {
  const startedAtMs = performance.now();
  console.log(`\n== ${name}`);
  const child = Bun.spawn(command, { stdio: ["ignore", "inherit", "inherit"] });
  const exitCode = await child.exited;
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1);
  console.log(`== ${name}: ${exitCode === 0 ? "passed" : `failed with exit code ${exitCode}`} in ${seconds} s`);
  return exitCode;
}

/**
 * Static checks: format and lint, types, of what runs here and of what runs in browsers. Several checkers of types do some of the work
 * twice, and other tests use the cores.
 */
export const STATIC_CHECKS: Step[] = [
  {
    name: "biome",
    command: [process.execPath, "run", "node_modules/@biomejs/biome/bin/biome", "check", "--error-on-warnings", "."],
  },
  {
    name: "types",
    command: [process.execPath, "run", "node_modules/typescript/bin/tsc", "--singleThreaded", "-p", "."],
  },
  {
    name: "types of the dashboard's pages",
    command: [
      process.execPath,
      "run",
      "node_modules/typescript/bin/tsc",
      "--singleThreaded",
      "-p",
      "src/dashboard/web",
    ],
  },
];
