// One request as rows on one line of time: where each begins, and how long it is, in shares of the whole.

import type { RequestStep, RequestStory } from "../../admin/request-schemas.ts";
import { duration } from "./format.ts";

type Tone = "good" | "bad" | "wait" | "note";

export interface TimelineRow {
  /** Who or what: a backend, "wait", "cache". */
  label: string;
  kind: string;
  tone: Tone;
  /** From 0 to 1. */
  from: number;
  /** 0 for a moment. */
  length: number;
  /** Share of the row until its first byte; undefined where nothing came. */
  untilFirstByte: number | undefined;
  /** What stands beside the bar. */
  time: string;
  /** Of the request's steps; undefined for what is none. */
  step: number | undefined;
}

export interface Timeline {
  rows: TimelineRow[];
  ticks: { at: number; label: string }[];
}

/** A step that goes on still ends here. */
export function timelineOf(
  story: Pick<RequestStory, "timings" | "steps" | "cache" | "finished" | "outcome">,
): Timeline {
  const { steps, timings, cache } = story;
  const last = steps.reduce((most, step) => Math.max(most, step.at_ms + durationOf(step)), 0);
  const totalMs = Math.max(timings.total_ms, last, 0.1);
  const share = (ms: number) => Math.max(0, Math.min(1, ms / totalMs));
  const moment = (row: Pick<TimelineRow, "label" | "kind" | "tone" | "step">, atMs: number): TimelineRow => ({
    ...row,
    from: share(atMs),
    length: 0,
    untilFirstByte: undefined,
    time: `at ${duration(atMs)}`,
  });

  const rows = steps.map((step, index): TimelineRow => {
    if (step.kind !== "attempt" && step.kind !== "wait") {
      return moment({ label: labelOf(step), kind: step.kind, tone: toneOf(step), step: index }, step.at_ms);
    }
    const lengthMs = step.duration_ms ?? Math.max(0, totalMs - step.at_ms);
    const first = step.kind === "attempt" ? (step.first_byte_ms ?? undefined) : undefined;
    return {
      label: labelOf(step),
      kind: step.kind,
      tone: toneOf(step),
      from: share(step.at_ms),
      length: share(lengthMs),
      untilFirstByte: first === undefined ? undefined : Math.min(1, lengthMs > 0 ? first / lengthMs : 1),
      time: duration(lengthMs),
      step: index,
    };
  });
  if (cache !== null) {
    const tone = cache.decision === "HIT" ? "good" : "note";
    rows.unshift(moment({ label: `cache ${cache.decision.toLowerCase()}`, kind: "cache", tone, step: undefined }, 0));
  }
  if (story.finished) {
    const tone = story.outcome === "succeeded" ? "good" : "bad";
    rows.push(moment({ label: "end", kind: "end", tone, step: undefined }, timings.total_ms));
  }
  return { rows, ticks: ticksOf(totalMs) };
}

function durationOf(step: RequestStep): number {
  const lasts = step.kind === "attempt" || step.kind === "wait" || step.kind === "hook";
  return lasts ? (step.duration_ms ?? 0) : 0;
}

function labelOf(step: RequestStep): string {
  if (step.kind === "attempt") return step.backend;
  if (step.kind === "wait") return `wait: ${step.reason.replaceAll("_", " ")}`;
  if (step.kind === "fallback" || step.kind === "takeover") return `${step.kind} to ${step.to}`;
  if (step.kind === "hook") return `hook ${step.hook}: ${step.verdict}`;
  return step.kind;
}

const BAD_VERDICTS: ReadonlySet<string> = new Set(["refuse", "error", "timeout", "unavailable"]);

function toneOf(step: RequestStep): Tone {
  if (step.kind === "attempt") return step.outcome === "failed" ? "bad" : step.outcome === "running" ? "wait" : "good";
  if (step.kind === "refused") return "bad";
  if (step.kind === "hook") return BAD_VERDICTS.has(step.verdict) ? "bad" : "note";
  return step.kind === "wait" ? "wait" : "note";
}

const TICKS = 4;
const STEPS: readonly number[] = [1, 2, 2.5, 5, 10];

/** Round times from 0 on, so many at most that they can be read. */
export function ticksOf(totalMs: number): Timeline["ticks"] {
  const power = 10 ** Math.floor(Math.log10(totalMs / TICKS));
  const stepMs = (STEPS.find((step) => (step * power * TICKS) / totalMs >= 1) ?? 10) * power;
  const ticks: Timeline["ticks"] = [];
  for (let index = 0; index * stepMs <= totalMs * 1.000_001; index++) {
    ticks.push({ at: (index * stepMs) / totalMs, label: index === 0 ? "0" : tickText(index * stepMs) });
  }
  return ticks;
}

function tickText(ms: number): string {
  if (ms < 1_000) return `${Number(ms.toPrecision(3))} ms`;
  return ms < 60_000 ? `${Number((ms / 1_000).toPrecision(3))} s` : `${Number((ms / 60_000).toPrecision(3))} min`;
}
