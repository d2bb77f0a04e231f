// The refusal of an administrator whose role is too low.

import { includesRole, type Role } from "../config/values/roles.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Administrator, Call } from "../server/endpoint.ts";

/** Throws 403 for an administrator with a lower role. */
export function requireRoleOf({ name, role }: Pick<Administrator, "name" | "role">, needed: Role): void {
  if (includesRole(role, needed)) return;
  const message = `This needs the role ${needed}; ${name ?? "the caller"} has the role ${role}.`;
  throw new GatewayError(ERRORS.missingRole, message, { details: { needed_role: needed, role } });
}

/** Where an endpoint does more for a higher role than the one that it declares. */
export function requireRole({ administrator }: Call, needed: Role): void {
  requireRoleOf(administrator as Administrator, needed);
}
