// What the operations of the admin API have in common.

import type { JsonSchema } from "../config/schema/schema-export.ts";
import { text } from "./json-schema.ts";
import { type Answer, answer, type Operation, type Parameter, queryParameter, type Tag } from "./operation.ts";

export type AdminOperation = Omit<Operation, "tag" | "audience">;

export function ofAdmin(tag: Tag, operations: readonly AdminOperation[]): Operation[] {
  return operations.map((operation) => ({ ...operation, tag, audience: "admin" }));
}

/** Of every admin operation: unknown parameters, no credentials or wrong ones, not allowed, too many attempts, a bug. */
export const OF_ADMIN = [400, 401, 403, 429, 500] as const;
/** Of those that take a body. */
export const OF_A_BODY = [...OF_ADMIN, 408, 413] as const;
/** Of those that change the configuration. */
export const OF_A_CHANGE = [...OF_A_BODY, 409, 503] as const;

export const ifMatch: Parameter = {
  name: "If-Match",
  in: "header",
  description: "The version that the change was made for; 409 if it is no longer the current one.",
  schema: text,
};

export const dryRun = queryParameter("dry_run", "true: everything is checked, and nothing changed.", {
  type: "boolean",
  default: false,
});

export const includeSensitive = queryParameter("include_sensitive", "true: with secrets; needs elevated permission.", {
  type: "boolean",
  default: false,
});

/** With the version of the configuration as ETag. */
export function versioned(schema: string | JsonSchema, description: string, status = 200): Answer {
  return { ...answer(schema, description), status, headers: ["ETag"] };
}
