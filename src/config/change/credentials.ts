// Secrets of a document that let callers in: where they stand, until when they are valid, and a document without some.

import { SECTIONS } from "../sections/registry.ts";
import type { CredentialSpec } from "../sections/section.ts";
import { type Environment, expandVariables, hasReference } from "../values/expand.ts";
import { isMapping, type Mapping, type Path, valueAt, withEntries, withValueAt } from "../values/values.ts";
import { entryNameKey, identifiedEntries, nameOf } from "./entries.ts";

export interface Credential {
  section: string;
  path: Path;
  /** The path with what tells entries of lists apart instead of their indexes: never shown, it may hold a secret. */
  place: string;
  /** With variables expanded. */
  secret: string;
  /** Milliseconds since the Unix epoch; infinite for one without an end. */
  expiresAtMs: number;
}

/** The mapping that holds a credential and the earlier ones that it replaced. */
interface CredentialHolder {
  spec: CredentialSpec;
  section: string;
  path: Path;
  place: string;
  value: Mapping;
}

/** All of a document with canonical keys. */
export function credentialsOf(document: Mapping, env: Environment): Credential[] {
  return holdersOf(document).flatMap((holder) =>
    holder.spec.secrets.flatMap((field) => credentialIn(holder, field, env)),
  );
}

function holdersOf(document: Mapping): CredentialHolder[] {
  return SECTIONS.flatMap(({ name: section, credentials = [] }) =>
    credentials.flatMap((spec) => {
      const isList = spec.at.endsWith(LIST);
      const path = [section, ...(isList ? spec.at.slice(0, -LIST.length) : spec.at).split(".")];
      const found = valueAt(document, path);
      const place = path.join(".");
      if (!isList) return isMapping(found) ? [{ spec, section, path, place, value: found }] : [];
      const identities = Array.isArray(found) ? identifiedEntries(found, path) : undefined;
      return [...(identities ?? [])].flatMap(([identity, value], index) =>
        isMapping(value) ? [{ spec, section, path: [...path, index], place: `${place}.${identity}`, value }] : [],
      );
    }),
  );
}

const LIST = ".*";

function credentialIn(
  { section, path, place, value }: CredentialHolder,
  field: string,
  env: Environment,
): Credential[] {
  const inside = field.split(".");
  const written = valueAt(value, inside);
  if (typeof written !== "string") return [];
  // The end that stands beside the secret, and that of the whole.
  const ends = inside.map((_, depth) => momentOf(valueAt(value, [...inside.slice(0, depth), "expires_at"]), env));
  return [
    {
      section,
      path: [...path, ...inside],
      place: `${place}.${field}`,
      secret: hasReference(written) ? expandVariables(written, env).text : written,
      expiresAtMs: Math.min(...ends),
    },
  ];
}

/** Infinite for a value that is no time: validation reports it. */
function momentOf(value: unknown, env: Environment): number {
  const moment = typeof value === "string" ? Date.parse(expandVariables(value, env).text) : Number.NaN;
  return Number.isNaN(moment) ? Number.POSITIVE_INFINITY : moment;
}

export interface LeftOut {
  document: Mapping;
  /** The fields, with the names of entries. */
  fields: string[];
}

/**
 * The document without the credentials that are refused. What runs at the place of one stays there with all that belongs to
 * it; an entry that does not run is left out as a whole, and an earlier secret without a successor.
 */
export function withoutCredentials(
  document: Mapping,
  running: Mapping,
  env: Environment,
  isRefused: (credential: Credential) => boolean,
): LeftOut {
  const runs = new Map(holdersOf(running).map((holder) => [keyOf(holder), holder.value]));
  const fields: string[] = [];
  let result = document;
  // From behind: an entry that is left out moves those behind it.
  for (const holder of holdersOf(document).reverse()) {
    const [current, ...earlier] = holder.spec.secrets;
    let value: Mapping | undefined = holder.value;
    const refusedIn = (mapping: Mapping, field: string) =>
      credentialIn({ ...holder, value: mapping }, field, env).some(isRefused);
    if (refusedIn(value, current)) {
      fields.push(shownPath(document, holder, current));
      const own = runs.get(keyOf(holder));
      const isThere = valueAt(own, current.split(".")) !== undefined;
      value = withEntries(
        value,
        holder.spec.fields.map((field) => [field, isThere ? valueAt(own, [field]) : undefined]),
      );
      if (!isThere && holder.spec.at.endsWith(LIST)) value = undefined;
    }
    for (const field of earlier) {
      if (value === undefined) break;
      const secretOf = (name: string) => credentialIn({ ...holder, value: value as Mapping }, name, env)[0]?.secret;
      const isRefusedNow = refusedIn(value, field);
      if (isRefusedNow) fields.push(shownPath(document, holder, field));
      const isCurrent = secretOf(field) !== undefined && secretOf(field) === secretOf(current);
      if (isRefusedNow || isCurrent) value = withEntries(value, [[field.split(".")[0] as string, undefined]]);
    }
    if (value !== holder.value) result = withHolder(result, holder.path, value);
  }
  return { document: result, fields: fields.reverse() };
}

/** Several credentials may stand in the same mapping. */
function keyOf({ place, spec }: CredentialHolder): string {
  return `${spec.fields[0]} ${place}`;
}

function shownPath(document: Mapping, { path }: CredentialHolder, field: string): string {
  const index = path.at(-1);
  if (typeof index !== "number") return [...path, field].join(".");
  const list = path.slice(0, -1);
  const name = nameOf(valueAt(document, path), entryNameKey(list) ?? "");
  return `${list.join(".")}${name === undefined ? `[${index}]` : `.${name}`}.${field}`;
}

function withHolder(document: Mapping, path: Path, value: Mapping | undefined): Mapping {
  const index = path.at(-1);
  if (typeof index !== "number") return withValueAt(document, path, value) as Mapping;
  const place = path.slice(0, -1);
  const list = valueAt(document, place) as unknown[];
  return withValueAt(
    document,
    place,
    value === undefined ? list.toSpliced(index, 1) : list.with(index, value),
  ) as Mapping;
}
