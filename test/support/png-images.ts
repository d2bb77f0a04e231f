// PNG images for tests, chunk by chunk.

import { deflateSync } from "node:zlib";

export interface PngOptions {
  width?: number;
  height?: number;
  depth?: number;
  colourType?: number;
  interlace?: number;
  /** What is packed as rows; of one colour unless it is given. */
  rows?: Uint8Array;
  /** Between IHDR and the data. */
  before?: readonly Uint8Array[];
}

const CHANNELS: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };

export function chunk(type: string, data: Uint8Array = new Uint8Array(0)): Uint8Array {
  const bytes = Buffer.alloc(12 + data.length);
  bytes.writeUInt32BE(data.length, 0);
  bytes.write(type, 4, "latin1");
  bytes.set(data, 8);
  bytes.writeUInt32BE(Bun.hash.crc32(bytes.subarray(4, 8 + data.length)), 8 + data.length);
  return bytes;
}

export function headerChunk({
  width = 4,
  height = 3,
  depth = 8,
  colourType = 6,
  interlace = 0,
}: PngOptions): Uint8Array {
  const data = Buffer.alloc(13);
  data.writeUInt32BE(width, 0);
  data.writeUInt32BE(height, 4);
  data.set([depth, colourType, 0, 0, interlace], 8);
  return chunk("IHDR", data);
}

export function pngFile(chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.concat([Uint8Array.of(137, 80, 78, 71, 13, 10, 26, 10), ...chunks]));
}

export function pngImage(options: PngOptions = {}): Uint8Array<ArrayBuffer> {
  const { width = 4, height = 3, depth = 8, colourType = 6, before = [] } = options;
  const rowBytes = 1 + Math.ceil((width * depth * (CHANNELS[colourType] ?? 4)) / 8);
  const palette = colourType === 3 && before.length === 0 ? [chunk("PLTE", new Uint8Array(6))] : [];
  const data = deflateSync(options.rows ?? new Uint8Array(height * rowBytes));
  return pngFile([headerChunk(options), ...palette, ...before, chunk("IDAT", data), chunk("IEND")]);
}
