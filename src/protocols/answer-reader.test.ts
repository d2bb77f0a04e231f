// Both readers of answers: however a stream is cut into pieces, the client gets the same bytes and the same verdict.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { chatEvents, sseEvent } from "../../test/support/openai-answers.ts";
import type { Failure } from "../generation/result.ts";
import type { AnswerReader, Verdict } from "./answer-reader.ts";
import { PassReader } from "./pass-reader.ts";
import { backendProtocol, clientProtocol } from "./registry.ts";
import { EventFramer } from "./sse.ts";
import { createTranslation } from "./translate.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const decoder = new TextDecoder();
const event = (value: { type: string; [key: string]: unknown }) =>
  `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;

interface Read {
  text: string;
  verdict: Verdict;
  failure: Failure | undefined;
}

/** What a reader makes of a stream that comes in pieces and ends in order. */
function read(reader: AnswerReader, pieces: readonly Uint8Array[]): Read {
  const framer = new EventFramer();
  const given: Uint8Array[] = [];
  const give = (events: Uint8Array | undefined) => events !== undefined && given.push(events);
  for (const piece of pieces) {
    const whole = framer.push(piece);
    if (whole !== undefined) give(reader.push(whole));
    if (reader.failure !== undefined) break;
  }
  if (reader.failure === undefined) give(reader.end(framer.rest()));
  return { text: decoder.decode(Buffer.concat(given)), verdict: reader.verdict, failure: reader.failure };
}

function cut(whole: Uint8Array, at: readonly number[]): Uint8Array[] {
  const places = [0, ...at.map((place) => place % whole.length).toSorted((one, other) => one - other), whole.length];
  return places.slice(1).map((place, index) => whole.subarray(places[index], place));
}

function passing(more: Partial<{ hidesUsage: boolean; choices: number; holds: boolean }> = {}): PassReader {
  const reader = new PassReader("chat", { choices: 1, ...more });
  if (more.holds) reader.holdErrors();
  return reader;
}

function translating(): AnswerReader {
  const request = clientProtocol("messages").decodeRequest({
    model: "m",
    max_tokens: 9,
    messages: [{ role: "user", content: "Hi" }],
  });
  return createTranslation({
    client: clientProtocol("messages"),
    backend: backendProtocol("chat"),
    context: { model: "m", createdAt: 1, nonce: "0".repeat(32), request },
    transforms: [],
  }).stream();
}

const USAGE = sseEvent({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 2 } });
const TOLD = 'data: {"error":{"message":"cuda out of memory","code":429}}\n\n';
const DONE = "data: [DONE]\n\n";
const WHOLE = chatEvents(["Grüße 🚂 ] }", "a\nb"]);
const UNMARKED = WHOLE.slice(0, -1);

const STREAMS: readonly (readonly [title: string, events: readonly string[], verdict: Verdict])[] = [
  ["complete", WHOLE, "done"],
  ["complete, with counts", [...UNMARKED, USAGE, DONE], "done"],
  ["without its marker", UNMARKED, "finished"],
  ["without its marker, with counts", [...UNMARKED, USAGE], "finished"],
  ["unfinished", WHOLE.slice(0, 2), "incomplete"],
  ["with an error", [...WHOLE.slice(0, 2), TOLD], "reported"],
];

describe("a stream that passes", () => {
  test.each(STREAMS)("%s: the same, however it is cut", (_title, events, verdict) => {
    const text = events.join("");
    const sent = verdict === "finished" ? text + DONE : text;
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 12 }), (at) => {
        const pieces = cut(bytes(text), at);
        expect(read(passing(), pieces)).toEqual({ text: sent, verdict, failure: undefined });
        const { text: hidden } = read(passing({ hidesUsage: true }), pieces);
        expect(hidden).toBe(sent.replace(USAGE, ""));
      }),
    );
  });

  test("is counted", () => {
    const reader = passing();
    read(reader, [bytes(UNMARKED.join("")), bytes(USAGE), bytes(DONE)]);
    expect(reader.usage).toMatchObject({ input: { total: 9 }, output: { total: 2 } });
    expect(passing().usage).toBeUndefined();
  });

  test("is over with its marker, not before", () => {
    const reader = passing();
    const over = WHOLE.map((each) => {
      reader.push(bytes(each));
      return reader.isOver;
    });
    expect(over).toEqual([...UNMARKED.map(() => false), true]);
  });

  test("its last event may lack the empty line, and passes only with a complete answer", () => {
    const stump = (events: readonly string[]) => bytes(events.join("").slice(0, -2));
    expect(read(passing(), [stump(WHOLE)]).text).toBe(WHOLE.join(""));
    expect(read(passing(), [stump(UNMARKED)]).text).toBe(WHOLE.join(""));
    expect(read(passing(), [stump(WHOLE.slice(0, 2))])).toMatchObject({ text: WHOLE[0], verdict: "incomplete" });
  });

  test("what a broken one had of an event is not looked at", () => {
    const reader = passing();
    reader.push(bytes(UNMARKED.join("")));
    expect([reader.end(), reader.verdict]).toEqual([bytes(DONE), "finished"]);
  });

  test("an error that is held back is told by its status, wherever the stream is cut", () => {
    const before = WHOLE.slice(0, 2).join("");
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 12 }), fc.boolean(), (at, isWhole) => {
        const reader = passing({ holds: true });
        const told = isWhole ? TOLD : TOLD.slice(0, -2);
        const { text, verdict, failure } = read(reader, cut(bytes(before + told), at));
        expect({ text, verdict, failure: failure?.status }).toEqual({
          text: before,
          verdict: "incomplete",
          failure: 429,
        });
        expect(decoder.decode(reader.heldError)).toBe(TOLD);
      }),
    );
    const reader = passing({ holds: true });
    reader.push(bytes('data: {"error":{"message":"x"}}\n\n'));
    expect(reader.failure?.status).toBe(502);
  });

  test("that only speaks of errors passes", () => {
    const events = chatEvents(['say {"error":{}}']);
    expect(read(passing({ holds: true }), [bytes(events.join(""))])).toMatchObject({
      text: events.join(""),
      verdict: "done",
    });
  });

  test("tells the ids of a Responses answer, and nothing the front door would have to be told", () => {
    const reader = new PassReader("responses", { choices: 1 });
    reader.push(bytes(event({ type: "response.completed", response: { output: [{ type: "message", id: "msg_1" }] } })));
    expect([reader.itemIds, reader.isOver, reader.fail()]).toEqual([["msg_1"], true, undefined]);
  });
});

describe("a stream in translation", () => {
  test.each(STREAMS.slice(0, 4))("%s: the same, however it is cut", (_title, events) => {
    const text = events.join("");
    const whole = read(translating(), [bytes(text)]);
    expect(whole.text).toEndWith(event({ type: "message_stop" }));
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 12 }), (at) => {
        expect(read(translating(), cut(bytes(text), at))).toEqual({ ...whole, verdict: "done" });
      }),
    );
  });

  test("ends with the backend's marker, not with the connection", () => {
    const reader = translating();
    const sent = decoder.decode(reader.push(bytes(WHOLE.join(""))));
    expect([sent.endsWith(event({ type: "message_stop" })), reader.isOver, reader.end()]).toEqual([
      true,
      true,
      undefined,
    ]);
  });

  test("unfinished: nothing says that it were complete", () => {
    const { text, verdict } = read(translating(), [bytes(WHOLE.slice(0, 2).join(""))]);
    expect([text.includes("message_stop"), verdict]).toEqual([false, "incomplete"]);
  });

  test("the backend's error ends it, in the client's words when it is told", () => {
    const reader = translating();
    const { failure, verdict } = read(reader, [bytes(`${WHOLE[0]}${TOLD}${WHOLE[1]}`)]);
    expect([failure?.status, verdict, reader.heldError]).toEqual([429, "incomplete", undefined]);
    expect(decoder.decode(reader.fail(failure as Failure))).toStartWith("event: error\n");
  });
});
