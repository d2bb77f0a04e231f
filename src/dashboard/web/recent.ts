// The last minutes of the gateway: made of the requests that it has kept, and then of the events that come in.

import { effect, type ReadonlySignal, signal } from "@preact/signals";
import type { RequestEvent } from "../../admin/event-schemas.ts";
import type { RequestRow, Requests } from "../../admin/request-schemas.ts";
import type { Api } from "./app/api.ts";
import type { Live } from "./app/live.ts";
import { createSeries, type SeriesBucket, type SeriesPoint, timesOf } from "./series.ts";

export const BUCKET_MS = 2_000;
const BUCKETS = 150;
const SPAN_MS = BUCKET_MS * BUCKETS;
/** Requests from before the page was opened that the charts begin with: so many at once, so many times. */
const SEEDED = 1_000;
const MOST_PAGES = 5;
/** Events that are kept while the requests are read: they come twice a second. */
const MOST_TOLD = 120;
/** Times of first tokens that are kept for the percentiles. */
const MOST_FIRST_TOKENS = 1_000;

export interface Recent {
  /** The oldest first; undefined where nothing is known. Follows what is added. */
  points(nowMs: number): readonly (SeriesPoint | undefined)[];
  /** Milliseconds, of the latest streams. */
  firstTokens: ReadonlySignal<readonly number[]>;
  /** Those that have ended, the last one first. */
  latest: ReadonlySignal<readonly RequestRow[]>;
  end(): void;
}

interface RecentParts {
  api: Pick<Api, "get" | "now">;
  live: Pick<Live, "state" | "listen">;
}

/** Of the points, in milliseconds. */
export function bucketTimes(nowMs: number): number[] {
  return timesOf({ bucketMs: BUCKET_MS, buckets: BUCKETS }, nowMs);
}

/** The last minutes, from the requests that are kept and then from the events. */
export function followRequests({ api, live }: RecentParts): Recent {
  const series = createSeries({ bucketMs: BUCKET_MS, buckets: BUCKETS });
  /** Counts what is added to the series. */
  const changes = signal(0);
  const firstTokens = signal<readonly number[]>([]);
  const latest = signal<readonly RequestRow[]>([]);
  /** What an earlier one has not taken yet, a later one takes. */
  let seeds = 0;
  /** Told since the latest one has begun. */
  let told: { atMs: number; bucket: SeriesBucket }[] = [];

  /** Events tell what ends from here on; what has ended before is asked for, the newest first. */
  async function seed(): Promise<void> {
    const number = ++seeds;
    const untilMs = api.now();
    const sinceMs = untilMs - SPAN_MS;
    told = [];
    let cursor: string | null = null;
    for (let page = 0; page < MOST_PAGES; page++) {
      const query = new URLSearchParams({ since: String(Math.round(sinceMs)), limit: String(SEEDED) });
      if (cursor !== null) query.set("cursor", cursor);
      const list: Requests = await api.get<Requests>(`admin/requests?${query}`);
      if (number !== seeds) return;
      if (page === 0) beginAgain();
      take(list, untilMs, sinceMs);
      if (page === 0) latest.value = latestOf([...list.requests, ...latest.peek()]);
      cursor = list.next_cursor;
      if (cursor === null) return;
    }
  }

  /** Not before there is something to show: a chart that is empty for a moment looks like trouble. */
  function beginAgain(): void {
    series.clear();
    firstTokens.value = [];
    for (const { atMs, bucket } of told) series.add(atMs, bucket);
  }

  function take({ requests, next_cursor }: Requests, untilMs: number, sinceMs: number): void {
    const oldest = requests.at(-1);
    series.knownSince(next_cursor === null || oldest === undefined ? sinceMs : Date.parse(oldest.started_at));
    for (const row of requests) {
      const endedMs = endOf(row);
      if (row.finished && endedMs < untilMs) series.add(endedMs, bucketOf(row));
    }
    firstTokens.value = [...requests.flatMap(firstTokenOf), ...firstTokens.peek()].slice(-MOST_FIRST_TOKENS);
    changes.value++;
  }

  const unlisten = live.listen((event, data) => {
    if (event !== "request") return;
    const { at, requests, ...sums } = data as RequestEvent;
    const added = { atMs: Date.parse(at), bucket: bucketOfEvent(sums) };
    series.add(added.atMs, added.bucket);
    told = [...told, added].slice(-MOST_TOLD);
    firstTokens.value = [...firstTokens.peek(), ...requests.flatMap(firstTokenOf)].slice(-MOST_FIRST_TOKENS);
    latest.value = latestOf([...requests, ...latest.peek()]);
    changes.value++;
  });

  const seedAgain = () => void seed().catch(() => {});
  seedAgain();
  let wasLive = live.state.peek() === "live";
  const unfollow = effect(() => {
    const isLive = live.state.value === "live";
    // Events were missed meanwhile.
    if (isLive && !wasLive) seedAgain();
    wasLive = isLive;
  });

  return {
    points(nowMs) {
      void changes.value;
      return series.points(nowMs);
    },
    firstTokens,
    latest,
    end() {
      seeds++;
      unlisten();
      unfollow();
    },
  };
}

const MOST_LATEST = 8;

/** Those that have ended, the last one first, each once. */
function latestOf(rows: readonly RequestRow[]): RequestRow[] {
  const byId = new Map(rows.map((row) => [row.id, row]));
  return [...byId.values()]
    .filter(({ finished }) => finished)
    .sort((a, b) => endOf(b) - endOf(a))
    .slice(0, MOST_LATEST);
}

export function endOf({ started_at, duration_ms }: RequestRow): number {
  return Date.parse(started_at) + duration_ms;
}

function firstTokenOf({ stream, first_byte_ms }: RequestRow): number[] {
  return stream && first_byte_ms !== null ? [first_byte_ms] : [];
}

function bucketOf(row: RequestRow): SeriesBucket {
  return {
    total: 1,
    failed: row.outcome === "failed" || row.outcome === "stream_broken" ? 1 : 0,
    durationMs: row.duration_ms,
    longestMs: row.duration_ms,
    firstBytes: row.first_byte_ms === null ? 0 : 1,
    firstByteSumMs: row.first_byte_ms ?? 0,
    promptTokens: row.prompt_tokens ?? 0,
    completionTokens: row.completion_tokens ?? 0,
  };
}

function bucketOfEvent(event: Omit<RequestEvent, "at" | "requests">): SeriesBucket {
  const { total, avg_first_byte_ms: averageMs } = event;
  return {
    total,
    failed: event.failed,
    durationMs: event.avg_duration_ms * total,
    longestMs: event.max_duration_ms,
    firstBytes: averageMs === null ? 0 : total,
    firstByteSumMs: (averageMs ?? 0) * total,
    promptTokens: event.prompt_tokens,
    completionTokens: event.completion_tokens,
  };
}
