// What the operations of the admin API have in common.

import { text } from "./json-schema.ts";
import type { Operation, Parameter, Tag } from "./operation.ts";

export type AdminOperation = Omit<Operation, "tag" | "audience">;

export function ofAdmin(tag: Tag, operations: readonly AdminOperation[]): Operation[] {
  return operations.map((operation) => ({ ...operation, tag, audience: "admin" }));
}

/** Of every admin operation: no credentials or wrong ones, not allowed, too many failed attempts, a bug. */
export const OF_ADMIN = [401, 403, 429, 500] as const;
/** Of those that take a body. */
export const OF_A_BODY = [...OF_ADMIN, 400, 408, 413] as const;
/** Of those that change the configuration. */
export const OF_A_CHANGE = [...OF_A_BODY, 409, 503] as const;

export const ifMatch: Parameter = {
  name: "If-Match",
  in: "header",
  description: "The version that the change was made for; 409 if it is no longer the current one.",
  schema: text,
};
