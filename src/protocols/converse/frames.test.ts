// Frames cut at every byte, changed at every byte, and what they say as events.

import { describe, expect, test } from "bun:test";
import { EventStreamCodec } from "@smithy/eventstream-codec";
import { eventFrame, exceptionFrame } from "../../../test/support/strict/bedrock.ts";
import { BrokenFrame, FrameCutter, frameAsEvent } from "./frames.ts";

const codec = new EventStreamCodec(
  (bytes) => new TextDecoder().decode(bytes as Uint8Array),
  (text) => new TextEncoder().encode(text),
);

/** What the pieces say, and whether a whole frame was the last. */
function read(pieces: readonly Uint8Array[]): { events: string; isWhole: boolean } {
  const cutter = new FrameCutter();
  let events = "";
  for (const piece of pieces) {
    cutter.push(piece, (frame) => {
      events += frameAsEvent(codec, frame);
    });
  }
  return { events, isWhole: cutter.isBetweenFrames };
}

const inBase64 = (value: object) => ({ bytes: Buffer.from(JSON.stringify(value)).toString("base64") });

const STREAM = Buffer.concat([
  eventFrame(["messageStart", { role: "assistant" }]),
  eventFrame(["contentBlockDelta", { delta: { text: "Grüße 🌦️" }, contentBlockIndex: 0 }]),
  eventFrame(["chunk", inBase64({ type: "message_start", message: { id: "msg_1" } })]),
]);
const EVENTS =
  'event: messageStart\ndata: {"role":"assistant","p":"abcdefghijk"}\n\n' +
  'event: contentBlockDelta\ndata: {"delta":{"text":"Grüße 🌦️"},"contentBlockIndex":0,"p":"abcdefghijk"}\n\n' +
  'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1"}}\n\n';

describe("frames", () => {
  test("cut at any byte they say the same", () => {
    expect(read([STREAM])).toEqual({ events: EVENTS, isWhole: true });
    for (let cut = 1; cut < STREAM.length; cut++) {
      expect(read([STREAM.subarray(0, cut), STREAM.subarray(cut)])).toEqual({ events: EVENTS, isWhole: true });
    }
    expect(read(Array.from(STREAM, (_, index) => STREAM.subarray(index, index + 1))).events).toBe(EVENTS);
  });

  test("half a frame is known as such", () => {
    for (let end = 1; end < 60; end++) expect(read([STREAM.subarray(0, end)])).toEqual({ events: "", isWhole: false });
  });

  test("a change of any byte breaks the stream, and what came before stays", () => {
    const [first] = EVENTS.split(/(?<=\n\n)/);
    const start = eventFrame(["messageStart", { role: "assistant" }]).length;
    for (let place = start; place < STREAM.length; place++) {
      const changed = Buffer.from(STREAM);
      changed[place] = (changed[place] as number) ^ 1;
      const cutter = new FrameCutter();
      let events = "";
      const pushed = () =>
        cutter.push(changed, (frame) => {
          events += frameAsEvent(codec, frame);
        });
      expect(pushed).toThrow(BrokenFrame);
      expect(events).toStartWith(first as string);
    }
  });

  test("a length that cannot be is not waited for", () => {
    const prelude = Buffer.alloc(12);
    for (const length of [15, 64 * 1024 * 1024]) {
      prelude.writeUInt32BE(length, 0);
      prelude.writeUInt32BE(Bun.hash.crc32(prelude.subarray(0, 8)), 8);
      expect(() => read([prelude])).toThrow("a frame of an impossible length");
    }
    expect(() => read([Buffer.from("<html><body>Bad Gateway")])).toThrow("a frame with a wrong checksum");
  });

  test.each([
    ["ThrottlingException", "rate_limit_error"],
    ["ValidationException", "invalid_request_error"],
    ["ModelStreamErrorException", "api_error"],
    ["ServiceUnavailableException", "overloaded_error"],
    ["SomethingNewException", "api_error"],
  ])("%s is an error of type %s", (code, type) => {
    const { events } = read([exceptionFrame(code, "Slow\ndown.")]);
    const error = { type, message: "Slow\ndown.", code };
    expect(events).toBe(`event: error\ndata: ${JSON.stringify({ type: "error", error })}\n\n`);
  });

  test("an error of the transport has its words in headers, and unknown frames say nothing", () => {
    const frame = (headers: Record<string, string>) =>
      codec.encode({
        headers: Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [name, { type: "string" as const, value }]),
        ),
        body: new TextEncoder().encode("{}"),
      });
    const told = { ":message-type": "error", ":error-code": "InternalFailure", ":error-message": "Oh no." };
    expect(read([frame(told)]).events).toContain('"type":"api_error","message":"Oh no.","code":"InternalFailure"');
    expect(read([frame({ ":message-type": "event", ":event-type": "initial-response" })]).events).toBe("");
    expect(() => read([frame({ ":message-type": "greeting" })])).toThrow("a frame of an unknown type");
  });
});
