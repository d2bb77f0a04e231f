// Small pictures with words beside them: a state shows in its shape and its name as well as in its colour.

import type { BackendStatus } from "../../../admin/backend-schemas.ts";
import type { RequestRow } from "../../../admin/request-schemas.ts";
import { words } from "../format.ts";

type ShownOutcome = RequestRow["outcome"];

export type MarkTone = "good" | "bad" | "warn" | "quiet" | "busy";

interface ShownState {
  tone: MarkTone;
  text: string;
}

/** In a square of 12. */
const SHAPES: Readonly<Record<MarkTone, string>> = {
  good: "M6 1a5 5 0 1 1 0 10a5 5 0 0 1 0-10z",
  bad: "M6 .6L11.6 11H.4z",
  warn: "M6 .4L11.6 6L6 11.6L.4 6z",
  quiet: "M6 1a5 5 0 1 1 0 10a5 5 0 0 1 0-10zM6 3a3 3 0 1 0 0 6a3 3 0 0 0 0-6z",
  busy: "M6 1a5 5 0 0 1 0 10zM6 1a5 5 0 0 0 0 10V9.4a3.4 3.4 0 0 1 0-6.8z",
};

export function Mark({ tone }: { tone: MarkTone }) {
  return (
    <svg class={`mark ${tone}`} viewBox="0 0 12 12" aria-hidden="true">
      <path d={SHAPES[tone]} fill-rule="evenodd" />
    </svg>
  );
}

export function Marked({ tone, text, title }: ShownState & { title?: string | undefined }) {
  return (
    <span class={`marked ${tone}`} title={title}>
      <Mark tone={tone} />
      <span>{text}</span>
    </span>
  );
}

const OUTCOMES: Readonly<Record<ShownOutcome, ShownState>> = {
  running: { tone: "busy", text: "running" },
  succeeded: { tone: "good", text: "ok" },
  failed: { tone: "bad", text: "failed" },
  refused: { tone: "quiet", text: "refused" },
  stream_broken: { tone: "bad", text: "interrupted" },
  client_left: { tone: "quiet", text: "client left" },
};

export function OutcomeMark({ outcome, status }: { outcome: ShownOutcome; status: number | null }) {
  const { tone, text } = OUTCOMES[outcome];
  return <Marked tone={tone} text={status === null ? text : `${status} ${text}`} />;
}

/** What an operator wants to know of a backend in one word. */
export function backendState({ enabled, phase, state }: BackendStatus): ShownState {
  if (phase === "draining") return { tone: "busy", text: "draining" };
  if (!enabled) return { tone: "quiet", text: "disabled" };
  if (state === "ready") return { tone: "good", text: "ready" };
  if (state === "warming_up" || state === "unknown") return { tone: "busy", text: words(state) };
  return { tone: "bad", text: state };
}

/** The same where its circuit has no place of its own: one that is ready is not asked while its circuit is open. */
export function servingState(row: BackendStatus): ShownState {
  const state = backendState(row);
  if (state.tone !== "good" || row.circuit === "closed") return state;
  return { tone: row.circuit === "open" ? "bad" : "warn", text: `circuit ${words(row.circuit)}` };
}

export function CircuitMark({ circuit }: Pick<BackendStatus, "circuit">) {
  const tone = circuit === "closed" ? "good" : circuit === "open" ? "bad" : "warn";
  return <Marked tone={tone} text={words(circuit)} />;
}
