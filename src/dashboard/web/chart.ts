// A chart of a few lines over the last minutes, with its numbers beside it in words.

import {
  areaPath,
  HEIGHT,
  indexAt,
  linePath,
  maximumOf,
  niceMaximum,
  type Values,
  WIDTH,
  xOf,
} from "./chart-geometry.ts";
import { ago } from "./format.ts";
import { type Children, h, type View } from "./view.ts";

export interface ChartLine {
  name: string;
  values: Values;
  /** Lines differ by more than their colour. */
  look: "first" | "second" | "bad";
}

interface ChartOptions {
  title: string;
  lines: readonly ChartLine[];
  /** Of a value on the scale and in words. */
  format(value: number): string;
  /** Of each value, for the one that is pointed at. */
  timeOf(index: number): number;
  nowMs: number;
  span: string;
  /** Index of the value that is pointed at; shared by all charts of a page. */
  pointed: number | undefined;
  point(index: number | undefined): void;
}

export function chart(options: ChartOptions): View {
  const { title, lines, format, timeOf, nowMs, span, pointed, point } = options;
  const maximum = niceMaximum(maximumOf(lines.map(({ values }) => values)));
  const length = lines[0]?.values.length ?? 0;
  const onpointermove = (event: PointerEvent) => {
    const { left, width } = (event.currentTarget as Element).getBoundingClientRect();
    point(indexAt((event.clientX - left) / width, length));
  };
  const summary = lines
    .map(({ name, values }) => {
      const latest = values.at(-1);
      return `${name}: now ${latest === undefined ? "unknown" : format(latest)}, at most ${format(maximumOf([values]))}`;
    })
    .join("; ");
  return h(
    "figure",
    { class: "chart" },
    h(
      "figcaption",
      null,
      h("span", { class: "chart-title" }, title),
      h(
        "span",
        { class: "legend" },
        lines.map((line) => legend(line, line.values[pointed ?? length - 1], format)),
      ),
    ),
    h(
      "div",
      { class: "plot" },
      h("span", { class: "scale top", "aria-hidden": "true" }, format(maximum)),
      h("span", { class: "scale middle", "aria-hidden": "true" }, format(maximum / 2)),
      h(
        "svg",
        {
          viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
          preserveAspectRatio: "none",
          role: "img",
          "aria-label": `${title}, ${span}. ${summary}`,
          onpointermove,
          onpointerleave: () => point(undefined),
        },
        [0, HEIGHT / 2, HEIGHT].map((y) => h("path", { class: "grid", d: `M0 ${y}H${WIDTH}` })),
        lines.map(({ values, look }) => drawLine(values, look, maximum)),
        pointed !== undefined && h("path", { class: "pointer", d: `M${xOf(pointed, length)} 0V${HEIGHT}` }),
      ),
    ),
    h(
      "div",
      { class: "axis", "aria-hidden": "true" },
      h("span", null, span),
      h("span", null, pointed === undefined ? "now" : ago(timeOf(pointed), nowMs)),
    ),
  );
}

function drawLine(all: Values, look: ChartLine["look"], maximum: number): Children {
  // What is bad is seen where there is some of it.
  const values = look === "bad" ? all.map((value) => (value === 0 ? undefined : value)) : all;
  return [
    look !== "second" && h("path", { class: `area ${look}`, d: areaPath(values, maximum) }),
    h("path", { class: `line ${look}`, d: linePath(values, maximum) }),
  ];
}

function legend({ name, look }: ChartLine, value: number | undefined, format: (value: number) => string): View {
  return h(
    "span",
    { class: "legend-entry" },
    h("svg", { viewBox: "0 0 18 8", "aria-hidden": "true" }, h("path", { class: `line ${look}`, d: "M1 4H17" })),
    h("span", null, name),
    h("b", null, value === undefined ? "–" : format(value)),
  );
}
