// Cuts the lines of a batch into segments, which gateways claim one by one: a first line in JSON that says where the bodies lie, and
// the bodies behind it.

import { join } from "node:path";
import { BODIES_NAME, type IndexEntry, readIndex } from "../local-work.ts";

const MAX_LINES = 100;
/** A longer line is a segment of its own. */
const MAX_BYTES = 1024 * 1024;
const LINE_FEED = 10;

/** Where the body of a line lies behind the head, its length, and its custom_id. */
interface SegmentHead {
  /** Position of the first line. */
  first: number;
  entries: IndexEntry[];
}

export interface LineSegment extends SegmentHead {
  /** Bytes of the head, with the end of its line. */
  headBytes: number;
}

/** The segments of lines that were taken into a folder, in order. */
export async function* cutSegments(folder: string): AsyncGenerator<Uint8Array, void> {
  let head: SegmentHead = { first: 0, entries: [] };
  let begin = 0;
  let end = 0;
  const bodies = Bun.file(join(folder, BODIES_NAME));
  const cut = async () => {
    const text = Buffer.from(`${JSON.stringify(head)}\n`);
    return Buffer.concat([text, await bodies.slice(begin, end).bytes()]);
  };
  for await (const { position, entry } of readIndex(folder)) {
    const [offset, length, customId] = entry;
    const isFull = head.entries.length >= MAX_LINES || offset + length - begin > MAX_BYTES;
    if (isFull && head.entries.length > 0) {
      yield await cut();
      head = { first: position, entries: [] };
      begin = offset;
    }
    head.entries.push([offset - begin, length, customId]);
    end = offset + length;
  }
  if (head.entries.length > 0) yield await cut();
}

/** Throws where the file is no segment, or not a whole one. */
export async function readSegment(path: string): Promise<LineSegment> {
  const file = Bun.file(path);
  const bytes = await file.bytes();
  const headBytes = bytes.indexOf(LINE_FEED) + 1;
  const head = JSON.parse(Buffer.from(bytes.subarray(0, headBytes)).toString()) as SegmentHead;
  const last = head.entries.at(-1);
  if (last === undefined || headBytes + last[0] + last[1] !== bytes.byteLength) throw new Error("a segment is damaged");
  return { ...head, headBytes };
}
