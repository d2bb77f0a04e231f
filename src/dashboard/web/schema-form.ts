// A form made from the JSON Schema of an entry (GET /admin/config/schema): its fields, what they hold as text, and the body
// of a change that says only what is different.

/** What of JSON Schema the sections of the configuration use. */
export interface FieldSchema {
  type?: string;
  description?: string;
  default?: unknown;
  enum?: readonly string[];
  items?: FieldSchema;
  properties?: Readonly<Record<string, FieldSchema>>;
  required?: readonly string[];
  minimum?: number;
  maximum?: number;
  format?: string;
}

type FieldKind = "text" | "secret" | "number" | "flag" | "choice" | "names" | "choices" | "time" | "json";

export interface FormField {
  /** Names from the entry down, such as `tls.ca`. */
  path: string;
  label: string;
  help: string | undefined;
  kind: FieldKind;
  options: readonly string[];
  isRequired: boolean;
  minimum: number | undefined;
  maximum: number | undefined;
  isWhole: boolean;
  /** What holds while the field is empty. */
  placeholder: string;
}

const SECRETS: ReadonlySet<string> = new Set(["key", "api_key", "secret", "password", "token"]);

/** The fields of an entry, in the order of its schema; objects with known members as fields of their own. */
export function formFields(schema: FieldSchema, above = ""): FormField[] {
  const required = new Set(above === "" ? schema.required : []);
  return Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    const path = above === "" ? name : `${above}.${name}`;
    if (member.type === "object" && member.properties !== undefined) return formFields(member, path);
    return [fieldOf(path, name, member, required.has(name))];
  });
}

function fieldOf(path: string, name: string, schema: FieldSchema, isRequired: boolean): FormField {
  const { description, minimum, maximum, default: usual, type } = schema;
  return {
    ...{ path, isRequired, minimum, maximum },
    label: path.replaceAll(".", " · ").replaceAll("_", " "),
    help: description,
    kind: kindOf(name, schema),
    options: schema.enum ?? schema.items?.enum ?? [],
    isWhole: type === "integer",
    placeholder: usual === undefined ? "" : Array.isArray(usual) ? usual.join(", ") : textOfJson(usual),
  };
}

function kindOf(name: string, { type, enum: options, items, format }: FieldSchema): FieldKind {
  if (SECRETS.has(name)) return "secret";
  if (type === "boolean") return "flag";
  if (type === "integer" || type === "number") return "number";
  if (type === "array" && items?.type === "string") return items.enum === undefined ? "names" : "choices";
  if (type === "string") return options !== undefined ? "choice" : format === "date-time" ? "time" : "text";
  return "json";
}

function textOfJson(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** What a field holds of an entry, as text; "" where the entry does not say it. A secret is never shown. */
export function fieldText({ path, kind }: FormField, entry: unknown): string {
  const value = path
    .split(".")
    .reduce<unknown>((object, name) => (object as Record<string, unknown> | undefined)?.[name], entry);
  if (value === undefined || value === null || kind === "secret") return "";
  if (kind === "json") return JSON.stringify(value, null, 2);
  return Array.isArray(value) ? value.join(", ") : String(value);
}

/** What a text means for a field, or what is wrong with it. Undefined: the field is empty. */
export function fieldValue(field: FormField, text: string): { value: unknown } | { fault: string } {
  const { kind, label, minimum, maximum, isWhole } = field;
  const trimmed = text.trim();
  if (trimmed === "") return field.isRequired ? { fault: `${label} is required.` } : { value: undefined };
  switch (kind) {
    case "flag":
      return { value: trimmed === "true" };
    case "number": {
      const number = Number(trimmed);
      const isFine = Number.isFinite(number) && (!isWhole || Number.isInteger(number));
      const [least, most] = [minimum ?? Number.NEGATIVE_INFINITY, maximum ?? Number.POSITIVE_INFINITY];
      if (isFine && number >= least && number <= most) return { value: number };
      const limits = [minimum !== undefined && `at least ${minimum}`, maximum !== undefined && `at most ${maximum}`];
      return {
        fault: `${label} must be ${["a", isWhole && "whole", "number"].filter(Boolean).join(" ")}${limits
          .filter(Boolean)
          .map((limit) => `, ${limit}`)
          .join("")}.`,
      };
    }
    case "names":
    case "choices":
      return {
        value: trimmed
          .split(",")
          .map((name) => name.trim())
          .filter((name) => name !== ""),
      };
    case "json":
      try {
        return { value: JSON.parse(trimmed) };
      } catch {
        return { fault: `${label} is not valid JSON.` };
      }
    default:
      return { value: trimmed };
  }
}

/**
 * The body of a change: the members that differ between two sets of texts, by the paths of the fields. A member that was
 * emptied is null, which removes it. Of an object that differs all members are given, because it is replaced as a whole.
 */
export function changedBody(
  fields: readonly FormField[],
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): { body: Record<string, unknown>; faults: string[] } {
  const body: Record<string, unknown> = {};
  const faults: string[] = [];
  for (const [name, members] of Map.groupBy(fields, ({ path }) => path.split(".")[0] as string)) {
    const isMissing = members.some(({ kind, path, isRequired }) => isRequired && kind !== "secret" && !after[path]);
    if (!isMissing && members.every(({ path }) => (before[path] ?? "") === (after[path] ?? ""))) continue;
    const object: Record<string, unknown> = {};
    for (const member of members) {
      const read = fieldValue(member, after[member.path] ?? "");
      if ("fault" in read) faults.push(read.fault);
      else if (read.value !== undefined) set(object, member.path.split("."), read.value);
    }
    body[name] = object[name] ?? null;
  }
  return { body, faults };
}

function set(object: Record<string, unknown>, [name = "", ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) object[name] = value;
  else {
    object[name] ??= {};
    set(object[name] as Record<string, unknown>, rest, value);
  }
}
