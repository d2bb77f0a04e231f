// Joining two streams: which answers can be continued at all, and that the client sees one answer.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { chatEvents, sseEvent } from "../../../test/support/openai-answers.ts";
import { eventData } from "../sse.ts";
import { type JoinMode, splitAtErrorMember } from "../stream-join.ts";
import { readTranscript, Splicer, type Transcript } from "./join.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const bytes = (text: string) => encoder.encode(text);

interface Choice {
  index: number;
  delta: Record<string, unknown>;
  finish_reason: string | null;
}

function chunk(delta: unknown, more: Record<string, unknown> = {}, finish_reason: string | null = null): string {
  return sseEvent({ id: "first", created: 1, model: "one", choices: [{ index: 0, delta, finish_reason }], ...more });
}

const transcriptOf = (...events: string[]) => readTranscript(events.map(bytes));

const SENT: Transcript = { id: "first", created: 1, model: "one", text: "", reasoning: "", pieces: 0, hasRole: true };

/** The events that come out of a splicer, one push per piece. */
function spliced(transcript: Transcript, mode: JoinMode, pieces: readonly string[]): string {
  const splicer = new Splicer(transcript, mode);
  return pieces.map((piece) => decoder.decode(splicer.push(bytes(piece)))).join("");
}

function choicesOf(text: string): Choice[] {
  return eventData(text)
    .filter((data) => data !== "[DONE]")
    .flatMap((data) => (JSON.parse(data) as { choices: Choice[] }).choices);
}

const textOf = (events: string) =>
  choicesOf(events)
    .map((choice) => choice.delta.content ?? "")
    .join("");

describe("what a client has seen", () => {
  test("is the text of all events, with the first id, time and model", () => {
    const [role, ...rest] = chatEvents(["Grüße", " 🚂"], { finishReason: null, done: false });
    expect(readTranscript([bytes(role as string), bytes(rest.join(""))])).toEqual({
      id: "chatcmpl-1",
      created: 1_763_700_000,
      model: "m",
      text: "Grüße 🚂",
      reasoning: "",
      pieces: 2,
      hasRole: true,
    });
  });

  test("may hold comments, CRLF, usage and fields that nobody knows", () => {
    const usage = sseEvent({ id: "x", choices: [], usage: { total_tokens: 1 } });
    const text = `: ping\n\nevent: x\ndata: {"id":"first","choices":[{"delta":{"content":"a","future":1}}]}\n\n`;
    expect(transcriptOf(text.replaceAll("\n", "\r\n"), usage)).toMatchObject({ id: "first", text: "a" });
  });

  test.each([["reasoning"], ["reasoning_content"]])("knows of %s", (field) => {
    expect(transcriptOf(chunk({ [field]: "hm" }))).toMatchObject({ text: "", reasoning: "hm" });
    expect(transcriptOf(chunk({ content: "a", [field]: "" }))).toMatchObject({ text: "a", reasoning: "" });
  });

  test.each([
    ["a tool call", chunk({ tool_calls: [{ index: 0, function: { name: "f", arguments: '{"a' } }] })],
    ["a function call", chunk({ function_call: { name: "f" } })],
    ["a refusal", chunk({ refusal: "I " })],
    ["audio", chunk({ audio: { data: "AA" } })],
    ["another choice", chunk({}, { choices: [{ index: 1, delta: { content: "b" } }] })],
    ["a finished answer", chunk({}, {}, "stop")],
  ])("cannot be continued: %s", (_title, event) => {
    expect(transcriptOf(chunk({ content: "a" }), event)).toBeUndefined();
    expect(transcriptOf(chunk({ content: "a" }))).toBeDefined();
  });

  test("fields that say nothing are no obstacle", () => {
    const nothing = { content: null, tool_calls: [], function_call: null, refusal: null, audio: null };
    expect(transcriptOf(chunk(nothing), chunk({ content: "a" }))).toMatchObject({ text: "a" });
  });

  test.each([
    ["no delta", { choices: [{ index: 0 }] }],
    ["delta null", { choices: [{ index: 0, delta: null }] }],
    ["choices null", { choices: null }],
    ["choices that are no array", { choices: {} }],
    ["a choice null", { choices: [null] }],
  ])("is read tolerantly: %s", (_title, more) => {
    expect(transcriptOf(chunk({ content: "a" }), chunk({}, more), chunk({ content: "b" }))).toMatchObject({
      text: "ab",
    });
  });

  test("an empty id, as Azure sends it before the answer, is not the answer's id", () => {
    const filter = sseEvent({ id: "", created: 0, model: "", choices: [], prompt_filter_results: [] });
    expect(transcriptOf(filter, chunk({ role: "assistant", content: "a" }))).toMatchObject({
      id: "first",
      model: "one",
    });
  });
});

describe("a second stream", () => {
  const second = (texts: readonly string[]) =>
    chatEvents(texts, { model: "two" }).map((event) => event.replace("chatcmpl-1", "second"));

  const modes: [mode: JoinMode][] = [["continued"], ["restarted"]];
  for (const [mode] of modes) {
    test(`${mode}: has the first one's id, time and model, and no role`, () => {
      const output = spliced({ ...SENT, text: "abc" }, mode, second(["abc", "def"]));
      for (const data of eventData(output).slice(0, -1)) {
        expect(JSON.parse(data)).toMatchObject({ id: "first", created: 1, model: "one" });
      }
      expect(output).not.toContain('"role"');
      expect(choicesOf(output).filter((choice) => choice.finish_reason === "stop").length).toBe(1);
      expect(output).toEndWith("data: [DONE]\n\n");
    });

    test(`${mode}: usage and the end marker pass`, () => {
      const usage = sseEvent({ id: "second", choices: [], usage: { total_tokens: 7 } });
      const output = spliced({ ...SENT, text: "abc" }, mode, [usage, "data: [DONE]\n\n"]);
      expect(eventData(output).map((data) => (data === "[DONE]" ? data : JSON.parse(data)))).toEqual([
        { id: "first", created: 1, model: "one", choices: [], usage: { total_tokens: 7 } },
        "[DONE]",
      ]);
    });

    test(`${mode}: reasoning is not shown behind text`, () => {
      const events = [chunk({ reasoning_content: "hm" }), chunk({ reasoning: "hm" })];
      expect(spliced({ ...SENT, text: "a" }, mode, events)).toBe("");
      expect(spliced({ ...SENT, reasoning: "hm" }, mode, events)).toBe("");
    });
  }

  test("reasoning is shown when nothing was", () => {
    expect(choicesOf(spliced(SENT, "restarted", [chunk({ reasoning: "hm" })]))[0]?.delta).toEqual({ reasoning: "hm" });
  });

  test("the role is kept when the first backend had sent none", () => {
    const filter = sseEvent({ id: "first", choices: [], prompt_filter_results: [] });
    const transcript = transcriptOf(filter) as Transcript;
    expect(choicesOf(spliced(transcript, "restarted", second(["a"])))[0]?.delta.role).toBe("assistant");
  });

  test("continued: text passes as it is, even when it repeats", () => {
    expect(textOf(spliced({ ...SENT, text: "abc" }, "continued", second(["abc", "abc"])))).toBe("abcabc");
  });

  test("restarted: a tool call behind the repeated text passes", () => {
    const call = [{ index: 0, id: "t", function: { name: "f", arguments: "{}" } }];
    const output = spliced({ ...SENT, text: "ab" }, "restarted", [
      chunk({ content: "ab" }),
      chunk({ tool_calls: call }),
    ]);
    expect(choicesOf(output).map((choice) => choice.delta)).toEqual([{ tool_calls: call }]);
  });

  test("events without a choice are left out, whole events come out", () => {
    const splicer = new Splicer({ ...SENT, text: "abc" }, "restarted");
    expect(splicer.push(bytes(chunk({ role: "assistant", content: "" })))).toBeUndefined();
    expect(splicer.push(bytes(": comment\n\n"))).toBeUndefined();
    expect(splicer.push(bytes(chunk({ content: "ab" })))).toBeUndefined();
    expect(splicer.push(bytes(chunk({ content: "cd" })))).toEqual(bytes(chunk({ content: "d" })));
  });

  test("restarted: text and finish in one event", () => {
    const output = spliced({ ...SENT, text: "ab" }, "restarted", [chunk({ content: "abc" }, {}, "stop")]);
    expect(choicesOf(output)).toEqual([{ index: 0, delta: { content: "c" }, finish_reason: "stop" }]);
  });
});

/** A text cut into pieces at arbitrary places. */
const pieces = (minLength = 0) =>
  fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 6 }), { minLength, maxLength: 12 });

describe("properties", () => {
  const groups = (events: readonly string[], perPush: number) =>
    Array.from({ length: Math.ceil(events.length / perPush) }, (_, index) =>
      events.slice(index * perPush, (index + 1) * perPush).join(""),
    );

  test("a restarted answer that repeats what was sent yields the rest, nothing twice and nothing lost", () => {
    fc.assert(
      fc.property(pieces(), pieces(), fc.nat(), fc.integer({ min: 1, max: 4 }), (cuts, firstCuts, where, perPush) => {
        const answer = cuts.join("");
        const points = [...answer];
        const sent = points.slice(0, where % (points.length + 1)).join("");
        // The first stream's own cuts play no part in what is read of it.
        const first = readTranscript([
          bytes(chunk({ role: "assistant", content: "" })),
          bytes(chunk({ content: sent.slice(0, firstCuts.length) })),
          bytes(chunk({ content: sent.slice(firstCuts.length) })),
        ]) as Transcript;
        expect(first.text).toBe(sent);
        const output = spliced(first, "restarted", groups(chatEvents(cuts), perPush));
        expect(sent + textOf(output)).toBe(answer);
        expect(output).not.toContain('"role"');
        expect(eventData(output).at(-1)).toBe("[DONE]");
        const ids = eventData(output)
          .slice(0, -1)
          .map((data) => (JSON.parse(data) as { id: string }).id);
        expect(new Set(ids)).toEqual(new Set(["first"]));
        expect(choicesOf(output).filter((choice) => choice.finish_reason !== null).length).toBe(1);
      }),
    );
  });

  test("a restarted answer that differs is shown whole behind an empty line", () => {
    fc.assert(
      fc.property(pieces(1), pieces(1), fc.integer({ min: 1, max: 4 }), (sentPieces, cuts, perPush) => {
        const [sent, answer] = [sentPieces.join(""), cuts.join("")];
        fc.pre(!answer.startsWith(sent) && !sent.startsWith(answer));
        const output = spliced({ ...SENT, text: sent }, "restarted", groups(chatEvents(cuts), perPush));
        expect(textOf(output)).toBe(`\n\n${answer}`);
      }),
    );
  });

  test("a restarted answer that ends within what was sent adds nothing but its end", () => {
    fc.assert(
      fc.property(pieces(1), pieces(), (cuts, more) => {
        const output = spliced({ ...SENT, text: cuts.join("") + more.join("") }, "restarted", chatEvents(cuts));
        expect(textOf(output)).toBe("");
        expect(choicesOf(output)).toEqual([{ index: 0, delta: {}, finish_reason: "stop" }]);
      }),
    );
  });

  test("a continued answer is joined as it comes", () => {
    fc.assert(
      fc.property(pieces(), pieces(), (sentPieces, cuts) => {
        const output = spliced({ ...SENT, text: sentPieces.join("") }, "continued", chatEvents(cuts));
        expect(textOf(output)).toBe(cuts.join(""));
      }),
    );
  });
});

describe("an error inside a stream", () => {
  const told = 'data: {"error":{"message":"cuda","code":500}}';
  const before = [
    [],
    [chunk({ content: "Grüße 🚂" })],
    [": ping\n\n", chunk({ content: '"error" is only said: {"error":1}' }), chunk({ content: "ü" })],
  ];
  for (const lineEnd of ["\n", "\r\n", "\r"]) {
    for (const [index, events] of before.entries()) {
      for (const behind of ["", "data: [DONE]\n\n", `${told.replace("cuda", "again")}\n\n`]) {
        test(`behind ${index} kinds of events, ${JSON.stringify(lineEnd)}, followed by ${behind.length} bytes`, () => {
          const [head, tail] = [events.join(""), `${told}\n\n${behind}`].map((text) => text.replaceAll("\n", lineEnd));
          const split = splitAtErrorMember(bytes(`${head}${tail}`));
          expect(decoder.decode(split?.before)).toBe(head as string);
          expect(split?.before === undefined).toBe(head === "");
          expect(split?.error).toEqual({ message: "cuda", code: 500 });
          expect(split?.data).toBe(told.slice("data: ".length));
        });
      }
    }
  }

  test.each([
    ["none", chunk({ content: "a" })],
    ["null", sseEvent({ error: null, choices: [] })],
    ["the word in a text", chunk({ content: '{"error":1}' })],
    ["the word as a deeper key", chunk({ content: "a", error: "no" })],
    ["no JSON", 'data: "error": {\n\n'],
  ])("is none: %s", (_title, event) => {
    expect(splitAtErrorMember(bytes(event))).toBeUndefined();
  });

  test("what stands before it is whole bytes, also in a part of a larger buffer", () => {
    const event = bytes(chunk({ content: "a" }));
    const whole = Buffer.concat([bytes("xxxx"), event, bytes(`${told}\n\n`)]).subarray(4);
    expect(splitAtErrorMember(whole)?.before).toEqual(whole.subarray(0, event.length));
  });

  test("is found at its place behind bytes that are no UTF-8", () => {
    const odd = Buffer.concat([bytes("data: "), Uint8Array.of(0xff), bytes("\n\n")]);
    const split = splitAtErrorMember(Buffer.concat([odd, bytes(`${told}\n\n`)]));
    expect(split?.before?.length).toBe(odd.length);
  });
});
