// One replay: a summary of both sides, and below it the answers of each request side by side.

import type { ReplayItemView, ReplayReport, ReplayRow } from "../../../admin/replay-schemas.ts";
import { useResource } from "../app/resource.ts";
import { duration, grouped, money, words } from "../format.ts";
import { Card, Facts, Head } from "../parts/card.tsx";
import { Link } from "../parts/link.tsx";
import { Marked } from "../parts/marks.tsx";
import { Trouble } from "../parts/notice.tsx";
import { Pager, usePages } from "../parts/pager.tsx";
import { type Column, Table } from "../parts/table.tsx";

const EVERY_MS = 2_000;

/** What the requests were asked of, or with. */
export const askedBy = ({ model, route, arm, prompt }: ReplayRow): string =>
  [model ?? route, arm, prompt].filter((name) => name !== null).join(", ") || "other instructions";

export function ReplayMark({ status }: Pick<ReplayRow, "status">) {
  return (
    <Marked tone={status === "completed" ? "good" : status === "running" ? "busy" : "warn"} text={words(status)} />
  );
}

export function ReplayPage({ id }: { id: string }) {
  const pages = usePages();
  const replay = useResource<ReplayReport>(
    () => {
      const cursor = pages.cursor();
      return `admin/replays/${encodeURIComponent(id)}?limit=50${cursor === undefined ? "" : `&cursor=${cursor}`}`;
    },
    { everyMs: (told) => (told?.status === "running" ? EVERY_MS : undefined) },
  );
  const { value: told } = replay.data;
  return (
    <>
      <Head title="Replay">
        {told && <ReplayMark {...told} />}
        <Link to="replays">All replays</Link>
      </Head>
      <Trouble of={[replay]} />
      {told && (
        <>
          <Summary {...told} />
          <Table
            caption="Answers side by side"
            rows={told.items}
            keyOf={({ recording }) => recording}
            empty="Its recordings were deleted."
            columns={SIDES}
          />
          <Pager of="requests" {...pages.turns(told.next_cursor)} />
        </>
      )}
    </>
  );
}

type SideSums = ReplayReport["recorded"] & { side: string };

const SUMS: readonly Column<SideSums>[] = [
  { title: "Side", cell: ({ side }) => side },
  { title: "Failed", isNumber: true, cell: ({ failed }) => grouped(failed) },
  { title: "Tokens in", isNumber: true, cell: ({ input_tokens }) => grouped(input_tokens) },
  { title: "Tokens out", isNumber: true, cell: ({ output_tokens }) => grouped(output_tokens) },
  { title: "Cost", isNumber: true, cell: ({ cost }) => money(cost) },
  { title: "First token", isNumber: true, cell: ({ first_byte_ms }) => firstToken(first_byte_ms) },
];

const firstToken = (ms: number | null) => (ms === null ? "–" : duration(ms));

function Summary(told: ReplayReport) {
  const { done, total, identical, different, better, worse, same, judge, rubric, instructions, key } = told;
  return (
    <Card title={`Asked: ${askedBy(told)}`}>
      <Facts
        of={[
          ["Done", `${grouped(done)} of ${grouped(total)}`],
          ["Identical", `${identical} of ${identical + different}`],
          ["Replayed ones judged", judge === null ? "–" : `${better} better, ${worse} worse, ${same} the same`],
          ["Judge", judge === null ? "–" : `${judge}: ${rubric}`],
          ["As key", key ?? "–"],
          ...(instructions === null ? [] : [["Instructions", instructions] as const]),
        ]}
      />
      <Table
        caption="Both sides together"
        rows={[
          { side: "Recorded", ...told.recorded },
          { side: "Replayed", ...told.replayed },
        ]}
        keyOf={({ side }) => side}
        empty=""
        columns={SUMS}
      />
    </Card>
  );
}

const SIDES: readonly Column<ReplayItemView>[] = [
  {
    title: "Request",
    cell: ({ recording, asked_again }) => (
      <>
        <Link to="request" id={recording}>
          {recording}
        </Link>
        {asked_again && <div class="faint">asked again after a restart</div>}
      </>
    ),
  },
  { title: "Recorded", class: "wide", cell: ({ recorded }) => <Side of={recorded} /> },
  {
    title: "Replayed",
    class: "wide",
    cell: ({ replayed, reason }) =>
      replayed === null ? (
        reason
      ) : (
        <>
          <Side of={replayed} />
          <Link to="request" id={replayed.request_id}>
            what happened
          </Link>
        </>
      ),
  },
  {
    title: "Verdict",
    class: "wide",
    cell: ({ identical, judged }) => (
      <>
        {identical !== null && (
          <Marked tone={identical ? "good" : "warn"} text={identical ? "identical" : "different"} />
        )}
        {judged !== null && (
          <>
            <Marked
              tone={judged.better === "replayed" ? "good" : judged.better === "recorded" ? "warn" : "quiet"}
              text={judged.better === null ? "no verdict" : VERDICTS[judged.better]}
            />
            <p>{judged.reason}</p>
          </>
        )}
      </>
    ),
  },
];

const VERDICTS = { replayed: "replayed is better", recorded: "recorded is better", same: "the same" } as const;

function Side({ of }: { of: ReplayItemView["recorded"] }) {
  if (of === null) return null;
  const { status, error, text, tool_calls, finish, input_tokens, output_tokens, cost, first_byte_ms, duration_ms } = of;
  const tokens = (count: number | null) => (count === null ? "–" : grouped(count));
  return (
    <>
      {error !== null && <Marked tone="bad" text={`${status} ${error}`} />}
      {text !== "" && <p class="said">{text}</p>}
      {tool_calls.map((call, index) => (
        <code key={index} class="said">
          {call.name}({call.arguments})
        </code>
      ))}
      <div class="faint">
        {[
          `${tokens(input_tokens)} tokens in, ${tokens(output_tokens)} out`,
          money(cost),
          `first token ${firstToken(first_byte_ms)}`,
          `done after ${duration(duration_ms)}`,
          ...(finish === null ? [] : [finish]),
        ].join(" · ")}
      </div>
    </>
  );
}
