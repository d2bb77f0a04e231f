// What became of a feature in one cell of the matrix.

import type { Reading, ReadPart } from "../ask.ts";
import type { CellRun, Exchange, Feature, Finding, Side, Verdict } from "./feature.ts";

const ORDER = ["kept", "changed", "dropped", "absent", "refused", "failed"] as const;

export function judge(feature: Feature, run: CellRun): Verdict {
  const plain = judgeSide(feature, { ...run, exchange: run.plain, streamed: false });
  const streamed = judgeSide(feature, { ...run, exchange: run.streamed, streamed: true });
  if (plain.outcome === "failed") return { ...plain, note: `plain: ${plain.note}` };
  if (streamed.outcome === "failed") return { ...streamed, note: `streamed: ${streamed.note}` };
  if (feature.differs) return worse(plain, streamed);
  if (JSON.stringify(plain) !== JSON.stringify(streamed)) {
    return failed(`plain: ${plain.outcome} ${plain.note}; streamed: ${streamed.outcome} ${streamed.note}`);
  }
  const [one, other] = [summary(run.plain), summary(run.streamed)];
  return one === other ? plain : failed(`the stream says ${other}, the plain answer ${one}`);
}

function failed(note: string): Verdict {
  return { outcome: "failed", note };
}

function worse(one: Verdict, other: Verdict): Verdict {
  return ORDER.indexOf(one.outcome) >= ORDER.indexOf(other.outcome) ? one : other;
}

/** All readings without what is new in every answer. */
function summary({ readings }: Exchange): string {
  return JSON.stringify(
    readings.map(({ parts, finish, usage, model, error }) => ({
      parts: parts.map(withoutId),
      finish,
      usage,
      model,
      error: error?.message,
    })),
  );
}

function withoutId(part: ReadPart): ReadPart {
  return part.type === "call" ? { ...part, id: "" } : part;
}

function judgeSide(feature: Feature, side: Side): Verdict {
  const { exchange } = side;
  const last = exchange.readings.at(-1) as Reading;
  const offence = exchange.readings.flatMap(({ offences }) => offences)[0];
  if (offence !== undefined) return failed(`${offence} (${exchange.requestIds.at(-1)})`);
  if (feature.expectsErrors) return verdictOf(feature.reads?.(last, side) ?? false, feature, exchange);
  if (exchange.refusals.length > 0 && feature.backendMayRefuse && isOwnFormat(side)) {
    return { outcome: "kept", note: "passes untouched; this backend refuses what it does not know" };
  }
  if (exchange.refusals.length > 0) return failed(`the backend refused: ${exchange.refusals[0]}`);
  if (last.status === 400) {
    const { message = "" } = last.error ?? {};
    return (last.error && feature.refusal?.(last.error, side)) ?? { outcome: "refused", note: message };
  }
  if (last.status !== 200 || last.end !== "whole") {
    return failed(`status ${last.status}, end ${last.end}: ${last.error?.type} ${last.error?.message}`);
  }
  const received = exchange.received.at(-1);
  if (received === undefined) return failed("the backend received nothing");
  const seen = feature.sees === undefined ? true : feature.sees(received, side);
  const read = feature.reads === undefined ? true : feature.reads(last, side);
  return joined(verdictOf(seen, feature, exchange), verdictOf(read, feature, exchange));
}

function isOwnFormat({ client, backend }: Side): boolean {
  return client.name === (backend.name === "local" ? "chat" : backend.name);
}

function verdictOf(finding: Finding, feature: Feature, { dropped }: Exchange): Verdict {
  if (finding === true) return { outcome: "kept" };
  if (typeof finding === "string") return { outcome: "changed", note: finding };
  if (finding !== false) return finding;
  const entry = dropped.find((candidate) => feature.drops?.test(candidate.feature));
  if (entry === undefined) return failed(`lost without a word; dropped: ${JSON.stringify(dropped)}`);
  return { outcome: "dropped", note: entry.reason ?? `listed as ${entry.feature}` };
}

function joined(one: Verdict, other: Verdict): Verdict {
  const { outcome } = worse(one, other);
  const notes = [one, other].flatMap(({ outcome, note }) => (note === undefined || outcome === "kept" ? [] : [note]));
  return notes.length === 0 ? { outcome } : { outcome, note: [...new Set(notes)].join("; ") };
}
