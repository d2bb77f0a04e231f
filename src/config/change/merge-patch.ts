// JSON merge patch (RFC 7396): scalars and lists are replaced, mappings merged, null removes.

import { isMapping, isNestedTooDeeply, type Mapping } from "../values/values.ts";

/** Neither argument is changed. Throws a RangeError for a patch that is nested too deeply: check it first. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (isNestedTooDeeply(patch)) throw new RangeError("the patch is nested too deeply");
  return merge(target, patch);
}

function merge(target: unknown, patch: unknown): unknown {
  if (!isMapping(patch)) return patch;
  const current: Mapping = isMapping(target) ? target : {};
  const entries: [string, unknown][] = [];
  for (const [key, value] of Object.entries(current)) {
    if (!Object.hasOwn(patch, key)) entries.push([key, value]);
    else if (patch[key] !== null) entries.push([key, merge(value, patch[key])]);
  }
  for (const [key, value] of Object.entries(patch)) {
    // Without a target null has nothing to remove, also inside a mapping that is new.
    if (!Object.hasOwn(current, key) && value !== null) entries.push([key, merge(undefined, value)]);
  }
  // fromEntries defines properties instead of assigning them, so that a key "__proto__" stays an ordinary key.
  return Object.fromEntries(entries);
}
