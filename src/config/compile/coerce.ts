// Text from the environment as the type that its key wants.

import type { JsonSchema } from "../schema/schema-export.ts";
import { acceptsType, alternatives } from "../schema/schema-path.ts";

const NUMBER = /^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?$/;
const TRUE: ReadonlySet<string> = new Set(["true", "yes", "on", "1"]);
const FALSE: ReadonlySet<string> = new Set(["false", "no", "off", "0"]);

/** Text that does not fit is handed back as it is: validation says what was expected. */
export function coerceText(schema: JsonSchema, text: string): unknown {
  const trimmed = text.trim();
  const list = alternatives(schema).find((branch) => branch.type === "array");
  if (acceptsType(schema, "string")) {
    // "[::1]:8080" begins like a JSON list and is none.
    if (list !== undefined && (trimmed.includes(",") || Array.isArray(parseJson(trimmed))))
      return toList(list, trimmed);
    return text;
  }
  if (acceptsType(schema, "boolean")) {
    const word = trimmed.toLowerCase();
    if (TRUE.has(word)) return true;
    if (FALSE.has(word)) return false;
  }
  if (acceptsType(schema, "integer") || acceptsType(schema, "number")) {
    if (NUMBER.test(trimmed)) return Number(trimmed);
  }
  if (list !== undefined) return toList(list, trimmed);
  if (acceptsType(schema, "object")) return parseJson(trimmed) ?? text;
  return text;
}

function toList(schema: JsonSchema, text: string): unknown[] {
  const json = parseJson(text);
  if (Array.isArray(json)) return json;
  if (text === "") return [];
  return text.split(",").map((entry) => coerceText(schema.items ?? {}, entry.trim()));
}

function parseJson(text: string): unknown {
  if (!/^[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not JSON is an answer here, not an error
  }
}
