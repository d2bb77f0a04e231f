// Texts that are too long, cut in the middle: their beginning and their end say most.

/** At most about `limit` UTF-16 code units, the note included; no half of a surrogate pair is left. */
export function shortenMiddle(text: string, limit: number, note: (leftOut: number) => string): string {
  if (text.length <= limit) return text;
  const room = Math.max(0, limit - note(text.length).length - 2);
  const head = beginning(text, Math.ceil(room * 0.6));
  const tail = ending(text, room - head.length);
  return `${head}\n${note(text.length - head.length - tail.length)}\n${tail}`;
}

export function beginning(text: string, length: number): string {
  const isSplit = length > 0 && length < text.length && isHigh(text.charCodeAt(length - 1));
  return text.slice(0, isSplit ? length - 1 : length);
}

export function ending(text: string, length: number): string {
  const start = Math.max(0, text.length - length);
  const isSplit = start > 0 && start < text.length && isHigh(text.charCodeAt(start - 1));
  return text.slice(isSplit ? start + 1 : start);
}

/** The first half of a surrogate pair. */
function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
