// Streams for clients that do not read Server-Sent Events: the same lines wherever the pieces are cut.

import { expect, test } from "bun:test";
import { EventRewriter, type Framing, rewritten } from "./framing.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A JSON value in each line. */
const LINES: Framing = {
  contentType: "application/x-ndjson",
  writer: () => ({ event: (data) => `${data.replaceAll("\n", " ")}\n`, end: () => "" }),
};

/** As Gemini's clients read a stream without alt=sse. */
const ARRAY: Framing = {
  contentType: "application/json",
  writer() {
    let begin = "[";
    return {
      event(data) {
        const text = begin + data;
        begin = ",";
        return text;
      },
      end: () => (begin === "[" ? "[]" : "]"),
    };
  },
};

const EVENTS =
  ': hush\n\ndata: {"a":"é\u{1F600}"}\n\nevent: x\r\ndata: {"b":\r\ndata: 2}\r\n\r\n: keep-alive\n\nid: 7\n\ndata:3\n\n';
const WRITTEN = '{"a":"é\u{1F600}"}\n{"b": 2}\n3\n';

function pushed(framing: Framing, pieces: readonly Uint8Array[]): string {
  const rewriter = new EventRewriter(framing);
  const written = [...pieces.map((piece) => rewriter.push(piece)), rewriter.end()];
  return written.map((bytes) => (bytes === undefined ? "" : decoder.decode(bytes))).join("");
}

test("a line for each event that says something, wherever the stream is cut", () => {
  const bytes = encoder.encode(EVENTS);
  for (let first = 0; first <= bytes.length; first++) {
    for (let second = first; second <= bytes.length; second++) {
      const pieces = [bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second)];
      expect(pushed(LINES, pieces)).toBe(WRITTEN);
    }
  }
  const single = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
  expect(pushed(LINES, single)).toBe(WRITTEN);
});

test("what stands around the events is written once", () => {
  const bytes = encoder.encode('data: {"a":1}\n\ndata: {"b":2}\n\n');
  for (let cut = 0; cut <= bytes.length; cut++) {
    expect(pushed(ARRAY, [bytes.subarray(0, cut), bytes.subarray(cut)])).toBe('[{"a":1},{"b":2}]');
  }
  expect(pushed(ARRAY, [])).toBe("[]");
});

test("a kept stream is rewritten as a whole", () => {
  expect(decoder.decode(rewritten(encoder.encode(EVENTS), LINES))).toBe(WRITTEN);
  expect(decoder.decode(rewritten(encoder.encode('data: {"a":1}\n\n'), ARRAY))).toBe('[{"a":1}]');
});

test("a last event may lack its empty line; half of one is left out", () => {
  expect(pushed(LINES, [encoder.encode('data: {"a":1}\n\ndata: {"b":2}')])).toBe('{"a":1}\n{"b":2}\n');
  expect(pushed(LINES, [encoder.encode('data: {"a":1}\n\ndata: {"b":')])).toBe('{"a":1}\n');
});

test("an event that is not whole is held up to a limit", () => {
  const rewriter = new EventRewriter(LINES, 10);
  expect(rewriter.push(encoder.encode("data: 1"))).toBeUndefined();
  expect(() => rewriter.push(encoder.encode("2345"))).toThrow(RangeError);
});
