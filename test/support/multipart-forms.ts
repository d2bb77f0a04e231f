// Forms for tests: written from parts, and read to what a reader tells of them.

import { MultipartReader } from "../../src/lib/multipart.ts";
import { MultipartFault } from "../../src/lib/multipart-fault.ts";

export interface FormPart {
  name: string;
  filename?: string | undefined;
  contentType?: string | undefined;
  content: string | Uint8Array;
}

export const BOUNDARY = "----sample-boundary-42";

export function formOf(parts: readonly FormPart[], boundary = BOUNDARY): Uint8Array<ArrayBuffer> {
  const pieces: (string | Uint8Array)[] = [];
  for (const { name, filename, contentType, content } of parts) {
    const file = filename === undefined ? "" : `; filename="${filename}"`;
    const type = contentType === undefined ? "" : `\r\nContent-Type: ${contentType}`;
    pieces.push(
      `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file}${type}\r\n\r\n`,
      content,
      "\r\n",
    );
  }
  pieces.push(`--${boundary}--\r\n`);
  return new Uint8Array(Buffer.concat(pieces.map((piece) => Buffer.from(piece as string))));
}

export interface ReadPart extends Omit<FormPart, "content"> {
  content: Uint8Array;
  begin: number;
  contentStart: number;
  contentEnd: number;
}

export interface ReadForm {
  parts: ReadPart[];
  closedAt: number | undefined;
}

/** What the reader says of the pieces, one after the other; the fault where it finds one. */
export function readForm(pieces: Iterable<Uint8Array>, boundary = BOUNDARY): ReadForm | MultipartFault {
  const parts: ReadPart[] = [];
  const loose: Uint8Array[] = [];
  const reader = new MultipartReader(boundary, {
    part: (head, place) => parts.push({ ...head, ...place, content: new Uint8Array(0), contentEnd: -1 }),
    data: (bytes) => {
      if (bytes.length === 0) throw new Error("nothing is told as data");
      loose.push(bytes);
    },
    partEnd(contentEnd) {
      const part = parts.at(-1) as ReadPart;
      part.contentEnd = contentEnd;
      part.content = Uint8Array.from(Buffer.concat(loose.splice(0)));
      if (part.content.length !== contentEnd - part.contentStart) throw new Error("the offsets are wrong");
    },
  });
  try {
    for (const piece of pieces) reader.push(piece);
    reader.end();
  } catch (error) {
    if (error instanceof MultipartFault) return error;
    throw error;
  }
  return { parts, closedAt: reader.closedAt };
}

/** The bytes in pieces that end before each of the offsets, which ascend. */
export function* cutAt(bytes: Uint8Array, offsets: readonly number[]): Generator<Uint8Array> {
  let start = 0;
  for (const end of offsets) {
    yield bytes.subarray(start, end);
    start = end;
  }
  yield bytes.subarray(start);
}
