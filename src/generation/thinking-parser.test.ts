// Thoughts inside text: every pattern, every place where a stream may be cut, and the same answer with and without one.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { transformed } from "./answer-transform.ts";
import { asEvents } from "./as-events.ts";
import { collect } from "./collect.ts";
import type { ContentPart } from "./content.ts";
import type { GenerationEvent } from "./events.ts";
import type { GenerationResult } from "./result.ts";
import { hasThinking, splitThinking, type ThinkingFormat, ThinkingSplitter } from "./thinking-parser.ts";

function format(changes: Partial<ThinkingFormat> = {}): ThinkingFormat {
  return {
    pattern: "standard",
    start_marker: "<think>",
    end_marker: "</think>",
    assume_reasoning_first: false,
    ...changes,
  };
}

const STANDARD = format();
const UNTERMINATED = format({ pattern: "unterminated_start" });

function answer(parts: ContentPart[]): GenerationResult {
  return { id: "a", model: "m", createdAt: 1, parts, finish: { reason: "stop" } };
}

/** As a whole answer is split. */
function whole(result: GenerationResult, thinking: ThinkingFormat): GenerationResult {
  return collect(transformed(asEvents(result), splitThinking(thinking))) as GenerationResult;
}

/** [reasoning, text] of a plain answer. */
function split(text: string, thinking: ThinkingFormat): [string, string] {
  const { parts } = whole(answer([{ type: "text", text }]), thinking);
  const joined = (type: string) =>
    parts.map((part) => (part.type === type && "text" in part ? part.text : "")).join("");
  return [joined("reasoning"), joined("text")];
}

describe("patterns", () => {
  const cases: [name: string, thinking: ThinkingFormat, text: string, reasoning: string, answer: string][] = [
    ["standard", STANDARD, "<think>why</think>so", "why", "so"],
    ["white space before the start marker", STANDARD, "\n <think>why</think>so", "why", "so"],
    ["white space is kept behind the markers", STANDARD, "<think>\nwhy\n</think>\n\nso", "\nwhy\n", "\n\nso"],
    ["no thoughts", STANDARD, "so", "", "so"],
    ["a start marker inside the answer is text", STANDARD, "write <think>x</think>", "", "write <think>x</think>"],
    ["markers behind the thoughts are text", STANDARD, "<think>a</think>b<think>c</think>", "a", "b<think>c</think>"],
    ["empty thoughts are none", STANDARD, "<think>\n\n</think>so", "", "so"],
    ["thoughts that never end", STANDARD, "<think>why", "why", ""],
    ["half an end marker at the end", STANDARD, "<think>why</thi", "why</thi", ""],
    ["half a start marker at the end", STANDARD, "<thi", "", "<thi"],
    ["almost an end marker", STANDARD, "<think>a</</think>b", "a</", "b"],
    ["unterminated start", UNTERMINATED, "why</think>so", "why", "so"],
    ["unterminated start with a start marker after all", UNTERMINATED, "<think>why</think>so", "why", "so"],
    ["unterminated start without an end", UNTERMINATED, "why", "why", ""],
    ["reasoning first", format({ assume_reasoning_first: true }), "why</think>so", "why", "so"],
    [
      "reasoning first without a pattern",
      format({ pattern: "none", assume_reasoning_first: true }),
      "a</think>b",
      "a",
      "b",
    ],
    ["other markers", format({ start_marker: "[T]", end_marker: "[/T]\n" }), "[T]a[/T]\nb", "a", "b"],
    ["none", format({ pattern: "none" }), "<think>a</think>b", "", "<think>a</think>b"],
    ["an empty text", STANDARD, "", "", ""],
  ];
  for (const [name, thinking, text, reasoning, rest] of cases) {
    test(name, () => expect(split(text, thinking)).toEqual([reasoning, rest]));
  }

  test("hasThinking", () => {
    expect(hasThinking(undefined)).toBe(false);
    expect(hasThinking(format({ pattern: "none" }))).toBe(false);
    expect(hasThinking(STANDARD)).toBe(true);
  });
});

describe("a stream", () => {
  test("gives out at once what cannot be a marker", () => {
    const splitter = new ThinkingSplitter(STANDARD, false);
    expect(splitter.push("<th")).toEqual([]);
    expect(splitter.push("ink>ab</")).toEqual([{ type: "reasoning", text: "ab" }]);
    expect(splitter.push("c")).toEqual([{ type: "reasoning", text: "</c" }]);
    expect(splitter.push("</think>so<th")).toEqual([{ type: "text", text: "so<th" }]);
    expect(splitter.end()).toEqual([]);
  });

  test("a text without thoughts is held back only while it may begin with the marker", () => {
    const splitter = new ThinkingSplitter(STANDARD, false);
    expect(splitter.push("<t")).toEqual([]);
    expect(splitter.push("able>")).toEqual([{ type: "text", text: "<table>" }]);
  });

  test("a flood of white space is not held back for ever", () => {
    const splitter = new ThinkingSplitter(STANDARD, false);
    const pieces = Array.from({ length: 300 }, () => splitter.push(" ")).flat();
    expect(pieces.map((piece) => piece.text).join("")).toBe(" ".repeat(300));
  });

  test("parts are renumbered, and what follows keeps its order", () => {
    const stream = splitThinking(STANDARD)();
    const events: GenerationEvent[] = [
      { type: "part-start", index: 0, part: { type: "text" } },
      { type: "delta", index: 0, text: "<think>why</think>so" },
      { type: "part-end", index: 0 },
      { type: "part-start", index: 1, part: { type: "tool-call", id: "call_1", name: "f" } },
      { type: "delta", index: 1, text: "{}" },
      { type: "part-end", index: 1 },
    ];
    expect(events.flatMap((event) => stream.push(event))).toEqual([
      { type: "part-start", index: 0, part: { type: "reasoning" } },
      { type: "delta", index: 0, text: "why" },
      { type: "part-end", index: 0 },
      { type: "part-start", index: 1, part: { type: "text" } },
      { type: "delta", index: 1, text: "so" },
      { type: "part-end", index: 1 },
      { type: "part-start", index: 2, part: { type: "tool-call", id: "call_1", name: "f" } },
      { type: "delta", index: 2, text: "{}" },
      { type: "part-end", index: 2 },
    ]);
  });

  test("a stream that breaks off gives out what was held back", () => {
    const stream = splitThinking(STANDARD)();
    stream.push({ type: "part-start", index: 0, part: { type: "text" } });
    expect(stream.push({ type: "delta", index: 0, text: "<thi" })).toEqual([]);
    expect(stream.end()).toEqual([
      { type: "part-start", index: 0, part: { type: "text" } },
      { type: "delta", index: 0, text: "<thi" },
    ]);
  });

  test("where the backend gives reasoning, text is left alone", () => {
    const parts: ContentPart[] = [
      { type: "reasoning", text: "why" },
      { type: "text", text: "the answer" },
    ];
    expect(whole(answer(parts), UNTERMINATED).parts).toEqual(parts);
    expect(streamed(answer(parts), UNTERMINATED)).toEqual(answer(parts));
  });

  test("behind a tool call only a start marker begins thoughts", () => {
    const call: ContentPart = { type: "tool-call", id: "call_1", name: "f", arguments: "{}" };
    const parts: ContentPart[] = [{ type: "text", text: "a</think>" }, call, { type: "text", text: "b" }];
    expect(whole(answer(parts), UNTERMINATED).parts).toEqual([
      { type: "reasoning", text: "a" },
      call,
      { type: "text", text: "b" },
    ]);
  });

  test("citations count in the text that is left", () => {
    const result = answer([
      {
        type: "text",
        text: "<think>a</think>fact",
        citations: [
          { url: "u", startIndex: 16, endIndex: 20 },
          { url: "v", startIndex: 1, endIndex: 3 },
        ],
      },
    ]);
    expect(whole(result, STANDARD).parts[1]).toEqual({
      type: "text",
      text: "fact",
      citations: [{ url: "u", startIndex: 0, endIndex: 4 }, { url: "v" }],
    });
  });
});

/** The answer of the stream that says the same. */
function streamed(result: GenerationResult, thinking: ThinkingFormat, cuts?: readonly number[]): unknown {
  const stream = splitThinking(thinking)();
  const events = fragments(asEvents(result), cuts ?? []).flatMap((event) => stream.push(event));
  return collect([...events, ...stream.end()]);
}

/** The deltas cut into pieces of the given lengths. */
function fragments(events: readonly GenerationEvent[], cuts: readonly number[]): GenerationEvent[] {
  let next = 0;
  return events.flatMap((event) => {
    if (event.type !== "delta" || cuts.length === 0) return [event];
    const pieces: GenerationEvent[] = [];
    for (let rest = event.text; rest !== ""; ) {
      const length = cuts[next++ % cuts.length] as number;
      pieces.push({ ...event, text: rest.slice(0, length) });
      rest = rest.slice(length);
    }
    return pieces;
  });
}

describe("a stream and a whole answer", () => {
  const word = fc.constantFrom("<think>", "</think>", "<th", "ink>", "</", "think", ">", "<", " ", "\n", "a", "bc");
  const someText = fc.array(word, { maxLength: 12 }).map((words) => words.join(""));
  const citations = fc.array(fc.record({ startIndex: fc.nat(30), endIndex: fc.nat(30) }), {
    minLength: 1,
    maxLength: 2,
  });
  const part: fc.Arbitrary<ContentPart> = fc.oneof(
    { weight: 4, arbitrary: fc.record({ type: fc.constant("text" as const), text: someText }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant("text" as const), text: someText, citations }) },
    {
      weight: 1,
      arbitrary: fc.record({ type: fc.constant("text" as const), text: someText, signature: fc.constant("sig") }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        type: fc.constant("tool-call" as const),
        id: fc.constant("call_1"),
        name: fc.constant("f"),
        arguments: someText,
      }),
    },
    { weight: 1, arbitrary: fc.record({ type: fc.constant("reasoning" as const), text: someText }) },
  );
  const thinking = fc.record({
    pattern: fc.constantFrom<ThinkingFormat["pattern"]>("none", "standard", "unterminated_start"),
    start_marker: fc.constant("<think>"),
    end_marker: fc.constantFrom("</think>", "</think>\n"),
    assume_reasoning_first: fc.boolean(),
  });
  const cuts = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 8 });

  test("are split in the same way, wherever the stream is cut", () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 4 }), thinking, cuts, (parts, thinkingFormat, lengths) => {
        const result = answer(parts);
        expect(streamed(result, thinkingFormat, lengths)).toEqual(whole(result, thinkingFormat));
      }),
      { numRuns: 1_000 },
    );
  });

  test("events keep their guarantees: indexes without gaps, one text at a time, no empty delta", () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 4 }), thinking, cuts, (parts, thinkingFormat, lengths) => {
        const stream = splitThinking(thinkingFormat)();
        const events = fragments(asEvents(answer(parts)), lengths).flatMap((event) => stream.push(event));
        const open = new Set<number>();
        let next = 0;
        for (const event of events) {
          if (event.type === "part-start") {
            expect(event.index).toBe(next++);
            expect(open.size).toBe(0);
            open.add(event.index);
          } else if (event.type === "delta") {
            expect(open.has(event.index)).toBe(true);
            expect(event.text).not.toBe("");
          } else if (event.type === "part-end") expect(open.delete(event.index)).toBe(true);
        }
        expect(open.size).toBe(0);
      }),
    );
  });
});
