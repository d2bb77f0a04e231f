// A JSON object whose members are not checked yet: its type, how to tell it from other values, and how to read and make one.

export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Undefined for text that is no JSON, such as [DONE]. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Undefined for text that is no JSON, and for JSON that is no object. */
export function parseObject(text: string): JsonObject | undefined {
  const value = parseJson(text);
  return isObject(value) ? value : undefined;
}

export function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Both, of which either may be missing; of a member in both, the second one's value counts. */
export function joined(one: JsonObject | undefined, other: JsonObject | undefined): JsonObject | undefined {
  return one === undefined ? other : other === undefined ? one : { ...one, ...other };
}

type Compact<Members> = {
  -readonly [Key in keyof Members as undefined extends Members[Key] ? never : Key]: Members[Key];
} & {
  -readonly [Key in keyof Members as undefined extends Members[Key] ? Key : never]?: Exclude<Members[Key], undefined>;
};

/** The members that are not undefined: in the neutral model and in bodies, what is not said is left out. */
export function compact<const Members extends object>(members: Members): Compact<Members> {
  const given: JsonObject = {};
  for (const key in members) if (members[key] !== undefined) given[key] = members[key];
  return given as Compact<Members>;
}
