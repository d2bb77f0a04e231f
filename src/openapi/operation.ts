// What an operation is in the OpenAPI document, as data; and the answers that many of them share.

import type { JsonSchema } from "../config/schema/schema-export.ts";
import { ref, text } from "./json-schema.ts";

/** Who may call it: anyone, keys with a scope, administrators, or scrapers of metrics. */
export type Audience = "open" | "read" | "write" | "admin" | "metrics";

export type Tag = "Health" | "Models" | "Generation" | "Configuration" | "Backends" | "Keys" | "Observation";

export interface Operation {
  method: "get" | "post" | "put" | "patch" | "delete";
  /** With {parameters}. */
  path: string;
  /** operationId: unique, and the name of a function in generated clients. */
  id: string;
  tag: Tag;
  audience: Audience;
  summary: string;
  description?: string;
  parameters?: readonly Parameter[];
  body?: Body;
  /** What comes when all went well. */
  answers: readonly Answer[];
  /** Statuses of errors. */
  errors: readonly number[];
  /** Errors in the shape of the Messages API. */
  errorFormat?: "messages";
  /** A backend's own error statuses come through. */
  forwardsErrors?: boolean;
}

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  description: string;
  required?: boolean;
  schema: JsonSchema;
}

export interface Body {
  schema: JsonSchema;
  optional?: boolean;
  /** Default: application/json. */
  types?: readonly string[];
  example?: unknown;
}

export interface Answer {
  status: number;
  description: string;
  /** Of the JSON body. */
  schema?: JsonSchema;
  /** Of the data of each event of a stream. */
  events?: JsonSchema;
  /** A text that is not JSON. */
  type?: string;
  /** Names of headers of components.headers. */
  headers?: readonly string[];
}

export function answer(schema: string | JsonSchema, description = "Done."): Answer {
  return { status: 200, description, schema: typeof schema === "string" ? ref(schema) : schema };
}

export function pathParameter(name: string, description: string, schema: JsonSchema = text): Parameter {
  return { name, in: "path", description, required: true, schema };
}

export function queryParameter(name: string, description: string, schema: JsonSchema = text): Parameter {
  return { name, in: "query", description, schema };
}

/** One operation under several paths; the first has the plain name. */
export function at(paths: readonly string[], operation: Omit<Operation, "path">): Operation[] {
  return paths.map((path, index) => ({
    ...operation,
    path,
    id: index === 0 ? operation.id : `${operation.id}${index + 1}`,
  }));
}
