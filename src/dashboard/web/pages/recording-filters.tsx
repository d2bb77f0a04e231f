// The filters of recordings, in the address of the page and in the question to the gateway: those of the list are those of a replay.

import type { BackendStatusList } from "../../../admin/backend-schemas.ts";
import type { KeyList } from "../../../admin/key-schemas.ts";
import { useApp } from "../app/context.ts";
import { useKept } from "../app/hooks.ts";
import { useResource } from "../app/resource.ts";
import { Field } from "../parts/field.tsx";
import { filterQuery } from "./request-filters.tsx";

const FIELDS = [
  ["text", "Words in it"],
  ["model", "Model"],
  ["key", "Key"],
  ["user", "User"],
  ["organization", "Organization"],
  ["status", "Status"],
  ["route", "Route"],
  ["arm", "Target of the route"],
  ["slower", "Slower than, ms"],
  ["min_cost", "Cost at least"],
  ["dataset", "Data set"],
  ["id", "Id of a recording"],
] as const;

type FilterName = (typeof FIELDS)[number][0];

/** Those in the address are the first ones. */
export function useRecordingFilters() {
  const { visits, range } = useApp();
  const { query } = visits.current.value.route;
  const values = useKept("filters", () => Object.fromEntries(FIELDS.map(([name]) => [name, query.get(name) ?? ""])));
  return {
    values,
    /** Parameters of the gateway that ask for just these; those that were imported, and one by its id, are of any time. */
    query() {
      const { id, dataset } = values.value;
      return new URLSearchParams([
        ...(id || dataset ? [] : new URLSearchParams(range.query())),
        ...filterQuery(values.value),
      ]);
    },
    set(name: FilterName, value: string) {
      values.value = { ...values.peek(), [name]: value };
      visits.setQuery(values.peek());
    },
  };
}

/** Names of models and keys to choose from. */
export function useNames() {
  const backends = useResource<BackendStatusList>("admin/backends");
  const keys = useResource<KeyList>("admin/keys");
  return {
    model: [...new Set((backends.data.value?.backends ?? []).flatMap(({ models }) => models))].sort(),
    key: (keys.data.value?.keys ?? []).map(({ id }) => id),
  };
}

interface RecordingFiltersProps {
  filters: Pick<ReturnType<typeof useRecordingFilters>, "values" | "set">;
  names: Readonly<Record<string, readonly string[]>>;
}

export function RecordingFilters({ filters, names }: RecordingFiltersProps) {
  return (
    <search aria-label="Recordings" class="filters">
      {FIELDS.map(([name, label]) => {
        const list = names[name];
        return (
          <Field
            key={name}
            id={`filter-${name}`}
            label={label}
            value={filters.values.value[name] ?? ""}
            set={(value) => filters.set(name, value)}
            {...(list !== undefined && { list })}
          />
        );
      })}
    </search>
  );
}
