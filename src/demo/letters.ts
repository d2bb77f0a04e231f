// The letters that the demo backend draws with: five dots wide, seven high.

import { lazily } from "../lib/lazily.ts";

/** A letter, and its rows from the top: a base 32 digit each, whose bits are the dots from left to right. */
const FONT = `
Aehhvhhh Buhhuhhu Cehggghe Duhhhhhu Evgguggv Fvgguggg Gehgnhhf Hhhhvhhh Ie44444e J72222ic Khikokih Lggggggv Mhrllhhh
Nhhpljhh Oehhhhhe Puhhuggg Qehhhlid Ruhhukih Sfgge11u Tv444444 Uhhhhhhe Vhhhhha4 Whhhllla Xhha4ahh Yhhha444 Zv1248gv
0ehjlphe 14c4444e 2eh1248v 3v2421he 426aiv22 5vgu11he 668guhhe 7v124888 8ehhehhe 9ehhf12c
.00000cc ,0000c48 !4444404 ?eh12404 -000v000 '4480000 "aaa0000 :0cc0cc0 ;0cc0c48 (2488842 )8422248 /01248g0 +044v440
=00v0v00 &cik8lid %op248j3 #aavavaa *04lel40 _000000v @eh1dlle
`;

const glyphs = lazily<ReadonlyMap<string, string>>(
  () =>
    new Map(
      FONT.trim()
        .split(/\s/)
        .map((entry) => [entry.slice(0, 1), entry.slice(1)]),
    ),
);

/** For what there is no letter for. */
const BOX = "vhhhhhv";
const EMPTY = "0000000";

export const LETTER_WIDTH = 5;
export const LETTER_HEIGHT = 7;

/** Accents are left out, and small letters are written large. */
export function drawableText(text: string): string {
  return text.normalize("NFD").replaceAll(/\p{M}/gu, "").toUpperCase();
}

/** The dots of a row of a character, the leftmost as the highest of five bits. */
export function dotsOf(character: string, row: number): number {
  const glyph = character === " " ? EMPTY : (glyphs().get(character) ?? BOX);
  return Number.parseInt(glyph[row] ?? "0", 32);
}
