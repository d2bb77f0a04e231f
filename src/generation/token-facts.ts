// How many tokens texts, pictures, sounds and documents are to models, roughly, because each counts in its own way: what they usually
// are, and what they are at most.

/** Of most texts. */
export const USUAL_BYTES_PER_TOKEN = 4;
/** Of Chinese and Japanese texts; most have more. */
export const FEWEST_BYTES_PER_TOKEN = 3;

/** A picture, however large: it is scaled down. */
export const IMAGE_TOKENS = { usual: 1_600, most: 3_000 } as const;

/** Sounds and films are as long as their bytes allow: some 32 tokens a second of speech at 8 kbit/s. */
export const SOUND_TOKENS = { usual: 2_000, fewestBytes: 16 } as const;
export const VIDEO_TOKENS = 10_000;

/**
 * A document without its bytes, and what it is at least: a page is 1,500 to 3,000 tokens and often some 37 KB. Pages of text alone have
 * far fewer bytes: of those no byte is more than a token.
 */
export const DOCUMENT_TOKENS = { least: 3_000, usualBytes: 18, fewestBytes: 1 } as const;

export function tokensOfText(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / USUAL_BYTES_PER_TOKEN);
}

/** Bytes of what is in base64, without decoding it. */
export function bytesOfBase64(length: number): number {
  return Math.ceil((length * 3) / 4);
}
