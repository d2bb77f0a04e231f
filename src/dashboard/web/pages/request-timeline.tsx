// One request on a line of time.

import type { RequestStory } from "../../../admin/request-schemas.ts";
import { duration, rate } from "../format.ts";
import { Card, Facts } from "../parts/card.tsx";
import { Marked } from "../parts/marks.tsx";
import { type Timeline, type TimelineRow, timelineOf } from "../timeline.ts";

const TONES = { good: "good", bad: "bad", wait: "busy", note: "quiet" } as const;

const LEGEND = [
  ["until", "until the first byte"],
  ["good", "answering"],
  ["bad", "failed"],
  ["wait", "waiting"],
] as const;

export function TimelineCard({ story }: { story: RequestStory }) {
  const { rows, ticks } = timelineOf(story);
  const { timings, steps, stream } = story;
  const time = (ms: number | null | undefined) => (ms === null || ms === undefined ? "–" : duration(ms));
  return (
    <Card
      title="Timeline"
      aside={
        <span class="legend">
          {LEGEND.map(([swatch, text]) => (
            <span key={swatch} class="legend-entry">
              <span class={`swatch ${swatch}`} />
              {text}
            </span>
          ))}
        </span>
      }
    >
      <ol class="timeline">
        {rows.map((row, index) => (
          <Row key={index} row={row} text={row.step === undefined ? null : (steps[row.step]?.text ?? null)} />
        ))}
        <Ticks ticks={ticks} />
      </ol>
      <Facts
        of={[
          ["Total", time(timings.total_ms)],
          ["In the gateway", time(timings.gateway_ms)],
          ["At backends", time(timings.backend_ms)],
          ["Waiting", time(timings.waiting_ms)],
          [stream ? "First token" : "First byte", time(timings.first_token_ms ?? timings.first_byte_ms)],
          ["Tokens per second", timings.tokens_per_second == null ? "–" : rate(timings.tokens_per_second)],
        ]}
      />
    </Card>
  );
}

function Row({ row, text }: { row: TimelineRow; text: string | null }) {
  const { label, tone, from, length, untilFirstByte, time } = row;
  const isMoment = length === 0;
  const place = {
    "--from": from.toFixed(4),
    "--length": length.toFixed(4),
    "--until": (untilFirstByte ?? (tone === "good" ? 1 : 0)).toFixed(4),
  };
  return (
    <li>
      <span class="who clip" title={text ?? label}>
        <Marked tone={TONES[tone]} text={label} />
      </span>
      <span class="track" aria-hidden="true">
        <span class={isMoment ? `moment ${tone}` : `span ${tone}`} style={place}>
          {!isMoment && untilFirstByte !== undefined && <span class="until" />}
        </span>
      </span>
      <span class="number">{time}</span>
    </li>
  );
}

function Ticks({ ticks }: Pick<Timeline, "ticks">) {
  return (
    <li class="ticks" aria-hidden="true">
      <span />
      <span class="track">
        {ticks.map(({ at, label }) => (
          <span key={label} class={at > 0.94 ? "tick last" : "tick"} style={{ "--at": at.toFixed(4) }}>
            {label}
          </span>
        ))}
      </span>
      <span />
    </li>
  );
}
