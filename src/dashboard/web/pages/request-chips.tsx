// The values that requests of the shown time have, as buttons that filter by them.

import type { RequestGroups } from "../../../admin/request-schemas.ts";
import { useApp } from "../app/context.ts";
import { useResource } from "../app/resource.ts";
import { count, words } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { filterQuery, type RequestFilters } from "./request-filters.tsx";

const CHIPS = [
  { filter: "outcome", label: "Outcome", member: "outcome" },
  { filter: "status", label: "Status", member: "status" },
  { filter: "model", label: "Model", member: "model" },
  { filter: "backend", label: "Backend", member: "backend" },
  { filter: "key", label: "Key", member: "key_id" },
  { filter: "organization", label: "Organization", member: "organization_id" },
] as const;

const MOST_VALUES = 8;

interface ChipsProps {
  filters: RequestFilters;
  change(name: keyof RequestFilters, value: string): void;
}

export function Chips(props: ChipsProps) {
  return (
    <div class="chip-rows">
      {CHIPS.map((chip) => (
        <ChipRow key={chip.filter} {...chip} {...props} />
      ))}
    </div>
  );
}

type ChipRowProps = ChipsProps & (typeof CHIPS)[number];

/** The values under all other filters, the most frequent first. */
function ChipRow({ filter, label, member, filters, change }: ChipRowProps) {
  const { range } = useApp();
  const chosen = filters[filter] ?? "";
  const others = filterQuery({ ...filters, [filter]: undefined }).toString();
  const groups = useResource<RequestGroups>(
    () =>
      `admin/requests/groups?by=${filter}&limit=${MOST_VALUES}&${range.query()}${others === "" ? "" : `&${others}`}`,
  );
  const found = (groups.data.value?.groups ?? []).flatMap((group) => {
    const value = group[member];
    return value === null || value === undefined || value === "" ? [] : [{ value: String(value), count: group.count }];
  });
  // One value alone filters nothing.
  if (found.length < 2 && chosen === "") return null;
  const isFound = found.some(({ value }) => value === chosen);
  const shown = chosen === "" || isFound ? found : [{ value: chosen, count: undefined }, ...found];
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out in a row of buttons everywhere
    <div class="chips" role="group" aria-label={`Filter by ${label.toLowerCase()}`}>
      <span class="faint">{label}</span>
      {shown.map((each) => (
        <Button
          key={each.value}
          kind="small"
          isPressed={each.value === chosen}
          onClick={() => change(filter, each.value === chosen ? "" : each.value)}
        >
          {filter === "outcome" ? words(each.value) : each.value}
          {each.count !== undefined && <span class="faint"> {count(each.count)}</span>}
        </Button>
      ))}
    </div>
  );
}
