// What a collection is: a list of entries with add, edit, duplicate and remove. A declaration is all that its page is made of.

import type { Api } from "../app/api.ts";
import type { CurlRequest } from "../curl.ts";
import type { Column } from "../parts/table.tsx";
import type { EntryValues, FieldSchema } from "../schema-form.ts";

type Get = Api["get"];

/** What the page with its list is made of. */
export interface Collection<Row> extends EntryRows<Row> {
  title: string;
  /** Below the title. */
  about?: string;
  /** Said where there are no entries. */
  empty: string;
  /** Where it is read, and how it is shown. */
  list: { path: string; rowsOf(answer: never): readonly Row[]; columns: readonly Column<Row>[] };
}

/** What the actions of a row are made of. */
export interface EntryRows<Row> extends EntryKind {
  idOf(row: Row): string;
  /** Why an entry cannot be changed here. */
  fixed?(row: Row): string | undefined;
}

/** What the forms and the dialogs of an entry are made of. */
export interface EntryKind extends EntryForms {
  remove(id: string, isForced: boolean): CurlRequest;
  /** What a removal means, in sentences. */
  removal: string;
  /** The choice that `isForced` of a removal stands for. */
  forced?: string;
}

/** What the forms of an entry are made of. */
export interface EntryForms {
  /** Name of its page in the address. */
  page: string;
  /** One entry, in sentences: "a backend", "backend". */
  article: "a" | "an";
  noun: string;
  /** The member of an entry that it is asked for by, which an edit leaves as it is. */
  idField: string;
  /** The id that a copy begins with; default: that of the entry with "-copy". */
  copyOf?(id: string): string;
  /**
   * All that the form begins with.
   * @param isNew - the form adds an entry, which may be a copy of the one that is asked for
   */
  read(get: Get, id: string | undefined, isNew: boolean): Promise<FormStart>;
  /** The request that adds an entry. */
  add(body: EntryValues, version: number | undefined): CurlRequest;
  /** The request that makes a merge patch of an entry. */
  change(id: string, body: EntryValues, version: number | undefined): CurlRequest;
  /** Its changes are not tried before they are made. */
  hasNoDryRun?: true;
  /** A field of the entry as it stands in refusals; default: as it is. */
  fieldOf?(problem: string): string;
}

export interface FormStart {
  /** Of an entry. */
  schema: FieldSchema;
  /** Of the configuration that was read. */
  version: number | undefined;
  /** Those that are taken. */
  ids: readonly string[];
  /** The entry that was asked for, secrets masked; undefined where there is none. */
  entry: EntryValues | undefined;
}

/** A section of the configuration with its schema. */
export async function readSection<Config>(get: Get, name: string) {
  const [schema, { config, version }] = await Promise.all([
    get<FieldSchema>(`admin/config/schema?section=${name}`),
    get<{ config: Config; version: number }>(`admin/config/${name}`),
  ]);
  return { schema, config, version };
}

/** The requests of a collection of the admin API, such as admin/backends. */
export function requestsAt(place: string) {
  const pathOf = (id: string) => `${place}/${encodeURIComponent(id)}`;
  return {
    add: (body: EntryValues, version: number | undefined): CurlRequest => ({
      method: "POST",
      path: place,
      body: { ...body, version },
    }),
    change: (id: string, body: EntryValues, version: number | undefined): CurlRequest => ({
      method: "PUT",
      path: pathOf(id),
      body: { ...body, version },
    }),
    remove: (id: string, isForced: boolean): CurlRequest => ({
      method: "DELETE",
      path: `${pathOf(id)}${isForced ? "?force=true" : ""}`,
    }),
  };
}

export function dryRunOf({ path, ...request }: CurlRequest): CurlRequest {
  return { ...request, path: `${path}${path.includes("?") ? "&" : "?"}dry_run=true` };
}

/** What a dry run answers. */
export interface DryRunAnswer {
  estimated_impact?: string;
  warnings?: readonly string[];
  changes?: Readonly<Record<string, { from: unknown; to: unknown }>>;
}

const MASK = "********";

/** What a copy of an entry begins with: it has no secret, because masked ones cannot be copied. */
export function withoutMasked(value: unknown): unknown {
  if (typeof value === "string") return value.includes(MASK) ? undefined : value;
  if (Array.isArray(value)) return value.map(withoutMasked);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) => {
      const kept = withoutMasked(member);
      return kept === undefined ? [] : [[name, kept]];
    }),
  );
}
