// Event framing, checked against a parser written straight from the standard.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { EventFramer, eventData, MAX_EVENT_BYTES, readEvents } from "./sse.ts";

const encoder = new TextEncoder();

/** The standard's own description, a character at a time: the data of each event, and the offsets at which events end. */
function referenceEvents(text: string): { data: string[]; ends: number[] } {
  const data: string[] = [];
  const ends: number[] = [];
  let lines: string[] = [];
  let line = "";
  for (let index = 0; index < text.length; index++) {
    const symbol = text[index] as string;
    if (symbol !== "\r" && symbol !== "\n") {
      line += symbol;
      continue;
    }
    if (symbol === "\r" && text[index + 1] === "\n") index++;
    if (line === "") {
      if (lines.length > 0) data.push(lines.join("\n"));
      lines = [];
      ends.push(index + 1);
    } else {
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      if (field === "data") lines.push(colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, ""));
    }
    line = "";
  }
  return { data, ends };
}

/** Pushes the pieces; the bytes that came out, each time something did, and what was left. */
function frame(pieces: readonly Uint8Array[]): { outputs: Buffer[]; rest: Buffer } {
  const framer = new EventFramer();
  const outputs: Buffer[] = [];
  for (const piece of pieces) {
    const whole = framer.push(piece);
    if (whole !== undefined) outputs.push(Buffer.from(whole));
  }
  return { outputs, rest: Buffer.from(framer.rest()) };
}

/** Cuts bytes at the given places, which may be in any order. */
function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const sorted = [0, ...places.map((place) => place % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return sorted.slice(1).map((end, index) => bytes.slice(sorted[index], end));
}

const LINE_ENDS: readonly [name: string, end: string][] = [
  ["LF", "\n"],
  ["CRLF", "\r\n"],
  ["CR", "\r"],
];

function streamWith(end: string): string {
  const lines = [
    'data: {"a":1}',
    "",
    "event: ping",
    'data: {"text":"Grüße 🚂"}',
    "",
    ": comment",
    "",
    "data: [DONE]",
    "",
  ];
  return lines.map((line) => line + end).join("");
}

describe("framing", () => {
  for (const [name, end] of LINE_ENDS) {
    test(`${name}: every cut into two gives the same bytes, whole events only, and holds no complete event back`, () => {
      const text = streamWith(end);
      const bytes = encoder.encode(text);
      // Ends of events as byte offsets: a CR alone ends an event although an LF may follow it.
      const ends = new Set(referenceEvents(text).ends.map((offset) => encoder.encode(text.slice(0, offset)).length));
      for (let place = 0; place <= bytes.length; place++) {
        const { outputs, rest } = frame([bytes.slice(0, place), bytes.slice(place)]);
        expect(Buffer.concat([...outputs, rest]).equals(bytes)).toBe(true);
        expect(rest.length).toBe(0);
        const firstPart = frame([bytes.slice(0, place)]);
        const released = Buffer.concat(firstPart.outputs).length;
        const completed = Math.max(0, ...[...ends].filter((offset) => offset <= place));
        expect({ place, released }).toEqual({ place, released: completed });
      }
    });

    test(`${name}: a byte at a time gives one output per event`, () => {
      const text = streamWith(end);
      const bytes = encoder.encode(text);
      const { outputs, rest } = frame(Array.from(bytes, (_, index) => bytes.slice(index, index + 1)));
      expect(outputs.map((output) => eventData(output.toString()))).toEqual([
        ['{"a":1}'],
        ['{"text":"Grüße 🚂"}'],
        [],
        ["[DONE]"],
      ]);
      expect(rest.length).toBe(0);
    });
  }

  test("property: any text with any line ends, cut anywhere, comes out whole and in order", () => {
    const line = fc.constantFrom("data: x", "data:", "data", ": c", "event: e", "data: ü", "data:  y", "id: 1", "");
    const text = fc
      .array(fc.tuple(line, fc.constantFrom("\n", "\r\n", "\r")), { maxLength: 30 })
      .map((lines) => lines.map((parts) => parts.join("")).join(""));
    fc.assert(
      fc.property(text, fc.array(fc.nat({ max: 400 }), { maxLength: 12 }), (stream, places) => {
        const bytes = encoder.encode(stream);
        const { outputs, rest } = frame(cut(bytes, places));
        expect(Buffer.concat([...outputs, rest]).equals(bytes)).toBe(true);
        // Never a part of an event: each output ends where the standard ends an event, or inside its CRLF.
        const ends = new Set(
          referenceEvents(stream).ends.map((offset) => encoder.encode(stream.slice(0, offset)).length),
        );
        let released = 0;
        for (const output of outputs) {
          released += output.length;
          expect(ends.has(released) || (bytes[released - 1] === 13 && ends.has(released + 1))).toBe(true);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test("property: events of one kind of line end are released as soon as their last byte is there", () => {
    const block = fc.constantFrom("data: x", ": c", "event: e|data: ü", "data: a|data: b");
    fc.assert(
      fc.property(
        fc.array(block, { minLength: 1, maxLength: 8 }),
        fc.constantFrom("\n", "\r\n", "\r"),
        fc.array(fc.nat({ max: 200 }), { maxLength: 8 }),
        (blocks, end, places) => {
          const stream = blocks
            .map(
              (lines) =>
                lines
                  .split("|")
                  .map((one) => one + end)
                  .join("") + end,
            )
            .join("");
          const pieces = cut(encoder.encode(stream), places);
          const ends = referenceEvents(stream).ends.map((offset) => encoder.encode(stream.slice(0, offset)).length);
          const framer = new EventFramer();
          let pushed = 0;
          let released = 0;
          for (const piece of pieces) {
            pushed += piece.length;
            released += framer.push(piece)?.length ?? 0;
            expect(released).toBe(Math.max(0, ...ends.filter((offset) => offset <= pushed)));
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  test("what comes after the last event is left as the rest, once", () => {
    const framer = new EventFramer();
    expect(framer.push(encoder.encode("data: 1\n\ndata: 2"))).toEqual(encoder.encode("data: 1\n\n"));
    expect(Buffer.from(framer.rest()).toString()).toBe("data: 2");
    expect(framer.rest().length).toBe(0);
    expect(framer.push(encoder.encode("data: 3\n\n"))).toEqual(encoder.encode("data: 3\n\n"));
  });

  test("whole events in one piece are handed on without a copy", () => {
    const piece = encoder.encode("data: 1\n\ndata: 2\n\n");
    expect(new EventFramer().push(piece)).toBe(piece);
  });

  test("an event may grow to the limit and not a byte beyond", () => {
    const framer = new EventFramer();
    const half = new Uint8Array(MAX_EVENT_BYTES / 2).fill(120);
    expect(framer.push(half)).toBeUndefined();
    expect(framer.push(half)).toBeUndefined();
    expect(() => framer.push(Uint8Array.of(120))).toThrow(RangeError);
  });

  test("the limit is one of a single event: many events may be longer together", () => {
    const framer = new EventFramer();
    const event = Buffer.concat([new Uint8Array(MAX_EVENT_BYTES / 4).fill(120), encoder.encode("\n\nx")]);
    for (let count = 0; count < 8; count++) expect(framer.push(event)).toBeDefined();
  });
});

describe("events with names", () => {
  test("name and data of each event, whatever the order of its lines and their ends", () => {
    const text =
      'event: one\ndata: {"a":1}\n\n: comment\n\ndata:x\r\nevent:two\r\ndata: y\r\n\r\nevent: empty\n\ndata: z';
    expect(readEvents(text)).toEqual([
      { name: "one", data: '{"a":1}' },
      { name: "two", data: "x\ny" },
      { name: undefined, data: "z" },
    ]);
  });
});

describe("the data of events", () => {
  const cases: [title: string, text: string, data: string[]][] = [
    ["one event", "data: a\n\n", ["a"]],
    ["without the space", "data:a\n\n", ["a"]],
    ["only one space is taken away", "data:  a\n\n", [" a"]],
    ["several lines are joined", "data: a\ndata: b\n\n", ["a\nb"]],
    ["a line that is only the field's name is an empty line", "data\ndata: b\n\n", ["\nb"]],
    ["other fields are left out", "event: e\nid: 1\nretry: 5\ndata: a\n\n", ["a"]],
    ["comments are no events", ": ping\n\ndata: a\n\n: pong\n\n", ["a"]],
    ["empty data is an event", "data:\n\n", [""]],
    ["a field that only begins like data is another one", "database: x\n\ndata: a\n\n", ["a"]],
    ["CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]],
    ["CR", "data: a\r\rdata: b\r\r", ["a", "b"]],
    ["nothing", "", []],
  ];
  test.each(cases)("%s", (_title, text, data) => {
    expect(eventData(text)).toEqual(data);
  });

  test("property: the same as the standard says, for whole events of one kind of line end", () => {
    const block = fc.array(fc.constantFrom("data: x", "data:", "data", ": c", "event: e", "data:  y", "dat: z"), {
      minLength: 1,
      maxLength: 4,
    });
    fc.assert(
      fc.property(fc.array(block, { maxLength: 6 }), fc.constantFrom("\n", "\r\n", "\r"), (blocks, end) => {
        const text = blocks.map((lines) => lines.map((one) => one + end).join("") + end).join("");
        expect(eventData(text)).toEqual(referenceEvents(text).data);
      }),
      { numRuns: 500 },
    );
  });
});
