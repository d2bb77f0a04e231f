// The time that all pages show. It stands in the address, so that a link shows the same to others, and goes along from page to
// page.

import { computed, effect, type ReadonlySignal, signal } from "@preact/signals";
import {
  DEFAULT_RANGE,
  isLive,
  parseRange,
  rangeText,
  type Span,
  spanOf,
  statsWindowOf,
  type TimeRange,
} from "../time-range.ts";
import type { PageClock } from "./clock.ts";
import type { Visits } from "./visits.ts";

export type PageRange = ReturnType<typeof createRange>;

/** Ranges that can be gone back to. */
const MOST_EARLIER = 50;
/** A range up to now moves on in steps, so that not every second asks the gateway again. */
const STEPS = 300;
const MIN_STEP_MS = 5_000;
const MAX_STEP_MS = 60_000;

export function createRange({ now }: PageClock, visits: Pick<Visits, "current" | "setQuery">) {
  const chosen = signal<TimeRange>(DEFAULT_RANGE);
  const earlier = signal<readonly TimeRange[]>([]);
  const span = computed((): Span => {
    const range = chosen.value;
    if (!isLive(range)) return spanOf(range, 0);
    const { from, to } = spanOf(range, now.value);
    const stepMs = Math.min(MAX_STEP_MS, Math.max(MIN_STEP_MS, (to - from) / STEPS));
    const behindMs = to % stepMs;
    return { from: from - behindMs, to: to - behindMs };
  });

  function show(range: TimeRange): void {
    chosen.value = range;
    const text = rangeText(range);
    visits.setQuery({ range: text === rangeText(DEFAULT_RANGE) ? undefined : text });
  }

  effect(() => {
    const text = visits.current.value.route.query.get("range");
    show(text === null ? chosen.peek() : parseRange(text));
  });

  return {
    chosen: chosen as ReadonlySignal<TimeRange>,
    /** Of the chosen range, by the gateway's clock. */
    span,
    seconds: () => (span.value.to - span.value.from) / 1_000,
    canGoBack: computed(() => earlier.value.length > 0),
    choose(range: TimeRange): void {
      if (rangeText(range) === rangeText(chosen.peek())) return;
      earlier.value = [...earlier.peek(), chosen.peek()].slice(-MOST_EARLIER);
      show(range);
    },
    /** To the range before. */
    back(): void {
      const before = earlier.peek().at(-1);
      if (before === undefined) return;
      earlier.value = earlier.peek().slice(0, -1);
      show(before);
    },
    /**
     * Parameters that ask the gateway for just this time; a range up to now has no end.
     * @param endMs - the end of such a range all the same
     */
    query(endMs?: number): string {
      const { from, to } = span.value;
      const query = new URLSearchParams({ since: String(Math.round(from)) });
      const until = isLive(chosen.value) ? endMs : to;
      if (until !== undefined) query.set("until", String(Math.round(until)));
      return query.toString();
    },
    /** The path with the window of the statistics; undefined where they have none of this length. */
    inWindow(path: string): string | undefined {
      const window = statsWindowOf(chosen.value);
      return window && `${path}?window=${window}`;
    },
  };
}
