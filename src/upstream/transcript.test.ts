import { expect, test } from "bun:test";
import { ByteAllowance } from "../lib/byte-allowance.ts";
import { Transcript } from "./transcript.ts";

test("a stream is put together once, and dropped as soon as it is too long", () => {
  const memory = new ByteAllowance(100);
  function hasRoomFor(bytes: number): boolean {
    const hasRoom = memory.take(bytes);
    if (hasRoom) memory.giveBack(bytes);
    return hasRoom;
  }
  const whole = new Transcript(5, memory);
  const tooLong = new Transcript(5, memory);
  whole.add(new Uint8Array([0, 1, 2, 3]).subarray(1, 3));
  whole.add(new Uint8Array([3, 4, 5]));
  tooLong.add(new Uint8Array(5));
  tooLong.add(new Uint8Array(1));
  expect([hasRoomFor(95), hasRoomFor(96)]).toEqual([true, false]);
  tooLong.add(new Uint8Array(1));
  expect(tooLong.joined()).toBeUndefined();
  const joined = whole.joined();
  expect(joined).toEqual(new Uint8Array([1, 2, 3, 4, 5]));
  expect(joined?.buffer.byteLength).toBe(5);
  whole.forget();
  expect(whole.joined()).toBeUndefined();
  expect(hasRoomFor(100)).toBe(true);
});

test("all streams together have a bound, and a dropped one makes room", () => {
  const memory = new ByteAllowance(15);
  const [first, second, third] = [0, 1, 2].map(() => new Transcript(10, memory)) as [
    Transcript,
    Transcript,
    Transcript,
  ];
  first.add(new Uint8Array(10));
  second.add(new Uint8Array(6));
  expect(second.joined()).toBeUndefined();
  first.forget();
  first.forget();
  third.add(new Uint8Array(10));
  expect(third.joined()?.length).toBe(10);
  third.forget();
  expect(memory.take(15)).toBe(true);
});
