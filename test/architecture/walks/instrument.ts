// The source with a call at the beginning of every function, which says in which file the function stands.

import { join } from "node:path";
import { type Node, type SourceFile, SyntaxKind } from "typescript/unstable/ast";
import { API } from "typescript/unstable/async";
import { root, sourceFiles } from "../source-files.ts";

const FUNCTIONS: ReadonlySet<SyntaxKind> = new Set([
  SyntaxKind.FunctionDeclaration,
  SyntaxKind.FunctionExpression,
  SyntaxKind.ArrowFunction,
  SyntaxKind.MethodDeclaration,
  SyntaxKind.Constructor,
  SyntaxKind.GetAccessor,
  SyntaxKind.SetAccessor,
]);

const IN_BROWSERS = "dashboard/web/";

/**
 * Modules that are loaded from now on call `entered` with their file below src, whenever a function begins. Their functions are
 * found by the compiler, so that what is called is exact.
 */
export async function instrumentSource(entered: (file: string) => void): Promise<void> {
  const files = sourceFiles.filter((file) => !file.startsWith(IN_BROWSERS));
  const texts = await instrumentedTexts(files);
  const global = globalThis as unknown as { __entered(index: number): void };
  global.__entered = (index) => entered(files[index] as string);
  Bun.plugin({
    name: "instrumented source",
    setup(build) {
      build.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
        const contents = texts.get(path);
        return contents === undefined ? undefined : { contents, loader: "ts" };
      });
    },
  });
}

async function instrumentedTexts(files: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const api = new API({ cwd: root });
  try {
    const snapshot = await api.updateSnapshot({ openProject: join(root, "tsconfig.json") });
    const program = snapshot.getProjects()[0]?.program;
    const texts = files.map(async (file, index) => {
      const path = join(root, "src", file);
      const source = await program?.getSourceFile(path);
      if (source === undefined) throw new Error(`the compiler does not know ${file}`);
      return [path, withCalls(source, `__entered(${index})`)] as const;
    });
    return new Map(await Promise.all(texts));
  } finally {
    await api.close();
  }
}

function withCalls(source: SourceFile, call: string): string {
  const inserts: { at: number; text: string }[] = [];
  const visit = (node: Node): void => {
    const { body } = node as Node & { body?: Node };
    if (FUNCTIONS.has(node.kind) && body !== undefined) {
      const start = body.getStart(source);
      if (body.kind === SyntaxKind.Block) inserts.push({ at: start + 1, text: `${call};` });
      else inserts.push({ at: start, text: `(${call}, ` }, { at: body.end, text: ")" });
    }
    node.forEachChild(visit);
  };
  visit(source);
  let text = "";
  let from = 0;
  for (const { at, text: inserted } of inserts.sort((one, other) => one.at - other.at)) {
    text += source.text.slice(from, at) + inserted;
    from = at;
  }
  return text + source.text.slice(from);
}
