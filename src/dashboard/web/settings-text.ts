// Settings and schemas in words: every field by its path.

/** Every value that holds no others, by its path. */
export function flatten(value: unknown, path = ""): [path: string, value: unknown][] {
  if (!isMapping(value) || Object.keys(value).length === 0) return path === "" ? [] : [[path, value]];
  return Object.entries(value).flatMap(([name, member]) => flatten(member, path === "" ? name : `${path}.${name}`));
}

export function valueText(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.length === 0) return "none";
  return JSON.stringify(value);
}

interface FieldText {
  path: string;
  type: string;
  description: string;
  byDefault: string | undefined;
}

/** The fields that a JSON Schema of a section knows, in its order. */
export function fieldsOf(schema: unknown): FieldText[] {
  const found: FieldText[] = [];
  collect(schema, "", 0, found);
  return found;
}

const MOST_DEPTH = 6;
const MOST_FIELDS = 400;

function collect(schema: unknown, path: string, depth: number, found: FieldText[]): void {
  if (!isMapping(schema) || depth > MOST_DEPTH) return;
  const members = isMapping(schema.properties) ? schema.properties : {};
  for (const [name, member] of Object.entries(members)) {
    if (!isMapping(member) || found.length >= MOST_FIELDS) continue;
    const own = path === "" ? name : `${path}.${name}`;
    const hasMembers = isMapping(member.properties);
    if (!hasMembers || typeof member.description === "string") {
      found.push({
        path: own,
        type: typeOf(member),
        description: typeof member.description === "string" ? member.description : "",
        byDefault: "default" in member && !hasMembers ? valueText(member.default) : undefined,
      });
    }
    collect(member, own, depth + 1, found);
  }
  for (const several of [schema.anyOf, schema.oneOf]) {
    if (Array.isArray(several)) for (const each of several) collect(each, path, depth + 1, found);
  }
  collect(schema.items, `${path}[]`, depth + 1, found);
}

function typeOf(schema: Record<string, unknown>): string {
  if (Array.isArray(schema.enum)) return schema.enum.map(valueText).join(" | ");
  if ("const" in schema) return valueText(schema.const);
  const several = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(several)) {
    return [...new Set(several.flatMap((each) => (isMapping(each) ? [typeOf(each)] : [])))].join(" | ");
  }
  if (schema.type === "array") return `list${isMapping(schema.items) ? ` of ${typeOf(schema.items)}` : ""}`;
  const type = Array.isArray(schema.type)
    ? schema.type.join(" | ")
    : typeof schema.type === "string"
      ? schema.type
      : "any";
  const { minimum, maximum } = schema;
  const bounds = [
    minimum !== undefined && `from ${valueText(minimum)}`,
    maximum !== undefined && `to ${valueText(maximum)}`,
  ];
  return [type, ...bounds.filter(Boolean)].join(" ");
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
