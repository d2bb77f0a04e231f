// A stream that breaks off at any byte and is gone on with exactly: in every client format the client sees the one answer
// that one backend would have given, whatever blanks stand at the seam.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  CLIENT_FORMATS,
  type ClientFormat,
  type Reading,
  readAnswer,
  requestOf,
} from "../../test/support/format-readings.ts";
import { readSent, restOf } from "../../test/support/second-stream.ts";
import { splitSse } from "../../test/support/sse-reader.ts";
import type { GenerationEvent } from "../generation/events.ts";
import type { JsonObject } from "../lib/json.ts";
import { clientProtocol } from "./registry.ts";
import { prefillOf } from "./seam.ts";
import { EventFramer } from "./sse.ts";

const decoder = new TextDecoder();
const encoder = new TextEncoder();

interface Answer {
  thought: string;
  text: string;
}

/** How many code units each token has, over and over. */
type Tokens = readonly number[];

function tokensOf(text: string, sizes: Tokens): string[] {
  const tokens: string[] = [];
  for (let start = 0, count = 0; start < text.length; count++) {
    const size = sizes[count % sizes.length] ?? 1;
    tokens.push(text.slice(start, start + size));
    start += size;
  }
  return tokens;
}

/** The stream of one backend, as a client of the format gets it. */
function streamOf(format: ClientFormat, body: JsonObject, { thought, text }: Answer, sizes: Tokens): Uint8Array {
  const client = clientProtocol(format);
  const request = client.decodeRequest(body);
  const nonce = crypto.randomUUID().replaceAll("-", "");
  const streamEncoder = client.streamEncoder({ model: "m", createdAt: Math.random(), nonce, request });
  const events: GenerationEvent[] = [{ type: "start", id: `backend-${nonce}`, model: "m", createdAt: 1 }];
  const parts = [
    ["reasoning", thought],
    ["text", text],
  ] as const;
  for (const [index, [type, whole]] of parts.filter(([, whole]) => whole !== "").entries()) {
    events.push({ type: "part-start", index, part: { type } });
    for (const token of tokensOf(whole, sizes)) events.push({ type: "delta", index, text: token });
    events.push({ type: "part-end", index });
  }
  events.push({ type: "usage", usage: { input: { total: 100 }, output: { total: 100 } } });
  events.push({ type: "finish", finish: { reason: "stop" } });
  return encoder.encode(events.map((event) => streamEncoder.push(event)).join("") + streamEncoder.end());
}

/** What an engine is told as the beginning of its answer, read from the client's own request. */
function beginningIn(format: ClientFormat, body: JsonObject): Answer {
  if (format === "completions") return { thought: "", text: String(body.prompt).slice("q\n".length) };
  const last = clientProtocol(format).decodeRequest(body).messages.at(-1);
  expect(last?.role).toBe("assistant");
  const textOf = (type: string) =>
    (last?.parts ?? []).map((part) => (part.type === type && "text" in part ? part.text : "")).join("");
  return { thought: textOf("reasoning"), text: textOf("text") };
}

function readBytes(format: ClientFormat, bytes: Uint8Array): Reading {
  return readAnswer(format, {
    ...splitSse(decoder.decode(bytes)),
    bytes: Buffer.from(bytes),
    text: "",
    end: "clean",
    chunks: [],
  });
}

interface Break {
  answer: Answer;
  first: Tokens;
  second: Tokens;
  /** How much of the first stream comes, of 1. */
  share: number;
  /** The second stream comes in pieces of so many events. */
  together: number;
}

/** The whole events of a stream that ends somewhere. */
function wholeEvents(stream: Uint8Array, end: number): Uint8Array {
  return new EventFramer().push(stream.subarray(0, end)) ?? new Uint8Array();
}

function breakIn(format: ClientFormat, { share, ...wish }: Break): Uint8Array | undefined {
  const [, body] = requestOf(format, "m", "q", true);
  const stream = streamOf(format, body, wish.answer, wish.first);
  return joined(format, body, wholeEvents(stream, Math.floor(share * stream.length)), wish);
}

/** The client's bytes; undefined when the first stream was at its end. */
function joined(
  format: ClientFormat,
  body: JsonObject,
  sent: Uint8Array,
  { answer, second, together }: Pick<Break, "answer" | "second" | "together">,
): Uint8Array | undefined {
  const seen = readSent(format, sent);
  if (seen === undefined) return undefined;
  let rest = answer;
  if (prefillOf(seen.text) !== "") {
    const told = beginningIn(format, { ...body, ...seen.askToGoOn(body) });
    expect(answer.text).toStartWith(told.text);
    rest = { thought: "", text: answer.text.slice(told.text.length) };
  }
  const events = splitSse(decoder.decode(streamOf(format, body, rest, second))).events.map(({ raw }) => raw);
  const pieces: string[] = [];
  for (let start = 0; start < events.length; start += together)
    pieces.push(events.slice(start, start + together).join(""));
  return Buffer.concat([sent, encoder.encode(restOf(format, seen, "exact", pieces))]);
}

const ONE_AUTHOR = { error: undefined, finish: expect.any(String) };

/** Those that backends speak, too. */
const BOTH_SIDES = CLIENT_FORMATS.filter((format) => format !== "ollama-api");

describe.each(BOTH_SIDES)("%s", (format) => {
  test("at every byte of a stream", () => {
    const answer = { thought: "", text: " First,  a bläh.\n\n\nThen 🚂🚂 \t and the end.\n" };
    const [, body] = requestOf(format, "m", "q", true);
    const stream = streamOf(format, body, answer, [3, 1, 4]);
    const seams = new Set<number>();
    for (let end = 0; end <= stream.length; end++) {
      const sent = wholeEvents(stream, end);
      if (seams.has(sent.length)) continue; // a client sees whole events only
      seams.add(sent.length);
      const bytes = joined(format, body, sent, { answer, second: [5, 2], together: 1 });
      if (bytes !== undefined) expect(readBytes(format, bytes)).toMatchObject({ ...ONE_AUTHOR, text: answer.text });
    }
    expect(seams.size).toBeGreaterThan(15);
  });

  test("for any text, in any tokens, with or without thoughts", () => {
    const text = fc
      .array(fc.constantFrom("a", "bc", " ", "  ", "\n", "\t", "🚂", "\u00a0", "ü", "a"), {
        minLength: 1,
        maxLength: 30,
      })
      .map((parts) => parts.join(""));
    const sizes = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 4 });
    const thought = format === "completions" ? fc.constant("") : fc.constantFrom("", "Hm, well.");
    const scene = fc.record({
      answer: fc.record({ thought, text }),
      first: sizes,
      second: sizes,
      share: fc.double({ min: 0, max: 1, noNaN: true }),
      together: fc.integer({ min: 1, max: 5 }),
    });
    fc.assert(
      fc.property(scene, (wish) => {
        const bytes = breakIn(format, wish);
        if (bytes === undefined) return;
        expect(readBytes(format, bytes)).toMatchObject({ ...ONE_AUTHOR, text: wish.answer.text });
      }),
      { numRuns: 300 },
    );
  });
});
