// The queue in front of the backends: who waits, for what and for how long, how much each backend has to do, and the form for the
// weights and longest waits of the classes.

import type { QueueState } from "../../../admin/queue.ts";
import { useApp } from "../app/context.ts";
import { useResource } from "../app/resource.ts";
import { type EntryForms, readSection } from "../collections/collection.ts";
import { FormPage } from "../collections/form-page.tsx";
import type { CurlRequest } from "../curl.ts";
import { duration, grouped, plural, rate } from "../format.ts";
import { Bar, Card, Head } from "../parts/card.tsx";
import { Link, RequestsOf } from "../parts/link.tsx";
import { Marked } from "../parts/marks.tsx";
import { Notice, Trouble } from "../parts/notice.tsx";
import { Table } from "../parts/table.tsx";
import type { EntryValues, FieldSchema } from "../schema-form.ts";

type BackendSlots = QueueState["backends"][number];

interface AdmissionConfig {
  enabled: boolean;
  queue: { max_wait: string; classes: Readonly<Record<string, EntryValues>> };
}

const PATH = "admin/queue";
const WEIGHTS = "weights";

const FORM: EntryForms = {
  page: "queue",
  article: "a",
  noun: "class",
  idField: "name",
  async read(get, id) {
    const { schema, config, version } = await readSection<AdmissionConfig>(get, "admission");
    const { enabled, queue } = config;
    const entry = id === WEIGHTS ? { enabled, classes: queue.classes } : undefined;
    return { schema: formSchema(schema, config), version, ids: [], entry };
  },
  add: patch,
  change: (_, body, version) => patch(body, version),
};

function patch(body: EntryValues, version: number | undefined): CurlRequest {
  return { method: "PATCH", path: PATH, body: { ...body, version } };
}

/** A group of fields for each class; a class without a longest wait has that of the queue. */
function formSchema({ properties: section }: FieldSchema, { queue }: AdmissionConfig): FieldSchema {
  const { weight, max_wait } =
    (section?.queue?.properties?.classes?.additionalProperties as FieldSchema)?.properties ?? {};
  const ofClass = {
    type: "object",
    properties: {
      weight: { ...weight, type: "number" },
      max_wait: { ...max_wait, type: "string", default: queue.max_wait },
    },
  };
  const classes = Object.fromEntries(Object.keys(queue.classes).map((name) => [name, ofClass]));
  return {
    properties: {
      enabled: { ...section?.enabled, type: "boolean" },
      classes: { type: "object", properties: classes },
    },
  };
}

export function QueuePage() {
  const { visits } = useApp();
  const { id, query } = visits.current.value.route;
  return query.get("do") === "edit" ? <FormPage of={FORM} kind="edit" id={id} /> : <QueueView />;
}

function QueueView() {
  const { session } = useApp();
  const queue = useResource<QueueState>(PATH, { everyMs: 2_000 });
  const { value: state } = queue.data;
  return (
    <>
      <Head title="Queue">
        {session.may({ method: "PATCH", path: PATH }) && (
          <Link to="queue" id={WEIGHTS} query={{ do: "edit" }} class="button">
            Tune weights
          </Link>
        )}
        <Link to="configuration" id="admission">
          Change
        </Link>
      </Head>
      <Trouble of={[queue]} />
      {state?.enabled === false && (
        <Notice tone="warn">
          The queue is off: every request is sent to a backend at once. Set admission.enabled, and what each backend
          takes at once in admission.per_backend.
        </Notice>
      )}
      <WaitingCard state={state} />
      <ClassesCard state={state} />
      <BackendsCard state={state} />
      <QueuesCard state={state} />
    </>
  );
}

interface QueueProps {
  state: QueueState | undefined;
}

function WaitingCard({ state }: QueueProps) {
  const { waiting, total_waiting: total = 0, enabled } = state ?? {};
  const left = total - (waiting?.length ?? 0);
  return (
    <Card title="Waiting requests" aside={<span class="faint">{grouped(total)}</span>}>
      <Table<QueueState["waiting"][number] & { place: number }>
        caption="Waiting requests"
        rows={waiting?.map((row, place) => ({ ...row, place }))}
        keyOf={({ place }) => String(place)}
        empty={enabled ? "No requests wait: every backend has a free slot." : "No requests wait."}
        columns={[
          { title: "Who", cell: ({ tenant }) => tenant.filter((name) => name !== "").join(", ") || "no key" },
          { title: "Model", cell: ({ model }) => <RequestsOf by="model" name={model} /> },
          { title: "Class", cell: (row) => row.class },
          { title: "Waiting for", isNumber: true, cell: ({ waited_ms }) => duration(waited_ms) },
        ]}
      />
      {left > 0 && <p class="faint">{plural(left, "further request")} that came later.</p>}
    </Card>
  );
}

function ClassesCard({ state }: QueueProps) {
  const { classes } = state ?? {};
  const sum = classes?.reduce((all, { weight }) => all + weight, 0) ?? 0;
  return (
    <Card title="Classes">
      <Table<QueueState["classes"][number]>
        caption="Classes"
        rows={classes}
        keyOf={(row) => row.class}
        empty=""
        columns={[
          { title: "Class", cell: (row) => <span class="strong">{row.class}</span> },
          { title: "Weight", cell: ({ weight }) => <Bar share={weight / sum} text={String(weight)} /> },
          { title: "Longest wait", isNumber: true, cell: ({ max_wait_ms }) => duration(max_wait_ms) },
          { title: "Waiting", isNumber: true, cell: ({ waiting }) => grouped(waiting) },
        ]}
      />
    </Card>
  );
}

function BackendsCard({ state }: QueueProps) {
  return (
    <Card title="Backends">
      <Table<BackendSlots>
        caption="Slots of the backends"
        rows={state?.backends}
        keyOf={({ backend }) => backend}
        empty={
          state?.enabled
            ? "No requests yet: a backend is listed from its first request on."
            : "Nothing is counted while the queue is off."
        }
        columns={[
          { title: "Backend", cell: ({ backend }) => <RequestsOf by="backend" name={backend} class="strong" /> },
          {
            title: "In flight",
            cell: ({ in_flight, max_concurrent }) => <Used used={in_flight} most={max_concurrent} />,
          },
          {
            title: "Tokens in flight",
            cell: ({ tokens_in_flight, max_tokens_in_flight }) => (
              <Used used={tokens_in_flight} most={max_tokens_in_flight} />
            ),
          },
          { title: "State", cell: (row) => <SlotsMark {...row} /> },
        ]}
      />
    </Card>
  );
}

function Used({ used, most }: { used: number; most: number | null }) {
  return most === null ? (
    `${grouped(used)}, no limit`
  ) : (
    <Bar share={used / most} text={`${grouped(used)} of ${grouped(most)}`} />
  );
}

function SlotsMark({ in_flight, max_concurrent, tokens_in_flight, max_tokens_in_flight }: BackendSlots) {
  const isFull = (used: number, most: number | null) => most !== null && used >= most;
  return isFull(in_flight, max_concurrent) || isFull(tokens_in_flight, max_tokens_in_flight) ? (
    <Marked tone="busy" text="full" />
  ) : (
    <Marked tone="good" text="has room" />
  );
}

function QueuesCard({ state }: QueueProps) {
  return (
    <Card title="Queues">
      <Table<QueueState["queues"][number]>
        caption="Queues"
        rows={state?.queues}
        keyOf={({ backends }) => backends.join(" ")}
        empty="No queue: there is one for all backends that serve the same models, while requests wait for them."
        columns={[
          { title: "Backends", class: "wide", cell: ({ backends }) => backends.join(", ") },
          { title: "Models", class: "wide", cell: ({ models }) => models.join(", ") },
          { title: "Waiting", isNumber: true, cell: ({ waiting }) => grouped(waiting) },
          {
            title: "Served/s",
            isNumber: true,
            cell: ({ served_per_second }) => (served_per_second === null ? "–" : rate(served_per_second)),
          },
        ]}
      />
    </Card>
  );
}
