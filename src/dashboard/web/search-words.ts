// Finding a name by a part of it: words in any order, letters of a word in their order.

/** The larger, the better it fits; undefined where it does not. */
function scoreOf(query: string, name: string): number | undefined {
  const wanted = query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const text = name.toLowerCase();
  let sum = 0;
  for (const word of wanted) {
    const score = wordScore(word, text);
    if (score === undefined) return undefined;
    sum += score;
  }
  // Of names that fit alike the shorter one is meant.
  return sum - text.length / 1_000;
}

function wordScore(word: string, text: string): number | undefined {
  const place = text.indexOf(word);
  if (place >= 0) return (isWordStart(text, place) ? 3 : 2) + word.length / (text.length + 1);
  let from = 0;
  let gaps = 0;
  for (const letter of word) {
    const found = text.indexOf(letter, from);
    if (found < 0) return undefined;
    gaps += found - from;
    from = found + 1;
  }
  return 1 / (1 + gaps);
}

function isWordStart(text: string, place: number): boolean {
  return place === 0 || /[^a-z0-9]/.test(text[place - 1] as string);
}

/** Those that fit, the best first; all of them, as they are, while nothing is typed. */
export function bestMatches<Entry>(
  query: string,
  entries: readonly Entry[],
  nameOf: (entry: Entry) => string,
  most: number,
): Entry[] {
  if (query.trim() === "") return entries.slice(0, most);
  return entries
    .flatMap((entry) => {
      const score = scoreOf(query, nameOf(entry));
      return score === undefined ? [] : [{ entry, score }];
    })
    .sort((left, right) => right.score - left.score)
    .slice(0, most)
    .map(({ entry }) => entry);
}
