// Recordings: what clients asked and models answered, by whatever one is looking for.

import type { RecordingList, RecordingRow } from "../../../admin/recording-schemas.ts";
import { useResource } from "../app/resource.ts";
import { bytes, dateTime, duration, grouped, money } from "../format.ts";
import { Head } from "../parts/card.tsx";
import { Link } from "../parts/link.tsx";
import { OutcomeMark } from "../parts/marks.tsx";
import { Trouble } from "../parts/notice.tsx";
import { Pager, usePages } from "../parts/pager.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { RecordingFilters, useNames, useRecordingFilters } from "./recording-filters.tsx";

export function RecordingsPage() {
  const filters = useRecordingFilters();
  const pages = usePages();
  const list = useResource<RecordingList>(() => {
    const query = filters.query();
    const cursor = pages.cursor();
    if (cursor !== undefined) query.set("cursor", cursor);
    return `admin/recordings?${query}`;
  });
  const { value: found } = list.data;
  return (
    <>
      <Head title="Recordings">
        {found && <span class="faint">{bytes(found.bytes)}</span>}
        <Link to="replays" query={filters.values.value} class="button">
          Replay these
        </Link>
      </Head>
      <RecordingFilters
        filters={{
          ...filters,
          set(name, value) {
            pages.toFirst();
            filters.set(name, value);
          },
        }}
        names={useNames()}
      />
      <Trouble of={[list]} />
      <Table
        caption="Recordings, the newest first"
        rows={found?.recordings}
        keyOf={({ id }) => id}
        empty={found?.enabled === false ? "Nothing is recorded (recording.enabled)." : "No recordings match."}
        columns={COLUMNS}
      />
      <Pager of="recordings" {...pages.turns(found?.next_cursor)} />
    </>
  );
}

const COLUMNS: readonly Column<RecordingRow>[] = [
  {
    title: "Time",
    cell: ({ id, at }) => (
      <Link to="request" id={id} title={id}>
        {dateTime(at)}
      </Link>
    ),
  },
  { title: "Outcome", cell: OutcomeMark },
  {
    title: "Model",
    cell: ({ model, answered_by }) => (answered_by === null ? model : `${model} → ${answered_by}`),
  },
  {
    title: "Caller",
    cell: ({ dataset, organization_id, user_id, key_id }) =>
      dataset ?? ([organization_id, user_id, key_id].filter(Boolean).join(" · ") || "–"),
  },
  {
    title: "Tokens",
    isNumber: true,
    cell: ({ input_tokens, output_tokens }) => grouped((input_tokens ?? 0) + (output_tokens ?? 0)),
  },
  { title: "Cost", isNumber: true, cell: ({ cost }) => money(cost) },
  { title: "Duration", isNumber: true, cell: ({ duration_ms }) => duration(duration_ms) },
];
