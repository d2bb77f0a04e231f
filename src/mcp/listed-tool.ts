// A tool as a server lists it, made into what every backend takes. Servers are not trusted: what is odd is left out or
// replaced, never passed on.

import { isObject, type JsonObject } from "../lib/json.ts";

export interface ListedTool {
  /** The server's own name of the tool. */
  name: string;
  title: string;
  description: string;
  /** JSON Schema of an object. */
  parameters: JsonObject;
  /** It says that it changes something. One that says the contrary, or nothing, is not believed to be harmless either. */
  isChanging?: true;
}

const MAX_NAME_LENGTH = 512;
const MAX_DESCRIPTION_LENGTH = 10_000;
const MAX_SCHEMA_LENGTH = 64 * 1024;
/** Backends refuse them at the top of a schema; the server checks its arguments anyway. */
const NOT_AT_THE_TOP = ["$schema", "$id", "anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else"];

/** Undefined: it cannot be called by any name. */
export function readListedTool(value: unknown): ListedTool | undefined {
  if (!isObject(value) || typeof value.name !== "string" || value.name === "" || value.name.length > MAX_NAME_LENGTH)
    return undefined;
  const annotations = isObject(value.annotations) ? value.annotations : {};
  const title = [value.title, annotations.title].find((text) => typeof text === "string" && text !== "") ?? value.name;
  const { schema, isWhole } = readParameters(value.inputSchema);
  const description =
    typeof value.description === "string" ? value.description : title === value.name ? "" : String(title);
  return {
    name: value.name,
    title: String(title),
    description: isWhole
      ? description.slice(0, MAX_DESCRIPTION_LENGTH)
      : `${description.slice(0, MAX_DESCRIPTION_LENGTH)}\n(The schema of its arguments is too large to be shown.)`.trim(),
    parameters: schema,
    ...((annotations.readOnlyHint === false || annotations.destructiveHint === true) && { isChanging: true }),
  };
}

function readParameters(value: unknown): { schema: JsonObject; isWhole: boolean } {
  const nothing: JsonObject = { type: "object", properties: {} };
  if (!isObject(value) || (value.type !== undefined && value.type !== "object"))
    return { schema: nothing, isWhole: true };
  if (JSON.stringify(value).length > MAX_SCHEMA_LENGTH) return { schema: nothing, isWhole: false };
  const schema: JsonObject = { ...value, type: "object" };
  for (const key of NOT_AT_THE_TOP) delete schema[key];
  if (!isObject(schema.properties)) schema.properties = {};
  const { required } = schema;
  if (required !== undefined && !(Array.isArray(required) && required.every((name) => typeof name === "string")))
    delete schema.required;
  return { schema, isWhole: true };
}
