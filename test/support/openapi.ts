// The OpenAPI document as tests use it: its operations, and checks of values against its schemas.

import { Ajv2020, type AnySchemaObject, type ValidateFunction } from "ajv/dist/2020.js";

export interface OpenApiOperation {
  method: string;
  /** With {parameters}. */
  path: string;
  operationId: string;
  tags?: string[];
  "x-required-role"?: string;
  security: Record<string, string[]>[];
  parameters?: { name: string; in: string; required: boolean; schema: AnySchemaObject }[];
  requestBody?: { required: boolean; content: Record<string, MediaType> };
  responses: Record<string, OpenApiResponse>;
}

export interface OpenApiResponse {
  description: string;
  headers?: Record<string, unknown>;
  content?: Record<string, MediaType>;
}

interface MediaType {
  schema: AnySchemaObject;
  example?: unknown;
  "x-event-data"?: AnySchemaObject;
}

interface Document {
  paths: Record<string, Record<string, Omit<OpenApiOperation, "method" | "path">>>;
  components: { schemas: Record<string, AnySchemaObject>; responses: Record<string, OpenApiResponse> };
}

export function operationsOf(document: object): OpenApiOperation[] {
  return Object.entries((document as Document).paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  );
}

/** The path with something in place of its parameters. */
export function samplePath(path: string, values: Record<string, string> = {}): string {
  return path.replaceAll(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? "1"));
}

export class SchemaChecks {
  readonly #document: Document;
  readonly #ajv: Ajv2020;
  readonly #compiled = new Map<AnySchemaObject, ValidateFunction>();

  /** `closed`: members that the schema does not name are refused, unless it says that there may be others. */
  constructor(document: object, options: { closed?: boolean } = {}) {
    this.#document = (options.closed ? closed(document) : document) as Document;
    this.#ajv = new Ajv2020({ allErrors: true, strictTypes: false, strictRequired: false, allowUnionTypes: true });
    this.#ajv.addFormat("date-time", (text) => !Number.isNaN(Date.parse(text)) && text.includes("T"));
    this.#ajv.addKeyword({ keyword: "components", schemaType: "object" });
    this.#ajv.addSchema({ $id: "openapi", components: this.#document.components });
  }

  get document(): object {
    return this.#document;
  }

  operation(method: string, path: string): OpenApiOperation {
    const found = operationsOf(this.#document).find((entry) => entry.method === method && entry.path === path);
    if (found === undefined) throw new Error(`the document has no operation ${method} ${path}`);
    return found;
  }

  /** The response that the operation describes for a status. */
  response(operation: OpenApiOperation, status: number): OpenApiResponse {
    const found = operation.responses[status] ?? operation.responses.default;
    if (found === undefined) throw new Error(`${operation.method} ${operation.path} describes no answer ${status}`);
    const name = (found as { $ref?: string }).$ref?.replace("#/components/responses/", "");
    if (name === undefined) return found;
    const shared = this.#document.components.responses[name];
    if (shared === undefined) throw new Error(`the document has no response ${name}`);
    return shared;
  }

  /** What is wrong with the value; empty when nothing is. */
  problems(schema: AnySchemaObject, value: unknown): string[] {
    let validate = this.#compiled.get(schema);
    if (validate === undefined) {
      validate = this.#ajv.compile(absolute(schema));
      this.#compiled.set(schema, validate);
    }
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath || "/"} ${message} ${JSON.stringify(params)}`,
    );
  }
}

/** References point into the document wherever the schema stands. */
function absolute<Value>(value: Value): Value {
  return rewrite(value, (object) =>
    typeof object.$ref === "string" && object.$ref.startsWith("#/")
      ? { ...object, $ref: `openapi${object.$ref}` }
      : object,
  );
}

function closed<Value>(value: Value): Value {
  return rewrite(value, (object) =>
    isObjectType(object.type) && object.properties !== undefined && object.additionalProperties === undefined
      ? { ...object, additionalProperties: false }
      : object,
  );
}

function isObjectType(type: unknown): boolean {
  return type === "object" || (Array.isArray(type) && type.includes("object"));
}

type JsonObject = Record<string, unknown>;

function rewrite<Value>(value: Value, change: (object: JsonObject) => JsonObject): Value {
  if (Array.isArray(value)) return value.map((entry) => rewrite(entry, change)) as Value;
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, entry]) => [key, rewrite(entry, change)]);
  return change(Object.fromEntries(entries)) as Value;
}
