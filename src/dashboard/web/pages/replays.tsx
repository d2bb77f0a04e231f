// Replays: recorded requests asked again, and what became of those that were.

import type { ReplayList, ReplayRow } from "../../../admin/replay-schemas.ts";
import type { Action } from "../app/actions.ts";
import { useApp } from "../app/context.ts";
import { useResource } from "../app/resource.ts";
import { dateTime, grouped } from "../format.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { Head } from "../parts/card.tsx";
import { Link } from "../parts/link.tsx";
import { Trouble } from "../parts/notice.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { askedBy, ReplayMark, ReplayPage } from "./replay.tsx";
import { ReplayForm } from "./replay-form.tsx";

const PATH = "admin/replays";
const EVERY_MS = 2_000;

export function ReplaysPage() {
  const { id } = useApp().visits.current.value.route;
  return id === undefined ? <List /> : <ReplayPage key={id} id={id} />;
}

const COLUMNS: readonly Column<ReplayRow>[] = [
  {
    title: "Replay",
    cell: ({ id }) => (
      <Link to="replays" id={id}>
        {id}
      </Link>
    ),
  },
  { title: "Asked", cell: askedBy },
  { title: "Status", cell: ReplayMark },
  { title: "Done", isNumber: true, cell: ({ done, total }) => `${grouped(done)} of ${grouped(total)}` },
  { title: "Judge", cell: ({ judge }) => judge ?? "–" },
  { title: "Key", cell: ({ key }) => key ?? "–" },
  { title: "Started", cell: ({ at }) => dateTime(at) },
  {
    title: "Actions",
    cell: ({ id }) => (
      <ActionButton label={`Delete ${id}`} action={deleting(id)}>
        Delete
      </ActionButton>
    ),
  },
];

function deleting(id: string): Action {
  return {
    title: `Delete ${id}`,
    text: "Its answers are deleted, and no further request of it is asked.",
    verb: "Delete",
    isDangerous: true,
    asked: () => ({ method: "DELETE", path: `${PATH}/${encodeURIComponent(id)}` }),
    done: () => `${id} is deleted.`,
  };
}

function List() {
  const list = useResource<ReplayList>(PATH, { everyMs: EVERY_MS });
  return (
    <>
      <Head title="Replays" />
      <Trouble of={[list]} />
      <ReplayForm />
      <Table
        caption="Replays, the newest first"
        rows={list.data.value?.replays}
        keyOf={({ id }) => id}
        empty="There are no replays."
        columns={COLUMNS}
      />
    </>
  );
}
