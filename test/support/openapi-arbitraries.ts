// Values that fit a JSON Schema of the OpenAPI document, and values that break it, for fast-check.

import type { AnySchemaObject } from "ajv/dist/2020.js";
import fc from "fast-check";

/** Nested values below this depth hold only what their schema requires. */
const MAX_DEPTH = 4;

const NAMES = fc.constantFrom("a", "demo", "gpt-4o", "Ünïcode", "x y", "0", "__proto__", "a/b", "");

/** Makes arbitraries for the schemas of one document. Schemas may refer to its components. */
export class SchemaArbitraries {
  readonly #document: { components: { schemas: Record<string, AnySchemaObject> } };
  /** By pattern: one with a property of Unicode goes through all of its characters, for more than a second. */
  readonly #matching = new Map<string, fc.Arbitrary<string>>();

  constructor(document: object) {
    this.#document = document as { components: { schemas: Record<string, AnySchemaObject> } };
  }

  /** Fits the schema, but for rules that only a validator knows (oneOf, not): filter by it. */
  fitting(schema: AnySchemaObject, depth = 0): fc.Arbitrary<unknown> {
    const { $ref } = schema as { $ref?: string };
    if ($ref !== undefined) {
      const { $ref: _, ...rest } = schema;
      return this.fitting({ ...this.#resolve($ref), ...rest }, depth);
    }
    if ("const" in schema) return fc.constant(schema.const);
    if (Array.isArray(schema.enum)) return fc.constantFrom(...(schema.enum as unknown[]));
    const variants = (schema.anyOf ?? schema.oneOf) as AnySchemaObject[] | undefined;
    if (variants !== undefined) {
      const { anyOf: _, oneOf: __, ...shared } = schema;
      return fc.oneof(...variants.map((variant) => this.fitting(merged(shared, variant), depth)));
    }
    const types = Array.isArray(schema.type) ? (schema.type as string[]) : [schema.type as string | undefined];
    return fc.oneof(...types.map((type) => this.#ofType(type, schema, depth)));
  }

  /** A value of any kind; most of them break any given schema. */
  any(): fc.Arbitrary<unknown> {
    return fc.oneof(
      fc.constantFrom<unknown>(null, true, false, 0, -1, 1.5, 1e300, "", "x", [], {}, [null], { a: 1 }, [[]]),
      fc.jsonValue({ maxDepth: 2 }),
    );
  }

  /** A fitting value in which, at any depth, one value is exchanged, left out, or joined by an unknown member. */
  mutated(schema: AnySchemaObject): fc.Arbitrary<unknown> {
    const change = fc.record({
      path: fc.array(fc.nat(), { maxLength: 5 }),
      to: this.any(),
      how: fc.constantFrom<Mutation>("exchange", "drop", "add"),
    });
    return fc.tuple(this.fitting(schema), change).map(([value, { path, to, how }]) => mutate(value, path, to, how));
  }

  #resolve(reference: string): AnySchemaObject {
    const name = reference.replace("#/components/schemas/", "");
    const found = this.#document.components.schemas[name];
    if (found === undefined) throw new Error(`the document has no schema ${reference}`);
    return found;
  }

  #ofType(type: string | undefined, schema: AnySchemaObject, depth: number): fc.Arbitrary<unknown> {
    switch (type) {
      case "null":
        return fc.constant(null);
      case "boolean":
        return fc.boolean();
      case "integer":
        return integers(schema);
      case "number":
        return fc.oneof(integers(schema), fc.double({ ...numberBounds(schema), noNaN: true, noDefaultInfinity: true }));
      case "string":
        return this.#text(schema);
      case "array":
        return this.#array(schema, depth);
      case "object":
        return this.#object(schema, depth);
      default:
        return schema.properties === undefined ? this.any() : this.#object(schema, depth);
    }
  }

  #array(schema: AnySchemaObject, depth: number): fc.Arbitrary<unknown> {
    const minLength = (schema.minItems as number | undefined) ?? 0;
    const maxLength = Math.max(
      minLength,
      Math.min((schema.maxItems as number | undefined) ?? 3, depth < MAX_DEPTH ? 3 : 0),
    );
    if (maxLength === 0) return fc.constant([]);
    return fc.array(this.fitting((schema.items as AnySchemaObject | undefined) ?? {}, depth + 1), {
      minLength,
      maxLength,
    });
  }

  #object(schema: AnySchemaObject, depth: number): fc.Arbitrary<unknown> {
    const properties = (schema.properties ?? {}) as Record<string, AnySchemaObject>;
    const required = new Set((schema.required ?? []) as string[]);
    const members = Object.entries(properties).filter(([name]) => required.has(name) || depth < MAX_DEPTH);
    const known = fc.record(
      Object.fromEntries(members.map(([name, member]) => [name, this.fitting(member, depth + 1)])),
      { requiredKeys: [...required].filter((name) => name in properties) },
    );
    const others = schema.additionalProperties as AnySchemaObject | boolean | undefined;
    if (typeof others !== "object" || depth >= MAX_DEPTH) return known;
    const more = fc.dictionary(NAMES, this.fitting(others, depth + 1), { maxKeys: 2 });
    return fc.tuple(known, more).map(([own, extra]) => ({ ...extra, ...(own as object) }));
  }

  #text(schema: AnySchemaObject): fc.Arbitrary<string> {
    const {
      minLength = 0,
      maxLength = Number.POSITIVE_INFINITY,
      pattern,
      format,
    } = schema as { minLength?: number; maxLength?: number; pattern?: string; format?: string };
    if (format === "date-time") {
      return fc
        .date({ min: new Date(0), max: new Date("2100-01-01"), noInvalidDate: true })
        .map((date) => date.toISOString());
    }
    const made = pattern === undefined ? fc.oneof(NAMES, fc.string({ maxLength: 12 })) : this.#textsOf(pattern);
    return made.filter((text) => text.length >= minLength && text.length <= maxLength);
  }

  #textsOf(pattern: string): fc.Arbitrary<string> {
    const made = this.#matching.get(pattern) ?? matching(pattern);
    this.#matching.set(pattern, made);
    return made;
  }
}

function merged(shared: AnySchemaObject, variant: AnySchemaObject): AnySchemaObject {
  const { default: _, description: __, title: ___, ...rest } = shared;
  return { ...rest, ...variant };
}

function integers(schema: AnySchemaObject): fc.Arbitrary<number> {
  const { min = 0, max = 1000 } = numberBounds(schema);
  const from = Math.ceil(min);
  const to = Math.floor(Math.max(from, max));
  return fc.oneof(fc.integer({ min: from, max: to }), fc.constantFrom(from, to));
}

function numberBounds(schema: AnySchemaObject): { min?: number; max?: number } {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema as Record<string, number | undefined>;
  const min = minimum ?? (exclusiveMinimum !== undefined ? exclusiveMinimum + 1 : undefined);
  const max = maximum ?? (exclusiveMaximum !== undefined ? exclusiveMaximum - 1 : undefined);
  return { ...(min !== undefined && { min }), ...(max !== undefined && { max: Math.max(max, min ?? max) }) };
}

/** Lookaheads and the like cannot be generated: examples are tried. */
function matching(pattern: string): fc.Arbitrary<string> {
  const expression = new RegExp(pattern, "u");
  try {
    return fc.stringMatching(expression, { size: "small" });
  } catch {
    return fc.constantFrom("a", "0", "/x", "http://127.0.0.1:9", "30s", "demo").filter((text) => expression.test(text));
  }
}

type Mutation = "exchange" | "drop" | "add";

/** Goes down as far as the value and the path do, and changes what is there. */
function mutate(value: unknown, [at = 0, ...path]: readonly number[], to: unknown, how: Mutation): unknown {
  if (typeof value !== "object" || value === null) return to;
  const keys = Object.keys(value);
  const key = keys[at % Math.max(keys.length, 1)];
  if (key === undefined || (how === "add" && path.length === 0)) {
    return Array.isArray(value) ? [...value, to] : { ...value, unknown_member: to };
  }
  const isHere = path.length === 0;
  const inner = (value as Record<string, unknown>)[key];
  if (Array.isArray(value)) {
    if (isHere && how === "drop") return value.toSpliced(Number(key), 1);
    return value.with(Number(key), isHere ? to : mutate(inner, path, to, how));
  }
  const { [key]: _, ...others } = value as Record<string, unknown>;
  if (isHere && how === "drop") return others;
  return { ...value, [key]: isHere ? to : mutate(inner, path, to, how) };
}
