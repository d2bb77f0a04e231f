// Small pictures with words beside them: a state shows in its shape and its name as well as in its colour.

import type { BackendStatus } from "../../admin/backend-schemas.ts";
import type { RequestRow } from "../../admin/request-schemas.ts";
import { words } from "./format.ts";
import { h, type View } from "./view.ts";

type ShownOutcome = RequestRow["outcome"];

type MarkTone = "good" | "bad" | "warn" | "quiet" | "busy";

/** In a square of 12. */
const SHAPES: Readonly<Record<MarkTone, string>> = {
  good: "M6 1a5 5 0 1 1 0 10a5 5 0 0 1 0-10z",
  bad: "M6 .6L11.6 11H.4z",
  warn: "M6 .4L11.6 6L6 11.6L.4 6z",
  quiet: "M6 1a5 5 0 1 1 0 10a5 5 0 0 1 0-10zM6 3a3 3 0 1 0 0 6a3 3 0 0 0 0-6z",
  busy: "M6 1a5 5 0 0 1 0 10zM6 1a5 5 0 0 0 0 10V9.4a3.4 3.4 0 0 1 0-6.8z",
};

export function mark(tone: MarkTone): View {
  return h(
    "svg",
    { class: `mark ${tone}`, viewBox: "0 0 12 12", "aria-hidden": "true" },
    h("path", { d: SHAPES[tone], "fill-rule": "evenodd" }),
  );
}

export function marked(tone: MarkTone, text: string, title?: string): View {
  return h("span", { class: `marked ${tone}`, title }, mark(tone), h("span", null, text));
}

const OUTCOMES: Readonly<Record<ShownOutcome, { tone: MarkTone; text: string }>> = {
  running: { tone: "busy", text: "running" },
  succeeded: { tone: "good", text: "ok" },
  failed: { tone: "bad", text: "failed" },
  refused: { tone: "quiet", text: "refused" },
  stream_broken: { tone: "bad", text: "broke off" },
  client_left: { tone: "quiet", text: "client left" },
};

export function outcomeMark(outcome: ShownOutcome, status: number | null): View {
  const { tone, text } = OUTCOMES[outcome];
  return marked(tone, status === null ? text : `${status} ${text}`);
}

/** What an operator wants to know of a backend in one word. */
export function backendState({ enabled, phase, state }: BackendStatus): { tone: MarkTone; text: string } {
  if (phase === "draining") return { tone: "busy", text: "draining" };
  if (!enabled) return { tone: "quiet", text: "disabled" };
  if (state === "ready") return { tone: "good", text: "ready" };
  if (state === "warming_up" || state === "unknown") return { tone: "busy", text: words(state) };
  return { tone: "bad", text: state };
}

/** The same where its circuit has no place of its own: one that is ready is not asked while its circuit is open. */
export function servingState(row: BackendStatus): { tone: MarkTone; text: string } {
  const state = backendState(row);
  if (state.tone !== "good" || row.circuit === "closed") return state;
  return { tone: row.circuit === "open" ? "bad" : "warn", text: `circuit ${words(row.circuit)}` };
}

export function circuitMark(circuit: BackendStatus["circuit"]): View {
  const tone: MarkTone = circuit === "closed" ? "good" : circuit === "open" ? "bad" : "warn";
  return marked(tone, words(circuit));
}

/** Pictures of buttons and of the navigation, drawn with lines in a square of 16. */
const ICONS = {
  overview: "M2 13V9M6 13V3M10 13V7M14 13V5",
  backends: "M2 3h12v4H2zM2 9h12v4H2zM4.5 5h.01M4.5 11h.01",
  models: "M8 2l6 3-6 3-6-3zM2 8l6 3 6-3M2 11l6 3 6-3",
  requests: "M2 4h12M2 8h8M2 12h10",
  errors: "M8 2l6.5 11.5h-13zM8 6.5v3M8 11.5v.01",
  usage: "M8 2a6 6 0 1 0 6 6H8z",
  configuration: "M2 5h6M12 5h2M2 11h2M8 11h6M10 3v4M6 9v4",
  limits: "M2 12a6 6 0 0 1 12 0M8 12l3-4",
  theme: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11z",
  playground: "M2 3h12v8H7l-3 3v-3H2z",
} as const;

export function icon(name: keyof typeof ICONS): View {
  return h("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, h("path", { d: ICONS[name] }));
}
