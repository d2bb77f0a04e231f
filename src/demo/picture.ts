// The pictures of the demo backend: the words of a prompt on a plain ground, as PNG (https://www.w3.org/TR/png-3/).

import { dotsOf, drawableText, LETTER_HEIGHT, LETTER_WIDTH } from "./letters.ts";

interface PictureOptions {
  width: number;
  height: number;
  text: string;
  /** Chooses the colours. */
  variant: number;
}

/** Ground and ink, as red, green and blue. */
const COLOURS: readonly (readonly [ground: number, ink: number])[] = [
  [0x14324a, 0xf4e9cd],
  [0xf2b134, 0x2b2118],
  [0x1f5c4c, 0xf0f3e8],
  [0x7b2d3f, 0xfbe3d6],
  [0xdde5ec, 0x1d2b3a],
];

/** Words beyond these are not drawn. */
const MAX_WORDS = 24;
const MAX_CHARACTERS = 120;
/** Dots between letters, and between lines. */
const CELL_WIDTH = LETTER_WIDTH + 1;
const CELL_HEIGHT = LETTER_HEIGHT + 3;
/** Letters of a short text are not larger than this many to a line. */
const FEWEST_COLUMNS = 8;
/** Words are not broken for the sake of larger letters, unless they are longer. */
const LONG_WORD = 20;

const encoder = new TextEncoder();

/** Two colours, one bit for each dot, so that a picture stays small. */
export function drawPicture({ width, height, text, variant }: PictureOptions): Uint8Array {
  const rowBytes = 1 + Math.ceil(width / 8); // every row begins with its filter, which is none
  const rows = new Uint8Array(rowBytes * height);
  const fill = (left: number, top: number, size: number): void => {
    for (let y = top; y < Math.min(top + size, height); y++) {
      for (let x = left; x < Math.min(left + size, width); x++) {
        const at = y * rowBytes + 1 + (x >> 3);
        rows[at] = (rows[at] as number) | (0x80 >> (x & 7));
      }
    }
  };
  const { lines, scale } = layOut(drawableText(text), width, height);
  const top = Math.max(0, (height - lines.length * CELL_HEIGHT * scale) >> 1);
  for (const [index, line] of lines.entries()) {
    const left = Math.max(0, (width - line.length * CELL_WIDTH * scale) >> 1);
    drawLine(line, (column, row) => fill(left + column * scale, top + (index * CELL_HEIGHT + row) * scale, scale));
  }
  const [ground, ink] = COLOURS[variant % COLOURS.length] as readonly [number, number];
  return png(width, height, [ground, ink], rows);
}

function drawLine(line: string, dot: (column: number, row: number) => void): void {
  for (const [place, character] of [...line].entries()) {
    for (let row = 0; row < LETTER_HEIGHT; row++) {
      const dots = dotsOf(character, row);
      for (let column = 0; column < LETTER_WIDTH; column++) {
        if ((dots & (0x10 >> column)) !== 0) dot(place * CELL_WIDTH + column, row);
      }
    }
  }
}

/** The largest letters with which the words fit; what does not fit with the smallest ones is cut off. */
function layOut(text: string, width: number, height: number): { lines: string[]; scale: number } {
  const words = text
    .slice(0, 4 * MAX_CHARACTERS)
    .split(/\s+/u)
    .slice(0, MAX_WORDS)
    .join(" ");
  const shown = [...words].slice(0, MAX_CHARACTERS).join("").trim();
  const longest = Math.min(LONG_WORD, Math.max(...shown.split(" ").map(({ length }) => length)));
  for (let scale = Math.max(1, Math.floor(width / (CELL_WIDTH * FEWEST_COLUMNS))); ; scale--) {
    const columns = Math.max(1, Math.floor(width / (CELL_WIDTH * scale)) - 1);
    const lines = wrap(shown, columns);
    const isBroken = columns < longest;
    if (scale <= 1 || (!isBroken && lines.length * CELL_HEIGHT * scale <= height)) return { lines, scale };
  }
}

/** Words longer than a line are broken. */
function wrap(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const together = line === "" ? word : `${line} ${word}`;
    if (together.length <= columns) {
      line = together;
      continue;
    }
    if (line !== "") lines.push(line);
    const pieces = word.match(new RegExp(`.{1,${columns}}`, "gu")) ?? [];
    line = pieces.pop() ?? "";
    lines.push(...pieces);
  }
  return line === "" ? lines : [...lines, line];
}

const SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
const ONE_BIT = 1;
const INDEXED = 3;

function png(width: number, height: number, colours: readonly number[], rows: Uint8Array<ArrayBuffer>): Uint8Array {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = ONE_BIT;
  header[9] = INDEXED;
  const palette = Buffer.from(colours.flatMap((colour) => [colour >> 16, (colour >> 8) & 0xff, colour & 0xff]));
  return Buffer.concat([
    Buffer.from(SIGNATURE),
    chunk("IHDR", header),
    chunk("PLTE", palette),
    chunk("IDAT", zlib(rows)),
    chunk("IEND", new Uint8Array(0)),
  ]);
}

function chunk(type: string, data: Uint8Array): Uint8Array {
  const typed = Buffer.concat([encoder.encode(type), data]);
  return Buffer.concat([bigEndian(data.length), typed, bigEndian(Bun.hash.crc32(typed))]);
}

/** Bun deflates without the frame that PNG asks for (RFC 1950). */
function zlib(data: Uint8Array<ArrayBuffer>): Uint8Array {
  return Buffer.concat([Buffer.from([0x78, 0x9c]), Bun.deflateSync(data), bigEndian(Bun.hash.adler32(data))]);
}

function bigEndian(value: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
