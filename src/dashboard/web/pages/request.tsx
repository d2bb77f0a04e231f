// One request: what became of it, in sentences, on a line of time, and attempt by attempt with all backends that could have been
// asked.

import type { AttemptRow, RequestStory } from "../../../admin/request-schemas.ts";
import { useApp } from "../app/context.ts";
import { useResource } from "../app/resource.ts";
import { dateTime, duration, words } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { Card, Facts, Head } from "../parts/card.tsx";
import { CopyButton } from "../parts/copy.tsx";
import { Link, RequestsOf } from "../parts/link.tsx";
import { Marked, OutcomeMark } from "../parts/marks.tsx";
import { Notice, Trouble } from "../parts/notice.tsx";
import { Table } from "../parts/table.tsx";
import { linkTo } from "../route.ts";
import { RecordingCards } from "./request-recording.tsx";
import { TimelineCard } from "./request-timeline.tsx";

/** A request that runs is asked for again so often. */
const RUNNING_MS = 1_000;

export function RequestPage() {
  const { id = "" } = useApp().visits.current.value.route;
  const path = `admin/requests/${encodeURIComponent(id)}`;
  const story = useResource<RequestStory>(() => (id === "" ? undefined : path), {
    everyMs: (answer) => (answer?.finished === false ? RUNNING_MS : undefined),
  });
  const { value: data } = story.data;
  return (
    <>
      <Head title="Request">
        {data !== undefined && <OutcomeMark outcome={data.outcome} status={data.status} />}
        <Link to="requests">All requests</Link>
      </Head>
      {id === "" && <Notice tone="warn">No request id in the address. Choose one in the list of requests.</Notice>}
      <Trouble of={[story]} />
      {data !== undefined && (
        <>
          <IdRow story={data} path={path} />
          <Sentences {...data} />
          <TimelineCard story={data} />
          <Details {...data} />
          <RecordingCards key={data.id} id={data.id} />
          <Attempts {...data} />
        </>
      )}
    </>
  );
}

function IdRow({ story: { id, request_id, model }, path }: { story: RequestStory; path: string }) {
  const { curl } = useApp();
  return (
    <div class="row">
      <code class="clip">{request_id}</code>
      <CopyButton text={request_id} what="the id" caption="Copy id" />
      {id !== request_id && <CopyButton text={id} what="the gateway's id" caption="Copy gateway id" />}
      <CopyButton text={curl({ method: "GET", path })} what="the command" caption="Copy as curl" />
      <Button kind="small" onClick={() => location.assign(linkTo("playground", undefined, { model }))}>
        Ask this model
      </Button>
    </div>
  );
}

function Sentences({ summary, explanation, error }: RequestStory) {
  return (
    <Card title="What happened" class="story">
      {summary !== undefined && <p class="summary">{summary}</p>}
      {explanation !== undefined && (
        <ol class="sentences">
          {explanation.map((sentence, index) => (
            <li key={index}>{sentence}</li>
          ))}
        </ol>
      )}
      {error !== undefined && error !== null && (
        <p class="told">
          Message to the client: <q>{error.message}</q> ({error.code ?? error.type})
        </p>
      )}
    </Card>
  );
}

function Details(story: RequestStory) {
  const { model, answered_by, operation, stream, key_id, backend, prompt_tokens, completion_tokens, others } = story;
  return (
    <Card title="Details">
      <Facts
        of={[
          ["Started", dateTime(story.started_at)],
          ["Model", answered_by === null || answered_by === model ? model : `${model}, fallback ${answered_by}`],
          ...(story.route === null ? [] : [["Route", `${story.route}, target ${story.arm ?? "none"}`] as const]),
          ["Operation", `${operation}${stream ? ", streamed" : ""}`],
          ["Backend", backend ?? "–"],
          ["Key", key_id === null ? "none" : <RequestsOf by="key" name={key_id} />],
          ["Cache", cacheText(story)],
          ["Tokens", `${prompt_tokens ?? "–"} in, ${completion_tokens ?? "–"} out`],
          ["Gateway id", <code key="id">{story.id}</code>],
        ]}
      />
      {others.length > 0 && (
        <p>
          The same X-Request-ID:{" "}
          {others.map((other) => (
            <span key={other}>
              <Link to="request" id={other}>
                {other}
              </Link>{" "}
            </span>
          ))}
        </p>
      )}
    </Card>
  );
}

function cacheText({ cache }: RequestStory): string {
  if (cache === null) return "not asked";
  const { decision, reason } = cache;
  return `${decision.toLowerCase()}${reason === null ? "" : `, ${words(reason)}`}`;
}

function Attempts({ steps, steps_dropped }: RequestStory) {
  const attempts = steps.filter((step) => step.kind === "attempt");
  return (
    <>
      {attempts.map((step, index) => (
        <Attempt key={index} step={step} number={index + 1} total={attempts.length} />
      ))}
      {steps_dropped > 0 && <Notice tone="warn">{steps_dropped} steps are not kept any more.</Notice>}
    </>
  );
}

function Attempt({ step, number, total }: { step: AttemptRow; number: number; total: number }) {
  const { backend, model, strategy, score_means, candidates, text, detail } = step;
  return (
    <Card title={total === 1 ? `Why ${backend}` : `Attempt ${number}: ${backend}`}>
      {text !== null && <p>{text}</p>}
      {detail !== null && <p class="faint">{detail}</p>}
      <p class="faint">
        Asked for {model}, {strategy === null ? "without a choice" : `chosen by ${strategy}`}
        {score_means && `; the score means: ${score_means}`}.
      </p>
      {candidates.length > 0 && (
        <Table
          caption={`Candidates of attempt ${number}`}
          rows={candidates}
          keyOf={(candidate) => candidate.backend}
          empty=""
          rowClass={({ chosen }) => (chosen ? "chosen" : undefined)}
          columns={[
            {
              title: "Backend",
              cell: (candidate) => <Marked tone={candidate.chosen ? "good" : "quiet"} text={candidate.backend} />,
            },
            {
              title: "Score",
              isNumber: true,
              cell: ({ score }) => (score === undefined ? "–" : Number(score.toPrecision(4))),
            },
            { title: "In flight", isNumber: true, cell: ({ in_flight }) => in_flight ?? "–" },
            {
              title: "Latency",
              isNumber: true,
              cell: ({ latency_ms }) => (latency_ms === undefined ? "–" : duration(latency_ms)),
            },
            { title: "Why", cell: ({ why }) => why },
          ]}
        />
      )}
    </Card>
  );
}
