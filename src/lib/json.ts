// A JSON object that nobody has looked into yet: its type, how to tell it from other values, and how to read one.

export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Undefined for text that is no JSON, such as [DONE], and for JSON that is no object. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Both, of which either may be missing; of a member in both, the second one's value counts. */
export function joined(one: JsonObject | undefined, other: JsonObject | undefined): JsonObject | undefined {
  return one === undefined ? other : other === undefined ? one : { ...one, ...other };
}
