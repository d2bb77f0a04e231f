// What is collected of streams, within the bounds.

import { expect, test } from "bun:test";
import { createRecorder } from "./recorder.ts";

test("collects in order, up to the bound of one stream", () => {
  const recorder = createRecorder({ maxBytes: 5, maxTotalBytes: 100 });
  const [whole, tooLong] = [recorder.start(), recorder.start()];
  whole.add(new Uint8Array([1, 2]));
  whole.add(new Uint8Array([3, 4, 5]));
  tooLong.add(new Uint8Array(5));
  tooLong.add(new Uint8Array(1));
  expect(recorder.heldBytes).toBe(5);
  tooLong.add(new Uint8Array(1));
  expect(tooLong.finish()).toBeUndefined();
  expect(whole.finish()).toEqual(new Uint8Array([1, 2, 3, 4, 5]));
  expect(whole.finish()).toBeUndefined();
  expect(recorder.heldBytes).toBe(0);
});

test("all streams together have a bound, and a dropped one makes room", () => {
  const recorder = createRecorder({ maxBytes: 10, maxTotalBytes: 15 });
  const [first, second, third] = [recorder.start(), recorder.start(), recorder.start()];
  first.add(new Uint8Array(10));
  second.add(new Uint8Array(6));
  expect(second.finish()).toBeUndefined();
  first.drop();
  first.drop();
  third.add(new Uint8Array(10));
  expect(third.finish()?.length).toBe(10);
  expect(recorder.heldBytes).toBe(0);
});
