// A project of somebody else: the packed tarball among its packages, and the examples as its sources.

import { cpSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ownEnvironment, runBounded } from "../../scripts/run-bounded.ts";

const ROOT = join(import.meta.dir, "..", "..");
const LIMIT_MS = 120_000;

/** As strict as a project may be; the declarations of packages are checked, too. */
const COMPILER_OPTIONS = {
  ...{ strict: true, noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true, noEmit: true },
  ...{ target: "esnext", module: "nodenext", lib: ["esnext"], types: ["bun"], skipLibCheck: false },
};

export class ConsumerProject {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** @param folder - is made */
  static async make(folder: string, tarball: string): Promise<ConsumerProject> {
    const packages = join(folder, "node_modules");
    mkdirSync(packages, { recursive: true });
    // The other packages are those that npm has installed for the repository: what is tried is how ours is packed.
    for (const name of readdirSync(join(ROOT, "node_modules"))) {
      if (!name.startsWith(".")) symlinkSync(join(ROOT, "node_modules", name), join(packages, name));
    }
    const project = new ConsumerProject(folder);
    await project.succeed(["tar", "-xzf", tarball, "-C", folder]);
    renameSync(join(folder, "package"), join(packages, "signalbox"));
    cpSync(join(packages, "signalbox", "examples"), join(folder, "src"), { recursive: true });
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "consumer", type: "module" }));
    writeFileSync(
      join(folder, "tsconfig.json"),
      JSON.stringify({ compilerOptions: COMPILER_OPTIONS, include: ["src"] }),
    );
    return project;
  }

  /** What TypeScript says of the project and of our declarations; those of other packages are their own matter. */
  async typeProblems(): Promise<string[]> {
    const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
    const command = [process.execPath, compiler, "--singleThreaded", "-p", ".", "--pretty", "false"];
    const { stdout } = await this.run(command);
    return stdout.split("\n").filter((line) => /^(src|node_modules\/signalbox)\//.test(line));
  }

  run(command: readonly string[], environment: Record<string, string> = {}) {
    return runBounded(command, {
      cwd: this.folder,
      environment: { ...ownEnvironment(), ...environment },
      timeoutMs: LIMIT_MS,
    });
  }

  async succeed(command: readonly string[], environment?: Record<string, string>): Promise<string> {
    const { exitCode, stdout, stderr } = await this.run(command, environment);
    if (exitCode !== 0) throw new Error(`${command.join(" ")} exited ${exitCode}:\n${stdout}${stderr}`);
    return stdout;
  }
}
