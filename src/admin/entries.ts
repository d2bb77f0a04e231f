// Lists of the configuration whose entries the admin API changes one by one, backends and keys: each change makes one
// version, and its problems are told by the fields of the entry.

import type { Change } from "../config/change/change.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { ConfigStore } from "../config/store/store.ts";
import { formatPath, isMapping, type Mapping, valueAt } from "../config/values/values.ts";
import type { Call } from "../server/endpoint.ts";
import { messageOf } from "./change-view.ts";
import { answer, authorOf } from "./endpoint.ts";
import { unwrap } from "./refusals.ts";
import { baseVersionOf, bodyIsMissing, isDryRun, notAnObject, queryOf, readVersion } from "./request.ts";

export interface Entry {
  fields: Mapping;
  /** The version that the change was made for. */
  version: number | undefined;
}

/** The body of a request as an entry; `check` gives its fields their usual spelling, or throws. */
export function readEntry(body: unknown, check: (written: Mapping) => Mapping): Entry {
  if (body === undefined) throw bodyIsMissing();
  if (!isMapping(body)) throw notAnObject();
  const { version, ...written } = body;
  return { fields: check(written), version: readVersion(version) };
}

/** A new list, and where the entry stands in it that the caller speaks of; undefined for one that is gone. */
interface Edited {
  list: Mapping[];
  position: number | undefined;
}

type Edit = (list: readonly Mapping[]) => Edited;
/** Where an entry stands; throws where there is none. */
type Find = (list: readonly Mapping[]) => number;

export const added =
  (entry: Mapping): Edit =>
  (list) => ({ list: [...list, entry], position: list.length });

export function replaced(find: Find, make: (entry: Mapping, position: number) => Mapping): Edit {
  return (list) => {
    const position = find(list);
    return { list: list.with(position, make(list[position] as Mapping, position)), position };
  };
}

export const removed =
  (find: Find): Edit =>
  (list) => ({ list: list.toSpliced(find(list), 1), position: undefined });

export interface EntryChange {
  /** A section that is a list, or the list in a section. */
  path: readonly [section: string, key?: string];
  version: number | undefined;
  description: string;
  edit: Edit;
  /** Sees what would run, before it does. */
  checked?(after: Settings, edited: Edited): void;
}

export async function changeEntries(call: Call, store: ConfigStore, change: EntryChange): Promise<Change> {
  const { version, description, edit, checked } = change;
  const path = change.path.filter((part) => part !== undefined);
  const [section, key] = change.path;
  let own = "";
  const result = await store.edit((document) => {
    const list = valueAt(document, path);
    const edited = edit(Array.isArray(list) ? (list as Mapping[]) : []);
    if (edited.position !== undefined) own = `${formatPath([...path, edited.position])}.`;
    return {
      sections: { [section]: key === undefined ? edited.list : { [key]: edited.list } },
      mode: key === undefined ? "replace" : "merge",
      baseVersion: baseVersionOf(call, version, store.current.version),
      dryRun: isDryRun(queryOf(call)),
      ...(checked !== undefined && { checked: (_before: Settings, after: Settings) => checked(after, edited) }),
      ...authorOf(call, "api", description),
    };
  });
  return unwrap(result, { fieldOf: (field) => (field.startsWith(own) ? field.slice(own.length) : field) });
}

export interface Told {
  /** What was done. */
  what: string;
  warnings?: readonly string[];
  /** Where nothing is only tried; default 200. */
  status?: number;
}

/** What was changed, and `more`: what became of the entry. */
export function answerChange(
  call: Call,
  done: Change,
  { what, warnings = [], status = 200 }: Told,
  more: object,
): Response {
  const dryRun = isDryRun(queryOf(call));
  const body = {
    success: true,
    message: messageOf(done, what, dryRun),
    version: done.version,
    applied: done.applied,
    ...(dryRun && { dry_run: true, estimated_impact: done.impact }),
    warnings: [...done.warnings, ...warnings],
    ...more,
  };
  return answer(call, body, { status: dryRun ? 200 : status, version: done.version });
}
