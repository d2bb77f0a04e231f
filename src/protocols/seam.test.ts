// The seam of an answer that two backends make: what of the second one's events goes on behind what was sent, and how.

import { describe, expect, test } from "bun:test";
import type { GenerationEvent, PartStart } from "../generation/events.ts";
import { freshInput } from "../generation/usage.ts";
import { DecodeError } from "./protocol.ts";
import { type JoinMode, openingFilter, prefillOf, Seam, type SentText } from "./seam.ts";

const NOTHING: SentText = { text: "", openText: 0, pieces: 0, hidesThoughts: false };
const SENT: SentText = { text: "abc", openText: 3, pieces: 4, hidesThoughts: true };

/** A seam, and the events that come through it. */
function seamBehind(sent: SentText, mode: JoinMode) {
  const passed: GenerationEvent[] = [];
  const seam = new Seam(sent, mode, {
    push(event) {
      passed.push(event);
      return `${event.type};`;
    },
    end: () => "end",
  });
  return { seam, passed };
}

function through(sent: SentText, mode: JoinMode, events: readonly GenerationEvent[]): GenerationEvent[] {
  const { seam, passed } = seamBehind(sent, mode);
  // Every event that comes through is written.
  const written = events.map((event) => seam.push(event)).join("");
  expect(written).toBe(passed.map(({ type }) => `${type};`).join(""));
  return passed;
}

const start = (index: number, part: PartStart = { type: "text" }): GenerationEvent => ({
  type: "part-start",
  index,
  part,
});
const delta = (index: number, text: string): GenerationEvent => ({ type: "delta", index, text });
const end = (index: number): GenerationEvent => ({ type: "part-end", index });
const cite = (index: number, startIndex: number, endIndex: number): GenerationEvent => ({
  type: "citation",
  index,
  citation: { url: "u", startIndex, endIndex },
});
const FINISH: GenerationEvent = { type: "finish", finish: { reason: "stop" } };
const CALL: PartStart = { type: "tool-call", id: "c", name: "f" };

describe("text", () => {
  test("that was sent is left out, the part with it until something new is said", () => {
    expect(through(SENT, "restarted", [start(0), delta(0, "ab"), delta(0, "cd"), end(0)])).toEqual([
      start(0),
      delta(0, "d"),
      end(0),
    ]);
  });

  test("that repeats all that was sent ends the client's open part, unless none is open", () => {
    const events = [start(0), delta(0, "abc"), end(0)];
    expect(through(SENT, "restarted", events)).toEqual([start(0), end(0)]);
    expect(through({ ...SENT, openText: 0 }, "restarted", events)).toEqual([]);
    expect(through(SENT, "restarted", [start(0), delta(0, "ab"), end(0)])).toEqual([]);
  });

  test("behind a call is not compared any more, but behind a search before any text", () => {
    const call = [start(1, CALL), end(1)];
    const behind = [start(0), delta(0, "a"), end(0), ...call, start(2), delta(2, "abc")];
    expect(through(SENT, "restarted", behind)).toEqual([...call, start(2), delta(2, "abc")]);
    expect(through(SENT, "restarted", [...call, start(2), delta(2, "abcd")])).toEqual([
      ...call,
      start(2),
      delta(2, "d"),
    ]);
  });

  test("has no probabilities where it was cut; other members stay", () => {
    const own = { logprobs: [1], future: 1 };
    const events = ["abcd", "e"].map((text): GenerationEvent => ({ type: "delta", index: 0, text, own }));
    expect(through(SENT, "restarted", [start(0), ...events])).toEqual([
      start(0),
      { type: "delta", index: 0, text: "d", own: { future: 1 } },
      { type: "delta", index: 0, text: "e", own },
    ]);
  });
});

describe("citations", () => {
  const places = (events: readonly GenerationEvent[]) =>
    events.flatMap((event) =>
      event.type === "citation" ? [[event.citation.startIndex, event.citation.endIndex]] : [],
    );

  test.each<[title: string, mode: JoinMode, text: string, place: number[]]>([
    ["of a repeated text stay", "restarted", "abcdef", [3, 6]],
    ["of another text stand behind what was sent", "restarted", "abXdef", [8, 11]],
    ["of a text that goes on stand behind it", "continued", "def", [6, 9]],
  ])("%s", (_title, mode, text, place) => {
    expect(places(through(SENT, mode, [start(0), delta(0, text), cite(0, 3, 6)]))).toEqual([place]);
    expect(places(through(SENT, mode, [start(0), cite(0, 3, 6), delta(0, text)]))).toEqual([place]);
  });

  test("of text in a part that is closed are left out", () => {
    const closed = { ...SENT, openText: 0 };
    const events = [start(0), delta(0, "abcdef"), cite(0, 0, 3), cite(0, 2, 6)];
    expect(places(through(closed, "restarted", events))).toEqual([[0, 3]]);
  });
});

describe("thoughts", () => {
  const thinking = [start(0, { type: "reasoning" }), delta(0, "hm"), end(0)];

  test("are shown where nothing was", () => {
    expect(through(NOTHING, "restarted", thinking)).toEqual(thinking);
    expect(through(SENT, "restarted", [...thinking, FINISH])).toEqual([FINISH]);
  });

  test("where the text was to go on end the answer, whatever follows", () => {
    const { seam, passed } = seamBehind(SENT, "exact");
    seam.push(thinking[0] as GenerationEvent);
    for (const event of [thinking[1] as GenerationEvent, start(1), FINISH]) {
      expect(() => seam.push(event)).toThrow(DecodeError);
    }
    expect(passed).toEqual([]);
    expect(seam.push({ type: "failure", failure: { message: "m", status: 502 } })).toBe("failure;");
  });
});

test("what the backend was told of the answer is counted as answered", () => {
  const usage = { input: { total: 100, cacheRead: 98 }, output: { total: 7 } };
  const counted = (sent: SentText, mode: JoinMode) =>
    through(sent, mode, [{ type: "usage", usage }]).map((event) => (event.type === "usage" ? event.usage : undefined));
  expect(counted(SENT, "exact")).toEqual([{ input: { total: 96, cacheRead: 98 }, output: { total: 11 } }]);
  expect(counted({ ...SENT, movable: freshInput }, "exact")).toEqual([
    { input: { total: 98, cacheRead: 98 }, output: { total: 9 } },
  ]);
  expect(counted(SENT, "continued")).toEqual([usage]);
  expect(counted({ ...SENT, text: " " }, "exact")).toEqual([usage]);
});

describe("at the seam", () => {
  const filtered = (sent: string, ...texts: string[]) => {
    const filter = openingFilter(sent, "exact");
    return texts.map((text) => filter.push(text));
  };

  test("blanks are said once", () => {
    expect(filtered("a \n", " ", "\nb")).toEqual(["", "b"]);
    expect(filtered("a \n", " \n \n", "b")).toEqual([" \n", "b"]);
  });

  test("of other blanks than those that were sent, the rest is shown", () => {
    expect(filtered("a\n\n", "\nb", "\n")).toEqual(["b", "\n"]);
    expect(filtered("a ", "b", " c")).toEqual(["b", " c"]);
  });

  test("a character that came in halves is whole again", () => {
    const [high, low] = ["🚂".slice(0, 1), "🚂".slice(1)];
    expect(prefillOf(`a ${high}`)).toBe("a");
    expect(filtered(`a ${high}`, " 🚂", "b").join("")).toBe(`${low}b`);
  });
});
