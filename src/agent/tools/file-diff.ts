// What a change to a file looks like to the person.

import { shownText } from "../result-limits.ts";
import type { ToolContent } from "../updates.ts";

/** Both texts together, in UTF-16 code units: an update with more would hold up the editor. */
const MAX_DIFF_LENGTH = 1024 * 1024;

/** @param oldText - undefined: the file is new, or cannot be read */
export function diffOf(path: string, oldText: string | undefined, newText: string): ToolContent {
  const length = (oldText?.length ?? 0) + newText.length;
  if (length > MAX_DIFF_LENGTH)
    return shownText(`[The change is too large to be shown: ${newText.length} characters in ${path}]`);
  return { type: "diff", path, newText, ...(oldText !== undefined && { oldText }) };
}
