// Streams of Ollama's servers: lines as events wherever they are cut, and what the gateway reads of them.

import { describe, expect, test } from "bun:test";
import { collect } from "../../generation/collect.ts";
import type { GenerationEvent } from "../../generation/events.ts";
import type { JsonObject } from "../../lib/json.ts";
import { ollama } from "./index.ts";
import { LineEvents } from "./line-events.ts";
import { OllamaStreamDecoder } from "./stream-decoder.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const STREAM = '{"a":"é\u{1F600}"}\n\n{"b":2}\r\n{"c":3}';
const EVENTS = 'data: {"a":"é\u{1F600}"}\n\ndata: {"b":2}\r\n\ndata: {"c":3}\n\n';

describe("lines as events", () => {
  test("wherever the stream is cut", () => {
    const bytes = encoder.encode(STREAM);
    const read = (pieces: readonly Uint8Array[]) => {
      const framer = new LineEvents();
      const written = [...pieces.map((piece) => framer.push(piece)), framer.rest()];
      return written.map((events) => decoder.decode(events)).join("");
    };
    for (let first = 0; first <= bytes.length; first++) {
      for (let second = first; second <= bytes.length; second++) {
        const pieces = [bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second)];
        expect(read(pieces)).toBe(EVENTS);
      }
    }
    expect(read(Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)))).toBe(EVENTS);
  });

  test("a line that is not whole is held up to a limit", () => {
    const framer = new LineEvents(10);
    expect(framer.push(encoder.encode("1234567"))).toBeUndefined();
    expect(() => framer.push(encoder.encode("8901"))).toThrow(RangeError);
  });
});

function decode(...objects: JsonObject[]): GenerationEvent[] {
  const stream = new OllamaStreamDecoder();
  return [...objects.flatMap((object) => stream.push(JSON.stringify(object))), ...stream.end()];
}

const said = (content: string, more = {}) => ({
  model: "m",
  message: { role: "assistant", content, ...more },
  done: false,
});

describe("the events that the gateway reads", () => {
  test("of a conversation", () => {
    const call = (name: string, args: JsonObject) => ({ function: { name, arguments: args } });
    const events = decode(
      said("", { thinking: "H" }),
      said("", { thinking: "m." }),
      said("I "),
      said("look."),
      said("", { tool_calls: [call("a", { x: 1 }), { id: "id", ...call("b", {}) }] }),
      { ...said(""), done: true, done_reason: "stop", prompt_eval_count: 7, eval_count: 3 },
    );
    expect(collect(events)).toEqual({
      ...{ id: "", model: "m", createdAt: 0 },
      parts: [
        { type: "reasoning", text: "Hm." },
        { type: "text", text: "I look." },
        { type: "tool-call", id: "tool_0", name: "a", arguments: '{"x":1}' },
        { type: "tool-call", id: "id", name: "b", arguments: "{}" },
      ],
      finish: { reason: "tool-calls" },
      usage: { input: { total: 7 }, output: { total: 3 } },
    });
  });

  test("of a prompt, and of a limit", () => {
    expect(
      collect(decode({ response: "One", done: false }, { response: "", done: true, done_reason: "length" })),
    ).toEqual({
      ...{ id: "", model: "", createdAt: 0, parts: [{ type: "text", text: "One" }], finish: { reason: "length" } },
    });
  });

  test("an error ends them, and a stream without its end has no finish", () => {
    expect(decode(said("One"), { error: "no memory" }).at(-1)).toEqual({
      type: "failure",
      failure: { message: "no memory", status: 502 },
    });
    expect(decode(said("One")).some(({ type }) => type === "finish")).toBe(false);
  });
});

describe("a stream that passes", () => {
  const watched = (...objects: JsonObject[]) => {
    const watch = ollama.passing.watch({ choices: 1 });
    for (const object of objects) watch.push(encoder.encode(`data: ${JSON.stringify(object)}\n\n`));
    return { isDone: watch.isDone, verdict: watch.verdict(), usage: watch.usage };
  };

  test("is over with the object that is done, whatever is said in between", () => {
    const call = said("", { tool_calls: [{ function: { name: "f", arguments: { done: true } } }] });
    expect(watched(call)).toMatchObject({ isDone: false, verdict: "incomplete" });
    expect(watched(call, { ...said(""), done: true, eval_count: 3 })).toEqual({
      ...{ isDone: true, verdict: "done", usage: { input: { total: 0 }, output: { total: 3 } } },
    });
    expect(watched(said("One"), { error: "no memory" }).verdict).toBe("reported");
  });

  test("has the gateway's prompt among its instructions", () => {
    const merge = (strategy: "prepend" | "append" | "replace") => ({ strategy, separator: " " });
    const system = (content: string) => ({ role: "system", content });
    const user = { role: "user", content: "hi" };
    const inject = (messages: JsonObject[], strategy: Parameters<typeof merge>[0]) =>
      ollama.passing.injectPrompt?.({ messages }, "P", merge(strategy))?.messages;
    expect(inject([user], "append")).toEqual([system("P"), user]);
    const two = [system("a"), system("b"), user, system("c")];
    expect(inject(two, "prepend")).toEqual([system("P a"), system("b"), user, system("c")]);
    expect(inject(two, "append")).toEqual([system("a"), system("b P"), user, system("c")]);
    expect(inject(two, "replace")).toEqual([system("P"), user, system("c")]);
  });
});
