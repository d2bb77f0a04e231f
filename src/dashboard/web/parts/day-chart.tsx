// What was used, day by day: a column for each, as high as what it cost, or as its requests where nothing has a price.

import { count, grouped, money } from "../format.ts";
import { Card } from "./card.tsx";

interface DayRow {
  day?: string | undefined;
  cost: number;
  requests: number;
}

const MOST_DAYS = 30;

/** @param props.rows - the newest first; undefined: not known yet */
export function DayChart(props: { rows: readonly DayRow[] | undefined }) {
  const rows = (props.rows ?? []).slice(0, MOST_DAYS).toReversed();
  const dearest = rows.reduce((most, { cost }) => Math.max(most, cost), 0);
  const busiest = rows.reduce((most, { requests }) => Math.max(most, requests), 1);
  const heightOf = ({ cost, requests }: DayRow) => (dearest > 0 ? cost / dearest : requests / busiest);
  return (
    <Card title={dearest > 0 ? "Cost by day" : "Requests by day"}>
      <ol class="day-columns">
        {rows.length === 0 && <li class="empty">{props.rows === undefined ? "Loading…" : "No usage in this time."}</li>}
        {rows.map((row) => (
          <li
            key={row.day}
            style={{ "--height": heightOf(row).toFixed(4) }}
            title={`${row.day}: ${money(row.cost)}, ${grouped(row.requests)} requests`}
          >
            <span class="column" aria-hidden="true" />
            <span class="column-value">{dearest > 0 ? money(row.cost) : count(row.requests)}</span>
            <span class="column-day">{String(row.day).slice(5)}</span>
          </li>
        ))}
      </ol>
    </Card>
  );
}
