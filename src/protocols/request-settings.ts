// Sampling and limits that something else than the client sets, in the words of a client's format.

import type { Overrides } from "../config/sections/routes.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import type { ClientProtocol } from "./protocol.ts";

/** The members of a body to set, undefined ones to remove; what the format has no place for is left out. */
export function settingsFor(
  client: Pick<ClientProtocol, "settings"> | undefined,
  value: JsonObject,
  set: Overrides,
): JsonObject {
  const members: JsonObject = {};
  for (const [setting, wanted] of Object.entries(set)) {
    const [path, ...others] = client?.settings?.[setting as keyof Overrides] ?? [];
    if (path === undefined) continue;
    for (const other of others) if (value[other] !== undefined) members[other] = undefined;
    const [member, ...inner] = path.split(".") as [string, ...string[]];
    members[member] = withValue(members[member] ?? value[member], inner, wanted);
  }
  return members;
}

/** @param names - of the members that lead to the value, from outside in */
function withValue(before: unknown, [name, ...inner]: readonly string[], wanted: unknown): unknown {
  if (name === undefined) return wanted;
  const object = isObject(before) ? before : {};
  return { ...object, [name]: withValue(object[name], inner, wanted) };
}
