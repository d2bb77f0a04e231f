// A shared call comes over as it was told, whatever the cuts.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { encodeFrame, type Frame, FrameReader } from "./flight-wire.ts";

const FRAMES: Frame[] = [
  {
    kind: "head",
    head: {
      attempts: 2,
      dropped: ["seed"],
      storyId: "w1-7",
      outcome: {
        kind: "failed",
        backendName: "a",
        model: "m",
        reasons: [{ model: "m", reason: "timeout" }],
        failure: {
          kind: "status",
          status: 400,
          body: new Uint8Array([1, 2, 3]),
          retryAfterMs: undefined,
          headers: { "x-a": "b" },
        },
        retryAfterMs: 5,
      },
    },
  },
  { kind: "piece", bytes: new Uint8Array([0, 1, 2, 255]) },
  { kind: "piece", bytes: new Uint8Array(70_000).fill(7) },
  { kind: "piece", bytes: new Uint8Array(0) },
  { kind: "end", end: { failure: { kind: "reset", message: "gone" }, attempts: 3 } },
];

test("property: frames that are cut anywhere are the same frames", () => {
  const all = Buffer.concat(FRAMES.map(encodeFrame));
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: all.length }), { maxLength: 20 }), (cuts) => {
      const reader = new FrameReader();
      const read: Frame[] = [];
      const places = [0, ...cuts.sort((left, right) => left - right), all.length];
      for (let index = 1; index < places.length; index++) {
        read.push(...reader.push(new Uint8Array(all.subarray(places[index - 1], places[index]))));
      }
      expect(read).toEqual(FRAMES);
    }),
    { numRuns: 50 },
  );
});
