// A list of the configuration as a collection of the admin API, whose entries are added, changed and removed one by one: each
// change makes one version, and its problems are told by the fields of the entry.

import type { Change } from "../config/change/change.ts";
import { changesBySection } from "../config/change/diff.ts";
import { mergePatch } from "../config/change/merge-patch.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { ConfigStore } from "../config/store/store.ts";
import { formatPath, isMapping, type Mapping, valueAt } from "../config/values/values.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Call } from "../server/endpoint.ts";
import { messageOf } from "./change-view.ts";
import { answer, authorOf, noteChange } from "./endpoint.ts";
import { isDryRun, queryOf } from "./query.ts";
import { invalidFields, shortened, unwrap } from "./refusals.ts";
import { baseVersionOf, bodyIsMissing, notAnObject, readVersion } from "./request.ts";

interface CollectionKind<Noun extends string, IdField extends string, Item extends Record<IdField, string>, Gone> {
  /** One of them, in messages and as a member of answers: "backend". */
  noun: Noun;
  /** Where they are listed: "/admin/backends". */
  place: string;
  /** The field of an entry by which it is asked for. */
  idField: IdField;
  /** Why that field cannot be changed, and what can be done. */
  fixedId: string;
  /** A section that is a list, or the list in a section. */
  path: readonly [section: string, key?: string];
  /** The fields of an entry as a caller wrote them, in their usual spelling; throws for those that cannot be written. */
  read(written: Mapping): Mapping;
  /** Where an entry stands in the list; -1 where there is none, and behind its end for one that is declared elsewhere. */
  positionOf(id: string, list: readonly Mapping[]): number;
  /** Of those: where, and what can be done. */
  elsewhere?: string;
  /** An entry as it is shown after a change. */
  shown(made: Made): Item;
  /** An entry as it is shown when it is removed. */
  shownGone(id: string): Gone;
}

/** The list after a change, or after the change that a dry run would make. */
export interface Made {
  done: Change;
  after: Settings;
  list: readonly Mapping[];
  /** Place of the entry that was added or changed. */
  position: number;
}

interface EntryChange {
  version: number | undefined;
  description: string;
}

interface AnsweringRoutes<More extends object> {
  warnings?: readonly string[];
  /** Status of the change itself; a dry run is always 200. */
  status?: number;
  more?(done: Change): More;
}

export function createCollection<
  const Noun extends string,
  IdField extends string,
  Item extends Record<IdField, string>,
  Gone,
>(store: ConfigStore, kind: CollectionKind<Noun, IdField, Item, Gone>) {
  const { noun, place, idField } = kind;
  const title = `${noun[0]?.toUpperCase()}${noun.slice(1)}`;
  const path = kind.path.filter((part) => part !== undefined);

  function unknown(id: string): GatewayError {
    const message = `There is no ${noun} '${shortened(id)}'; GET ${place} lists them.`;
    return new GatewayError(ERRORS.routeNotFound, message, { param: idField });
  }

  function find(id: string, list: readonly Mapping[]): number {
    const position = kind.positionOf(id, list);
    if (position === -1) throw unknown(id);
    if (position < list.length) return position;
    throw new GatewayError(ERRORS.conflict, `The ${noun} '${shortened(id)}' ${kind.elsewhere}`, { param: idField });
  }

  /** `edit` makes the new list and says where the entry stands in it; behind its end for one that is gone. It may throw. */
  async function edit(
    call: Call,
    { version, description }: EntryChange,
    edit: (list: readonly Mapping[]) => { list: Mapping[]; position: number },
  ): Promise<Made> {
    const [section, key] = kind.path;
    let made: Omit<Made, "done"> | undefined;
    let own = "";
    const result = await store.edit((document) => {
      const before = valueAt(document, path);
      const { list, position } = edit(Array.isArray(before) ? (before as Mapping[]) : []);
      if (position < list.length) own = `${formatPath([...path, position])}.`;
      return {
        sections: { [section]: key === undefined ? list : { [key]: list } },
        mode: key === undefined ? "replace" : "merge",
        baseVersion: baseVersionOf(call, version, store.current.version),
        dryRun: isDryRun(queryOf(call)),
        checked(_: Settings, after: Settings) {
          made = { after, list, position };
        },
        ...authorOf(call, "api", description),
      };
    });
    const done = unwrap(result, { fieldOf: (field) => (field.startsWith(own) ? field.slice(own.length) : field) });
    noteChange(call, done);
    return { done, ...(made as Omit<Made, "done">) };
  }

  function answerItem<More extends object = object>(
    call: Call,
    made: Made,
    what: string,
    { more, ...answering }: AnsweringRoutes<More>,
  ) {
    const item = kind.shown(made);
    call.deed = { subject: item[idField], ...call.deed };
    const members = { [noun]: item, ...more?.(made.done) } as Record<Noun, Item> & More;
    return answerChange(call, made.done, `${title} '${shortened(item[idField])}' ${what}`, members, answering);
  }

  return {
    unknown,

    /** The body of a request: the fields of an entry, and the version that the change is made for. */
    read(body: unknown): { fields: Mapping; version: number | undefined } {
      if (body === undefined) throw bodyIsMissing();
      if (!isMapping(body)) throw notAnObject();
      const { version, ...written } = body;
      return { fields: kind.read(written), version: readVersion(version) };
    },

    /** A change of one entry that is there. */
    change(
      call: Call,
      id: string,
      change: { version: number | undefined; description: string },
      make: (entry: Mapping, position: number) => Mapping,
    ): Promise<Made> {
      return edit(call, change, (list) => {
        const position = find(id, list);
        return { list: list.with(position, make(list[position] as Mapping, position)), position };
      });
    },

    answerItem,

    async create<More extends object = object>(
      call: Call,
      { fields, version }: { fields: Mapping; version: number | undefined },
      answering: AnsweringRoutes<More> = {},
    ) {
      const id = fields[idField];
      // Null stands for a field that is left out, as it does in a merge patch.
      const entry = mergePatch({}, fields) as Mapping;
      const description = typeof id === "string" ? `${noun} ${shortened(id)} added` : `${noun} added`;
      const made = await edit(call, { version, description }, (list) => {
        if (typeof id === "string" && kind.positionOf(id, list) !== -1) {
          const message = `There is a ${noun} '${shortened(id)}' already; PUT ${place}/{${idField}} changes it.`;
          throw new GatewayError(ERRORS.conflict, message, { param: idField });
        }
        return { list: [...list, entry], position: list.length };
      });
      return answerItem(call, made, "was added", { status: 201, ...answering });
    },

    async update(
      call: Call,
      id: string,
      { fields, version }: { fields: Mapping; version: number | undefined },
      merge: (entry: Mapping) => Mapping = (entry) => mergePatch(entry, fields) as Mapping,
    ) {
      const given = fields[idField];
      if (given !== undefined && given !== id) throw invalidFields([{ field: idField, message: kind.fixedId }]);
      const change = { version, description: `${noun} ${shortened(id)} changed` };
      return answerItem(call, await this.change(call, id, change, merge), "was changed", {});
    },

    /** @param check - throws for an entry that must stay */
    async remove(call: Call, id: string, check: () => void = () => {}) {
      let gone: Gone | undefined;
      const change = { version: undefined, description: `${noun} ${shortened(id)} removed` };
      const { done } = await edit(call, change, (list) => {
        const position = find(id, list);
        check();
        gone = kind.shownGone(id);
        return { list: list.toSpliced(position, 1), position: list.length };
      });
      const members = { [`removed_${noun}`]: gone } as Record<`removed_${Noun}`, Gone>;
      return answerChange(call, done, `${title} '${shortened(id)}' was removed`, members);
    },
  };
}

/** The change in words, its version, and further members. */
export function answerChange<const More extends object>(
  call: Call,
  done: Change,
  what: string,
  more: More,
  { warnings = [], status = 200 }: Pick<AnsweringRoutes<object>, "warnings" | "status"> = {},
) {
  const dryRun = isDryRun(queryOf(call));
  // A collection is a part of one section.
  const [changes = {}] = Object.values(changesBySection(done.changes));
  const body = {
    success: true as const,
    message: messageOf(done, what, dryRun),
    version: done.version,
    applied: done.applied,
    ...(dryRun && { dry_run: true as const, estimated_impact: done.impact, changes }),
    warnings: [...done.warnings, ...warnings],
    ...more,
  };
  return answer(call, body, { status: dryRun ? 200 : status, version: done.version });
}
