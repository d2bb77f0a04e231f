// The filters of the list of requests, in the address of the page and in the question to the gateway.

import type { BackendStatus } from "../../../admin/backend-schemas.ts";
import type { KeyList } from "../../../admin/key-schemas.ts";
import { Field, Select } from "../parts/field.tsx";

/** Suggestions; every status and class of them may be asked for. */
const STATUSES = ["2xx", "4xx", "429", "499", "5xx"] as const;
const STATUS = /^[1-5](?:xx|\d\d)$/;

const OUTCOMES = [
  ["", "any"],
  ["succeeded", "ok"],
  ["refused", "refused"],
  ["failed", "failed"],
  ["stream_broken", "interrupted"],
  ["client_left", "client left"],
  ["running", "running"],
] as const;

/** Names of the filters in the address of the page. */
export const FILTERS = [
  "model",
  "route",
  "arm",
  "backend",
  "key",
  "user",
  "organization",
  "outcome",
  "status",
  "code",
  "slower",
  "id",
] as const;

export type RequestFilters = Partial<Record<(typeof FILTERS)[number], string | undefined>>;

/** Parameters of the gateway that ask for just these. */
export function filterQuery(filters: Readonly<Record<string, string | undefined>>): URLSearchParams {
  const query = new URLSearchParams();
  const { slower, status, ...plain } = filters;
  for (const [name, value] of Object.entries(plain)) if (value) query.set(name, value);
  // What is not written to its end yet is no filter.
  if (status !== undefined && STATUS.test(status)) query.set("status", status);
  const slowerMs = Number(slower);
  if (slower && Number.isInteger(slowerMs) && slowerMs >= 0) query.set("min_duration_ms", slower);
  return query;
}

interface FiltersProps {
  filters: RequestFilters;
  change(name: keyof RequestFilters, value: string): void;
  backends: readonly BackendStatus[];
  keys: KeyList["keys"];
}

export function Filters({ filters, change, backends, keys }: FiltersProps) {
  const about = (name: keyof RequestFilters, label: string) => ({
    ...{ id: `filter-${name}`, label, value: filters[name] ?? "" },
    set: (value: string) => change(name, value),
  });
  const models = [...new Set(backends.flatMap((row) => row.models))].sort();
  return (
    <search aria-label="Requests to show" class="filters">
      <Field {...about("model", "Model")} list={models} />
      <Field {...about("route", "Route")} />
      <Field {...about("arm", "Target of the route")} />
      <Field {...about("backend", "Backend")} list={backends.map(({ name }) => name)} />
      <Field {...about("key", "Key")} list={keys.map(({ id }) => id)} />
      <Field {...about("user", "User")} />
      <Field {...about("organization", "Organization")} />
      <Select {...about("outcome", "Outcome")} options={OUTCOMES} />
      <Field {...about("status", "Status")} list={STATUSES} placeholder="502 or 5xx" />
      <Field {...about("code", "Error code")} />
      <Field {...about("slower", "Slower than, ms")} type="number" min={0} step={1} />
      <Field {...about("id", "Part of its id")} />
    </search>
  );
}
