// However two answers are joined, their reader gets one: its parts in order, each begun once and ended once.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { asEvents } from "../generation/as-events.ts";
import { collect } from "../generation/collect.ts";
import type { ContentPart } from "../generation/content.ts";
import type { GenerationEvent } from "../generation/events.ts";
import type { AnswerContext } from "../protocols/protocol.ts";
import { SeenEvents } from "./neutral-joint.ts";

const text = fc.string({ minLength: 1, maxLength: 8 });
const said = fc.oneof(
  fc.record({ type: fc.constant("text" as const), text }),
  fc.record({ type: fc.constant("reasoning" as const), text }),
);
const call = fc.record({
  type: fc.constant("tool-call" as const),
  id: text,
  name: text,
  arguments: fc.constant("{}"),
});
const answer = (part: fc.Arbitrary<ContentPart>) =>
  fc
    .array(part, { maxLength: 4 })
    .map((parts) => asEvents({ id: "a", model: "m", createdAt: 1, parts, finish: { reason: "stop" } }));

/** What a reader gets when the first answer breaks off behind some events. */
function joined(first: readonly GenerationEvent[], second: readonly GenerationEvent[]): GenerationEvent[] {
  const seen = new SeenEvents();
  const read: GenerationEvent[] = [];
  for (const event of first) {
    seen.push(event);
    read.push(event);
  }
  const sent = seen.joint((event) => read.push(event)).readSent([]);
  const encoder = sent?.encoder?.({} as AnswerContext);
  for (const event of second) {
    if (encoder === undefined) read.push(event);
    else encoder.push(event);
  }
  return read;
}

test("two answers are one", () => {
  fc.assert(
    fc.property(answer(said), fc.nat(20), answer(fc.oneof(said, call)), (first, at, second) => {
      const cut = first.slice(0, Math.min(at, first.length - 1));
      const events = joined(cut, second);
      const starts = events.filter(({ type }) => type === "part-start") as { index: number }[];
      const ends = events.filter(({ type }) => type === "part-end") as { index: number }[];
      expect(starts.map(({ index }) => index)).toEqual(starts.map((_, index) => index));
      expect(ends.map(({ index }) => index).toSorted((a, b) => a - b)).toEqual(starts.map(({ index }) => index));
      expect(events.filter(({ type }) => type === "start")).toHaveLength(1);
      expect(events.at(-1)?.type).toBe("finish");
      const words = (all: readonly GenerationEvent[]) =>
        all.map((event) => (event.type === "delta" ? event.text : "")).join("");
      expect(words(events)).toBe(words(cut) + words(second));
      expect(collect(events)).toBeDefined();
    }),
  );
});

test("nothing is joined to a call, or to an answer that has ended", () => {
  const start: GenerationEvent = { type: "start", id: "a", model: "m", createdAt: 1 };
  const others: GenerationEvent[] = [
    { type: "part-start", index: 0, part: { type: "tool-call", id: "c", name: "f" } },
    { type: "part-start", index: 0, part: { type: "refusal" } },
    { type: "finish", finish: { reason: "stop" } },
  ];
  for (const other of others) {
    const seen = new SeenEvents();
    seen.push(start);
    seen.push(other);
    expect(seen.joint(() => {}).readSent([])).toBeUndefined();
  }
});
