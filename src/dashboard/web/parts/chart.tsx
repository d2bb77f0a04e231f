// A chart of a few lines over time, with its numbers beside it in words.

import { type ReadonlySignal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type uPlot from "uplot";
import { useApp } from "../app/context.ts";
import { useNow } from "../app/hooks.ts";
import { ago, dateTime } from "../format.ts";
import type { ChartMarker } from "../markers.ts";
import { type ChartLine, createPlot, dataOf, type LineLook, type PlotSource, sizeOf } from "./plot.ts";
import { maximumOf } from "./scale.ts";

const HOUR_MS = 3_600_000;

export interface ChartProps {
  title: string;
  lines: readonly ChartLine[];
  /** Of the values, in milliseconds, ascending. */
  times: readonly number[];
  /** The times that are shown, in words. */
  span: string;
  /** Default: from the first time to the last. */
  range?: readonly [fromMs: number, toMs: number];
  markers?: readonly ChartMarker[];
  /** Of a value, on the scale and in words. */
  format(value: number): string;
  /** Charts of one group share their cursor. */
  group?: string;
  /** A part of the time was chosen by dragging. */
  onSelect?: (fromMs: number, toMs: number) => void;
  below?: ComponentChildren;
}

export function Chart(props: ChartProps) {
  const { title, lines, span, format, group, below } = props;
  const { themes } = useApp();
  const element = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const source = useRef<PlotSource>(null);
  const pointed = useSignal<number | undefined>(undefined);
  source.current = { markers: [], range: undefined, onSelect: undefined, ...props };
  const isDark = themes.isDark.value;
  const looks = lines.map(({ look }) => look).join();
  const isSelectable = props.onSelect !== undefined;

  // uPlot takes these once.
  useLayoutEffect(() => {
    const box = element.current as HTMLElement;
    const made = createPlot({
      ...{ element: box, group },
      source: () => source.current as PlotSource,
      pointed(index) {
        pointed.value = index;
      },
    });
    plot.current = made;
    const resizing = new ResizeObserver(() => made.setSize(sizeOf(box)));
    resizing.observe(box);
    return () => {
      resizing.disconnect();
      made.destroy();
    };
  }, [group, looks, isSelectable, pointed]);
  useLayoutEffect(() => plot.current?.setData(dataOf(source.current as PlotSource)));
  // In the colours of the other theme.
  useLayoutEffect(() => plot.current?.redraw(), [isDark]);

  const summary = lines.map(({ name, values }) => {
    const latest = values.at(-1);
    return `${name}: now ${latest === undefined ? "unknown" : format(latest)}, at most ${format(maximumOf(values))}`;
  });
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{title}</span>
        <Legend {...props} pointed={pointed} />
      </figcaption>
      <div ref={element} class="plot" role="img" aria-label={`${title}, ${span}. ${summary.join("; ")}`} />
      {below}
    </figure>
  );
}

/** The values at the cursor, else the latest. */
function Legend(props: ChartProps & { pointed: ReadonlySignal<number | undefined> }) {
  const { lines, times, markers = [], span, format, pointed } = props;
  const { value: index } = pointed;
  const at = index === undefined ? undefined : times[index];
  const stepMs = (times[1] ?? 0) - (times[0] ?? 0);
  const near = markers.filter(({ atMs }) => at !== undefined && Math.abs(atMs - at) <= stepMs);
  return (
    <span class="legend">
      <span>{at === undefined ? span : <PointedTime at={at} />}</span>
      {near.map(({ atMs, tone, text }) => (
        <span key={`${atMs} ${text}`} class={`marker ${tone}`}>
          {text}
        </span>
      ))}
      {lines.map(({ name, look, values }) => {
        const value = values[index ?? values.length - 1];
        return <LegendEntry key={name} name={name} look={look} value={value === undefined ? "–" : format(value)} />;
      })}
    </span>
  );
}

function PointedTime({ at }: { at: number }) {
  const nowMs = useNow();
  return <>{nowMs - at < HOUR_MS ? ago(at, nowMs) : dateTime(at)}</>;
}

function LegendEntry({ name, look, value }: { name: string; look: LineLook; value: string }) {
  return (
    <span class="legend-entry">
      <svg viewBox="0 0 18 8" aria-hidden="true">
        <path class={`line ${look}`} d="M1 4H17" />
      </svg>
      <span>{name}</span>
      <b>{value}</b>
    </span>
  );
}
