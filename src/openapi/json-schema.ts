// Short ways to write JSON Schema (2020-12), which OpenAPI 3.1 takes as it is. Each schema has the type of its values, so that
// the compiler holds the code that makes or reads a value to what the document says of it.

import type { JsonSchema } from "../config/schema/schema-export.ts";

declare const VALUE: unique symbol;

/** The member exists for the compiler only. A schema of which no more is known describes `unknown`. */
export interface Schema<out Value> extends JsonSchema {
  readonly [VALUE]?: Value;
}

/** The type of the values that a schema describes, as they are made; members of objects may be read only. */
export type ValueOf<Described> = Described extends Schema<infer Value> ? Value : never;

export type Properties = Readonly<Record<string, JsonSchema>>;
/** By name, as `components.schemas` has them. */
export type Schemas = Readonly<Record<string, JsonSchema>>;

type ObjectOf<Required extends Properties, Optional extends Properties> = Flat<
  { readonly [Key in keyof Required]: ValueOf<Required[Key]> } & {
    readonly [Key in keyof Optional]?: ValueOf<Optional[Key]> | undefined;
  }
>;
type NoMembers = Readonly<Record<never, never>>;
type Flat<Members> = { [Key in keyof Members]: Members[Key] };
type Choices<Values extends readonly unknown[]> = { readonly [Index in keyof Values]: Schema<Values[Index]> };
type OrNull<Members extends Properties> = { readonly [Key in keyof Members]: Schema<ValueOf<Members[Key]> | null> };

export const text: Schema<string> = { type: "string" };
export const integer: Schema<number> = { type: "integer" };
export const count: Schema<number> = { type: "integer", minimum: 0 };
export const number: Schema<number> = { type: "number" };
export const flag: Schema<boolean> = { type: "boolean" };
export const time: Schema<string> = { type: "string", format: "date-time" };
/** Unix time in seconds. */
export const unixTime: Schema<number> = { type: "integer", description: "Unix time in seconds." };
export const texts: Schema<readonly string[]> = list(text);
/** A JSON object with any members. */
export const anyObject: Schema<object> = { type: "object", additionalProperties: true };
export const anything: Readonly<Schema<unknown>> = {};
export const nothing: Schema<null> = { type: "null" };

export function list<Item>(items: Schema<Item>): Schema<readonly Item[]> {
  return { type: "array", items };
}

export function described<Value>(schema: Schema<Value>, description: string): Schema<Value> {
  return { ...schema, description };
}

export function constant<const Value>(value: Value): Schema<Value> {
  return { const: value };
}

export function oneOfTexts<const Text extends string>(...values: readonly Text[]): Schema<Text> {
  return { type: "string", enum: [...values] };
}

/** A mapping with any keys. */
export function mapOf<Value>(values: Schema<Value>): Schema<Readonly<Record<string, Value>>> {
  return { type: "object", additionalProperties: values };
}

/** A schema that components.schemas has under this name. */
export function ref(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

/** A schema of components.schemas: stands for itself as a reference wherever it is used. */
type Component<Value> = Schema<Value> & { readonly [DEFINITION]: { name: string; schema: () => Schema<Value> } };

const DEFINITION = Symbol("definition");

/** @param schema - as a function, where it takes time to make or names itself */
export function component<Value>(name: string, schema: Schema<Value> | (() => Schema<Value>)): Component<Value> {
  const made = typeof schema === "function" ? schema : () => schema;
  return Object.defineProperty(ref(name), DEFINITION, { value: { name, schema: made } }) as Component<Value>;
}

/** The schema itself, or the definition that a reference leads to. */
export function definitionOf(schema: JsonSchema): JsonSchema {
  return DEFINITION in schema ? (schema as Component<unknown>)[DEFINITION].schema() : schema;
}

/** Keeps the order of the components. */
export function schemasOf(...components: readonly Component<unknown>[]): Schemas {
  const schemas = {};
  for (const { [DEFINITION]: definition } of components) {
    Object.defineProperty(schemas, definition.name, { enumerable: true, get: definition.schema });
  }
  return schemas;
}

export function anyOf<Values extends readonly unknown[]>(...choices: Choices<Values>): Schema<Values[number]> {
  return { anyOf: [...choices] };
}

export function oneOf<Values extends readonly unknown[]>(...choices: Choices<Values>): Schema<Values[number]> {
  return { oneOf: [...choices] };
}

export function orNull<Value>(schema: Schema<Value>): Schema<Value | null> {
  if (Array.isArray(schema.type) && schema.type.includes("null")) return schema;
  if (typeof schema.type !== "string" || schema.enum !== undefined) return anyOf(schema, nothing);
  return { ...schema, type: [schema.type, "null"] };
}

/** An object that the gateway makes; clients should expect further members in later versions. */
export function shape<Required extends Properties, Optional extends Properties = NoMembers>(
  required: Required,
  optional?: Optional,
): Schema<ObjectOf<Required, Optional>> {
  return {
    type: "object",
    properties: { ...required, ...optional },
    ...(Object.keys(required).length > 0 && { required: Object.keys(required) }),
  };
}

/** A shape() as a component. */
export function namedShape<Required extends Properties, Optional extends Properties = NoMembers>(
  name: string,
  required: Required,
  optional?: Optional,
): Component<ObjectOf<Required, Optional>> {
  return component(name, shape(required, optional));
}

/** An object that comes from elsewhere, or goes there: further members pass. */
export function open<Required extends Properties, Optional extends Properties = NoMembers>(
  required: Required,
  optional?: Optional,
): Schema<ObjectOf<Required, Optional>> {
  return { ...shape(required, optional), additionalProperties: true };
}

/** A request that may go on to a backend: further members pass, and null counts as left out. */
export function lenientRequest(required: Properties, optional: Properties): JsonSchema {
  return open(required, mapValues(optional, orNull));
}

/** A request to the gateway itself: further members are refused, and null counts as left out. */
export function strictRequest<Required extends Properties, Optional extends Properties = NoMembers>(
  required: Required,
  optional?: Optional,
): Schema<ObjectOf<Required, OrNull<Optional>>> {
  const members = mapValues(optional ?? {}, orNull) as OrNull<Optional>;
  return { ...shape(required, members), additionalProperties: false };
}

function mapValues<Value, Made>(
  values: Readonly<Record<string, Value>>,
  make: (value: Value) => Made,
): Record<string, Made> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, make(value)]));
}
