// One request: what became of it, in sentences, on a line of time, and attempt by attempt with everybody who could have been
// asked.

import type { AttemptRow, RequestStep, RequestStory } from "../../../admin/request-schemas.ts";
import { type MakePage, type PageContext, resource } from "../context.ts";
import { dateTime, duration, rate, words } from "../format.ts";
import { marked, outcomeMark } from "../marks.ts";
import { button, card, cardWith, copyButton, facts, notice, table, trouble } from "../parts.ts";
import { linkTo } from "../route.ts";
import { type TimelineRow, timelineOf } from "../timeline.ts";
import { type Children, h, type View } from "../view.ts";

/** A request that runs is asked for again so often. */
const RUNNING_MS = 1_000;

export const requestPage: MakePage = (context) => {
  const id = context.route.id ?? "";
  const path = `admin/requests/${encodeURIComponent(id)}`;
  const story = resource<RequestStory>(context, () => (id === "" ? undefined : path));
  const timer = setInterval(() => {
    const isRunning = story.data?.finished === false;
    if (isRunning && !story.isLoading && !document.hidden) void story.refresh();
  }, RUNNING_MS);
  context.onLeave(() => clearInterval(timer));

  return {
    title: "Request",
    view() {
      const { data } = story;
      return [
        h(
          "div",
          { class: "head" },
          h("h1", { tabindex: "-1" }, "Request"),
          data !== undefined && outcomeMark(data.outcome, data.status),
          h("a", { href: linkTo("requests") }, "All requests"),
        ),
        id === "" && notice("warn", "Which one? The list of requests leads here."),
        trouble(story),
        data === undefined
          ? null
          : [idRow(context, data, path), sentences(data), timeline(data), details(data), attempts(data)],
      ];
    },
  };
};

function idRow(context: PageContext, { id, request_id, model }: RequestStory, path: string): View {
  const command = context.curl({ method: "GET", path });
  return h(
    "div",
    { class: "row" },
    h("code", { class: "clip" }, request_id),
    copyButton(context, request_id, "the id", "Copy id"),
    id !== request_id && copyButton(context, id, "the gateway's own id", "Copy own id"),
    copyButton(context, command, "the command", "Copy as curl"),
    button("Ask this model", () => location.assign(linkTo("playground", undefined, { model })), { kind: "small" }),
  );
}

function sentences({ summary, explanation, error }: RequestStory): View {
  return h(
    "section",
    { class: "card story" },
    h("h2", null, "What happened"),
    summary !== undefined && h("p", { class: "summary" }, summary),
    explanation !== undefined &&
      h(
        "ol",
        { class: "sentences" },
        explanation.map((sentence) => h("li", null, sentence)),
      ),
    error !== undefined &&
      error !== null &&
      h("p", { class: "told" }, "The client was told: ", h("q", null, error.message), ` (${error.code ?? error.type})`),
  );
}

function timeline(story: RequestStory): View {
  const { rows, ticks } = timelineOf(story);
  const { timings } = story;
  const speed = timings.tokens_per_second ?? null;
  const first = timings.first_token_ms ?? timings.first_byte_ms;
  return cardWith(
    "Timeline",
    h(
      "span",
      { class: "legend" },
      h("span", { class: "legend-entry" }, h("span", { class: "swatch until" }), "until the first byte"),
      h("span", { class: "legend-entry" }, h("span", { class: "swatch good" }), "answering"),
      h("span", { class: "legend-entry" }, h("span", { class: "swatch bad" }), "failed"),
      h("span", { class: "legend-entry" }, h("span", { class: "swatch wait" }), "waiting"),
    ),
    h(
      "ol",
      { class: "timeline" },
      rows.map((row, index) => timelineRow(row, index, story.steps)),
      h(
        "li",
        { class: "ticks", "aria-hidden": "true", key: "ticks" },
        h("span", null),
        h(
          "span",
          { class: "track" },
          ticks.map(({ at, label }) =>
            h("span", { class: at > 0.94 ? "tick last" : "tick", vars: { at: at.toFixed(4) } }, label),
          ),
        ),
        h("span", null),
      ),
    ),
    facts(
      ["Total", duration(timings.total_ms)],
      ["In the gateway", timings.gateway_ms === null ? "–" : duration(timings.gateway_ms)],
      ["At backends", timings.backend_ms === null ? "–" : duration(timings.backend_ms)],
      ["Waiting", duration(timings.waiting_ms)],
      [story.stream ? "First token" : "First byte", first === null ? "–" : duration(first)],
      ["Tokens per second", speed === null ? "–" : rate(speed)],
    ),
  );
}

function timelineRow(row: TimelineRow, index: number, steps: readonly RequestStep[]): View {
  const { label, kind, tone, from, length, untilFirstByte, time, step } = row;
  const text = step === undefined ? undefined : (steps[step]?.text ?? undefined);
  const place = {
    from: from.toFixed(4),
    length: length.toFixed(4),
    until: (untilFirstByte ?? (tone === "good" ? 1 : 0)).toFixed(4),
  };
  const isMoment = length === 0;
  return h(
    "li",
    { key: `${index} ${kind}` },
    h("span", { class: "who clip", title: text ?? label }, marked(TONES[tone], label)),
    h(
      "span",
      { class: "track", "aria-hidden": "true" },
      h(
        "span",
        { class: isMoment ? `moment ${tone}` : `span ${tone}`, vars: place },
        !isMoment && untilFirstByte !== undefined && h("span", { class: "until" }),
      ),
    ),
    h("span", { class: "number" }, time),
  );
}

const TONES = { good: "good", bad: "bad", wait: "busy", note: "quiet" } as const;

function details(story: RequestStory): View {
  const {
    model,
    answered_by,
    operation,
    stream,
    key_id,
    backend,
    cache,
    prompt_tokens,
    completion_tokens,
    others,
    id,
  } = story;
  return card(
    "Details",
    facts(
      ["Began", dateTime(story.started_at)],
      ["Model", answered_by === null || answered_by === model ? model : `${model}, answered by ${answered_by}`],
      ["Operation", `${operation}${stream ? ", streamed" : ""}`],
      ["Backend", backend ?? "–"],
      ["Key", key_id === null ? "none" : h("a", { href: linkTo("requests", undefined, { key: key_id }) }, key_id)],
      [
        "Cache",
        cache === null
          ? "not asked"
          : `${cache.decision.toLowerCase()}${cache.reason === null ? "" : `, ${words(cache.reason)}`}`,
      ],
      ["Tokens", `${prompt_tokens ?? "–"} in, ${completion_tokens ?? "–"} out`],
      ["Own id", h("code", null, id)],
    ),
    others.length > 0 &&
      h(
        "p",
        null,
        "The same X-Request-ID: ",
        others.map((other) => [h("a", { href: linkTo("request", other) }, other), " "]),
      ),
  );
}

function attempts({ steps, steps_dropped }: RequestStory): Children {
  const asked = steps.filter((step) => step.kind === "attempt");
  return [
    asked.map((step, index) => attempt(step, index, asked.length)),
    steps_dropped > 0 && notice("warn", `${steps_dropped} steps are not kept any more.`),
  ];
}

function attempt(step: AttemptRow, index: number, total: number): View {
  const { backend, model, strategy, score_means, candidates, text, detail } = step;
  const title = total === 1 ? `Why ${backend}` : `Attempt ${index + 1}: ${backend}`;
  return h(
    "section",
    { class: "card", key: `attempt ${index}` },
    h("h2", null, title),
    text !== null && h("p", null, text),
    detail !== null && h("p", { class: "faint" }, detail),
    h(
      "p",
      { class: "faint" },
      `Asked for ${model}, ${strategy === null ? "without a choice" : `chosen by ${strategy}`}${score_means ? `; the score means: ${score_means}` : ""}.`,
    ),
    candidates.length > 0 &&
      table({
        caption: `Candidates of attempt ${index + 1}`,
        rows: candidates,
        keyOf: (candidate) => candidate.backend,
        empty: "",
        rowClass: (candidate) => (candidate.chosen ? "chosen" : undefined),
        columns: [
          {
            title: "Backend",
            cell: (candidate) => marked(candidate.chosen ? "good" : "quiet", candidate.backend),
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
        ],
      }),
  );
}
