// What an endpoint says of itself for the OpenAPI document, as data; and short ways to say it.

import type { JsonSchema } from "../config/schema/schema-export.ts";
import type { Endpoint } from "../server/endpoint.ts";
import { ref, type Schema, type Schemas, text } from "./json-schema.ts";

export type Tag =
  | "Health"
  | "Models"
  | "Generation"
  | "Files"
  | "Batches"
  | "Sign-in"
  | "Configuration"
  | "Backends"
  | "Keys"
  | "Budgets"
  | "Organizations"
  | "Queue"
  | "Routes"
  | "Notifications"
  | "Audit"
  | "Recordings"
  | "Observation";

/** One endpoint, all of it: what it is asked for by, who may, what it takes and answers, and what does that. */
export interface DescribedEndpoint extends Endpoint {
  /** operationId: unique, and the name of a function in generated clients. */
  id: string;
  tag: Tag;
  summary: string;
  description?: string;
  parameters?: readonly Parameter[];
  body?: Body;
  /** Answers without an error. */
  answers: readonly DescribedAnswer[];
  errors: readonly number[];
  /** A backend's own error statuses come through. */
  forwardsErrors?: boolean;
  /** Where schemas stand that it names. */
  schemas?: Schemas;
  /** Its path in the document, where the configuration may name another one. */
  usualPath?: string;
  /** The document shows one operation for each value of this path parameter, with what depends on the value. */
  variants?: Variants;
}

interface Variants {
  parameter: string;
  /** Asked for with the document: schemas of the configuration take time to make. */
  values: () => Readonly<Record<string, Partial<Pick<DescribedEndpoint, "body" | "answers">>>>;
}

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  description: string;
  required?: boolean;
  schema: JsonSchema;
}

export interface Body<out Value = unknown> {
  schema: Schema<Value>;
  optional?: boolean;
  /** Default: application/json. */
  types?: readonly string[];
  example?: unknown;
}

export interface DescribedAnswer<out Value = unknown> {
  status: number;
  description: string;
  /** The schema of a JSON body. */
  schema?: Schema<Value>;
  /** The schema of the data of each event of a stream. */
  events?: JsonSchema;
  /** The media type of such a stream; default: text/event-stream. */
  eventsType?: string;
  /** The media types of a text that is not JSON. */
  types?: readonly string[];
  /** Names of headers of components.headers. */
  headers?: readonly string[];
}

export function jsonAnswer<Value>(
  schema: string | Schema<Value>,
  description: string,
  status = 200,
): DescribedAnswer<Value> {
  return { status, description, schema: typeof schema === "string" ? ref(schema) : schema };
}

export function pathParameter(name: string, description: string, schema: JsonSchema = text): Parameter {
  return { name, in: "path", description, required: true, schema };
}

export function queryParameter(name: string, description: string, schema: JsonSchema = text): Parameter {
  return { name, in: "query", description, schema };
}

/** One endpoint under several paths; the first has the plain name. */
export function at(paths: readonly string[], endpoint: Omit<DescribedEndpoint, "path">): DescribedEndpoint[] {
  return paths.map((path, index) => ({
    ...endpoint,
    path,
    id: index === 0 ? endpoint.id : `${endpoint.id}${index + 1}`,
  }));
}
