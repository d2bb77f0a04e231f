// Cached answers given again: exact bytes in their own form, the format's words in the other one.

import { expect, test } from "bun:test";
import type { KeptAnswers } from "../protocols/kept-answers.ts";
import type { CachedAnswer } from "./cache.ts";
import { replayAnswer } from "./replay.ts";

const encoder = new TextEncoder();

const format: KeptAnswers = {
  withoutEffect: new Set(),
  hasSideEffect: () => false,
  isWhole: () => true,
  isWholeStream: () => true,
  asStream: (answer, includeUsage) => (answer === "odd" ? undefined : `stream of ${answer} ${includeUsage}`),
  asWhole: (events) => (events === "odd" ? undefined : `whole of ${events}`),
};

function cached(form: CachedAnswer["form"], body: string): CachedAnswer {
  return { form, model: "m", contentType: "x/y", body: encoder.encode(body) };
}

test("the same form is the same bytes", () => {
  for (const form of ["plain", "stream"] as const) {
    const answer = cached(form, "anything");
    const replay = replayAnswer(format, answer, form === "stream", false);
    expect(replay?.body).toBe(answer.body);
    expect(replay?.contentType).toBe("x/y");
  }
});

test("the other form is what the format makes of it", () => {
  const streamed = replayAnswer(format, cached("plain", "a"), true, true);
  expect(streamed).toEqual({
    contentType: "text/event-stream; charset=utf-8",
    body: encoder.encode("stream of a true"),
  });
  const whole = replayAnswer(format, cached("stream", "a"), false, false);
  expect(whole).toEqual({ contentType: "application/json", body: encoder.encode("whole of a") });
  for (const form of ["plain", "stream"] as const) {
    expect(replayAnswer(format, cached(form, "odd"), form === "plain", false)).toBeUndefined();
  }
});
