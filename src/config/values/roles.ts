// The roles of administrators, from the least to the most powerful.

/**
 * viewer reads everything but secrets. operator also runs what is configured: drains, weights, circuits, keys, budgets,
 * caches. admin also changes the configuration and sees secrets.
 */
export const ROLES = ["viewer", "operator", "admin"] as const;

export type Role = (typeof ROLES)[number];

/** A role may do all that lower ones may. */
export function includesRole(held: Role, needed: Role): boolean {
  return ROLES.indexOf(held) >= ROLES.indexOf(needed);
}
