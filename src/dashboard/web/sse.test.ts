// Streams of events, however they are cut.

import { expect, test } from "bun:test";
import { createSseReader } from "./sse.ts";

const STREAM =
  'data: {"a":1}\n\n: a comment\n\nevent: x\ndata: one\ndata: two\n\nid: 1\r\ndata:no space\r\n\r\ndata: [DONE]\n\n';
const EVENTS = ['{"a":1}', "one\ntwo", "no space", "[DONE]"];

test("whole", () => expect(createSseReader()(STREAM)).toEqual(EVENTS));

test("cut anywhere", () => {
  for (let size = 1; size < 20; size++) {
    const read = createSseReader();
    const found: string[] = [];
    for (let at = 0; at < STREAM.length; at += size) found.push(...read(STREAM.slice(at, at + size)));
    expect(found).toEqual(EVENTS);
  }
});

test("an event that is not whole is not told", () => expect(createSseReader()("data: half\n")).toEqual([]));
