// PNG images with random changes: whatever they have become, facts or a fault are read from them. Some of the changed
// chunks get the right checksum again, or nothing behind it would ever be reached.

import { readPng } from "../../src/media/png.ts";
import { chunk, headerChunk, pngFile, pngImage } from "../support/png-images.ts";
import { mutated, type Random } from "./mutations.ts";

const IMAGES = [0, 2, 3, 4, 6].map((colourType) => pngImage({ colourType }));
const TYPES = ["IHDR", "PLTE", "tRNS", "IDAT", "IEND", "tEXt", "ABCD"];
const SAMPLES = [chunk("tRNS", new Uint8Array(2)), chunk("PLTE", new Uint8Array(3)), chunk("IDAT"), headerChunk({})];

/** What became of it. Throws what the reader throws, and where facts are none. */
export function fuzzPng(random: Random): string {
  const below = (limit: number) => Math.floor(random() * limit);
  const image = IMAGES[below(IMAGES.length)] as Uint8Array;
  const bytes = random() < 0.5 ? mutated(image, random, SAMPLES) : assembled(below);
  const read = readPng(bytes);
  if ("problem" in read) return `png: ${read.problem.replace(/\d+|chunk \w+|chunks \w+/g, "…")}`;
  const { width, height, hasAlpha } = read;
  if (width < 1 || height < 1 || width > 16_384 || height > 16_384 || typeof hasAlpha !== "boolean") {
    throw new Error(`no facts: ${JSON.stringify(read)}`);
  }
  return "png: read";
}

/** Chunks of any kind in any order, each correct by itself. */
function assembled(below: (limit: number) => number): Uint8Array {
  const colourType = [0, 2, 3, 4, 6, 5][below(6)] as number;
  const depth = [1, 2, 4, 8, 16, 3][below(6)] as number;
  const [width, height] = [below(below(4) === 0 ? 70_000 : 300), below(40)];
  const chunks = [headerChunk({ width, height, depth, colourType, interlace: below(20) === 0 ? 2 : below(2) })];
  for (let left = below(6); left > 0; left--) {
    chunks.push(chunk(TYPES[below(TYPES.length)] as string, new Uint8Array(below(10))));
  }
  return pngFile([...chunks, chunk("IDAT", new Uint8Array(below(2_000))), chunk("IEND")]);
}
