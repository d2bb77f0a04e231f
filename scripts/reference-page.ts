// The page docs/reference.md: every key of the configuration, from the schema that validates it.

import { join } from "node:path";
import { documentJsonSchema, type JsonSchema } from "../src/config/schema/schema-export.ts";
import { isSecret } from "../src/config/schema/section-patterns.ts";
import { SECTIONS, type SectionSpec } from "../src/config/sections/registry.ts";

export const REFERENCE_PAGE = join(import.meta.dir, "..", "docs", "reference.md");

const HEAD = `# Reference of the configuration

Every key, made from the schema that validates it by \`sh bin/bun scripts/reference.ts\`; a test says when this page is stale.
[configuration.md](configuration.md) explains how the keys work together. \`signalbox --generate-config\` prints the same as a file,
\`GET /admin/config/schema\` as JSON Schema.

\`[]\` stands for any entry of a list, \`<name>\` for a key that you choose. Keys marked with **R** are read at the start only, those with
**F** can be set in the file only, and those with **S** hold secrets, which no view shows. A key of a mapping can come from the
environment: \`retry.max_attempts\` from \`SIGNALBOX_RETRY__MAX_ATTEMPTS\`.
`;

const TAKES_EFFECT = {
  immediate: "A change holds at once, for every new request.",
  gradual: "A change holds for new requests; those that run end with the settings that they began with.",
  requires_restart: "A change holds for new requests, that of a key marked with **R** after a restart.",
};

interface Row {
  /** Names of keys; "*" for the entries of a list or of a mapping. */
  path: readonly string[];
  shown: string;
  schema: JsonSchema;
  isRequired: boolean;
}

/** Longer lists would fill the page; the JSON Schema has them. */
const LONGEST_LIST_OF_VALUES = 10;

export function renderReference(): string {
  const { properties = {} } = documentJsonSchema();
  const index = SECTIONS.map(({ name, description }) => `| [${name}](#${name}) | ${cell(description)} |`);
  const contents = ["| Section | |", "|---|---|", ...index].join("\n");
  return `${[HEAD, contents, ...SECTIONS.map((section) => renderSection(section, properties[section.name] ?? {}))].join("\n\n")}\n`;
}

function renderSection(section: SectionSpec, schema: JsonSchema): string {
  const { name, description, reload = "gradual" } = section;
  const rows = rowsOf(schema, [name], name);
  const table = ["| Key | Value | Default | |", "|---|---|---|---|", ...rows.map((row) => renderRow(section, row))];
  return [`## ${name}`, `${description} ${TAKES_EFFECT[reload]}`, table.join("\n")].join("\n\n");
}

function renderRow(section: SectionSpec, { path, shown, schema, isRequired }: Row): string {
  const below = path.slice(1);
  const isBelow = (fields: readonly string[] = []) => fields.some((field) => isPrefix(field.split("."), below));
  const marks = [
    isBelow(section.restartFields) && "**R**",
    isBelow(section.fileOnlyFields) && "**F**",
    isSecret(path) && "**S**",
  ].filter((mark) => mark !== false);
  const value = isRequired ? "required" : schema.default === undefined ? "" : `\`${JSON.stringify(schema.default)}\``;
  const key = [`\`${shown}\``, ...marks].join(" ");
  return `| ${key} | ${cell(typeOf(schema))} | ${cell(value)} | ${cell(schema.description ?? "")} |`;
}

function isPrefix(prefix: readonly string[], path: readonly string[]): boolean {
  return prefix.length <= path.length && prefix.every((name, index) => name === path[index]);
}

/** The schema's keys, and those below them. A mapping with keys of its own has no row besides theirs. */
function rowsOf(schema: JsonSchema, path: readonly string[], shown: string): Row[] {
  const rows: Row[] = [];
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    const row = {
      path: [...path, name],
      shown: `${shown}.${name}`,
      schema: child,
      isRequired: (schema.required ?? []).includes(name) && child.default === undefined,
    };
    const below = rowsOf(child, row.path, row.shown);
    if (below.length === 0 || child.description !== undefined) rows.push(row);
    rows.push(...below);
  }
  const { items, additionalProperties } = schema;
  if (items?.type === "object") rows.push(...rowsOf(items, [...path, "*"], `${shown}[]`));
  if (typeof additionalProperties === "object") {
    const entry = `${shown}.<name>`;
    const below = rowsOf(additionalProperties, [...path, "*"], entry);
    const isTop = path.length === 1;
    if (below.length > 0) rows.push(...below);
    else if (isTop) rows.push({ path: [...path, "*"], shown: entry, schema: additionalProperties, isRequired: false });
  }
  for (const variant of schema.anyOf ?? []) rows.push(...rowsOf(variant, path, shown));
  return rows;
}

/** What may be written, in a few words. */
function typeOf(schema: JsonSchema): string {
  const { anyOf, items, additionalProperties } = schema;
  const values = schema.enum;
  if (schema.const !== undefined) return `\`${String(schema.const)}\``;
  if (values !== undefined && values.length <= LONGEST_LIST_OF_VALUES) {
    const spellings = values.map((each) => String(each));
    // Headers are known in any case; one of their spellings is enough.
    const lower = spellings.map((each) => each.toLowerCase());
    return spellings.flatMap((each, index) => (lower.indexOf(lower[index]!) === index ? `\`${each}\`` : [])).join(", ");
  }
  if (anyOf !== undefined) return [...new Set(anyOf.map(typeOf))].filter((each) => each !== "").join(" or ");
  if (schema.type === "array") return `list of ${plural(typeOf(items ?? {}))}`;
  if (schema.type === "object") {
    const entry = typeof additionalProperties === "object" ? plural(typeOf(additionalProperties)) : "";
    return entry === "" ? "mapping" : `mapping of names to ${entry}`;
  }
  if (schema.type === "integer" || schema.type === "number") return numberType(schema);
  if (schema.type === "boolean") return "`true`, `false`";
  if (schema.type !== "string") return "";
  return String(schema.pattern).includes("ms|s|m|h|d") ? "duration" : "text";
}

function numberType(schema: JsonSchema): string {
  const word = schema.type === "integer" ? "whole number" : "number";
  const { minimum, maximum, exclusiveMinimum } = schema as Record<string, number | undefined>;
  const bounded = (bound: number | undefined) => bound !== undefined && Math.abs(bound) < Number.MAX_SAFE_INTEGER;
  const low = bounded(exclusiveMinimum) ? `above ${exclusiveMinimum}` : bounded(minimum) ? `${minimum}` : undefined;
  if (low !== undefined && bounded(maximum)) return `${word} ${low} to ${maximum}`;
  if (low !== undefined) return `${word} ${low.startsWith("above") ? low : `from ${low}`}`;
  return bounded(maximum) ? `${word} to ${maximum}` : word;
}

function plural(type: string): string {
  return type.replace(/^(text|mapping|duration|whole number|number)\b/, "$1s");
}

function cell(text: string): string {
  const parts = text.replaceAll("|", "\\|").replaceAll("\n", " ").split("`");
  // Between backticks a "<" stands for itself.
  return parts.map((part, index) => (index % 2 === 0 ? part.replaceAll("<", "&lt;") : part)).join("`");
}
