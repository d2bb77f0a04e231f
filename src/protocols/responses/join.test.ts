// Joining two streams of this format: which answers can be continued at all, and that a strict client sees one answer.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import OpenAI from "openai";
import { readSent, restOf, restReader } from "../../../test/support/second-stream.ts";
import { asEvents } from "../../generation/as-events.ts";
import type { ContentPart } from "../../generation/content.ts";
import type { GenerationEvent } from "../../generation/events.ts";
import type { FinishReason } from "../../generation/result.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { JoinMode } from "../seam.ts";
import { readEvents } from "../sse.ts";
import type { SentAnswer } from "../stream-join.ts";
import { responsesJoin } from "./join.ts";
import { readResponsesRequest } from "./read-request.ts";
import { decodeRequest } from "./request-decoder.ts";
import { ResponsesStreamEncoder } from "./stream-encoder.ts";

const { splitAtError, askForRest } = responsesJoin;

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const bytes = (text: string) => encoder.encode(text);

const FIRST = "1".repeat(32);
const SECOND = "2".repeat(32);

interface AnswerOptions {
  nonce?: string;
  reason?: FinishReason;
  /** Sizes of the deltas, one after another and then over again. */
  sizes?: readonly number[];
  outputTokens?: number;
}

/** The events of a whole answer, as the folder's own encoder writes them. */
function answer(parts: readonly ContentPart[], options: AnswerOptions = {}): string[] {
  const { nonce = FIRST, reason = "stop", sizes = [3], outputTokens = 7 } = options;
  const usage = { input: { total: 10 }, output: { total: outputTokens } };
  const result = {
    id: "",
    model: "m",
    createdAt: nonce === FIRST ? 1000 : 2000,
    parts: [...parts],
    finish: { reason },
    usage,
  };
  const request = decodeRequest({ model: "alias", input: "x", reasoning: { summary: "auto" } });
  const model = nonce === FIRST ? "one" : "two";
  const stream = new ResponsesStreamEncoder({ model, createdAt: 1, nonce, request });
  const text = inPieces(asEvents(result), sizes).map((event) => stream.push(event));
  return eventsOf(text.join("") + stream.end());
}

function inPieces(events: readonly GenerationEvent[], sizes: readonly number[]): GenerationEvent[] {
  let turn = 0;
  return events.flatMap((event) => {
    if (event.type !== "delta") return [event];
    const pieces: GenerationEvent[] = [];
    for (let at = 0; at < event.text.length; ) {
      const size = sizes[turn++ % sizes.length] ?? 1;
      pieces.push({ ...event, text: event.text.slice(at, at + size) });
      at += size;
    }
    return pieces;
  });
}

const eventsOf = (text: string) => text.split(/(?<=\n\n)/);

const text = (value: string): ContentPart => ({ type: "text", text: value });
const thought = (value: string): ContentPart => ({ type: "reasoning", text: value });
const call = (args = '{"a":1}'): ContentPart => ({ type: "tool-call", id: "call_1", name: "f", arguments: args });

const event = (type: string, fields: JsonObject = {}) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

const sentOf = (events: readonly string[]) => readSent("responses", ...events);

function needSent(events: readonly string[]): SentAnswer {
  const sent = sentOf(events);
  if (sent === undefined) throw new Error(`cannot be joined: ${events.join("")}`);
  return sent;
}

/** What comes out of a joiner, one push per piece. */
function further(sent: readonly string[], mode: JoinMode, pieces: readonly string[]): string {
  return restOf("responses", needSent(sent), mode, pieces);
}

function join(sent: readonly string[], mode: JoinMode, second: readonly string[]): string {
  return sent.join("") + further(sent, mode, second);
}

type Wire = JsonObject & { type: string };

function wireEvents(stream: string): Wire[] {
  return readEvents(stream).map(({ data }) => JSON.parse(data) as Wire);
}

const typesOf = (stream: string) => wireEvents(stream).map(({ type }) => type.replace("response.", ""));

function finalOf(stream: string): { output: JsonObject[]; output_text?: string } {
  const last = wireEvents(stream).at(-1);
  if (last === undefined) throw new Error("no events");
  return last.response as { output: JsonObject[] };
}

/** The text that each message holds, part by part. */
function messagesOf(output: readonly JsonObject[]): string[][] {
  return output
    .filter(({ type }) => type === "message")
    .map(({ content }) => (content as JsonObject[]).map((part) => String(part.text)));
}

const textOf = (output: readonly JsonObject[]) => messagesOf(output).flat().join("");

interface Part {
  wire: JsonObject;
  text: string;
  isTextDone: boolean;
  isDone: boolean;
}

interface Item {
  id: unknown;
  type: unknown;
  parts: Part[];
  done: JsonObject | undefined;
}

function check(condition: boolean, what: string, wire: unknown): asserts condition {
  if (!condition) throw new Error(`${what}: ${JSON.stringify(wire)}`);
}

/** The final response of a stream, read by a client that forgives nothing. */
function collect(stream: string): { response: JsonObject; output: JsonObject[]; type: string } {
  const items: Item[] = [];
  let id: unknown;
  let final: Wire | undefined;
  let number = 0;
  for (const { name, data } of readEvents(stream)) {
    const wire = JSON.parse(data) as Wire;
    const { type } = wire;
    check(final === undefined, "behind the end", wire);
    check(name === type, `named ${name}`, wire);
    check(wire.sequence_number === number++, `not number ${number - 1}`, wire);
    const response = wire.response as JsonObject | undefined;
    if (number === 1) {
      check(type === "response.created", "not begun", wire);
      id = response?.id;
      continue;
    }
    if (response !== undefined) {
      check(response.id === id, `not ${id}`, wire);
      if (type === "response.in_progress") {
        check(number === 2, "begun twice", wire);
        continue;
      }
      final = wire;
      continue;
    }
    collectItem(items, wire);
  }
  check(final !== undefined, "no end", stream);
  const response = final.response as JsonObject;
  for (const item of items) check(item.done !== undefined, "never closed", item);
  expect(response.output).toEqual(items.map((item) => item.done));
  return { response, output: response.output as JsonObject[], type: final.type };
}

function collectItem(items: Item[], wire: Wire): void {
  const { type } = wire;
  const wireItem = wire.item as JsonObject | undefined;
  const index = wire.output_index as number;
  if (type === "response.output_item.added") {
    check(index === items.length, "not the next place", wire);
    check(!items.some((item) => item.id === wireItem?.id), "added twice", wire);
    for (const item of items) {
      check(item.done !== undefined || item.type === "function_call", "an item is still open", wire);
    }
    items.push({ id: wireItem?.id, type: wireItem?.type, parts: [], done: undefined });
    return;
  }
  const item = items[index];
  check(item !== undefined && item.done === undefined, "no open item", wire);
  check((wireItem?.id ?? wire.item_id) === item.id, `not ${item.id}`, wire);
  if (type === "response.output_item.done") {
    check(
      item.parts.every((part) => part.isDone),
      "open parts",
      wire,
    );
    const contents = wireItem?.type === "reasoning" ? wireItem.summary : wireItem?.content;
    if (item.type !== "function_call") expect(contents).toEqual(item.parts.map((part) => part.wire));
    else expect(wireItem?.arguments).toBe(item.parts[0]?.text ?? "");
    item.done = wireItem;
    return;
  }
  if (type.startsWith("response.function_call_arguments.")) {
    item.parts[0] ??= { wire: {}, text: "", isTextDone: true, isDone: true };
    if (type.endsWith("delta")) item.parts[0].text += wire.delta;
    else check(wire.arguments === item.parts[0].text, "other arguments", wire);
    return;
  }
  collectPart(item, wire, (item.type === "reasoning" ? wire.summary_index : wire.content_index) as number);
}

function collectPart(item: Item, wire: Wire, at: number): void {
  const { type } = wire;
  if (type.endsWith("_part.added")) {
    check(at === item.parts.length, "not the next part", wire);
    check(item.parts.at(-1)?.isDone !== false, "a part is still open", wire);
    item.parts.push({ wire: {}, text: "", isTextDone: false, isDone: false });
    return;
  }
  const part = item.parts[at];
  check(part !== undefined && !part.isDone, "no open part", wire);
  if (type.endsWith("_part.done")) {
    const told = wire.part as JsonObject;
    check(part.isTextDone && (told.text ?? told.refusal) === part.text, "another text", { wire, part });
    part.wire = told;
    part.isDone = true;
    return;
  }
  check(!part.isTextDone, "behind the end of the text", wire);
  if (type.endsWith(".delta")) {
    check(wire.delta !== "", "says nothing", wire);
    part.text += wire.delta;
  } else if (type.endsWith(".done")) {
    check((wire.text ?? wire.refusal) === part.text, "another text", { wire, part });
    part.isTextDone = true;
  } else throw new Error(`unknown: ${type}`);
}

describe("what a client has seen", () => {
  test("is nothing when nothing was sent", () => {
    expect(needSent([]).text).toBe("");
  });

  test("is the text of all parts and messages", () => {
    const events = answer([thought("hm"), text("Grüße"), text(" 🚂"), thought("hm"), text(" an alle")]);
    expect(needSent(events.slice(0, -1)).text).toBe("Grüße 🚂 an alle");
  });

  test("may hold comments, CRLF, events in pieces of any grouping and what nobody knows", () => {
    const events = answer([text("abcdef")]).slice(0, 6);
    const all = [": ping\n\n", ...events, event("response.future", { delta: "x" }), event("keepalive")].join("");
    expect(needSent([all.replaceAll("\n", "\r\n")]).text).toBe("abcdef");
  });

  const opened = (item: JsonObject) => event("response.output_item.added", { output_index: 1, item });
  const inPart = { output_index: 0, item_id: `msg_${FIRST}00`, content_index: 0 };
  const annotation = { type: "url_citation", url: "https://e.org" };
  const whole = { id: `msg_${FIRST}00`, type: "message" };
  test.each([
    ["a function call", opened({ type: "function_call", id: "fc_1", arguments: "" })],
    ["a custom tool call", opened({ type: "custom_tool_call", id: "ctc_1", input: "" })],
    ["a web search", opened({ type: "web_search_call", id: "ws_1" })],
    ["an item that nobody knows", opened({ type: "future", id: "x_1" })],
    [
      "a call that was never announced",
      event("response.function_call_arguments.delta", { output_index: 1, delta: "{" }),
    ],
    ["a refusal", event("response.content_part.added", { ...inPart, content_index: 1, part: { type: "refusal" } })],
    ["a refusal that was not announced", event("response.refusal.delta", { ...inPart, content_index: 1, delta: "I" })],
    ["audio", event("response.audio.delta", { delta: "AA" })],
    ["an annotation", event("response.output_text.annotation.added", { ...inPart, annotation })],
    [
      "annotations of a part",
      event("response.content_part.done", {
        ...inPart,
        part: { type: "output_text", text: "abc", annotations: [annotation] },
      }),
    ],
    [
      "annotations of an item",
      event("response.output_item.done", {
        output_index: 0,
        item: { ...whole, content: [{ type: "output_text", text: "abc", annotations: [annotation] }] },
      }),
    ],
    ["a finished answer", event("response.completed", { response: {} })],
    ["an answer that was cut off", event("response.incomplete", { response: {} })],
    ["a failed answer", event("response.failed", { response: {} })],
    ["an error", event("error", { message: "m" })],
  ])("cannot be continued: %s", (_title, more) => {
    const events = answer([text("abc")]).slice(0, 5);
    expect(needSent(events).text).toBe("abc");
    expect(sentOf([...events, more])).toBeUndefined();
  });

  test("is read tolerantly", () => {
    const odd = [
      "data: null\n\ndata: [DONE]\n\ndata: 7\n\ndata: {\n\n",
      event("response.output_item.added", { item: null }),
      event("response.output_text.delta", { ...inPart, delta: null, content_index: "0" }),
      event("response.created", { response: null }),
      event("response.output_text.done", { ...inPart, text: 7 }),
    ];
    for (const more of odd) {
      const events = answer([text("abcdef")]);
      expect(needSent([...events.slice(0, 5), more, ...events.slice(5, 6)]).text).toBe("abcdef");
    }
  });

  test("is known of engines that number nothing and give no places", () => {
    const bare = (type: string, fields: JsonObject) => `data: ${JSON.stringify({ type, ...fields })}\n\n`;
    const events = [
      bare("response.created", { response: { id: "resp_1" } }),
      bare("response.output_item.added", { item: { type: "message", id: "msg_1" } }),
      bare("response.content_part.added", { item_id: "msg_1", part: { type: "output_text", text: "" } }),
      bare("response.output_text.delta", { item_id: "msg_1", delta: "abc" }),
    ];
    const output = further(events, "restarted", answer([text("abcdef")], { nonce: SECOND }));
    expect(wireEvents(output)[0]).toEqual({
      type: "response.output_text.delta",
      item_id: "msg_1",
      output_index: 0,
      logprobs: [],
      delta: "def",
      sequence_number: 0,
      content_index: 0,
    });
    expect(textOf(finalOf(output).output)).toBe("abcdef");
  });
});

const MODES: [mode: JoinMode][] = [["continued"], ["restarted"]];

describe("a second stream", () => {
  const sent = answer([text("abc")]).slice(0, 5);
  const second = answer([text("abcdef")], { nonce: SECOND, outputTokens: 99 });

  test("goes on in the open part, with the first one's identity and its own usage", () => {
    const stream = join(sent, "restarted", second);
    expect(typesOf(stream).slice(5)).toEqual([
      "output_text.delta",
      "output_text.done",
      "content_part.done",
      "output_item.done",
      "completed",
    ]);
    const { response, output } = collect(stream);
    expect(response).toMatchObject({ id: `resp_${FIRST}`, created_at: 1000, model: "one", status: "completed" });
    expect(response.usage).toMatchObject({ output_tokens: 99 });
    expect(messagesOf(output)).toEqual([["abcdef"]]);
    expect(output[0]?.id).toBe(`msg_${FIRST}00`);
  });

  test("is read by the official SDK as one answer", async () => {
    const stream = join(sent, "restarted", answer([text("abcdef"), call()], { nonce: SECOND }));
    const fetch = async () => new Response(stream, { headers: { "content-type": "text/event-stream" } });
    const client = new OpenAI({ apiKey: "sekret", baseURL: "http://unused.invalid/v1", fetch });
    const response = await client.responses.stream({ model: "alias", input: "x" }).finalResponse();
    expect(response.output_text).toBe("abcdef");
    expect(response.output.map(({ type }) => type)).toEqual(["message", "function_call"]);
    expect(response.status).toBe("completed");
  });

  test("passes whole where nothing was sent", () => {
    for (const [mode] of MODES) {
      const whole = answer([thought("hm"), text("a"), text("b"), call(), text("c")], { nonce: SECOND });
      expect(collect(join([], mode, whole))).toEqual(collect(whole.join("")));
      expect(wireEvents(join([], mode, whole))).toEqual(wireEvents(whole.join("")));
    }
  });

  test.each([
    ["created", 1, ["in_progress"]],
    ["created and in progress", 2, []],
  ])("begins once: behind %s", (_title, count, rest) => {
    const stream = join(sent.slice(0, count), "restarted", second);
    expect(typesOf(stream).slice(count, -5)).toEqual([
      ...rest,
      "output_item.added",
      "content_part.added",
      "output_text.delta",
    ]);
    expect(collect(stream).response.id).toBe(`resp_${FIRST}`);
  });

  test("its status and the reason of its end are told", () => {
    const cut = answer([text("abcdef")], { nonce: SECOND, reason: "length" });
    for (const [mode] of MODES) {
      const { response, output, type } = collect(join(sent, mode, cut));
      expect(type).toBe("response.incomplete");
      expect(response).toMatchObject({ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } });
      expect(output[0]?.status).toBe("incomplete");
    }
  });

  test("that ends early adds nothing but its end", () => {
    const stream = join(sent, "restarted", answer([text("ab")], { nonce: SECOND }));
    expect(typesOf(stream).slice(5)).toEqual([
      "output_text.done",
      "content_part.done",
      "output_item.done",
      "completed",
    ]);
    expect(textOf(collect(stream).output)).toBe("abc");
  });

  test("continued: text passes as it is, even when it repeats", () => {
    expect(textOf(collect(join(sent, "continued", second)).output)).toBe("abcabcdef");
  });

  test("restarted: another answer is shown behind an empty line", () => {
    const other = answer([text("abX")], { nonce: SECOND });
    expect(textOf(collect(join(sent, "restarted", other)).output)).toBe("abc\n\nabX");
    const inParts = answer([text("X"), text("Y")], { nonce: SECOND });
    expect(messagesOf(collect(join(sent, "restarted", inParts)).output)).toEqual([["abc\n\nX", "Y"]]);
  });

  test("goes on in a new part when the text of the first was over", () => {
    const whole = answer([text("abc")]);
    const stop = whole.findIndex((part) => part.includes("output_text.done")) + 1;
    expect(messagesOf(collect(join(whole.slice(0, stop), "continued", second)).output)).toEqual([["abc", "abcdef"]]);
    expect(messagesOf(collect(join(whole.slice(0, stop + 1), "restarted", second)).output)).toEqual([["abc", "def"]]);
    expect(messagesOf(collect(join(whole.slice(0, stop), "restarted", whole)).output)).toEqual([["abc"]]);
  });

  test("gets a message of its own, with an id of its own, when that of the first was over", () => {
    const whole = answer([text("abc")]).slice(0, -1);
    for (const nonce of [FIRST, SECOND]) {
      const { output } = collect(join(whole, "restarted", answer([text("abcdef")], { nonce })));
      expect(messagesOf(output)).toEqual([["abc"], ["def"]]);
      expect(new Set(output.map(({ id }) => id)).size).toBe(2);
      expect(output[1]?.id).toMatch(/^msg_[0-9a-f]{34}$/);
      const shorter = collect(join(whole, "restarted", answer([text("ab")], { nonce })));
      expect(messagesOf(shorter.output)).toEqual([["abc"]]);
    }
  });

  test("an id of a backend's own that was used is changed", () => {
    const item = (status: string) => ({ id: "msg_1", type: "message", role: "assistant", status });
    const content = [{ type: "output_text", text: "abc", annotations: [] }];
    const done = { output_index: 0, item: { ...item("completed"), content } };
    const first = [event("response.created", { response: { id: "r" } }), event("response.output_item.done", done)];
    const output = further(first, "continued", [
      event("response.output_item.added", { output_index: 0, item: { ...item("in_progress"), content: [] } }),
      event("response.output_text.delta", { output_index: 0, item_id: "msg_1", content_index: 0, delta: "def" }),
    ]);
    const id = `msg_${SECOND}00`;
    expect(wireEvents(output)).toMatchObject([
      { type: "response.output_item.added", output_index: 1, item: { id } },
      { type: "response.content_part.added", output_index: 1, item_id: id, content_index: 0 },
      { type: "response.output_text.delta", output_index: 1, item_id: id, content_index: 0, delta: "def" },
    ]);
  });

  describe("reasoning", () => {
    const thinking = answer([thought("hmm"), text("abc")]);
    const again = answer([thought("so"), text("abcdef")], { nonce: SECOND });

    test("that was open is closed before anything else", () => {
      const stop = thinking.findIndex((part) => part.includes("summary_text.delta")) + 1;
      const stream = join(thinking.slice(0, stop), "restarted", again);
      expect(typesOf(stream).slice(stop, stop + 4)).toEqual([
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
      ]);
      const { output } = collect(stream);
      expect(output.map(({ type }) => type)).toEqual(["reasoning", "message"]);
      expect(output[0]).toMatchObject({ id: `rs_${FIRST}00`, summary: [{ type: "summary_text", text: "hmm" }] });
      expect(textOf(output)).toBe("abcdef");
    });

    test("that was open is closed at every step, and before the end of an empty answer too", () => {
      for (let stop = 3; stop < thinking.findIndex((part) => part.includes('"message"')); stop++) {
        expect(textOf(collect(join(thinking.slice(0, stop), "restarted", again)).output)).toBe("abcdef");
        const { output } = collect(join(thinking.slice(0, stop), "restarted", answer([], { nonce: SECOND })));
        expect(output.map(({ type }) => type)).toEqual(["reasoning"]);
      }
    });

    test("in the raw form is closed too, and says that it was cut off where it has a status", () => {
      const place = { output_index: 0, item_id: "rs_1", content_index: 0 };
      const item = { id: "rs_1", type: "reasoning", summary: [], status: "in_progress", encrypted_content: "x" };
      const first = [
        ...sent.slice(0, 2),
        event("response.output_item.added", { output_index: 0, item }),
        event("response.content_part.added", { ...place, part: { type: "reasoning_text", text: "" } }),
        event("response.reasoning_text.delta", { ...place, delta: "hm" }),
      ];
      const part = { type: "reasoning_text", text: "hm" };
      expect(wireEvents(further(first, "restarted", again)).slice(0, 3)).toEqual([
        {
          type: "response.reasoning_text.done",
          item_id: "rs_1",
          output_index: 0,
          content_index: 0,
          text: "hm",
          sequence_number: 2,
        },
        {
          type: "response.content_part.done",
          item_id: "rs_1",
          output_index: 0,
          content_index: 0,
          part,
          sequence_number: 3,
        },
        {
          type: "response.output_item.done",
          output_index: 0,
          item: { id: "rs_1", type: "reasoning", summary: [], status: "incomplete", content: [part] },
          sequence_number: 4,
        },
      ]);
    });

    test("is not shown behind text or reasoning, but where nothing was", () => {
      for (const [mode] of MODES) {
        expect(collect(join(sent, mode, again)).output.map(({ type }) => type)).toEqual(["message"]);
        const types = collect(join(sent.slice(0, 2), mode, again)).output.map(({ type }) => type);
        expect(types).toEqual(["reasoning", "message"]);
      }
    });
  });

  describe("further items", () => {
    test("stand behind the open ones, at their own places", () => {
      const calls = answer([thought("x"), text("abcdef"), call(), { ...call(), id: "call_2" } as ContentPart], {
        nonce: SECOND,
      });
      const { output } = collect(join(sent, "restarted", calls));
      expect(output.map(({ type }) => type)).toEqual(["message", "function_call", "function_call"]);
      expect(output[1]).toMatchObject({ call_id: "call_1", arguments: '{"a":1}', status: "completed" });
      expect(textOf(output)).toBe("abcdef");
    });

    test("end the repetition", () => {
      const calls = answer([text("ab"), call(), text("abc")], { nonce: SECOND });
      expect(messagesOf(collect(join(sent, "restarted", calls)).output)).toEqual([["abc"], ["abc"]]);
    });

    test("before any text do not: the text behind a search is the repeated one", () => {
      const search: ContentPart[] = [
        { type: "tool-call", id: "s", name: "web_search", serverSide: true, arguments: '{"query":"q"}' },
        { type: "search-result", callId: "s", results: [] },
      ];
      const stream = join(sent, "restarted", answer([...search, text("abcdef")], { nonce: SECOND }));
      const { output } = finalOf(stream);
      expect(output.map(({ type }) => type)).toEqual(["message", "web_search_call", "message"]);
      expect(messagesOf(output)).toEqual([["abc"], ["def"]]);
      const searching = wireEvents(stream).filter(({ type }) => type.includes("web_search_call"));
      expect(searching.map((wire) => [wire.output_index, wire.item_id])).toEqual(
        Array.from({ length: 3 }, () => [1, `ws_${SECOND}00`]),
      );
    });

    test("a refusal is a content of its own", () => {
      const stream = join(sent, "restarted", answer([{ type: "refusal", text: "I can't" }], { nonce: SECOND }));
      expect(collect(stream).output[0]?.content).toMatchObject([
        { type: "output_text", text: "abc" },
        { type: "refusal", refusal: "I can't" },
      ]);
    });
  });

  describe("annotations", () => {
    const citing = (parts: string) =>
      answer(
        [{ type: "text", text: parts, citations: [{ url: "https://e.org", title: "E", startIndex: 3, endIndex: 6 }] }],
        {
          nonce: SECOND,
        },
      );
    const noted = (stream: string) =>
      wireEvents(stream)
        .filter(({ type }) => type.includes("annotation"))
        .map(({ annotation }) => annotation);

    test.each([
      ["restarted", "abcdef", 3, 6],
      ["restarted", "abXdef", 8, 11],
      ["continued", "abcdef", 6, 9],
    ] as const)("%s: name their places in the joined text of %s", (mode, value, start_index, end_index) => {
      const stream = join(sent, mode, citing(value));
      expect(noted(stream)).toMatchObject([{ start_index, end_index }]);
      const content = finalOf(stream).output[0]?.content as JsonObject[] | undefined;
      expect(content?.[0]?.annotations).toEqual(noted(stream));
    });

    test("of text that is in another item are left out", () => {
      const whole = answer([text("abcdef")]).slice(0, -1);
      expect(noted(join(whole, "restarted", citing("abcdefghi")))).toEqual([]);
    });
  });

  test("deltas with changed text lose their logprobs, others keep them", () => {
    const logprobs = [{ token: "x", logprob: -1 }];
    const delta = (value: string) =>
      event("response.output_text.delta", { output_index: 0, item_id: "m", content_index: 0, delta: value, logprobs });
    const done = event("response.output_text.done", {
      output_index: 0,
      item_id: "m",
      content_index: 0,
      text: "abdXghi",
    });
    const end = event("response.output_item.done", { output_index: 0, item: { id: "m", type: "message" } });
    const all = wireEvents(further(sent, "restarted", [delta("ab"), delta("dX"), delta("ghi"), done, end]));
    const events = all.filter(({ type }) => type.startsWith("response.output_text."));
    expect(events.map((wire) => [wire.delta ?? wire.text, wire.logprobs])).toEqual([
      ["\n\nabdX", []],
      ["ghi", logprobs],
      ["abc\n\nabdXghi", logprobs],
    ]);
  });

  test("engines that send no deltas, or the final response only, are understood", () => {
    const item = {
      id: "m",
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: "abcdef", annotations: [] }],
    };
    const tool = { id: "fc", type: "function_call", call_id: "c", name: "f", arguments: "{}", status: "completed" };
    const completed = event("response.completed", {
      response: { id: "x", status: "completed", output: [item, tool], output_text: "abcdef" },
    });
    const textDone = event("response.output_text.done", {
      output_index: 0,
      item_id: "m",
      content_index: 0,
      text: "abcdef",
    });
    const itemDone = event("response.output_item.done", { output_index: 0, item });
    for (const events of [[completed], [textDone, completed], [itemDone, completed], [textDone, itemDone, completed]]) {
      const stream = join(sent, "restarted", events);
      const output = wireEvents(stream);
      expect(output.filter(({ type }) => type.endsWith("text.delta")).map(({ delta }) => delta)).toEqual([
        "abc",
        "def",
      ]);
      const final = finalOf(stream);
      expect(messagesOf(final.output)).toEqual([["abcdef"]]);
      expect(final.output[1]).toEqual(tool);
      expect(final.output_text).toBe("abcdef");
      expect(output.filter((wire) => wire.type === "response.output_item.done").length).toBe(2);
    }
  });

  test("a failure is told with the first one's id and the next numbers", () => {
    const reader = restReader("responses", needSent(sent), "restarted");
    expect(reader?.push(bytes(event("error", { sequence_number: 0, message: "m", code: "c" })))).toBeUndefined();
    expect(reader?.failure).toMatchObject({ message: "m", code: "c" });
    const told = decoder.decode(reader?.fail({ message: "m", status: 502, code: "c" }));
    expect(wireEvents(told)).toMatchObject([
      { type: "error", sequence_number: 5, message: "m" },
      {
        type: "response.failed",
        sequence_number: 6,
        response: {
          id: `resp_${FIRST}`,
          created_at: 1000,
          model: "one",
          status: "failed",
          error: { message: "m" },
          output: [],
        },
      },
    ]);
  });

  test("events that nobody knows pass with ids and numbers put right, but for those of items", () => {
    const message = answer([text("abcdef")], { nonce: SECOND }).slice(2, 4);
    const own = { output_index: 0, item_id: `msg_${SECOND}00` };
    const output = further(sent, "restarted", [
      ...message,
      event("keepalive", { sequence_number: 77 }),
      event("response.future"),
      event("response.future", { response: { id: "x" } }),
      event("response.output_text.future", { ...own, content_index: 0, sequence_number: 4 }),
      "data: [DONE]\n\n",
    ]);
    expect(eventsOf(output)).toEqual([
      event("keepalive", { sequence_number: 5 }),
      event("response.future"),
      event("response.future", { response: { id: `resp_${FIRST}`, created_at: 1000, model: "one" } }),
    ]);
  });

  test("may come with CRLF, in any grouping; nothing left is undefined", () => {
    const crlf = second.map((part) => part.replaceAll("\n", "\r\n"));
    expect(further(sent, "restarted", crlf)).toBe(further(sent, "restarted", second));
    expect(further(sent, "restarted", [second.join("")])).toBe(further(sent, "restarted", second));
    expect(further(sent, "restarted", [second.slice(0, 4).join("")])).toBe("");
  });

  test("items that the first backend never closed are closed, but for the message that goes on", () => {
    const added = (output_index: number, type: string) =>
      event("response.output_item.added", { output_index, item: { id: `i${output_index}`, type } });
    const delta = (output_index: number, value: string) =>
      event("response.output_text.delta", {
        output_index,
        item_id: `i${output_index}`,
        content_index: 0,
        delta: value,
      });
    const first = [added(0, "message"), delta(0, "ab"), added(1, "reasoning"), added(2, "message"), delta(2, "c")];
    const stream = join([...sent.slice(0, 2), ...first], "restarted", second);
    const closed = wireEvents(stream).filter(({ type }) => type === "response.output_item.done");
    expect(closed.map(({ output_index }) => output_index)).toEqual([0, 1, 2]);
    const { output } = finalOf(stream);
    expect(output.map(({ id, status }) => [id, status])).toEqual([
      ["i0", "completed"],
      ["i1", undefined],
      ["i2", "completed"],
    ]);
    expect(messagesOf(output)).toEqual([["ab"], ["cdef"]]);
  });

  test("messages and calls that the second backend never closed are in its final response", () => {
    const tool = { id: "fc", type: "function_call", call_id: "c", name: "f", arguments: "{}" };
    const events = [
      ...second.slice(2, 6),
      event("response.output_item.added", { output_index: 1, item: { ...tool, arguments: "" } }),
      event("response.completed", { response: { output: [{ type: "message", content: [] }, tool] } }),
    ];
    const { output } = finalOf(join(sent, "restarted", events));
    expect(messagesOf(output)).toEqual([["abcdef"]]);
    expect(output[1]).toEqual({ ...tool, status: "completed" });
  });

  test("a part that the first backend never closed is in the item", () => {
    const place = { output_index: 0, item_id: `msg_${FIRST}00`, content_index: 1 };
    const first = [...sent, event("response.output_text.delta", { ...place, delta: "d" })];
    expect(messagesOf(finalOf(join(first, "restarted", second)).output)).toEqual([["abc", "def"]]);
  });

  test("a call that was never announced is one item", () => {
    const item = { id: "fc", type: "function_call", call_id: "c", name: "f", arguments: "{}" };
    const events = [
      event("response.function_call_arguments.delta", { output_index: 4, delta: "{}" }),
      event("response.output_item.done", { output_index: 4, item }),
      event("response.completed", { response: { output: [item] } }),
    ];
    const stream = join(sent, "restarted", events);
    expect(finalOf(stream).output.slice(1)).toEqual([{ ...item, id: expect.any(String), status: "completed" }]);
    const own = wireEvents(stream).filter(({ output_index }) => output_index === 1);
    expect(own.map(({ type }) => type)).toEqual([
      "response.output_item.added",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.output_item.done",
    ]);
  });

  test("a part has the annotations that the second backend tells only with its end", () => {
    const annotation = { type: "file_citation", file_id: "f" };
    const place = { output_index: 0, item_id: "m", content_index: 0 };
    const done = (value: string) =>
      event("response.content_part.done", {
        ...place,
        part: { type: "output_text", text: value, annotations: [annotation] },
      });
    const part = (mode: JoinMode, value: string) => wireEvents(further(sent, mode, [done(value)])).at(-1)?.part;
    expect(part("restarted", "abcdef")).toEqual({
      type: "output_text",
      text: "abcdef",
      annotations: [annotation],
      logprobs: [],
    });
    expect(part("continued", "def")).toMatchObject({ text: "abcdef", annotations: [annotation] });
  });

  test("each joiner begins anew", () => {
    const seen = needSent(sent);
    const outputs = [1, 2].map(() => restOf("responses", seen, "restarted", second));
    expect(outputs[0]).toBe(outputs[1] as string);
  });
});

describe("whatever the answer and wherever it broke off", () => {
  const words = fc.string({ unit: fc.constantFrom("a", "b", "ß", "🚂", '"', "\n"), minLength: 1, maxLength: 8 });
  const parts = fc.array(
    fc.oneof({ weight: 3, arbitrary: words.map(text) }, { weight: 1, arbitrary: words.map(thought) }),
    { minLength: 1, maxLength: 4 },
  );
  const sizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 });
  const nonce = fc.constantFrom(FIRST, SECOND);
  const plain = (list: readonly ContentPart[]) => list.map((part) => (part.type === "text" ? part.text : "")).join("");

  /** Every place where the answer can break off. */
  function cuts(events: readonly string[]): string[][] {
    return events.map((_event, index) => events.slice(0, index));
  }

  // Thoughts between two messages are not shown again, so that they become one message: what counts are its parts.
  const partsOf = (stream: string) => messagesOf(collect(stream).output).flat();

  test("the same answer again: once, part by part", () => {
    fc.assert(
      fc.property(parts, sizes, sizes, nonce, (list, cut, again, id) => {
        const whole = answer(list, { sizes: cut });
        const expected = partsOf(whole.join(""));
        for (const sent of cuts(whole)) {
          expect(partsOf(join(sent, "restarted", answer(list, { sizes: again, nonce: id })))).toEqual(expected);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("twice broken: still once", () => {
    fc.assert(
      fc.property(parts, sizes, sizes, fc.nat(), fc.nat(), (list, cut, again, one, two) => {
        const whole = answer(list, { sizes: cut });
        const sent = whole.slice(0, one % whole.length);
        const more = eventsOf(further(sent, "restarted", answer(list, { sizes: again, nonce: SECOND })));
        const all = [...sent, ...more.slice(0, two % more.length)];
        expect(partsOf(join(all, "restarted", answer(list, { nonce: SECOND })))).toEqual(partsOf(whole.join("")));
      }),
    );
  });

  test("the rest of it: the whole text", () => {
    fc.assert(
      fc.property(parts, words, sizes, (list, rest, cut) => {
        for (const sent of cuts(answer(list, { sizes: cut }))) {
          const seen = needSent(sent).text;
          expect(plain(list).startsWith(seen)).toBe(true);
          const second = answer([thought("hm"), text(rest)], { sizes: cut, nonce: SECOND });
          expect(textOf(collect(join(sent, "continued", second)).output)).toBe(seen + rest);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("another answer: whole, behind an empty line", () => {
    fc.assert(
      fc.property(parts, words, words, sizes, (list, other, more, cut) => {
        for (const sent of cuts(answer(list, { sizes: cut }))) {
          const seen = needSent(sent).text;
          const second = answer([text(`#${other}`), text(more)], { sizes: cut, nonce: SECOND });
          const separator = seen === "" ? "" : "\n\n";
          expect(textOf(collect(join(sent, "restarted", second)).output)).toBe(`${seen}${separator}#${other}${more}`);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("a shorter one: nothing new, and calls behind it pass", () => {
    fc.assert(
      fc.property(parts, sizes, fc.nat(), fc.boolean(), (list, cut, length, calls) => {
        for (const sent of cuts(answer(list, { sizes: cut }))) {
          const seen = needSent(sent).text;
          const part = text(seen.slice(0, length % (seen.length + 1)));
          const second = answer(calls ? [part, call()] : [part], { sizes: cut, nonce: SECOND });
          const { output } = collect(join(sent, "restarted", second));
          expect(textOf(output)).toBe(seen);
          expect(output.filter(({ type }) => type === "function_call").length).toBe(calls ? 1 : 0);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("events that make no sense are no trouble", () => {
    const types = fc.constantFrom(
      ...new Set([
        "error",
        "x",
        ...typesOf(answer([thought("a"), text("b"), call()]).join("")).map((type) => `response.${type}`),
      ]),
      "response.refusal.delta",
      "response.reasoning_text.delta",
      "response.output_text.annotation.added",
    );
    const place = fc.constantFrom(0, 1, 2, 7, -1, 1e21, "0", null, undefined);
    const wire = fc
      .constantFrom("message", "reasoning", "function_call", "", null)
      .map((type) => ({ type, id: "i", content: [{}, null, { text: "ab" }] }));
    const junk = fc.oneof(
      place,
      wire,
      fc.constantFrom("abc", [], {}, { type: "refusal" }, { type: "output_text", text: "abc" }),
    );
    const fields = fc.record(
      Object.fromEntries(
        [
          "output_index",
          "content_index",
          "sequence_number",
          "summary_index",
          "item_id",
          "item",
          "part",
          "delta",
          "text",
          "response",
          "annotation",
          "logprobs",
        ].map((name) => [name, junk]),
      ),
      { requiredKeys: [] },
    );
    const events = fc.array(
      fc.tuple(types, fields).map(([type, rest]) => event(type, rest as JsonObject)),
      { maxLength: 12 },
    );
    fc.assert(
      fc.property(events, events, (first, second) => {
        splitAtError(bytes(first.join("")));
        const sent = sentOf(first);
        for (const [mode] of MODES) if (sent !== undefined) restOf("responses", sent, mode, [second.join("")]);
      }),
      { numRuns: 500 },
    );
  });

  test("the grouping of events does not matter", () => {
    fc.assert(
      fc.property(
        parts,
        sizes,
        fc.nat(),
        fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1 }),
        (list, cut, at, groups) => {
          const whole = answer([...list, call()], { sizes: cut, nonce: SECOND });
          const first = answer(list, { sizes: cut });
          const sent = first.slice(0, at % first.length);
          const pieces: string[] = [];
          for (let index = 0, turn = 0; index < whole.length; turn++) {
            const size = groups[turn % groups.length] as number;
            pieces.push(whole.slice(index, index + size).join(""));
            index += size;
          }
          expect(further(sent, "restarted", pieces)).toBe(further(sent, "restarted", whole));
        },
      ),
    );
  });
});

describe("a backend's own error", () => {
  const delta = event("response.output_text.delta", { output_index: 0, delta: "Grüße 🚂" });
  const failure = { code: "server_error", message: "m" };
  const failed = event("response.failed", { response: { id: "r", error: failure } });
  const flat = event("error", { code: "rate_limit_exceeded", message: "m" });

  test.each([
    ["response.failed", failed, failure],
    ["response.failed that says nothing", event("response.failed"), { type: "response.failed" }],
    ["a flat error", flat, { type: "error", code: "rate_limit_exceeded", message: "m" }],
    ["a nested error", event("error", { error: failure }), failure],
    ["a chat engine's error", `data: {"error":${JSON.stringify(failure)}}\n\n`, failure],
  ])("is found: %s", (_title, told, error) => {
    for (const [before, end] of [
      ["", "\n"],
      [delta, "\n"],
      [delta + delta, "\r\n"],
      [delta, "\r"],
    ] as const) {
      const ahead = before.replaceAll("\n", end);
      const split = splitAtError(bytes(ahead + (told + delta).replaceAll("\n", end)));
      expect(split?.before === undefined ? "" : decoder.decode(split.before)).toBe(ahead);
      expect(split?.error).toEqual(error);
      expect(split?.data).toBe(readEvents(told)[0]?.data as string);
    }
  });

  test.each([
    ["text", delta],
    [
      "text that speaks of errors",
      event("response.output_text.delta", { delta: '"error" response.failed {"type":"error"}' }),
    ],
    ["a snapshot without an error", event("response.created", { response: { error: null } })],
    ["an item of the name", event("response.output_item.done", { item: { type: "error", error: "x" } })],
    ["an error in a completed answer", event("response.completed", { response: { error: failure } })],
    ["what is no JSON", 'data: "error"\n\ndata: {"error"\n\ndata: [DONE]\n\n'],
  ])("is not seen in %s", (_title, events) => {
    expect(splitAtError(bytes(events))).toBeUndefined();
  });

  test("bytes of a buffer with others around them are told apart", () => {
    const all = bytes(delta + flat + delta);
    const split = splitAtError(all.subarray(bytes(delta).length));
    expect(split?.before).toBeUndefined();
    expect(split?.data).toContain("rate_limit");
    expect(splitAtError(all.subarray(0, bytes(delta).length))).toBeUndefined();
  });
});

describe("asking for the rest", () => {
  const rest = [
    { type: "message", role: "assistant", content: [{ type: "output_text", text: "abc" }] },
    { type: "message", role: "user", content: [{ type: "input_text", text: "Go on." }] },
  ];

  test.each([
    ["a text", "Hi", [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] }]],
    ["items", [{ role: "user", content: "Hi" }], [{ role: "user", content: "Hi" }]],
  ])("behind %s", (_title, input, items) => {
    const request = { model: "m", input };
    const members = askForRest(request, "abc", "Go on.");
    expect(members).toEqual({ input: [...items, ...rest] });
    const asked = { ...request, ...members };
    expect(() => readResponsesRequest(asked)).not.toThrow();
    expect(decodeRequest(asked).messages).toMatchObject([
      { role: "user", parts: [{ type: "text", text: "Hi" }] },
      { role: "assistant", parts: [{ type: "text", text: "abc" }] },
      { role: "user", parts: [{ type: "text", text: "Go on." }] },
    ]);
    expect(request.input).toBe(input);
  });
});
