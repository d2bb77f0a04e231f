// Joining two streams: which answers can be continued at all, and that the client sees one answer.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { chatEvents, sseEvent } from "../../../test/support/openai-answers.ts";
import { readSent, restOf, restReader } from "../../../test/support/second-stream.ts";
import type { JoinMode } from "../seam.ts";
import { eventData } from "../sse.ts";
import { type SentAnswer, splitAtErrorMember } from "../stream-join.ts";

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

const sentOf = (...events: string[]) => readSent("chat", ...events);

/** What a client has after the role, a thought and a text. */
function sentWith({ text = "", thought = "" }: { text?: string; thought?: string }): SentAnswer {
  const events = [
    chunk({ role: "assistant", content: "" }),
    chunk({ reasoning_content: thought }),
    chunk({ content: text }),
  ];
  return sentOf(...events) as SentAnswer;
}

/** What becomes of a second stream, one push per piece. */
function spliced(sent: SentAnswer, mode: JoinMode, pieces: readonly string[]): string {
  return restOf("chat", sent, mode, pieces);
}

/** What stands in the chunks that are written behind it. */
function headOf(sent: SentAnswer | undefined): unknown {
  const [data = ""] = eventData(spliced(sent as SentAnswer, "continued", [chunk({ role: "assistant", content: "x" })]));
  const { id, created, model, choices } = JSON.parse(data);
  return { id, created, model, hasRole: choices[0].delta.role === undefined };
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
    const sent = sentOf(role as string, rest.join(""));
    expect(sent).toMatchObject({ text: "Grüße 🚂", pieces: 2 });
    expect(sent?.askToGoOn({})?.messages).toEqual([{ role: "assistant", content: "Grüße 🚂" }]);
    expect(headOf(sent)).toEqual({ id: "chatcmpl-1", created: 1_763_700_000, model: "m", hasRole: true });
  });

  test("may hold comments, CRLF, usage and fields that nobody knows", () => {
    const usage = sseEvent({ id: "x", choices: [], usage: { total_tokens: 1 } });
    const text = `: ping\n\nevent: x\ndata: {"id":"first","choices":[{"delta":{"content":"a","future":1}}]}\n\n`;
    const sent = sentOf(text.replaceAll("\n", "\r\n"), usage);
    expect(sent?.text).toBe("a");
    expect(headOf(sent)).toMatchObject({ id: "first" });
  });

  test.each([["reasoning"], ["reasoning_content"]])("knows of %s", (field) => {
    const turn = (delta: object) => sentOf(chunk(delta))?.askToGoOn({})?.messages;
    const assistant = { role: "assistant" };
    expect(turn({ [field]: "hm" })).toEqual([{ ...assistant, content: "", reasoning_content: "hm" }]);
    expect(turn({ content: "a", [field]: "" })).toEqual([{ ...assistant, content: "a" }]);
  });

  test.each([
    ["a tool call", chunk({ tool_calls: [{ index: 0, function: { name: "f", arguments: '{"a' } }] })],
    ["a function call", chunk({ function_call: { name: "f" } })],
    ["a refusal", chunk({ refusal: "I " })],
    ["audio", chunk({ audio: { data: "AA" } })],
    ["another choice", chunk({}, { choices: [{ index: 1, delta: { content: "b" } }] })],
    ["a finished answer", chunk({}, {}, "stop")],
  ])("cannot be continued: %s", (_title, event) => {
    expect(sentOf(chunk({ content: "a" }), event)).toBeUndefined();
    expect(sentOf(chunk({ content: "a" }))).toBeDefined();
  });

  test("fields that say nothing are no obstacle", () => {
    const nothing = { content: null, tool_calls: [], function_call: null, refusal: null, audio: null };
    expect(sentOf(chunk(nothing), chunk({ content: "a" }))).toMatchObject({ text: "a" });
  });

  test.each([
    ["no delta", { choices: [{ index: 0 }] }],
    ["delta null", { choices: [{ index: 0, delta: null }] }],
    ["choices null", { choices: null }],
    ["choices that are no array", { choices: {} }],
    ["a choice null", { choices: [null] }],
  ])("is read tolerantly: %s", (_title, more) => {
    expect(sentOf(chunk({ content: "a" }), chunk({}, more), chunk({ content: "b" }))).toMatchObject({
      text: "ab",
    });
  });

  test("an empty id, as Azure sends it before the answer, is not the answer's id", () => {
    const filter = sseEvent({ id: "", created: 0, model: "", choices: [], prompt_filter_results: [] });
    expect(headOf(sentOf(filter, chunk({ role: "assistant", content: "a" })))).toMatchObject({
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
      const output = spliced(sentWith({ text: "abc" }), mode, second(["abc", "def"]));
      for (const data of eventData(output).slice(0, -1)) {
        expect(JSON.parse(data)).toMatchObject({ id: "first", created: 1, model: "one" });
      }
      expect(output).not.toContain('"role"');
      expect(choicesOf(output).filter((choice) => choice.finish_reason === "stop").length).toBe(1);
      expect(output).toEndWith("data: [DONE]\n\n");
    });

    test(`${mode}: usage and the end marker pass`, () => {
      const counts = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7, cost: 0.1 };
      const usage = sseEvent({ id: "second", choices: [], usage: counts });
      const output = spliced(sentWith({ text: "abc" }), mode, [chunk({}, {}, "stop"), usage, "data: [DONE]\n\n"]);
      const [, ...end] = eventData(output).map((data) => (data === "[DONE]" ? data : JSON.parse(data)));
      expect(end).toMatchObject([{ id: "first", created: 1, model: "one", choices: [], usage: counts }, "[DONE]"]);
    });

    test(`${mode}: reasoning is not shown behind text`, () => {
      const events = [chunk({ reasoning_content: "hm" }), chunk({ reasoning: "hm" })];
      expect(spliced(sentWith({ text: "a" }), mode, events)).toBe("");
      expect(spliced(sentWith({ thought: "hm" }), mode, events)).toBe("");
    });
  }

  test("reasoning is shown when nothing was", () => {
    expect(choicesOf(spliced(sentWith({}), "restarted", [chunk({ reasoning: "hm" })]))[0]?.delta).toEqual({
      reasoning_content: "hm",
      reasoning: "hm",
    });
  });

  test("the role is kept when the first backend had sent none", () => {
    const filter = sseEvent({ id: "first", choices: [], prompt_filter_results: [] });
    const transcript = sentOf(filter) as SentAnswer;
    expect(choicesOf(spliced(transcript, "restarted", second(["a"])))[0]?.delta.role).toBe("assistant");
  });

  test("continued: text passes as it is, even when it repeats", () => {
    expect(textOf(spliced(sentWith({ text: "abc" }), "continued", second(["abc", "abc"])))).toBe("abcabc");
  });

  test("restarted: a tool call behind the repeated text passes", () => {
    const call = [{ index: 0, id: "t", function: { name: "f", arguments: "{}" } }];
    const output = spliced(sentWith({ text: "ab" }), "restarted", [
      chunk({ content: "ab" }),
      chunk({ tool_calls: call }),
    ]);
    expect(choicesOf(output).map((choice) => choice.delta)).toEqual([
      { tool_calls: [{ index: 0, id: "t", type: "function", function: { name: "f", arguments: "" } }] },
      { tool_calls: [{ index: 0, function: { arguments: "{}" } }] },
    ]);
  });

  test("events without a choice are left out, whole events come out", () => {
    const reader = restReader("chat", sentWith({ text: "abc" }), "restarted");
    expect(reader?.push(bytes(chunk({ role: "assistant", content: "" })))).toBeUndefined();
    expect(reader?.push(bytes(": comment\n\n"))).toBeUndefined();
    expect(reader?.push(bytes(chunk({ content: "ab" })))).toBeUndefined();
    const [rest, ...more] = choicesOf(decoder.decode(reader?.push(bytes(chunk({ content: "cd" })))));
    expect([rest?.delta, more]).toEqual([{ content: "d" }, []]);
  });

  test("restarted: text and finish in one event", () => {
    const events = [chunk({ content: "abc" }, {}, "stop"), "data: [DONE]\n\n"];
    expect(choicesOf(spliced(sentWith({ text: "ab" }), "restarted", events))).toEqual([
      { index: 0, delta: { content: "c" }, finish_reason: null },
      { index: 0, delta: {}, finish_reason: "stop" },
    ]);
  });

  test("members that only this format knows stay; probabilities go where the text was cut", () => {
    const logprobs = { content: [{ token: "x", logprob: -1 }] };
    const choice = (content: string) => [{ index: 0, delta: { content, future: 1 }, stop_reason: 7, logprobs }];
    const events = ["abc", "d"].map((content) => chunk({}, { service_tier: "flex", choices: choice(content) }));
    const chunks = eventData(spliced(sentWith({ text: "ab" }), "restarted", events)).map((data) => JSON.parse(data));
    const told = { index: 0, stop_reason: 7, finish_reason: null };
    expect(chunks).toMatchObject([
      { id: "first", service_tier: "flex", choices: [{ ...told, delta: { content: "c", future: 1 } }] },
      { id: "first", service_tier: "flex", choices: [{ ...told, delta: { content: "d", future: 1 }, logprobs }] },
    ]);
    expect(chunks[0].choices[0].logprobs).toBeUndefined();
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
        const first = sentOf(
          chunk({ role: "assistant", content: "" }),
          chunk({ content: sent.slice(0, firstCuts.length) }),
          chunk({ content: sent.slice(firstCuts.length) }),
        ) as SentAnswer;
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
        const output = spliced(sentWith({ text: sent }), "restarted", groups(chatEvents(cuts), perPush));
        expect(textOf(output)).toBe(`\n\n${answer}`);
      }),
    );
  });

  test("a restarted answer that ends within what was sent adds nothing but its end", () => {
    fc.assert(
      fc.property(pieces(1), pieces(), (cuts, more) => {
        const output = spliced(sentWith({ text: cuts.join("") + more.join("") }), "restarted", chatEvents(cuts));
        expect(textOf(output)).toBe("");
        expect(choicesOf(output)).toEqual([{ index: 0, delta: {}, finish_reason: "stop" }]);
      }),
    );
  });

  test("a continued answer is joined as it comes", () => {
    fc.assert(
      fc.property(pieces(), pieces(), (sentPieces, cuts) => {
        const output = spliced(sentWith({ text: sentPieces.join("") }), "continued", chatEvents(cuts));
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
