// Which results an answer relies on, as far as it can be seen: those whose address stands in its text.

import type { Citation, SearchHit } from "../generation/content.ts";

/** A letter behind an address that would make it another one. */
const CONTINUES = /[A-Za-z0-9_~%#?&=+@/-]/;

/** A citation for every place where the address of a result is written, in the order of the text. */
export function citedResults(text: string, hits: readonly SearchHit[]): Citation[] {
  const found: Required<Pick<Citation, "url" | "title" | "startIndex" | "endIndex">>[] = [];
  const seen = new Set<string>();
  for (const { url, title } of hits) {
    const address = url.replace(/\/$/, "");
    if (seen.has(address)) continue;
    seen.add(address);
    for (let start = text.indexOf(address); start >= 0; start = text.indexOf(address, start + address.length)) {
      const end = endOf(text, start + address.length);
      if (end !== undefined) found.push({ url, title, startIndex: start, endIndex: end });
    }
  }
  return found.sort((one, other) => one.startIndex - other.startIndex);
}

/** Where an address ends, with the slash that may close it; undefined when it goes on as another address. */
function endOf(text: string, end: number): number | undefined {
  const closed = text[end] === "/" ? end + 1 : end;
  const [next = " ", afterNext = " "] = [text[closed], text[closed + 1]];
  if (CONTINUES.test(next)) return undefined;
  // A dot or the like ends a sentence, or belongs to the address.
  return /[.:,;!]/.test(next) && CONTINUES.test(afterNext) ? undefined : closed;
}
