// What a PNG image is, from its bytes: size and transparency, read from its chunks without unpacking a single row.

export interface PngFacts {
  width: number;
  height: number;
  /** Its pixels may be transparent, each by itself or as a colour. */
  hasAlpha: boolean;
}

/** Words that follow the name of a field: "is not a PNG image". */
interface PngFault {
  problem: string;
}

const SIGNATURE = Uint8Array.of(137, 80, 78, 71, 13, 10, 26, 10);

/** Of an image's side; the largest that any model takes is a quarter of it. */
const MAX_SIDE = 16_384;

/** Deflate makes at most so many bytes of one. */
const MAX_EXPANSION = 1032;

/** Length, type and checksum of a chunk. */
const FRAME_BYTES = 12;
const HEADER_BYTES = 13;
const MAX_CHUNK_BYTES = 2 ** 31 - 1;
const PALETTE = 3;

interface ColourType {
  channels: number;
  depths: readonly number[];
  hasAlpha: boolean;
  /** How long a chunk tRNS is; undefined: there may be none. */
  transparencyBytes: number | undefined;
  palette: "needed" | "allowed" | "forbidden";
}

/** PNG specification, table 12: a colour type is a number without meaning. */
const COLOUR_TYPES: Readonly<Record<number, ColourType>> = {
  0: { channels: 1, depths: [1, 2, 4, 8, 16], hasAlpha: false, transparencyBytes: 2, palette: "forbidden" },
  2: { channels: 3, depths: [8, 16], hasAlpha: false, transparencyBytes: 6, palette: "allowed" },
  3: { channels: 1, depths: [1, 2, 4, 8], hasAlpha: false, transparencyBytes: 256, palette: "needed" },
  4: { channels: 2, depths: [8, 16], hasAlpha: true, transparencyBytes: undefined, palette: "forbidden" },
  6: { channels: 4, depths: [8, 16], hasAlpha: true, transparencyBytes: undefined, palette: "allowed" },
};

/** The seven pictures that an interlaced image consists of: where each begins, and which pixels belong to it. */
const PASSES: readonly (readonly [x: number, y: number, stepX: number, stepY: number])[] = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
];

interface PngHeader {
  width: number;
  height: number;
  depth: number;
  colourType: number;
  colour: ColourType;
  isInterlaced: boolean;
}

interface PngChunk {
  type: string;
  data: Uint8Array;
  end: number;
}

/** Never throws, and takes no more memory than what it returns. */
export function readPng(bytes: Uint8Array): PngFacts | PngFault {
  if (SIGNATURE.some((byte, index) => bytes[index] !== byte)) return { problem: "is not a PNG image" };
  const first = readChunk(bytes, SIGNATURE.length);
  if ("problem" in first) return first;
  if (first.type !== "IHDR" || first.data.length !== HEADER_BYTES) return broken("it does not begin with IHDR");
  const header = readHeader(first.data);
  if ("problem" in header) return header;
  const body = readBody(bytes, first.end, header);
  if ("problem" in body) return body;
  const { width, height, colour } = header;
  if (body.dataBytes * MAX_EXPANSION < rawBytes(header)) {
    return broken(`its data cannot be those of ${width} x ${height} pixels`);
  }
  return { width, height, hasAlpha: colour.hasAlpha || body.hasTransparency };
}

function readHeader(data: Uint8Array): PngHeader | PngFault {
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  const [width, height] = [view.getUint32(0), view.getUint32(4)];
  const [depth, colourType, compression, filter, interlace] = data.subarray(8) as unknown as number[];
  if (width === 0 || height === 0 || width > MAX_CHUNK_BYTES || height > MAX_CHUNK_BYTES) {
    return broken("its width and height are no numbers of pixels");
  }
  if (width > MAX_SIDE || height > MAX_SIDE) {
    return { problem: `is larger than ${MAX_SIDE} x ${MAX_SIDE} pixels` };
  }
  const colour = COLOUR_TYPES[colourType as number];
  if (colour === undefined || !colour.depths.includes(depth as number)) return broken("its colour type is unknown");
  if (compression !== 0 || filter !== 0 || (interlace as number) > 1) return broken("its IHDR names unknown methods");
  return {
    width,
    height,
    depth: depth as number,
    colourType: colourType as number,
    colour,
    isInterlaced: interlace === 1,
  };
}

/** Reads the chunks behind IHDR, up to the end of the file. */
function readBody(bytes: Uint8Array, start: number, { colour, colourType, depth }: PngHeader) {
  let dataBytes = 0;
  let isDataOver = false;
  let paletteEntries: number | undefined;
  let transparencyBytes: number | undefined;
  for (let at = start; ; ) {
    const chunk = readChunk(bytes, at);
    if ("problem" in chunk) return chunk;
    at = chunk.end;
    const { type, data } = chunk;
    if (type === "IDAT") {
      if (isDataOver) return broken("its chunks IDAT do not stand together");
      if (dataBytes === 0 && colour.palette === "needed" && paletteEntries === undefined)
        return broken("it has no palette");
      dataBytes += data.length;
      continue;
    }
    isDataOver = dataBytes > 0;
    if (type === "IEND") {
      if (dataBytes === 0) return broken("it has no image data");
      if (data.length !== 0 || at !== bytes.length) return broken("there is more behind its end");
      return { dataBytes, hasTransparency: transparencyBytes !== undefined };
    }
    if (type === "PLTE") {
      const entries = data.length / 3;
      const isMisplaced = isDataOver || paletteEntries !== undefined || transparencyBytes !== undefined;
      const most = colourType === PALETTE ? 2 ** depth : 256;
      if (
        colour.palette === "forbidden" ||
        isMisplaced ||
        !Number.isInteger(entries) ||
        entries < 1 ||
        entries > most
      ) {
        return broken("its palette is not valid");
      }
      paletteEntries = entries;
    } else if (type === "tRNS") {
      const isRightSize =
        colourType === PALETTE
          ? data.length > 0 && data.length <= (paletteEntries ?? 0)
          : data.length === colour.transparencyBytes;
      if (isDataOver || transparencyBytes !== undefined || !isRightSize) return broken("its chunk tRNS is not valid");
      transparencyBytes = data.length;
    } else if (isCritical(type)) {
      return broken("it has a chunk that no program knows");
    }
  }
}

/** Checksums of what may be left out of an image are not looked at. */
function readChunk(bytes: Uint8Array, start: number): PngChunk | PngFault {
  if (bytes.length - start < FRAME_BYTES) return { problem: "is a PNG image that is cut off" };
  const view = new DataView(bytes.buffer, bytes.byteOffset + start, FRAME_BYTES);
  const length = view.getUint32(0);
  const type = String.fromCharCode(...bytes.subarray(start + 4, start + 8));
  if (length > MAX_CHUNK_BYTES || !/^[A-Za-z]{4}$/.test(type)) return broken("its chunks cannot be read");
  const end = start + FRAME_BYTES + length;
  if (end > bytes.length) return { problem: "is a PNG image that is cut off" };
  if (isCritical(type) || type === "tRNS") {
    const checksum = new DataView(bytes.buffer, bytes.byteOffset + end - 4, 4).getUint32(0);
    if (Bun.hash.crc32(bytes.subarray(start + 4, end - 4)) !== checksum) {
      return broken(`the checksum of its chunk ${type} is wrong`);
    }
  }
  return { type, data: bytes.subarray(start + 8, end - 4), end };
}

/** Programs that do not know such a chunk cannot show the image. */
function isCritical(type: string): boolean {
  return type.charAt(0) < "a";
}

/** Bytes of the unpacked rows, each with a byte that names its filter. */
function rawBytes({ width, height, depth, colour, isInterlaced }: PngHeader): number {
  const pixelBits = depth * colour.channels;
  if (!isInterlaced) return height * (1 + Math.ceil((width * pixelBits) / 8));
  let total = 0;
  for (const [x, y, stepX, stepY] of PASSES) {
    const columns = Math.ceil((width - x) / stepX);
    const rows = Math.ceil((height - y) / stepY);
    if (columns > 0 && rows > 0) total += rows * (1 + Math.ceil((columns * pixelBits) / 8));
  }
  return total;
}

function broken(reason: string): PngFault {
  return { problem: `is not a valid PNG image: ${reason}` };
}
