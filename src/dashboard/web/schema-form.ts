// A form made from the JSON Schema of an entry (GET /admin/config/schema): its fields, what they hold as text, and the merge
// patch that makes the entry what the form shows.

/** What of JSON Schema the sections of the configuration use. */
export interface FieldSchema {
  type?: string;
  description?: string;
  default?: unknown;
  enum?: readonly string[];
  items?: FieldSchema;
  properties?: Readonly<Record<string, FieldSchema>>;
  additionalProperties?: unknown;
  required?: readonly string[];
  minimum?: number;
  maximum?: number;
  format?: string;
}

type FieldKind = "text" | "long" | "secret" | "number" | "flag" | "choice" | "names" | "choices" | "time" | "json";

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
  /** A list of numbers. */
  hasNumbers: boolean;
  /** What holds while the entry does not say it. */
  byDefault: unknown;
  /** The object that it is a member of; undefined for a member of the entry. */
  group: FieldGroup | undefined;
}

interface FieldGroup {
  label: string;
  help: string | undefined;
}

export type Texts = Readonly<Record<string, string>>;
export type EntryValues = Readonly<Record<string, unknown>>;

const SECRETS: ReadonlySet<string> = new Set(["key", "api_key", "secret", "password", "token"]);
const ACRONYMS: ReadonlySet<string> = new Set(["api", "url", "tls", "id", "ca"]);

/** The fields of an entry, in the order of its schema; objects with known members as fields of their own. */
export function formFields(schema: FieldSchema, above = "", group?: FieldGroup): FormField[] {
  const required = new Set(above === "" ? schema.required : []);
  return Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    const path = above === "" ? name : `${above}.${name}`;
    if (member.type === "object" && member.properties !== undefined) {
      const label = group === undefined ? labelOf(name) : `${group.label} · ${labelOf(name)}`;
      return formFields(member, path, { label, help: member.description });
    }
    return [fieldOf(path, name, member, required.has(name), group)];
  });
}

function fieldOf(
  path: string,
  name: string,
  schema: FieldSchema,
  isRequired: boolean,
  group: FieldGroup | undefined,
): FormField {
  const { description, minimum, maximum, type, items } = schema;
  return {
    ...{ path, isRequired, minimum, maximum, group },
    label: labelOf(name),
    help: description,
    kind: kindOf(name, schema),
    options: spelledOnce(schema.enum ?? items?.enum ?? []),
    isWhole: type === "integer" || items?.type === "integer",
    hasNumbers: isNumeric(items),
    byDefault: schema.default,
  };
}

/** "api_key" -> "API key" */
function labelOf(name: string): string {
  const words = name.split("_").map((word) => (ACRONYMS.has(word) ? word.toUpperCase() : word));
  const text = words.join(" ");
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

/** Without the names that are another spelling of one before. */
function spelledOnce(names: readonly string[]): string[] {
  const bare = (name: string) => name.toLowerCase().replaceAll(/[-_.]/g, "");
  return names.filter((name, index) => names.findIndex((other) => bare(other) === bare(name)) === index);
}

function kindOf(name: string, schema: FieldSchema): FieldKind {
  const { type, enum: options, items, format } = schema;
  if (SECRETS.has(name)) return "secret";
  if (type === "boolean") return "flag";
  if (isNumeric(schema)) return "number";
  if (type === "array" && isNumeric(items)) return "names";
  if (type === "array" && items?.type === "string") return items.enum === undefined ? "names" : "choices";
  if (type !== "string") return "json";
  if (options !== undefined) return "choice";
  return format === "date-time" ? "time" : format === "long-text" ? "long" : "text";
}

function isNumeric(schema: FieldSchema | undefined): boolean {
  return schema?.type === "integer" || schema?.type === "number";
}

/** What holds while a field is empty, for its placeholder. */
export function defaultText({ byDefault }: FormField): string {
  if (byDefault === undefined || (typeof byDefault === "object" && Object.keys(byDefault ?? {}).length === 0))
    return "";
  return textOf(byDefault);
}

function textOf(value: unknown): string {
  if (Array.isArray(value) && value.every((item) => typeof item !== "object")) return value.join(", ");
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** What all fields hold of an entry. A secret is masked, as the gateway answers it. */
export function formTexts(fields: readonly FormField[], entry: EntryValues): Record<string, string> {
  return Object.fromEntries(fields.map((field) => [field.path, fieldText(field, entry)]));
}

/** "" where the entry does not say it, or says the default; fields that are ticked show the default. */
function fieldText(field: FormField, entry: EntryValues): string {
  const { path, kind, byDefault } = field;
  const said = path
    .split(".")
    .reduce<unknown>((object, name) => (object as EntryValues | null | undefined)?.[name], entry);
  const isTicked = kind === "flag" || kind === "choices";
  const value = said ?? (isTicked ? byDefault : undefined);
  if (value === undefined || (!isTicked && isSame(value, byDefault))) return "";
  if (kind === "json") return JSON.stringify(value, null, 2);
  return kind === "time" ? localTime(String(value)) : textOf(value);
}

/** What a text means for a field, or what is wrong with it. Undefined: the field is empty. */
export function fieldValue(field: FormField, text: string): { value: unknown } | { fault: string } {
  const { kind, label } = field;
  const written = kind === "long" ? text : text.trim();
  if (written === "") {
    if (field.isRequired) return { fault: `${label} is required.` };
    return { value: kind === "choices" && field.byDefault !== undefined ? [] : undefined };
  }
  switch (kind) {
    case "flag":
      return { value: written === "true" };
    case "number":
      return numberOf(field, written);
    case "names":
    case "choices":
      return listOf(field, written);
    case "time": {
      const atMs = Date.parse(written);
      return Number.isNaN(atMs) ? { fault: `${label} is no time.` } : { value: new Date(atMs).toISOString() };
    }
    case "json":
      try {
        return { value: JSON.parse(written) };
      } catch {
        return { fault: `${label} is not valid JSON.` };
      }
    default:
      return { value: written };
  }
}

function numberOf(
  { label, minimum, maximum, isWhole }: FormField,
  text: string,
): { value: number } | { fault: string } {
  const number = Number(text);
  const isFine = Number.isFinite(number) && (!isWhole || Number.isInteger(number));
  const [least, most] = [minimum ?? Number.NEGATIVE_INFINITY, maximum ?? Number.POSITIVE_INFINITY];
  if (isFine && number >= least && number <= most) return { value: number };
  const rules = [
    isWhole ? "a whole number" : "a number",
    ...(minimum === undefined ? [] : [`at least ${minimum}`]),
    ...(maximum === undefined ? [] : [`at most ${maximum}`]),
  ];
  return { fault: `${label} must be ${rules.join(", ")}.` };
}

function listOf(field: FormField, text: string): { value: unknown[] } | { fault: string } {
  const names = namesIn(text);
  if (!field.hasNumbers) return { value: names };
  const numbers = names.map(Number);
  if (numbers.every((number) => (field.isWhole ? Number.isInteger(number) : Number.isFinite(number)))) {
    return { value: numbers };
  }
  return { fault: `${field.label} must be ${field.isWhole ? "whole numbers" : "numbers"}, separated by commas.` };
}

/** "a, b" -> ["a", "b"] */
export function namesIn(text: string): string[] {
  return text
    .split(/[,\n]/)
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

/** RFC 3339 as a field for times has it, in the browser's zone. */
function localTime(at: string): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19);
}

/** The merge patch (RFC 7396) from the entry that some texts show to the one that others show, and what is wrong with these. */
export function changedBody(
  fields: readonly FormField[],
  before: Texts,
  after: Texts,
): { body: Record<string, unknown>; faults: ReadonlyMap<string, string> } {
  const faults = new Map<string, string>();
  const shown = shownEntry(fields, after, (path, fault) => faults.set(path, fault));
  return { body: patchBetween(shownEntry(fields, before), shown), faults };
}

/** The entry that the texts show; without the fields that something is wrong with. */
function shownEntry(fields: readonly FormField[], texts: Texts, wrong?: (path: string, fault: string) => void) {
  const entry: Record<string, unknown> = {};
  for (const field of fields) {
    const read = fieldValue(field, texts[field.path] ?? "");
    if ("fault" in read) wrong?.(field.path, read.fault);
    else if (read.value !== undefined) set(entry, field.path.split("."), read.value);
  }
  return entry;
}

function set(object: Record<string, unknown>, [name = "", ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) object[name] = value;
  else {
    object[name] ??= {};
    set(object[name] as Record<string, unknown>, rest, value);
  }
}

function patchBetween(before: EntryValues, after: EntryValues): Record<string, unknown> {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  const members = [...names].flatMap((name): [string, unknown][] => {
    const [old, now] = [ownOf(before, name), ownOf(after, name)];
    if (now === undefined) return [[name, null]];
    if (isSame(old, now)) return [];
    return [[name, isObject(old) && isObject(now) ? patchBetween(old, now) : now]];
  });
  return Object.fromEntries(members);
}

/** A member may have any name, "__proto__" too. */
function ownOf(object: EntryValues, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

function isObject(value: unknown): value is EntryValues {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The order of members does not matter. */
function isSame(one: unknown, other: unknown): boolean {
  if (isObject(one) && isObject(other)) {
    const names = Object.keys(one);
    return names.length === Object.keys(other).length && names.every((name) => isSame(one[name], ownOf(other, name)));
  }
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, index) => isSame(item, other[index]));
  }
  return one === other;
}

/** A body for a command line on the screen: what is typed into fields for secrets is left out. */
export function withoutSecrets(fields: readonly FormField[], body: EntryValues): EntryValues {
  const secrets = new Set(fields.flatMap(({ kind, path }) => (kind === "secret" ? [path] : [])));
  const hide = (object: EntryValues, above: string): EntryValues =>
    Object.fromEntries(
      Object.entries(object).map(([name, value]) => {
        const path = `${above}${name}`;
        if (secrets.has(path) && value !== null) return [name, "…"];
        return [name, isObject(value) ? hide(value, `${path}.`) : value];
      }),
    );
  return hide(body, "");
}

/** The field that a problem of the gateway belongs to: `models[0]` and `headers.x` to `models` and `headers`. */
export function fieldOfProblem(fields: readonly FormField[], problem: string): FormField | undefined {
  return fields.find(
    ({ path }) => problem === path || problem.startsWith(`${path}.`) || problem.startsWith(`${path}[`),
  );
}
