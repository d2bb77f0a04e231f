import { expect, test } from "bun:test";
import { hasMarker, markersOf } from "./markers.ts";

const MARKERS = markersOf('"message_stop"', '"other"');

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

test("finds a marker wherever it stands, in its own bytes only", () => {
  expect(hasMarker(bytes('data: {"type":"message_stop"}\n\n'), MARKERS)).toBe(true);
  expect(hasMarker(bytes('"other"'), MARKERS)).toBe(true);
  const around = bytes('"message_stop" ');
  expect(hasMarker(around.subarray(1), MARKERS)).toBe(false);
});

test("a marker that the model writes has its quotes escaped", () => {
  expect(hasMarker(bytes(`data: ${JSON.stringify({ text: 'é "message_stop"' })}\n\n`), MARKERS)).toBe(false);
  expect(hasMarker(bytes(""), MARKERS)).toBe(false);
});
