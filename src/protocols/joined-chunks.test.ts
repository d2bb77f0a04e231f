// What chunks say together, where backends take the format loosely.

import { describe, expect, test } from "bun:test";
import { chatEvents } from "../../test/support/openai-answers.ts";
import { collect } from "../generation/collect.ts";
import type { JsonObject } from "../lib/json.ts";
import { readSentChunks } from "./chunks.ts";
import { joinChunks } from "./joined-chunks.ts";
import { backendProtocol, keptAnswers } from "./registry.ts";
import { readEvents } from "./sse.ts";

const chunk = (choice: JsonObject) => ({ id: "1", created: 1, model: "m", choices: [{ index: 0, ...choice }] });
const data = (choices: readonly JsonObject[]) => choices.map((choice) => JSON.stringify(chunk(choice)));
const sent = (choices: readonly JsonObject[], says: "delta" | "text" = "delta") =>
  readSentChunks(
    data(choices).map((text) => ({ data: text, name: undefined })),
    says,
  );
const stream = (choices: readonly JsonObject[]) =>
  `${data(choices)
    .map((text) => `data: ${text}\n\n`)
    .join("")}data: [DONE]\n\n`;

describe("a text that stands in the choice and in its delta (Together)", () => {
  const pieces = ["Hello", " Ann"].map((text) => ({ text, delta: { content: text } }));
  const whole = [...pieces, { text: "", delta: { content: "" }, finish_reason: "stop" }];

  test("was sent once", () => {
    expect(sent(pieces)).toMatchObject({ text: "Hello Ann", pieces: 2 });
    expect(sent(pieces, "text")).toMatchObject({ text: "Hello Ann", pieces: 2 });
  });

  test("is kept once", () => {
    const chat = JSON.parse(keptAnswers("chat")?.asWhole(stream(whole)) as string);
    const said = { index: 0, finish_reason: "stop", logprobs: null };
    expect(chat.choices).toEqual([{ ...said, message: { role: "assistant", content: "Hello Ann" } }]);
    const completion = JSON.parse(keptAnswers("completions")?.asWhole(stream(whole)) as string);
    expect(completion.choices).toEqual([{ ...said, text: "Hello Ann" }]);
  });

  test("is read once, wherever its format has it", () => {
    for (const name of ["chat", "completions"] as const) {
      const decoder = backendProtocol(name).streamDecoder();
      const events = [...data(whole).flatMap((text) => decoder.push(text)), ...decoder.end()];
      expect(collect(events)?.parts).toEqual([{ type: "text", text: "Hello Ann" }]);
    }
  });
});

test("a completion's text counts beside an empty delta", () => {
  const decoder = backendProtocol("completions").streamDecoder();
  const events = data([{ text: "a", delta: {} }]).flatMap((text) => decoder.push(text));
  expect(events).toContainEqual({ type: "delta", index: 0, text: "a" });
});

test("a thought may change its member from piece to piece", () => {
  const pieces = [{ delta: { reasoning: "one " } }, { delta: { reasoning_content: "two", reasoning: "two" } }];
  expect(sent(pieces)).toMatchObject({ thought: "one two", pieces: 2 });
});

describe("nothing goes on behind", () => {
  test.each([
    ["a refusal in pieces", { refusal: ["no"] }],
    ["a refusal that is an object", { refusal: { text: "no" } }],
    ["a call", { tool_calls: [{ index: 0, id: "c", function: { name: "f", arguments: "" } }] }],
    ["a call that cannot be read", { tool_calls: ["f"] }],
    ["sound", { audio: { id: "a" } }],
    ["a text in a list (Mistral)", { content: [{ type: "text", text: "b" }] }],
  ])("%s", (_, delta) => expect(sent([{ delta: { content: "a" } }, { delta }])).toBeUndefined());

  test("a finish, though a later chunk takes it back", () => {
    expect(
      sent([
        { delta: { content: "a" }, finish_reason: "stop" },
        { delta: {}, finish_reason: "" },
      ]),
    ).toBeUndefined();
  });

  test("a message that came whole", () => {
    expect(sent([{ message: { content: "Hello" } }])).toBeUndefined();
    expect(
      keptAnswers("chat")?.asWhole(stream([{ message: { content: "a" }, finish_reason: "stop" }])),
    ).toBeUndefined();
  });

  test("empty members say nothing", () => {
    expect(sent([{ delta: { content: "a", function_call: "", audio: "", tool_calls: [] } }])).toMatchObject({
      text: "a",
    });
  });
});

test("tokens in a form of their own cannot be joined", () => {
  const { isExact } = joinChunks(data([{ delta: { content: "a" }, logprobs: [{ token: "a" }] }]), "delta");
  expect(isExact).toBe(false);
});

test("an ordinary stream is exact", () => {
  const events = readEvents(chatEvents(["Hello", " you"]).join("")).map((event) => event.data);
  expect(joinChunks(events, "delta")).toMatchObject({
    isExact: true,
    choices: [{ message: { content: "Hello you" } }],
  });
});
