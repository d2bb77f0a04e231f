// Before npm packs: the declarations of what the package exports, in types/, without those of the rest of the source.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";

const ROOT = join(import.meta.dir, "..");
const TYPES = join(ROOT, "types");

/** Relative names in what TypeScript has written; .ts files are not there. */
const IMPORTED = /(?<=from |import\()"(\.[^"]+)\.ts"/g;

interface ExportedFile {
  types?: string;
  bun?: string;
}

const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  exports: Record<string, string | ExportedFile>;
};
const entries = Object.values(exports).flatMap((entry) =>
  typeof entry === "object" && entry.bun !== undefined ? [entry.bun] : [],
);

const folder = mkdtempSync(join(tmpdir(), "signalbox-types-"));
try {
  const problems = await compile(folder);
  rmSync(TYPES, { recursive: true, force: true });
  const declarations = reachable(entries.map((file) => declarationOf(relative("src", file))));
  const wrong = problems.filter((line) =>
    declarations.has(declarationOf(line.slice("src/".length).split("(", 1)[0] as string)),
  );
  if (wrong.length > 0) throw new Error(`what the package exports has types without a name:\n${wrong.join("\n")}`);
  for (const [path, text] of declarations) {
    mkdirSync(dirname(join(TYPES, path)), { recursive: true });
    writeFileSync(join(TYPES, path), text.replaceAll(IMPORTED, '"$1.js"'));
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Returns a line for each problem: files that are not exported may have types that cannot be named. */
async function compile(outDir: string): Promise<string[]> {
  const settings = join(folder, "tsconfig.json");
  const compilerOptions = {
    ...{ noEmit: false, declaration: true, emitDeclarationOnly: true },
    ...{ rootDir: join(ROOT, "src"), outDir, typeRoots: [join(ROOT, "node_modules/@types")] },
  };
  const files = entries.map((file) => join(ROOT, file));
  writeFileSync(
    settings,
    JSON.stringify({ extends: join(ROOT, "tsconfig.json"), compilerOptions, include: [], files }),
  );
  const command = [
    process.execPath,
    join(ROOT, "node_modules/typescript/bin/tsc"),
    "--singleThreaded",
    "-p",
    settings,
    "--pretty",
    "false",
  ];
  const child = Bun.spawn(command, { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] });
  const printed = await child.stdout.text();
  await child.exited;
  return printed.split("\n").filter((line) => line.startsWith("src/"));
}

/** The texts of these declarations, and of all that they name. */
function reachable(first: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  const open = [...first];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (found.has(path)) continue;
    const text = readFileSync(join(folder, path), "utf8");
    found.set(path, text);
    for (const [, name] of text.matchAll(IMPORTED)) open.push(join(dirname(path), `${name}.d.ts`));
  }
  return found;
}

function declarationOf(source: string): string {
  return source.replace(/\.ts$/, ".d.ts");
}
