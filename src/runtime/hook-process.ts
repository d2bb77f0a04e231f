// What starts the process of a hook: this program, wherever the gateway runs, without what concerns the gateway alone.

import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { isHookProcess } from "../hooks/mark.ts";
import { ownCommand } from "./runtime-options.ts";

/** Throws in such a process, because it would start itself again and again. */
export function hookProcess(env: Record<string, string | undefined>) {
  if (isHookProcess())
    throw new Error("a program that is compiled with the gateway inside cannot run modules of hooks");
  // Keys of the gateway itself stand in variables that begin with its name.
  const others = Object.entries(env).filter(([name]) => !name.startsWith("SIGNALBOX_"));
  return { command: programCommand(), env: Object.fromEntries(others) };
}

/**
 * The program that a gateway is a part of may be another one, which must not be started once more. A compiled binary and the bundle
 * of a start have no sources beside them, and are the program itself.
 */
function programCommand(): string[] {
  const source = join(import.meta.dir, "..", "main.ts");
  const isSource = basename(import.meta.dir) === "runtime" && existsSync(source);
  return isSource ? [process.execPath, source] : ownCommand();
}
