// Makes a small value of the form that a JSON Schema names: the arguments of a demo tool call, a structured answer.

import { isObject, type JsonObject as Schema } from "../lib/json.ts";

/** A schema comes from a client: references can form a circle, and two per level would double the work each time. */
const MAX_DEPTH = 12;
const MAX_ITEMS = 20;
/** Of an example; whatever the schema makes longer ends with nulls. */
const MAX_CHARACTERS = 20_000;
/** Counted for each value beside its names, so that empty ones are bounded as well. */
const CHARACTERS_PER_VALUE = 10;

/**
 * Required members only, and the first of several choices. Types, `const`, `enum`, `minimum`, `minItems`, `anyOf`, `oneOf`
 * and references within the schema are followed; other rules are not.
 */
export function schemaExample(schema: unknown): unknown {
  let left = MAX_CHARACTERS;

  function given(value: unknown): unknown {
    left -= JSON.stringify(value).length;
    return value;
  }

  function exampleOf(part: unknown, depth: number): unknown {
    if (!isObject(part) || depth >= MAX_DEPTH || left <= 0) return null;
    left -= CHARACTERS_PER_VALUE;
    if ("const" in part) return given(part.const);
    const inner = (value: unknown) => exampleOf(value, depth + 1);
    const { anyOf, oneOf, items, properties, required, minItems, minimum } = part;
    if (typeof part.$ref === "string") return inner(referenceIn(schema, part.$ref));
    for (const choices of [anyOf, oneOf]) if (Array.isArray(choices)) return inner(choices[0]);
    if (Array.isArray(part.enum)) return given(part.enum[0] ?? null);
    switch (typeOf(part)) {
      case "object": {
        const names = Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];
        left -= names.join().length;
        const known = new Map(isObject(properties) ? Object.entries(properties) : []);
        // From entries, so that a property called __proto__ is an ordinary one.
        return Object.fromEntries(names.map((name) => [name, inner(known.get(name) ?? {})]));
      }
      case "array": {
        const length = typeof minItems === "number" ? Math.min(minItems, MAX_ITEMS) : 0;
        return Array.from({ length }, () => inner(items ?? {}));
      }
      case "integer":
      case "number":
        return typeof minimum === "number" ? Math.max(1, Math.ceil(minimum)) : 1;
      case "boolean":
        return true;
      case "null":
        return null;
      default:
        return "example";
    }
  }

  return exampleOf(schema, 0);
}

function typeOf({ type, properties, required, items }: Schema): unknown {
  if (Array.isArray(type)) return type.find((each) => each !== "null") ?? "null";
  if (type !== undefined) return type;
  if (isObject(properties) || Array.isArray(required)) return "object";
  return items === undefined ? "string" : "array";
}

/** Only within the same document ("#/$defs/place"). */
function referenceIn(root: unknown, reference: string): unknown {
  if (!reference.startsWith("#")) return undefined;
  let target = root;
  for (const part of reference.slice(1).split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof target !== "object" || target === null || !Object.hasOwn(target, key)) return undefined;
    target = (target as Schema)[key];
  }
  return target;
}
