// What uPlot draws of a chart: lines over real times, gaps where nothing is known, markers, and a cursor that the charts of a
// group share.

import uPlot from "uplot";
import type { ChartMarker } from "../markers.ts";
import { loneValues, maximumOf, niceMaximum, timeText } from "./scale.ts";

/** Lines differ by more than their colour. */
export type LineLook = "first" | "second" | "bad";

export interface ChartLine {
  name: string;
  look: LineLook;
  /** One for each time; undefined where nothing is known. */
  values: readonly (number | undefined)[];
}

/** What a plot reads each time it draws; the chart changes it. */
export interface PlotSource {
  lines: readonly ChartLine[];
  /** In milliseconds, ascending. */
  times: readonly number[];
  range: readonly [fromMs: number, toMs: number] | undefined;
  markers: readonly ChartMarker[];
  format(value: number): string;
  /** undefined: dragging does nothing. */
  onSelect: ((fromMs: number, toMs: number) => void) | undefined;
}

interface PlotOptions {
  element: HTMLElement;
  /** Charts of one group share their cursor. */
  group: string | undefined;
  source(): PlotSource;
  /** Index of the time that the cursor is at. */
  pointed(index: number | undefined): void;
}

const STROKES: Readonly<Record<LineLook, { colour: string; width: number; dash?: number[]; filled?: number }>> = {
  first: { colour: "--accent", width: 1.75, filled: 12 },
  second: { colour: "--second", width: 1.75, dash: [4, 4] },
  bad: { colour: "--bad", width: 2.5, dash: [1, 3.5], filled: 22 },
};
const MARKER_COLOURS: Readonly<Record<ChartMarker["tone"], string>> = {
  good: "var(--good)",
  bad: "var(--bad)",
  quiet: "var(--line-strong)",
};

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Distances between the times on the scale. */
const TIME_STEPS_MS: readonly number[] = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * SECOND_MS),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE_MS),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR_MS),
  ...[1, 2, 7, 14, 28].map((count) => count * DAY_MS),
];

const AXIS_SPACE = 50;
const TIME_SPACE = 60;
const FONT_SIZE = "11.5px";

export function createPlot({ element, group, source, pointed }: PlotOptions): uPlot {
  const colour = (value: string) => colourOf(element, value);
  const { fontFamily } = getComputedStyle(element);
  const axis: uPlot.Axis = {
    stroke: () => colour("var(--faint)"),
    font: `${FONT_SIZE} ${fontFamily}`,
    grid: { stroke: () => colour("var(--line)"), width: 1 },
    ticks: { show: false },
  };
  return new uPlot(
    {
      ...sizeOf(element),
      ms: 1,
      legend: { show: false },
      padding: [8, 16, 0, 0],
      scales: {
        x: { range: () => rangeOf(source()) },
        y: { range: () => [0, niceMaximum(maximumOf(shownValues(source())))] },
      },
      axes: [
        {
          ...axis,
          size: 24,
          gap: 6,
          space: TIME_SPACE,
          incrs: [...TIME_STEPS_MS],
          values: (_, splits, __, ___, stepMs) => splits.map((at) => timeText(at, stepMs)),
        },
        {
          ...axis,
          size: AXIS_SPACE,
          gap: 6,
          splits: (_, __, low, high) => [low, (low + high) / 2, high],
          values: (_, splits) => splits.map((value) => (value === 0 ? "0" : source().format(value))),
        },
      ],
      series: [{}, ...source().lines.map(({ look }) => seriesOf(look, colour))],
      cursor: {
        y: false,
        points: { size: 6 },
        drag: { x: source().onSelect !== undefined, y: false, setScale: false },
        ...(group !== undefined && { sync: { key: group, setSeries: false } }),
      },
      hooks: {
        setCursor: [({ cursor: { idx } }) => pointed(idx ?? undefined)],
        setSelect: [(plot) => selected(plot, source())],
        draw: [(plot) => drawMarkers(plot, source().markers, colour)],
      },
    },
    dataOf(source()),
    element,
  );
}

export function sizeOf({ clientWidth, clientHeight }: HTMLElement): { width: number; height: number } {
  return { width: clientWidth, height: clientHeight };
}

export function dataOf({ times, lines }: PlotSource): uPlot.AlignedData {
  // What is bad is seen where there is some of it.
  const valuesOf = ({ values, look }: ChartLine) =>
    values.map((value) => (look === "bad" && value === 0 ? null : (value ?? null)));
  return [[...times], ...lines.map(valuesOf)];
}

function rangeOf({ range, times }: PlotSource): [number, number] {
  const [from, to] = range ?? [times[0] ?? 0, times.at(-1) ?? 1];
  return [from, Math.max(to, from + 1)];
}

function shownValues(source: PlotSource): (number | undefined)[] {
  const [from, to] = rangeOf(source);
  const isShown = (atMs: number | undefined) => atMs !== undefined && atMs >= from && atMs <= to;
  return source.lines.flatMap(({ values }) => values.filter((_, index) => isShown(source.times[index])));
}

function seriesOf(look: LineLook, colour: (value: string) => string): uPlot.Series {
  const { colour: name, width, dash, filled } = STROKES[look];
  const stroke = () => colour(`var(${name})`);
  return {
    stroke,
    width,
    ...(dash !== undefined && { dash }),
    ...(filled !== undefined && { fill: () => colour(`color-mix(in srgb, var(${name}) ${filled}%, transparent)`) }),
    points: { show: true, size: 3, stroke, fill: stroke, filter: (plot, index) => loneValues(plot.data[index] ?? []) },
  };
}

/** A colour of the style as a canvas takes it: of the theme that is in force. */
function colourOf(element: HTMLElement, value: string): string {
  element.style.color = value;
  return getComputedStyle(element).color;
}

function selected(plot: uPlot, { onSelect }: PlotSource): void {
  const { left, width } = plot.select;
  if (width <= 0) return;
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  onSelect?.(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
}

/** A line at each moment, with its text where there is room before the next one. */
function drawMarkers(plot: uPlot, markers: readonly ChartMarker[], colour: (value: string) => string): void {
  const { ctx, bbox, scales } = plot;
  const { min = 0, max = 0 } = scales.x ?? {};
  const gap = 4 * uPlot.pxRatio;
  const shown = markers.filter(({ atMs }) => atMs >= min && atMs <= max);
  // In the middle of a pixel, so that the line is sharp.
  const places = shown.map(({ atMs }) => Math.round(plot.valToPos(atMs, "x", true)) + (uPlot.pxRatio % 2) / 2);
  ctx.save();
  ctx.lineWidth = uPlot.pxRatio;
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  for (const [index, { tone, text }] of shown.entries()) {
    const x = places[index] as number;
    const room = (places[index + 1] ?? bbox.left + bbox.width) - x - 2 * gap;
    ctx.strokeStyle = ctx.fillStyle = colour(MARKER_COLOURS[tone]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    if (ctx.measureText(text).width <= room) ctx.fillText(text, x + gap, bbox.top);
  }
  ctx.restore();
}
