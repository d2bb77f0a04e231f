// The document with the defaults of the keys that are not written, as operators would write them.

import { isMapping, type Mapping } from "../values/values.ts";
import { documentJsonSchema, type JsonSchema } from "./schema-export.ts";
import { childSchema } from "./schema-path.ts";

/** Keys that are written stay as they are, whether they are valid or not. */
export function withDefaults(document: Mapping): Mapping {
  return fill(document, documentJsonSchema()) as Mapping;
}

function fill(value: unknown, schema: JsonSchema): unknown {
  if (Array.isArray(value)) {
    const items = childSchema(schema, 0);
    return items === undefined ? value : value.map((entry) => fill(entry, items));
  }
  if (!isMapping(value)) return value;
  const entries = Object.entries(value).map(([key, entry]): [string, unknown] => {
    const child = childSchema(schema, key);
    return [key, child === undefined ? entry : fill(entry, child)];
  });
  for (const [key, child] of Object.entries(schema.properties ?? {})) {
    if (!Object.hasOwn(value, key) && child.default !== undefined) entries.push([key, fill(child.default, child)]);
  }
  return Object.fromEntries(entries);
}
