// Replays: recorded requests asked again, both answers side by side.

import type { ReplayItemView, ReplayList, ReplayReport, ReplayRow } from "../../../admin/replay-schemas.ts";
import { useApp } from "../app/context.ts";
import { useKept } from "../app/hooks.ts";
import { useResource } from "../app/resource.ts";
import { dateTime, duration, grouped, money, words } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { Card, Facts, Head } from "../parts/card.tsx";
import { Field } from "../parts/field.tsx";
import { Link } from "../parts/link.tsx";
import { Marked } from "../parts/marks.tsx";
import { Trouble } from "../parts/notice.tsx";
import { type Column, Table } from "../parts/table.tsx";

const PATH = "admin/replays";
const EVERY_MS = 2_000;

export function ReplaysPage() {
  const { id } = useApp().visits.current.value.route;
  return id === undefined ? <List /> : <One key={id} id={id} />;
}

const target = ({ model, route, arm, prompt }: ReplayRow) =>
  [model ?? route, arm, prompt].filter((name) => name !== null).join(", ");

const COLUMNS: readonly Column<ReplayRow>[] = [
  {
    title: "Replay",
    cell: ({ id }) => (
      <Link to="replays" id={id}>
        {id}
      </Link>
    ),
  },
  { title: "Asked", cell: target },
  { title: "Status", cell: ({ status }) => <Marked tone={toneOf(status)} text={words(status)} /> },
  { title: "Requests", isNumber: true, cell: ({ total }) => grouped(total) },
  { title: "Judge", cell: ({ judge }) => judge ?? "–" },
  { title: "Key", cell: ({ key }) => key ?? "–" },
  { title: "Started", cell: ({ at }) => dateTime(at) },
];

function toneOf(status: string) {
  return status === "completed" ? "good" : status === "running" ? "busy" : "warn";
}

function List() {
  const list = useResource<ReplayList>(PATH, { everyMs: EVERY_MS });
  const { actions, visits } = useApp();
  const asked = visits.current.value.route.query.get("ask") ?? "";
  const fields = {
    id: useKept("replay-id", () => asked),
    text: useKept("replay-text", () => ""),
    model: useKept("replay-model", () => ""),
    key: useKept("replay-key", () => ""),
  };
  const start = () =>
    actions.act({
      title: "Start a replay",
      text: "The requests are asked again; what they cost is paid by the key.",
      verb: "Start",
      asked() {
        const { id, text, model, key } = fields;
        const recordings = id.value === "" ? { text: text.value } : id.value;
        const body = { recordings, model: model.value, ...(key.value !== "" && { key: key.value }) };
        return { method: "POST", path: PATH, body };
      },
      done: () => "The replay has begun.",
    });
  return (
    <>
      <Head title="Replays" />
      <Trouble of={[list]} />
      <Card title="Ask again">
        <div class="row">
          <Field
            id="replay-id"
            label="Id of a recording"
            value={fields.id.value}
            set={(to) => (fields.id.value = to)}
          />
          <Field
            id="replay-text"
            label="Or words in it"
            value={fields.text.value}
            set={(to) => (fields.text.value = to)}
          />
          <Field id="replay-model" label="Model" value={fields.model.value} set={(to) => (fields.model.value = to)} />
          <Field id="replay-key" label="Key id" value={fields.key.value} set={(to) => (fields.key.value = to)} />
          <Button kind="main" onClick={start}>
            Start…
          </Button>
        </div>
      </Card>
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

function One({ id }: { id: string }) {
  const replay = useResource<ReplayReport>(`${PATH}/${encodeURIComponent(id)}`, {
    everyMs: (told) => (told?.status === "running" ? EVERY_MS : undefined),
  });
  const { value: told } = replay.data;
  return (
    <>
      <Head title="Replay">
        {told && <Marked tone={toneOf(told.status)} text={words(told.status)} />}
        <Link to="replays">All replays</Link>
      </Head>
      <Trouble of={[replay]} />
      {told && (
        <>
          <Sums {...told} />
          <Table
            caption="Answers side by side"
            rows={told.items}
            keyOf={({ recording }) => recording}
            empty=""
            columns={SIDES}
          />
        </>
      )}
    </>
  );
}

function Sums(told: ReplayReport) {
  const { done, total, identical, different, better, worse, same, recorded, replayed } = told;
  const first = (ms: number | null) => (ms === null ? "–" : duration(ms));
  return (
    <Card title={`Asked: ${target(told)}`}>
      <Facts
        of={[
          ["Done", `${done} of ${total}, ${replayed.failed} failed`],
          ["Identical", `${identical} of ${identical + different}`],
          ["Judged", `${better} better, ${worse} worse, ${same} the same`],
          ["Output tokens", `${grouped(recorded.output_tokens)}, now ${grouped(replayed.output_tokens)}`],
          ["Cost", `${money(recorded.cost)}, now ${money(replayed.cost)}`],
          ["First token", `${first(recorded.first_byte_ms)}, now ${first(replayed.first_byte_ms)}`],
        ]}
      />
    </Card>
  );
}

const SIDES: readonly Column<ReplayItemView>[] = [
  {
    title: "Request",
    cell: ({ recording }) => (
      <Link to="request" id={recording}>
        {recording}
      </Link>
    ),
  },
  { title: "Recorded", cell: ({ recorded }) => <Side of={recorded} /> },
  { title: "Replayed", cell: ({ replayed, reason }) => (replayed === null ? reason : <Side of={replayed} />) },
  {
    title: "Verdict",
    cell: ({ identical, judged }) => (
      <>
        {identical !== null && <div>{identical ? "identical" : "different"}</div>}
        {judged !== null && (
          <div>
            {judged.better ?? "no verdict"}: {judged.reason}
          </div>
        )}
      </>
    ),
  },
];

function Side({ of }: { of: ReplayItemView["recorded"] }) {
  if (of === null) return null;
  const first = of.first_byte_ms === null ? "" : `, first token ${duration(of.first_byte_ms)}`;
  return (
    <>
      <p class="said">{of.error ?? of.text}</p>
      {of.tool_calls.map((call, index) => (
        <code key={index}>
          {call.name}({call.arguments})
        </code>
      ))}
      <div class="faint">
        {of.output_tokens ?? "–"} tokens, {money(of.cost)}
        {first}
      </div>
    </>
  );
}
