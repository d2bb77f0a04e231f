// Reads JSON strictly: keys that are given twice are refused, which JSON.parse would let pass.

import type { Problem } from "../values/problems.ts";
import { isNestedTooDeeply } from "../values/values.ts";
import type { ParsedDocument } from "./parsed-document.ts";

const MAXIMUM_PROBLEMS = 10;

export function parseJson(text: string): ParsedDocument {
  const lineOf = (): undefined => undefined;
  const failed = (message: string): ParsedDocument => ({ value: undefined, problems: [{ path: [], message }], lineOf });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message quotes the text at fault, which may be a secret.
    return failed("this is not valid JSON");
  }
  if (isNestedTooDeeply(value)) return failed("is nested too deeply");
  return { value, problems: repeatedKeys(text), lineOf };
}

/** The text is valid JSON, so that strings and braces are all there is to look at. */
function repeatedKeys(text: string): Problem[] {
  const problems: Problem[] = [];
  const open: (Set<string> | undefined)[] = []; // the keys of each mapping around, undefined for a list
  const token = /"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\]]/g;
  let line = 1;
  let counted = 0;
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    const character = text[match.index];
    if (character === "{") open.push(new Set());
    else if (character === "[") open.push(undefined);
    else if (character === "}" || character === "]") open.pop();
    else if (match[1] !== undefined) {
      const key = JSON.parse(match[0].slice(0, -match[1].length)) as string;
      const keys = open.at(-1);
      if (keys?.has(key)) {
        for (; counted < match.index; counted++) if (text[counted] === "\n") line++;
        problems.push({ path: [], message: "this key is given twice", line });
        if (problems.length >= MAXIMUM_PROBLEMS) return problems;
      }
      keys?.add(key);
    }
  }
  return problems;
}
