// Text completions in their other form.

import { expect, test } from "bun:test";
import { eventData } from "../sse.ts";
import { completionsKept } from "./kept-answers.ts";

const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
const logprobs = { tokens: ["a", "b"], token_logprobs: [-1, -2], top_logprobs: null, text_offset: [0, 1] };
const answer = {
  id: "cmpl-1",
  object: "text_completion",
  created: 5,
  model: "m",
  choices: [
    { text: "ab", index: 0, logprobs, finish_reason: "length" },
    { text: "c", index: 1, logprobs: null, finish_reason: "stop" },
  ],
  usage,
};

test("a whole answer as a stream, with its counts where they are asked for, and back", () => {
  const text = completionsKept.asStream(JSON.stringify(answer), true) as string;
  expect(completionsKept.isWholeStream(text)).toBe(true);
  expect(JSON.parse(completionsKept.asWhole(text) as string)).toEqual(answer);
  expect(eventData(text)).toHaveLength(6);
  expect(completionsKept.asStream(JSON.stringify(answer), false)).not.toContain("usage");
});

test("pieces are joined choice by choice", () => {
  const piece = (index: number, text: string, token: string, finish_reason: string | null) => ({
    text,
    index,
    logprobs: { tokens: [token], token_logprobs: [-1] },
    finish_reason,
  });
  const pieces = [
    piece(1, "x", "x", null),
    piece(0, "a", "a", null),
    piece(0, "b", "b", "stop"),
    piece(1, "", "", "stop"),
  ];
  const events = pieces.map((choice) => `data: ${JSON.stringify({ id: "cmpl-1", choices: [choice] })}\n\n`).join("");
  expect(JSON.parse(completionsKept.asWhole(`${events}data: [DONE]\n\n`) as string).choices).toEqual([
    { text: "ab", index: 0, logprobs: { tokens: ["a", "b"], token_logprobs: [-1, -1] }, finish_reason: "stop" },
    { text: "x", index: 1, logprobs: { tokens: ["x", ""], token_logprobs: [-1, -1] }, finish_reason: "stop" },
  ]);
});

test("what is odd is not told in the other form", () => {
  for (const choices of [undefined, [1], [{ index: 0, finish_reason: "stop" }]]) {
    expect(completionsKept.asStream(JSON.stringify({ ...answer, choices }), true)).toBeUndefined();
  }
  for (const choice of [1, { index: "0" }, { text: 1 }, { logprobs: 1 }, { logprobs: { tokens: 1 } }, { text: "x" }]) {
    const events = `data: ${JSON.stringify({ choices: [choice] })}\n\ndata: [DONE]\n\n`;
    expect(completionsKept.asWhole(events)).toBeUndefined();
  }
});
