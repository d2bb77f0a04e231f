// Batches: how far those of all callers are, and what they have cost.

import type { BatchRecord, BatchRecordList } from "../../../admin/batches.ts";
import type { Action } from "../app/actions.ts";
import { useResource } from "../app/resource.ts";
import { dateTime, grouped, longDuration, money, percent, rate, words } from "../format.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { Head } from "../parts/card.tsx";
import { Marked, type MarkTone } from "../parts/marks.tsx";
import { Trouble } from "../parts/notice.tsx";
import { Pager, usePages } from "../parts/pager.tsx";
import { type Column, Table } from "../parts/table.tsx";

const PATH = "admin/batches";
const EVERY_MS = 2_000;

const TONES: Partial<Record<BatchRecord["status"], MarkTone>> = {
  completed: "good",
  failed: "bad",
  expired: "warn",
  cancelled: "quiet",
};

export function BatchesPage() {
  const pages = usePages();
  const list = useResource<BatchRecordList>(
    () => {
      const cursor = pages.cursor();
      return cursor === undefined ? PATH : `${PATH}?cursor=${encodeURIComponent(cursor)}`;
    },
    { everyMs: EVERY_MS },
  );
  const { value: found } = list.data;
  return (
    <>
      <Head title="Batches" />
      <Trouble of={[list]} />
      <Table
        caption="Batches, the newest first"
        rows={found?.batches}
        keyOf={({ id }) => id}
        empty={found?.enabled === false ? "Batches are switched off (batches.enabled)." : "There are no batches."}
        columns={COLUMNS}
      />
      <Pager of="batches" {...pages.turns(found?.next)} />
    </>
  );
}

const COLUMNS: readonly Column<BatchRecord>[] = [
  {
    title: "Batch",
    cell: ({ id, endpoint, model }) => (
      <>
        <div class="strong">{id}</div>
        <div class="faint">{model === null ? endpoint : `${endpoint}, ${model}`}</div>
      </>
    ),
  },
  { title: "Owner", cell: ({ owner }) => owner },
  { title: "Status", cell: ({ status }) => <Marked tone={TONES[status] ?? "busy"} text={words(status)} /> },
  {
    title: "Progress",
    isNumber: true,
    cell: ({ total, completed, failed }) =>
      total === 0 ? "–" : `${percent((completed + failed) / total)} of ${grouped(total)}`,
  },
  { title: "Completed", isNumber: true, cell: ({ completed }) => grouped(completed) },
  { title: "Failed", isNumber: true, cell: ({ failed }) => grouped(failed) },
  { title: "At vendors", isNumber: true, cell: ({ at_vendors }) => (at_vendors === 0 ? "–" : grouped(at_vendors)) },
  { title: "Rate", isNumber: true, cell: ({ per_second }) => (per_second === null ? "–" : `${rate(per_second)}/s`) },
  {
    title: "Remaining",
    isNumber: true,
    cell: ({ remaining_seconds: seconds }) => (seconds === null ? "–" : longDuration(seconds)),
  },
  {
    title: "Tokens",
    isNumber: true,
    cell: ({ input_tokens, output_tokens }) => grouped(input_tokens + output_tokens),
  },
  { title: "Cost", isNumber: true, cell: ({ cost }) => money(cost) },
  { title: "Created", cell: ({ created_at }) => dateTime(created_at) },
  { title: "Actions", cell: (batch) => <CancelButton {...batch} /> },
];

function CancelButton({ id, status, has_ended }: BatchRecord) {
  if (has_ended || status === "cancelling" || status === "finalizing") return null;
  return (
    <ActionButton label={`Cancel ${id}`} action={cancelling(id)}>
      Cancel
    </ActionButton>
  );
}

function cancelling(id: string): Action {
  return {
    title: `Cancel ${id}`,
    text: "Requests that have a result keep it; those under way are interrupted, and no further one is asked.",
    verb: "Cancel the batch",
    isDangerous: true,
    asked: () => ({ method: "POST", path: `${PATH}/${encodeURIComponent(id)}/cancel` }),
    done: () => `${id} is cancelled within a moment.`,
  };
}
