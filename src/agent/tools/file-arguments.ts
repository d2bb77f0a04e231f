// Arguments that several tools have, read behind the check against their schemas.

import type { JsonObject } from "../../lib/json.ts";
import { resolvePath, shownPath } from "../paths.ts";
import { ToolError } from "../tool.ts";

/** A path as it is asked for, and as people read it. */
interface FilePath {
  absolute: string;
  shown: string;
}

export const PATH_SCHEMA = {
  type: "string",
  description: "Path of the file, relative to the project or absolute.",
} as const;

export const FOLDER_SCHEMA = {
  type: "string",
  description: "Path of the folder, relative to the project or absolute; the project itself when left out.",
} as const;

export function fileOf({ path }: JsonObject, cwd: string): FilePath {
  const text = textOf(path);
  if (text.trim() === "") throw new ToolError("The path is empty: name a file.");
  return pathOf(text, cwd);
}

/** The folder of the session when none is named. */
export function folderOf({ path }: JsonObject, cwd: string): FilePath {
  return pathOf(textOf(path) === "" ? "." : textOf(path), cwd);
}

function pathOf(path: string, cwd: string): FilePath {
  if (path.includes("\0")) throw new ToolError("The path has a character that no path may have.");
  const absolute = resolvePath(path, cwd);
  return { absolute, shown: shownPath(absolute, cwd) };
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Undefined if the argument is not given. */
export function countOf(value: unknown, name: string): number | undefined {
  if (typeof value !== "number") return undefined;
  if (value < 1) throw new ToolError(`${name} must be at least 1.`);
  return Math.floor(value);
}
