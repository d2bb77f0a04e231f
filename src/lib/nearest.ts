// "Did you mean": the known word nearest to a mistyped one.

/** A longer word is no typing mistake; the limit bounds the work on a client's text. */
const MAX_LENGTH = 128;
const MAX_CANDIDATES = 5_000;

/** The candidate within a third of the word's length in edits (two at least), or undefined when none is that near. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > MAX_LENGTH) return undefined;
  const wanted = word.toLowerCase();
  let best: string | undefined;
  let seen = 0;
  let bestDistance = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const candidate of candidates) {
    if (++seen > MAX_CANDIDATES) break;
    if (Math.abs(candidate.length - word.length) >= bestDistance) continue;
    const distance = editDistance(wanted, candidate.toLowerCase(), bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Any number from `limit` on stands for "too far". */
function editDistance(from: string, to: string, limit: number): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const substitution = (row[j - 1] as number) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(substitution, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
    if (Math.min(...row) >= limit) return limit;
  }
  return row[to.length] as number;
}
