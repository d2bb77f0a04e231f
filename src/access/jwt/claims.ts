// Claims of tokens, by the names that the configuration has for them.

import { isMapping } from "../../config/values/values.ts";

/** A claim with the whole name, as in "https://example.com/team", else what dots lead to. */
export function claimAt(claims: Readonly<Record<string, unknown>>, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  let value: unknown = claims;
  for (const part of name.split(".")) {
    if (!isMapping(value) || !Object.hasOwn(value, part)) return undefined;
    value = value[part];
  }
  return value;
}

export function textOf(claim: unknown): string | undefined {
  return typeof claim === "string" && claim !== "" ? claim : undefined;
}

/** RFC 8693, section 4.2, has scopes in one text; other claims are lists. */
export function listOf(claim: unknown): string[] {
  if (typeof claim === "string") return claim.split(/\s+/).filter(Boolean);
  return Array.isArray(claim) ? claim.filter((each) => typeof each === "string") : [];
}
