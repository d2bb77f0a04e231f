// Joining two streams of a Messages client: which answers can be continued at all, and that the client sees one message.

import { describe, expect, test } from "bun:test";
import { MessageStream } from "@anthropic-ai/sdk/lib/MessageStream";
import fc from "fast-check";
import { readSent, restReader } from "../../../test/support/second-stream.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { DecodeError } from "../protocol.ts";
import type { JoinMode } from "../seam.ts";
import { readEvents } from "../sse.ts";
import type { SentAnswer } from "../stream-join.ts";
import { wrapSeal } from "./foreign-seal.ts";
import { messagesJoin } from "./join.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const bytes = (text: string) => encoder.encode(text);

function event(type: string, more: JsonObject = {}): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
}

function start(id = "msg_first", usage: JsonObject = { input_tokens: 10, output_tokens: 1 }): string {
  const message = { id, type: "message", role: "assistant", model: id, content: [], stop_reason: null, usage };
  return event("message_start", { message });
}

const begin = (index: number, content_block: JsonObject) => event("content_block_start", { index, content_block });
const beginText = (index: number) => begin(index, { type: "text", text: "" });
const beginThinking = (index: number) => begin(index, { type: "thinking", thinking: "", signature: "" });
const delta = (index: number, value: JsonObject) => event("content_block_delta", { index, delta: value });
const text = (index: number, value: string) => delta(index, { type: "text_delta", text: value });
const thought = (index: number, thinking: string) => delta(index, { type: "thinking_delta", thinking });
const signature = (index: number, value: string) => delta(index, { type: "signature_delta", signature: value });
/** Tells thinking that no backend has signed. */
const UNPROVEN = wrapSeal({});
const unproven = (index: number) => signature(index, UNPROVEN);
const args = (index: number, partial_json: string) => delta(index, { type: "input_json_delta", partial_json });
const cite = (index: number, cited_text: string) =>
  delta(index, { type: "citations_delta", citation: { type: "char_location", cited_text } });
const stop = (index: number) => event("content_block_stop", { index });
const finish = (stop_reason = "end_turn", output_tokens = 7) =>
  event("message_delta", { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens } });
const STOP = event("message_stop");
const PING = event("ping");
const END = finish() + STOP;
const TOOL = { type: "tool_use", id: "toolu_1", name: "look", input: {} };

const SECOND = start("msg_second", { input_tokens: 20, cache_read_input_tokens: 5, output_tokens: 2 });

function sentAnswer(...events: readonly string[]) {
  return readSent("messages", ...events);
}

/** What the second stream becomes behind what was sent, one push for each piece. */
function joined(sent: string, mode: JoinMode, ...pieces: readonly string[]): string {
  const answer = sentAnswer(sent);
  if (answer === undefined) throw new Error("cannot be continued");
  const reader = restReader("messages", answer, mode);
  let output = "";
  for (const piece of pieces) {
    const left = reader === undefined ? bytes(piece) : reader.push(bytes(piece));
    expect(left?.length).not.toBe(0);
    output += decoder.decode(left);
  }
  return output;
}

interface Collected {
  id: unknown;
  content: JsonObject[];
  stopReason: unknown;
  usage: unknown;
}

/** Reads a whole message as strictly as the format allows. */
function collect(stream: string): Collected {
  const content: JsonObject[] = [];
  let id: unknown;
  let open: JsonObject | undefined;
  let json = "";
  let stopReason: unknown;
  let usage: unknown;
  let isOver = false;
  const need = (isTrue: boolean, what: string) => {
    if (!isTrue) throw new Error(`${what}\n${stream}`);
  };
  for (const { name, data } of readEvents(stream)) {
    const value = JSON.parse(data) as JsonObject;
    need(name === value.type, `name ${name} of ${data}`);
    need(!isOver, `${name} behind the end`);
    if (name === "ping") continue;
    need((id === undefined) === (name === "message_start"), `${name} out of place`);
    need(stopReason === undefined || name === "message_stop", `${name} behind message_delta`);
    switch (name) {
      case "message_start":
        id = (value.message as JsonObject).id;
        break;
      case "content_block_start":
        need(open === undefined, "two open blocks");
        need(value.index === content.length, `index ${value.index} where ${content.length} is next`);
        open = { ...(value.content_block as JsonObject) };
        json = "";
        content.push(open);
        break;
      case "content_block_delta": {
        need(open !== undefined && value.index === content.length - 1, `delta of ${value.index}, which is not open`);
        const { type, ...more } = value.delta as JsonObject;
        const of = { text_delta: "text", citations_delta: "text", input_json_delta: "tool_use" }[String(type)];
        need((of ?? "thinking") === open?.type, `${type} in ${open?.type}`);
        if (open === undefined) break;
        for (const [member, piece] of Object.entries(more)) {
          need(piece !== "" || member === "signature", "a delta without content");
          if (member === "partial_json") json += piece;
          else if (member === "citation") open.citations = [...((open.citations as unknown[]) ?? []), piece];
          else open[member] = `${open[member]}${piece}`;
        }
        break;
      }
      case "content_block_stop":
        need(open !== undefined && value.index === content.length - 1, `stop of ${value.index}, which is not open`);
        if (json !== "" && open !== undefined) open.input = JSON.parse(json);
        open = undefined;
        break;
      case "message_delta":
        need(open === undefined, "the message ends with an open block");
        stopReason = (value.delta as JsonObject).stop_reason;
        usage = value.usage;
        break;
      case "message_stop":
        need(stopReason !== undefined, "no message_delta");
        isOver = true;
        break;
      default:
        need(false, `unknown event ${name}`);
    }
  }
  need(isOver, "no end");
  return { id, content, stopReason, usage };
}

const textOf = ({ content }: Collected) => content.map((block) => (block.type === "text" ? block.text : "")).join("");

describe("what a client has seen", () => {
  test("is the text of all blocks, whatever stands between them", () => {
    const events = [start() + PING, beginThinking(0), thought(0, "hm"), signature(0, "s"), stop(0)];
    const rest = begin(1, { type: "redacted_thinking", data: "x" }) + stop(1) + begin(2, { type: "text", text: "Grü" });
    expect(sentAnswer(...events, rest, text(2, "ße"), stop(2), beginText(3), text(3, " 🚂"))?.text).toBe("Grüße 🚂");
  });

  test("is nothing before the first event", () => {
    expect(sentAnswer()?.text).toBe("");
    expect(sentAnswer(PING)?.text).toBe("");
    expect(sentAnswer(start())?.text).toBe("");
  });

  test("may hold comments, CRLF, a type only in the event's name, and events that nobody knows", () => {
    const odd = 'event: content_block_delta\ndata: {"index":0,"delta":{"type":"text_delta","text":"b"}}\n\n';
    const future = event("future", { delta: { stop_reason: "x" } });
    const stream = `: hello\n\n${start()}${beginText(0)}${text(0, "a")}${future}data: [DONE]\n\n${odd}`;
    expect(sentAnswer(stream.replaceAll("\n", "\r\n"))?.text).toBe("ab");
  });

  const nothingToSay = event("message_delta", { delta: { stop_reason: null }, usage: { output_tokens: 3 } });
  test("may hold counts before the end", () => {
    expect(sentAnswer(start(), beginText(0), text(0, "a"), stop(0), nothingToSay)?.text).toBe("a");
  });

  test.each([
    ["a tool call", stop(0) + begin(1, TOOL)],
    ["a tool call that is over", stop(0) + begin(1, TOOL) + args(1, "{}") + stop(1)],
    ["a tool of the vendor", stop(0) + begin(1, { ...TOOL, type: "server_tool_use" })],
    ["a tool's result", stop(0) + begin(1, { type: "web_search_tool_result", content: [] }) + stop(1)],
    ["a block that nobody knows", stop(0) + begin(1, { type: "future" })],
    ["a block that is none", stop(0) + event("content_block_start", { index: 1 })],
    ["a citation", cite(0, "a")],
    ["citations from the start", stop(0) + begin(1, { type: "text", text: "", citations: [{ type: "x" }] })],
    ["a stop reason", stop(0) + finish()],
    ["the end", stop(0) + STOP],
    ["an error", event("error", { error: { type: "overloaded_error", message: "x" } })],
    ["a second start", SECOND],
    ["two open blocks", beginText(1)],
    ["an index that was there", stop(0) + beginText(0)],
    ["an index that is none", stop(0) + begin(1.5, { type: "text", text: "" })],
    ["a delta of another block", text(1, "b")],
    ["a delta of no block", stop(0) + text(0, "b")],
    ["a delta without index", stop(0) + event("content_block_delta", { delta: { type: "text_delta", text: "b" } })],
    ["a delta that is none", event("content_block_delta", { index: 0 })],
    ["the end of another block", stop(1)],
    ["the end of no block", stop(0) + event("content_block_stop")],
  ])("cannot be continued: %s", (_title, more) => {
    const sent = start() + beginText(0) + text(0, "a");
    expect(sentAnswer(sent)).toBeDefined();
    expect(sentAnswer(sent, more)).toBeUndefined();
  });

  test.each([
    ["a block before the start", beginText(0)],
    ["content in the start", event("message_start", { message: { content: [{ type: "text", text: "a" }] } })],
  ])("cannot be continued: %s", (_title, sent) => {
    expect(sentAnswer(sent)).toBeUndefined();
  });
});

describe("a second stream", () => {
  const sentText = start() + beginText(0) + text(0, "ab");
  const sentClosed = sentText + stop(0);
  const sentThinking = start() + beginThinking(0) + thought(0, "hm");

  test.each(["continued", "restarted"] as const)("%s: is the answer as it is when nothing was sent", (mode) => {
    const stream = SECOND + beginText(0) + text(0, "a") + stop(0) + END;
    expect(joined("", mode, stream)).toBe(stream);
    expect(joined(PING, mode, stream.replaceAll("\n", "\r\n"))).toBe(stream.replaceAll("\n", "\r\n"));
  });

  test.each<[title: string, sent: string, mode: JoinMode, second: string, output: string]>([
    ["start is dropped", start(), "restarted", SECOND, ""],
    ["ping passes", sentText, "restarted", PING, PING],
    ["text goes on in the open block", sentText, "continued", beginText(0) + text(0, "c"), text(0, "c")],
    [
      "its end is the open block's",
      sentText,
      "continued",
      beginText(0) + text(0, "c") + stop(0),
      text(0, "c") + stop(0),
    ],
    ["text opens a block", sentClosed, "continued", beginText(0) + text(0, "c"), beginText(1) + text(1, "c")],
    ["index of the open block", sentClosed + beginText(1), "continued", beginText(0) + text(0, "c"), text(1, "c")],
    ["text of the start", sentText, "continued", begin(0, { type: "text", text: "c" }), text(0, "c")],
    ["repetition is swallowed", sentText, "restarted", beginText(0) + text(0, "a") + text(0, "bc"), text(0, "c")],
    ["a difference is shown", sentText, "restarted", beginText(0) + text(0, "ax"), text(0, "\n\nax")],
    [
      "a difference in a block of its own",
      sentClosed,
      "restarted",
      beginText(0) + text(0, "a") + stop(0) + beginText(1) + text(1, "x") + stop(1),
      beginText(1) + text(1, "\n\nax") + stop(1),
    ],
    [
      "blocks are the same again",
      sentClosed + beginText(1) + text(1, "c"),
      "restarted",
      beginText(0) + text(0, "ab") + stop(0) + beginText(1) + text(1, "c") + stop(1) + beginText(2) + text(2, "d"),
      stop(1) + beginText(2) + text(2, "d"),
    ],
    [
      "an open block without text waits for its text",
      sentClosed + beginText(1),
      "restarted",
      beginText(0) + text(0, "ab") + stop(0) + beginText(1) + text(1, "c") + stop(1),
      text(1, "c") + stop(1),
    ],
    [
      "an empty block leaves the open one open",
      sentText,
      "continued",
      beginText(0) + text(0, "") + stop(0) + beginText(1) + text(1, "c"),
      text(0, "c"),
    ],
    [
      "text of the first one's start is repeated",
      start() + begin(0, { type: "text", text: "ab" }),
      "restarted",
      beginText(0) + text(0, "ab") + stop(0) + beginText(1) + text(1, "c"),
      stop(0) + beginText(1) + text(1, "c"),
    ],
    [
      "citations of a start that is shown",
      sentClosed,
      "continued",
      begin(0, { type: "text", text: "c", citations: [{ type: "char_location", cited_text: "x" }] }),
      beginText(1) + text(1, "c") + cite(1, "x"),
    ],
    ["an empty block", sentClosed, "continued", beginText(0) + text(0, "") + stop(0), ""],
    [
      "thinking behind text",
      sentText,
      "restarted",
      beginThinking(0) + thought(0, "x") + signature(0, "s") + stop(0),
      "",
    ],
    ["thinking behind thinking", sentThinking, "restarted", beginThinking(0) + thought(0, "x") + stop(0), ""],
    ["redacted thinking", sentText, "restarted", begin(0, { type: "redacted_thinking", data: "x" }) + stop(0), ""],
    [
      "thinking when nothing was shown",
      start(),
      "restarted",
      beginThinking(0) + thought(0, "x") + stop(0) + beginThinking(1) + stop(1) + beginText(2) + text(2, "a"),
      beginThinking(0) + thought(0, "x") + unproven(0) + stop(0) + beginText(1) + text(1, "a"),
    ],
    [
      "open thinking is closed before text",
      sentThinking,
      "restarted",
      beginThinking(0) + stop(0) + beginText(1) + text(1, "a") + stop(1),
      unproven(0) + stop(0) + beginText(1) + text(1, "a") + stop(1),
    ],
    [
      "open thinking is closed before a tool",
      sentThinking,
      "restarted",
      begin(0, TOOL),
      unproven(0) + stop(0) + begin(1, TOOL),
    ],
    ["open thinking is closed before the end", sentThinking, "restarted", END, unproven(0) + stop(0) + END],
    [
      "a signature that was sent already is not sent again",
      sentThinking + signature(0, "proof"),
      "restarted",
      END,
      stop(0) + END,
    ],
    [
      "a tool closes the text",
      sentText,
      "continued",
      begin(0, TOOL) + args(0, '{"a":') + args(0, "1}") + stop(0),
      stop(0) + begin(1, TOOL) + args(1, '{"a":') + args(1, "1}") + stop(1),
    ],
    [
      "a tool ends the repetition",
      sentText,
      "restarted",
      beginText(0) + text(0, "a") + stop(0) + begin(1, TOOL) + stop(1) + beginText(2) + text(2, "b"),
      stop(0) + begin(1, TOOL) + args(1, "{}") + stop(1) + beginText(2) + text(2, "b"),
    ],
    [
      "other blocks pass whole",
      sentClosed,
      "restarted",
      begin(0, { type: "web_search_tool_result", tool_use_id: "s", content: [] }) + stop(0),
      begin(1, { type: "web_search_tool_result", tool_use_id: "s", content: [] }) + stop(1),
    ],
    [
      "a citation behind new text",
      sentText,
      "continued",
      beginText(0) + text(0, "c") + cite(0, "x"),
      text(0, "c") + cite(0, "x"),
    ],
    [
      "a citation before new text",
      sentClosed,
      "continued",
      beginText(0) + cite(0, "x") + text(0, "c"),
      beginText(1) + cite(1, "x") + text(1, "c"),
    ],
    [
      "citations of the start",
      sentText,
      "continued",
      begin(0, { type: "text", text: "c", citations: [{ type: "char_location", cited_text: "x" }] }),
      text(0, "c") + cite(0, "x"),
    ],
    ["a citation of repeated text", sentText, "restarted", beginText(0) + text(0, "ab") + cite(0, "x"), ""],
    ["text without a start", sentClosed, "continued", text(0, "c") + stop(0), beginText(1) + text(1, "c") + stop(1)],
    [
      "text inside of thinking",
      sentClosed,
      "continued",
      beginThinking(0) + text(0, "c") + stop(0),
      beginText(1) + text(1, "c") + stop(1),
    ],
    ["other deltas without a start", sentText, "continued", args(0, "") + thought(0, "x") + stop(0), ""],
    ["deltas and blocks that are none", sentText, "continued", event("content_block_delta") + begin(0, {}), ""],
    [
      "overlapping blocks come one after the other",
      sentText,
      "continued",
      begin(0, TOOL) +
        begin(1, { ...TOOL, id: "b" }) +
        args(0, "{") +
        args(1, "[") +
        args(0, "}") +
        stop(0) +
        args(1, "]"),
      stop(0) +
        begin(1, TOOL) +
        args(1, "{") +
        args(1, "}") +
        stop(1) +
        begin(2, { ...TOOL, id: "b" }) +
        args(2, "[") +
        args(2, "]"),
    ],
    [
      "blocks that are never stopped",
      sentClosed,
      "continued",
      begin(0, TOOL) + begin(0, { ...TOOL, id: "b" }) + beginText(1) + text(1, "c") + beginText(2) + text(2, "d") + END,
      begin(1, TOOL) +
        args(1, "{}") +
        stop(1) +
        begin(2, { ...TOOL, id: "b" }) +
        args(2, "{}") +
        stop(2) +
        beginText(3) +
        text(3, "c") +
        stop(3) +
        beginText(4) +
        text(4, "d") +
        stop(4) +
        END,
    ],
    [
      "blocks in the start of the message",
      sentText,
      "continued",
      event("message_start", { message: { content: [TOOL, { type: "text", text: "c" }, null] } }),
      stop(0) + begin(1, TOOL) + args(1, "{}") + stop(1) + beginText(2) + text(2, "c") + stop(2),
    ],
    ["the end closes the text", sentText, "restarted", END, stop(0) + END],
    [
      "an answer that ends early adds nothing",
      sentText,
      "restarted",
      beginText(0) + text(0, "a") + stop(0) + END,
      stop(0) + END,
    ],
    ["unknown events pass", sentText, "restarted", event("future", { index: 5 }), event("future", { index: 5 })],
    ["comments are left out", sentText, "restarted", ": keep-alive\n\n", ""],
    ["the type may stand in the name", sentText, "continued", 'event: content_block_stop\ndata: {"index":0}\n\n', ""],
  ])("%s", (_title, sent, mode, second, output) => {
    expect(joined(sent, mode, second)).toBe(output);
    expect(joined(sent, mode, second.replaceAll("\n", "\r\n"))).toBe(output);
    expect(joined(sent, mode, second.replaceAll("\n", "\r"))).toBe(output);
    const single = second.split(/(?<=\n\n)/);
    expect(joined(sent, mode, ...single)).toBe(output);
  });

  test("an error is told in the client's format; nothing follows it", () => {
    const reader = restReader("messages", sentAnswer(sentText) as SentAnswer, "restarted");
    expect(reader?.push(bytes(event("error", { error: { message: "m" } }) + text(0, "c")))).toBeUndefined();
    expect(reader?.failure).toMatchObject({ message: "m" });
    const told = decoder.decode(reader?.fail({ message: "m", status: 529 }));
    expect(told).toBe(event("error", { error: { type: "overloaded_error", message: "m" } }));
  });

  test.each([
    ["data that is no JSON", "data: a\ndata: b\n\n"],
    ["arguments of no call", args(0, "{}")],
    ["a third message inside of the second", SECOND + beginText(0) + text(0, "c") + start("msg_third")],
  ])("breaks off where it makes no sense: %s", (_title, second) => {
    const reader = restReader("messages", sentAnswer(sentText) as SentAnswer, "continued");
    expect(() => reader?.push(bytes(second))).toThrow(DecodeError);
  });

  test("has a name for every event, even where the backend gave none", () => {
    const second = `${text(0, "c")}${finish()}${STOP}`.replaceAll(/event: .*\n/g, "");
    expect(joined(sentText, "continued", second)).toBe(text(0, "c") + stop(0) + finish() + STOP);
  });

  test("keeps members that nobody knows", () => {
    const second = event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "abc", a: 1 }, b: 2 });
    const output = event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "c", a: 1 }, b: 2 });
    expect(joined(sentText, "restarted", beginText(0) + second)).toBe(output);
  });

  test("counts its own tokens, those of its start included", () => {
    const { usage } = collect(sentText + joined(sentText, "continued", SECOND, END));
    expect(usage).toEqual({ input_tokens: 20, cache_read_input_tokens: 5, output_tokens: 7 });
  });

  test("keeps the counts of its end", () => {
    const usage = { input_tokens: 21, cache_read_input_tokens: null, output_tokens: 7, server_tool_use: null };
    const end = event("message_delta", { delta: { stop_reason: "end_turn" }, usage });
    const output = joined(sentText, "continued", SECOND, end, STOP);
    expect(JSON.parse(readEvents(output).at(-2)?.data ?? "")).toMatchObject({
      usage: { ...usage, cache_read_input_tokens: 5 },
    });
    const uncounted = event("message_delta", { delta: { stop_reason: "end_turn" } });
    expect(joined(sentText, "continued", SECOND, uncounted, STOP)).toBe(stop(0) + uncounted + STOP);
  });

  test("can be continued by a third", () => {
    const second = joined(sentText, "continued", SECOND + beginText(0) + text(0, "cd"));
    const all = sentText + second;
    expect(sentAnswer(sentText, second)?.text).toBe("abcd");
    const third = joined(all, "restarted", SECOND + beginText(0) + text(0, "abcde") + stop(0) + END);
    expect(collect(all + third)).toMatchObject({ id: "msg_first", content: [{ type: "text", text: "abcde" }] });
  });

  test("can be begun anew: two joiners of one answer know nothing of each other", () => {
    const answer = sentAnswer(sentText);
    for (let round = 0; round < 2; round++) {
      const reader = answer && restReader("messages", answer, "restarted");
      expect(decoder.decode(reader?.push(bytes(beginText(0) + text(0, "abc") + stop(0))))).toBe(text(0, "c") + stop(0));
    }
  });
});

interface Answer {
  thinking: readonly string[] | undefined;
  blocks: readonly (readonly string[])[];
}

/** Every event of a whole answer, one per item. */
function eventsOf({ thinking, blocks }: Answer, id: string, extra: readonly string[] = []): string[] {
  const events = [start(id)];
  let index = 0;
  if (thinking !== undefined) {
    events.push(beginThinking(0), ...thinking.map((piece) => thought(0, piece)), signature(0, "sig"), stop(0));
    index = 1;
  }
  for (const block of blocks) {
    events.push(beginText(index), ...block.map((piece) => text(index, piece)), stop(index));
    index++;
  }
  return [...events, ...extra, finish(), STOP];
}

const fragment = fc.string({ minLength: 1, maxLength: 4, unit: fc.constantFrom("a", "b", " ", "\n", '"', "ü", "🚂") });
const fragments = fc.array(fragment, { minLength: 1, maxLength: 4 });
const anyAnswer: fc.Arbitrary<Answer> = fc.record({
  thinking: fc.option(fragments, { nil: undefined }),
  blocks: fc.array(fragments, { minLength: 1, maxLength: 3 }),
});

/** Cuts a stream into pieces of whole events. */
function grouped(events: readonly string[], sizes: readonly number[]): string[] {
  const pieces: string[] = [];
  for (let at = 0, turn = 0; at < events.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    pieces.push(events.slice(at, at + size).join(""));
    at += size;
  }
  return pieces;
}

const sizes = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 4 });
const whole = (answer: Answer) => answer.blocks.flat().join("");

/** Joins at every cut that leaves the answer unfinished. */
function atEveryCut(answer: Answer, check: (sent: string, events: readonly string[], textSoFar: string) => void): void {
  const events = eventsOf(answer, "msg_first");
  for (let cut = 1; cut < events.length - 1; cut++) {
    const sent = events.slice(0, cut).join("");
    check(sent, events.slice(0, cut), sentAnswer(sent)?.text ?? "cannot be continued");
  }
}

describe("joined at any event", () => {
  test("an answer that is repeated is one answer, in the same blocks", () => {
    fc.assert(
      fc.property(anyAnswer, sizes, (answer, groups) => {
        atEveryCut(answer, (sent) => {
          const message = collect(sent + joined(sent, "restarted", ...grouped(eventsOf(answer, "msg_second"), groups)));
          expect(message.id).toBe("msg_first");
          const texts = message.content.filter((block) => block.type === "text").map((block) => block.text);
          expect(texts).toEqual(answer.blocks.map((block) => block.join("")));
          const thoughts = message.content.filter((block) => block.type === "thinking").map((block) => block.thinking);
          expect(thoughts.length).toBe(answer.thinking === undefined ? 0 : 1);
          expect((answer.thinking ?? []).join("")).toStartWith(String(thoughts[0] ?? ""));
        });
      }),
      { numRuns: 60 },
    );
  });

  test("the same text in other blocks, and in other pieces, is there once", () => {
    fc.assert(
      fc.property(anyAnswer, fc.nat(), fc.boolean(), (answer, where, thinks) => {
        const letters = whole(answer);
        const middle = where % letters.length;
        const blocks = [[letters.slice(0, middle)], [letters.slice(middle)]].filter(([piece]) => piece !== "");
        const second = eventsOf({ thinking: thinks ? ["x"] : undefined, blocks }, "msg_second");
        atEveryCut(answer, (sent) => {
          expect(textOf(collect(sent + joined(sent, "restarted", second.join(""))))).toBe(letters);
        });
      }),
      { numRuns: 60 },
    );
  });

  test("the rest of an answer stands behind what was sent", () => {
    fc.assert(
      fc.property(anyAnswer, anyAnswer, sizes, (answer, rest, groups) => {
        atEveryCut(answer, (sent, _events, before) => {
          const output = joined(sent, "continued", ...grouped(eventsOf(rest, "msg_second"), groups));
          expect(textOf(collect(sent + output))).toBe(before + whole(rest));
        });
      }),
      { numRuns: 60 },
    );
  });

  test("another answer stands behind an empty line", () => {
    fc.assert(
      fc.property(anyAnswer, anyAnswer, sizes, (answer, other, groups) => {
        const changed = { ...other, blocks: [["#"], ...other.blocks] };
        atEveryCut(answer, (sent, _events, before) => {
          const output = joined(sent, "restarted", ...grouped(eventsOf(changed, "msg_second"), groups));
          const expected = before === "" ? whole(changed) : `${before}\n\n${whole(changed)}`;
          expect(textOf(collect(sent + output))).toBe(expected);
        });
      }),
      { numRuns: 60 },
    );
  });

  test("an answer that ends within what was sent adds nothing but its end", () => {
    fc.assert(
      fc.property(anyAnswer, fc.nat(), (answer, where) => {
        atEveryCut(answer, (sent, _events, before) => {
          if (before === "") return;
          const short = before.slice(0, (where % before.length) + 1);
          const output = joined(sent, "restarted", ...eventsOf({ thinking: ["x"], blocks: [[short]] }, "msg_second"));
          expect(textOf(collect(sent + output))).toBe(before);
          expect(output).not.toContain("content_block_delta");
          expect(output).not.toContain("content_block_start");
        });
      }),
      { numRuns: 60 },
    );
  });

  test("a tool call behind repeated text passes", () => {
    fc.assert(
      fc.property(anyAnswer, sizes, (answer, groups) => {
        const index = answer.blocks.length + (answer.thinking === undefined ? 0 : 1);
        const tool = [begin(index, TOOL), args(index, '{"a":'), args(index, '"b"}'), stop(index)];
        const second = eventsOf(answer, "msg_second", tool);
        atEveryCut(answer, (sent) => {
          const message = collect(sent + joined(sent, "restarted", ...grouped(second, groups)));
          expect(textOf(message)).toBe(whole(answer));
          expect(message.content.at(-1)).toEqual({ ...TOOL, input: { a: "b" } });
        });
      }),
      { numRuns: 60 },
    );
  });

  test("events in any grouping give the same", () => {
    fc.assert(
      fc.property(
        anyAnswer,
        anyAnswer,
        sizes,
        fc.constantFrom<JoinMode>("continued", "restarted"),
        (one, two, groups, mode) => {
          const second = eventsOf(two, "msg_second");
          atEveryCut(one, (sent, events) => {
            const output = joined(sent, mode, ...second);
            expect(joined(sent, mode, ...grouped(second, groups))).toBe(output);
            expect(sentAnswer(...grouped(events, groups))?.text).toBe(sentAnswer(sent)?.text ?? "");
          });
        },
      ),
      { numRuns: 40 },
    );
  });

  test("the order is valid whatever the second stream does", () => {
    const index = fc.nat(2);
    const anyEvent = fc.oneof(
      index.map(beginText),
      index.map(beginThinking),
      index.map((at) => begin(at, TOOL)),
      index.map((at) => text(at, "a")),
      index.map((at) => text(at, "x")),
      index.map((at) => thought(at, "t")),
      index.map(stop),
      fc.constantFrom(PING, SECOND),
    );
    fc.assert(
      fc.property(
        anyAnswer,
        fc.array(anyEvent, { maxLength: 20 }),
        fc.constantFrom<JoinMode>("continued", "restarted"),
        (answer, second, mode) => {
          // Deltas that stand in a block of another type are not put in order: clients ignore them.
          const isBlockEnd = (type: string) => type !== "content_block_delta";
          atEveryCut(answer, (sent) => {
            const output = sent + untilBroken(sent, mode, [...second, END]);
            let open = 0;
            let next = 0;
            for (const { data } of readEvents(output)) {
              const { type, index: at } = JSON.parse(data) as { type: string; index: number };
              if (type === "content_block_start") {
                expect([open, at]).toEqual([0, next]);
                open = 1;
                next++;
              } else if (type.startsWith("content_block")) {
                expect([open, at]).toEqual([1, next - 1]);
                if (isBlockEnd(type)) open = 0;
              } else if (type !== "ping") expect(open).toBe(0);
            }
          });
        },
      ),
      { numRuns: 100 },
    );
  });
});

/** The output up to where the second stream makes no sense. */
function untilBroken(sent: string, mode: JoinMode, pieces: readonly string[]): string {
  for (let count = pieces.length; ; count--) {
    try {
      return joined(sent, mode, ...pieces.slice(0, count));
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
    }
  }
}

describe("the vendor's own library", () => {
  async function accumulate(stream: string) {
    const lines = readEvents(stream).map(({ data }) => bytes(`${data}\n`));
    const source = new ReadableStream({
      start(controller) {
        for (const line of lines) controller.enqueue(line);
        controller.close();
      },
    });
    return await MessageStream.fromReadableStream(source).finalMessage();
  }

  test("accepts a joined stream", async () => {
    const sent =
      start() + beginThinking(0) + thought(0, "hm") + signature(0, "s") + stop(0) + beginText(1) + text(1, "On");
    const second =
      SECOND +
      beginThinking(0) +
      thought(0, "again") +
      stop(0) +
      beginText(1) +
      text(1, "Once") +
      stop(1) +
      begin(2, TOOL) +
      args(2, '{"a":1}') +
      stop(2) +
      finish("tool_use", 9) +
      STOP;
    const message = await accumulate(sent + joined(sent, "restarted", second));
    expect(message).toMatchObject({
      id: "msg_first",
      stop_reason: "tool_use",
      usage: { input_tokens: 20, cache_read_input_tokens: 5, output_tokens: 9 },
      content: [
        { type: "thinking", thinking: "hm", signature: "s" },
        { type: "text", text: "Once" },
        { ...TOOL, input: { a: 1 } },
      ],
    });
  });

  test("accepts thinking that broke off", async () => {
    const sent = start() + beginThinking(0) + thought(0, "hm");
    const second =
      SECOND + beginThinking(0) + thought(0, "x") + signature(0, "s") + stop(0) + beginText(1) + text(1, "a");
    const message = await accumulate(sent + joined(sent, "restarted", second, stop(1) + END));
    expect(message.content).toMatchObject([
      { type: "thinking", thinking: "hm", signature: UNPROVEN },
      { type: "text", text: "a" },
    ]);
  });
});

describe("a backend's own error", () => {
  const error = { type: "overloaded_error", message: "später" };
  const told = event("error", { error });
  const split = (stream: string) => {
    const result = messagesJoin.splitAtError(bytes(stream));
    return result && { ...result, before: result.before && decoder.decode(result.before) };
  };

  test.each([
    ["alone", "", told],
    ["behind text", text(0, "Grüße 🚂") + PING, told],
    ["behind a comment", ": hello\n\n", told],
    ["before others", text(0, "a"), told + text(0, "b") + told],
  ])("%s is cut off, to the byte", (_title, before, rest) => {
    const data = JSON.stringify({ type: "error", error });
    const expected = { before: before === "" ? undefined : before, error, data };
    expect(split(before + rest)).toEqual(expected);
    const carriage = (stream: string, end: string) => stream.replaceAll("\n", end);
    for (const end of ["\r\n", "\r"]) {
      expect(split(carriage(before + rest, end))).toEqual({
        ...expected,
        before: before === "" ? undefined : carriage(before, end),
      });
    }
  });

  test("is found in a view of a larger buffer", () => {
    const stream = bytes(`xx${PING}${told}`);
    expect(messagesJoin.splitAtError(stream.subarray(2))?.before).toEqual(bytes(PING));
    expect(messagesJoin.splitAtError(stream.subarray(2, 2 + PING.length))).toBeUndefined();
  });

  test.each([
    ["without a name", `data: {"type": "error", "error": {"message": "x"}}\n\n`, { message: "x" }],
    ["without a type", `event: error\ndata: {"error":"x"}\n\n`, "x"],
    ["without both", `data: {"error":{"code":500}}\n\n`, { code: 500 }],
    ["without the member", `event: error\ndata: {"detail":"x"}\n\n`, { detail: "x" }],
    ["that is no JSON", "event:error\ndata: upstream is gone\n\n", {}],
    [
      "of another type",
      `event: error\ndata: {"type":"overloaded_error","message":"x"}\n\n`,
      { type: "overloaded_error", message: "x" },
    ],
  ])("may be one %s", (_title, stream, expected) => {
    expect(split(PING + stream)).toMatchObject({ before: PING, error: expected });
  });

  test.each([
    ["text", text(0, 'event: error\ndata: {"type":"error","error":{}}\n\n')],
    ["a word of text", text(0, "error")],
    ["arguments", args(0, '{"type":"error","error":1}')],
    ["a tool's result", begin(0, { type: "x", content: { type: "error", error: "x" } })],
    ["an error that is none", `${event("ping", { error: null })}data: {"error":null}\n\n`],
    ["data that is no object", 'data: "error"\n\ndata: ["error"]\n\n'],
    ["a comment", ': "error"\n\n'],
  ])("is not seen in %s", (_title, stream) => {
    expect(split(stream)).toBeUndefined();
    expect(split(stream + told)?.before).toBe(stream);
  });

  test("is cut off wherever it stands", () => {
    const before = fc.array(
      fc.oneof(
        fc.string({ unit: "binary" }).map((value) => text(0, value)),
        fc.constant(PING),
      ),
    );
    fc.assert(
      fc.property(before, (events) => {
        const stream = events.join("");
        expect(split(stream)).toBeUndefined();
        expect(split(stream + told)?.before ?? "").toBe(stream);
      }),
    );
  });
});

describe("a request for the rest", () => {
  test("has the text as the model's own turn, and the prompt", () => {
    const request = { model: "m", messages: [{ role: "user", content: "hi" }], max_tokens: 1 };
    expect(messagesJoin.askForRest(request, "Once upon ", "Go on.")).toEqual({
      messages: [
        { role: "user", content: "hi" },
        { role: "assistant", content: "Once upon " },
        { role: "user", content: "Go on." },
      ],
    });
    expect(request.messages.length).toBe(1);
  });
});

test("the collector of these tests is strict", () => {
  const good = start() + beginText(0) + text(0, "a") + stop(0) + END;
  expect(isObject(collect(good))).toBe(true);
  const bad = [
    start() + good,
    start() + beginText(1) + stop(1) + END,
    start() + beginText(0) + beginText(1) + stop(1) + stop(0) + END,
    start() + beginText(0) + text(1, "a") + stop(0) + END,
    start() + text(0, "a") + END,
    start() + beginText(0) + END,
    start() + beginText(0) + thought(0, "a") + stop(0) + END,
    start() + END + END,
    start(),
  ];
  for (const stream of bad) expect(() => collect(stream)).toThrow();
});
