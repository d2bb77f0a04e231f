// Values that would not come out of a file or a database as they went in.

import type { Problem } from "./problems.ts";
import type { Path } from "./values.ts";

/**
 * The first number that JavaScript cannot hold, text that UTF-8 cannot, or key that programs take for something else. The
 * value must not be nested too deeply.
 */
export function unsafeValue(value: unknown, path: Path = []): Problem | undefined {
  if (typeof value === "number") {
    const isHeld = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
    return isHeld ? undefined : { path, message: "is a number that is too large" };
  }
  if (typeof value === "string") {
    return value.isWellFormed() ? undefined : { path, message: "is not valid Unicode text" };
  }
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, entry] of Object.entries(value)) {
    if (key === "__proto__") return { path, message: "has the key __proto__, which is not allowed" };
    if (!key.isWellFormed()) return { path, message: "has a key that is not valid Unicode text" };
    const unsafe = unsafeValue(entry, [...path, Array.isArray(value) ? Number(key) : key]);
    if (unsafe !== undefined) return unsafe;
  }
  return undefined;
}
