// What is read from the fixtures: however a stream is cut, and whether the answer came whole or streamed.

import { describe, expect, test } from "bun:test";
import { Collector } from "../../src/generation/collect.ts";
import type { ProtocolName } from "../../src/generation/content.ts";
import type { GenerationEvent } from "../../src/generation/events.ts";
import type { GenerationResult } from "../../src/generation/result.ts";
import type { BackendProtocol } from "../../src/protocols/protocol.ts";
import { backendProtocol } from "../../src/protocols/registry.ts";
import { EventFramer, readEvents } from "../../src/protocols/sse.ts";
import type { JsonObject } from "./ask.ts";
import { FIXTURES, type FixtureFormat } from "./fixtures.ts";

function protocolOf(format: FixtureFormat): BackendProtocol {
  return backendProtocol((format === "local" ? "chat" : format) satisfies ProtocolName);
}

const utf8 = new TextDecoder();

function decode(protocol: BackendProtocol, pieces: readonly Uint8Array[]): GenerationEvent[] {
  const framer = new EventFramer();
  const decoder = protocol.streamDecoder();
  const events: GenerationEvent[] = [];
  const take = (bytes: Uint8Array | undefined): void => {
    if (bytes === undefined) return;
    for (const { data, name } of readEvents(utf8.decode(bytes))) events.push(...decoder.push(data, name));
  };
  for (const piece of pieces) take(framer.push(piece));
  take(framer.rest());
  events.push(...decoder.end());
  return events;
}

function collected(events: readonly GenerationEvent[]): GenerationResult {
  const collector = new Collector();
  for (const event of events) collector.push(event);
  const result = collector.result();
  if (result === undefined) throw new Error("the stream was not complete");
  return result;
}

describe.each(FIXTURES.map((fixture) => [fixture.name, fixture] as const))("%s", (_, { format, stream, whole }) => {
  const protocol = protocolOf(format);

  test("cut at any byte it gives the same events", () => {
    const expected = JSON.stringify(decode(protocol, [stream]));
    for (let cut = 1; cut < stream.length; cut++) {
      const events = decode(protocol, [stream.subarray(0, cut), stream.subarray(cut)]);
      if (JSON.stringify(events) !== expected) throw new Error(`another result when it is cut at ${cut}`);
    }
    const bytes = Array.from(stream, (_byte, index) => stream.subarray(index, index + 1));
    expect(JSON.stringify(decode(protocol, bytes))).toBe(expected);
  });

  test("the stream says what the whole answer says", () => {
    const answer = protocol.decodeResponse(JSON.parse(whole) as JsonObject);
    expect(collected(decode(protocol, [stream]))).toEqual(answer);
  });

  test("a stream without its end is not complete", () => {
    const events = readEvents(utf8.decode(stream));
    const begun = protocol.streamDecoder();
    const seen = events.slice(0, 2).flatMap(({ data, name }) => begun.push(data, name));
    seen.push(...begun.end());
    expect(seen.some(({ type }) => type === "finish")).toBe(false);
  });
});
