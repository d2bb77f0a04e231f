// The rules of the house that a compiler does not check: imports go down the layers only, and never in a circle.

import { describe, expect, test } from "bun:test";
import { dirname, join, normalize } from "node:path";
import { CONFIG_ROOMS, LAYERS } from "./layers.ts";
import { sourceFiles as files, root, sourceText } from "./source-files.ts";

const imports = new Map<string, string[]>();
for (const file of files) {
  const text = await sourceText(file);
  const targets: string[] = [];
  for (const [, atTop, lazy] of text.matchAll(
    /(?:^|\n)\s*(?:import|export)[^;]*?from "(\.[^"]+)"|(?:import|require)\("(\.[^"]+)"\)/g,
  )) {
    targets.push(normalize(join(dirname(file), (atTop ?? lazy) as string)));
  }
  imports.set(file, targets);
}

function layerOf(file: string): number {
  const top = file.split("/")[0] as string;
  return LAYERS.findIndex((layer) => layer.includes(top));
}

describe("architecture", () => {
  test("every source file belongs to a layer", () => {
    expect(files.filter((file) => layerOf(file) < 0)).toEqual([]);
  });

  test("imports go downward only", () => {
    const upward: string[] = [];
    for (const [file, targets] of imports) {
      for (const target of targets) {
        if (layerOf(target) < layerOf(file)) upward.push(`${file} imports ${target}`);
      }
    }
    expect(upward).toEqual([]);
  });

  test("imports between the rooms of the configuration go downward only", () => {
    const roomOf = (file: string) => CONFIG_ROOMS.indexOf(/^config\/(\w+)\//.exec(file)?.[1] ?? "");
    const inside = [...imports].filter(([file]) => file.startsWith("config/"));
    expect(inside.map(([file]) => file).filter((file) => roomOf(file) < 0)).toEqual([]);
    const upward = inside.flatMap(([file, targets]) =>
      targets
        .filter((target) => target.startsWith("config/") && roomOf(target) < roomOf(file))
        .map((target) => `${file} imports ${target}`),
    );
    expect(upward).toEqual([]);
  });

  test("no protocol folder imports another", () => {
    const crossing: string[] = [];
    for (const [file, targets] of imports) {
      const [top, protocol, rest] = file.split("/");
      if (top !== "protocols" || rest === undefined) continue;
      for (const target of targets) {
        const [targetTop, targetProtocol, targetRest] = target.split("/");
        if (targetTop === "protocols" && targetRest !== undefined && targetProtocol !== protocol) {
          crossing.push(`${file} imports ${target}`);
        }
      }
    }
    expect(crossing).toEqual([]);
  });

  test("no cycle of imports", () => {
    const state = new Map<string, "open" | "done">();
    const cycles: string[] = [];
    function visit(file: string, path: string[]): void {
      if (state.get(file) === "done") return;
      if (state.get(file) === "open") {
        cycles.push([...path.slice(path.indexOf(file)), file].join(" -> "));
        return;
      }
      state.set(file, "open");
      for (const target of imports.get(file) ?? []) visit(target, [...path, file]);
      state.set(file, "done");
    }
    for (const file of files) visit(file, []);
    expect(cycles).toEqual([]);
  });

  test("every file says in its first line what it is responsible for", async () => {
    const silent: string[] = [];
    for (const file of files) {
      if (!(await sourceText(file)).startsWith("// ")) silent.push(file);
    }
    expect(silent).toEqual([]);
  });

  test("console is used by the command line only", async () => {
    const loud: string[] = [];
    for (const file of files) {
      if (file.startsWith("cli/") || file === "main.ts") continue;
      if (/\bconsole\./.test(await sourceText(file))) loud.push(file);
    }
    expect(loud).toEqual([]);
  });

  test("the version in names.ts is the one in package.json", async () => {
    const { version } = await Bun.file(join(root, "package.json")).json();
    const { VERSION } = await import("../../src/names.ts");
    expect(VERSION).toBe(version);
  });
});
