// Audit: what administrators did, and which attempts were refused.

import type { AuditList, AuditRecord } from "../../../admin/audit.ts";
import { useApp } from "../app/context.ts";
import { useKept } from "../app/hooks.ts";
import { useResource } from "../app/resource.ts";
import { dateTime } from "../format.ts";
import { Head } from "../parts/card.tsx";
import { FieldChanges } from "../parts/change-list.tsx";
import { Field, Select } from "../parts/field.tsx";
import { Marked } from "../parts/marks.tsx";
import { Trouble } from "../parts/notice.tsx";
import { Pager, usePages } from "../parts/pager.tsx";
import { type Column, Table } from "../parts/table.tsx";

const OUTCOMES = [
  ["", "any"],
  ["done", "done"],
  ["refused", "refused"],
  ["failed", "failed"],
] as const;
const TONES = { done: "good", refused: "warn", failed: "bad" } as const;

const FILTERS = ["name", "operation", "outcome"] as const;
type AuditFilters = Record<(typeof FILTERS)[number], string>;

export function AuditPage() {
  const { api, visits, range } = useApp();
  const { query } = visits.current.value.route;
  const filters = useKept("filters", () => {
    const given = FILTERS.map((name) => [name, query.get(name) ?? ""]);
    return Object.fromEntries(given) as AuditFilters;
  });
  const pages = usePages();
  const path = () => {
    const asked = new URLSearchParams(range.query());
    for (const [name, value] of Object.entries(filters.value)) if (value !== "") asked.set(name, value);
    return `admin/audit?${asked}`;
  };
  const list = useResource<AuditList>(
    () => {
      const cursor = pages.cursor();
      return cursor === undefined ? path() : `${path()}&cursor=${cursor}`;
    },
    { everyMs: 10_000 },
  );
  const about = (name: keyof AuditFilters, label: string) => ({
    ...{ id: `filter-${name}`, label, value: filters.value[name] },
    set(value: string) {
      filters.value = { ...filters.peek(), [name]: value };
      pages.toFirst();
      visits.setQuery(filters.peek());
    },
  });
  const { value: found } = list.data;
  const known = (of: (entry: AuditRecord) => string | null) => [
    ...new Set((found?.entries ?? []).flatMap((entry) => of(entry) ?? [])),
  ];
  return (
    <>
      <Head title="Audit">
        <a class="button" href={new URL(`${path()}&format=csv`, api.base).href} download="">
          CSV
        </a>
      </Head>
      <search aria-label="Entries to show" class="filters">
        <Field {...about("name", "Name")} list={known(({ name }) => name)} />
        <Field {...about("operation", "Operation")} list={known(({ operation }) => operation)} />
        <Select {...about("outcome", "Outcome")} options={OUTCOMES} />
      </search>
      <Trouble of={[list]} />
      <Table
        caption="Entries of the audit, the newest first"
        rows={found?.entries}
        keyOf={({ id }) => String(id)}
        empty="No entries match in this time."
        columns={COLUMNS}
      />
      <Pager of="entries" {...pages.turns(found?.next)} />
    </>
  );
}

const COLUMNS: readonly Column<AuditRecord>[] = [
  { title: "When", cell: ({ time }) => dateTime(time) },
  { title: "Name", cell: ({ name, role }) => (name === null ? "–" : `${name} (${role})`) },
  { title: "Address", cell: ({ address }) => address ?? "–" },
  { title: "Operation", cell: (entry) => entry.operation ?? `${entry.method} ${entry.path}` },
  { title: "Subject", class: "wide", cell: (entry) => <SubjectCell {...entry} /> },
  {
    title: "Outcome",
    cell: ({ outcome, status, repeats }) => (
      <Marked tone={TONES[outcome]} text={`${outcome} (${status})${repeats > 1 ? `, ${repeats} times` : ""}`} />
    ),
  },
];

function SubjectCell({ subject, changes }: AuditRecord) {
  if (changes === null || changes.length === 0) return subject ?? "–";
  const fields = changes.map(({ section, field, ...change }) => [
    field === "" ? section : `${section}.${field}`,
    change,
  ]);
  return (
    <details>
      <summary>{subject ?? [...new Set(changes.map(({ section }) => section))].join(", ")}</summary>
      <FieldChanges changes={Object.fromEntries(fields)} />
    </details>
  );
}
