// What happened while a chart was drawn: changes of the configuration, circuits that opened, backends that came and went.

import type { ConfigVersion } from "../../admin/config-schemas.ts";
import type { SeriesReport } from "../../admin/metrics-history.ts";

export interface ChartMarker {
  atMs: number;
  tone: "bad" | "good" | "quiet";
  text: string;
  /** The version of the configuration that began here. */
  version?: number;
}

/** More of them are a blur; the latest are kept. */
const MOST = 100;

/** Sorted by time; what falls into one step of the chart is one marker, in the tone of the worst. */
export function markersOf(
  markers: readonly ChartMarker[],
  { from, to }: { from: number; to: number },
  stepMs: number,
): ChartMarker[] {
  const steps = new Map<number, ChartMarker>();
  const within = markers.filter(({ atMs }) => atMs >= from && atMs <= to);
  for (const marker of within.sort((left, right) => left.atMs - right.atMs)) {
    const step = Math.floor((marker.atMs - from) / Math.max(1, stepMs));
    const before = steps.get(step);
    steps.set(step, before === undefined ? marker : joined(before, marker));
  }
  return [...steps.values()].slice(-MOST);
}

const TONES = ["quiet", "good", "bad"] as const;

function joined(first: ChartMarker, second: ChartMarker): ChartMarker {
  const tone = TONES[Math.max(TONES.indexOf(first.tone), TONES.indexOf(second.tone))] as ChartMarker["tone"];
  const version = second.version ?? first.version;
  return { ...first, tone, text: `${first.text}; ${second.text}`, ...(version !== undefined && { version }) };
}

export function configMarkers(versions: readonly ConfigVersion[]): ChartMarker[] {
  return versions.map(({ version, timestamp, user, source, sections_changed }) => ({
    atMs: Date.parse(timestamp),
    tone: "quiet",
    text: `Version ${version}: ${sections_changed.join(", ")} (${user ?? source})`,
    version,
  }));
}

/** Of signalbox_backend_circuit_changes_total by backend and state. */
export function circuitMarkers(report: SeriesReport): ChartMarker[] {
  return report.series.flatMap(({ labels: { backend, to }, values }) =>
    values.flatMap((value, step): ChartMarker[] => {
      if (value === null || value === 0 || (to !== "open" && to !== "closed")) return [];
      // A circuit that opens again and again is marked where that begins.
      if ((values[step - 1] ?? 0) > 0) return [];
      const [tone, verb] = to === "open" ? (["bad", "opened"] as const) : (["good", "closed"] as const);
      return [{ atMs: timeOf(report, step), tone, text: `The circuit of ${backend} ${verb}` }];
    }),
  );
}

/** Of signalbox_backend_up by backend. */
export function healthMarkers(report: SeriesReport): ChartMarker[] {
  return report.series.flatMap(({ labels: { backend }, values }) => {
    const markers: ChartMarker[] = [];
    let before: number | null = null;
    for (const [step, value] of values.entries()) {
      if (value === null) continue;
      if (before !== null && value > 0 !== before > 0) {
        const [tone, verb] = value > 0 ? (["good", "came back"] as const) : (["bad", "went away"] as const);
        markers.push({ atMs: timeOf(report, step), tone, text: `${backend} ${verb}` });
      }
      before = value;
    }
    return markers;
  });
}

/** The end of a step: by then it had happened. */
function timeOf({ from_ms, to_ms, step_ms }: SeriesReport, step: number): number {
  return Math.min(to_ms, from_ms + (step + 1) * step_ms);
}
