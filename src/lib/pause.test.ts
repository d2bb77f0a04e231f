// After a failure: nobody, then one, then everybody.

import { expect, test } from "bun:test";
import { Pause } from "./pause.ts";

function pause() {
  const changes: [boolean, string][] = [];
  return {
    changes,
    pause: new Pause(
      (...change) => changes.push(change),
      () => 1,
    ),
  };
}

test("one trial at a time, after pauses that grow to half a minute", () => {
  const { pause: made, changes } = pause();
  expect([made.leave(0), made.leave(0)]).toEqual(["usual", "usual"]);
  let nowMs = 0;
  made.failed(nowMs, "gone");
  made.failed(nowMs, "gone too");
  for (const delayMs of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
    expect([made.leave(nowMs + delayMs - 1), made.isUp, made.endsMs]).toEqual(["none", false, nowMs + delayMs]);
    nowMs += delayMs;
    expect([made.leave(nowMs), made.leave(nowMs)]).toEqual(["trial", "none"]);
    made.failed(nowMs, "still");
  }
  nowMs += 30_000;
  expect(made.leave(nowMs)).toBe("trial");
  made.succeeded();
  expect([made.isUp, made.leave(nowMs), made.leave(nowMs)]).toEqual([true, "usual", "usual"]);
  expect(changes).toEqual([
    [false, "gone"],
    [true, ""],
  ]);
});

test("a late answer to a question from before ends the pause", () => {
  const { pause: made } = pause();
  made.failed(0, "slow");
  made.succeeded();
  expect(made.leave(0)).toBe("usual");
});
