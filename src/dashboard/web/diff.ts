// What differs between two texts, line by line.

export interface DiffLine {
  kind: "same" | "removed" | "added";
  text: string;
}

/** Beyond this many comparisons the middle of the texts counts as exchanged. */
const MOST_COMPARISONS = 4_000_000;

/** The fewest changes that make one of the other. */
export function diffLines(before: string, after: string): DiffLine[] {
  const old = before.split("\n");
  const young = after.split("\n");
  let start = 0;
  while (start < old.length && start < young.length && old[start] === young[start]) start++;
  let end = 0;
  const most = Math.min(old.length, young.length) - start;
  while (end < most && old[old.length - 1 - end] === young[young.length - 1 - end]) end++;
  const middle = diffMiddle(old.slice(start, old.length - end), young.slice(start, young.length - end));
  return [...lines("same", old.slice(0, start)), ...middle, ...lines("same", end === 0 ? [] : old.slice(-end))];
}

function lines(kind: DiffLine["kind"], texts: readonly string[]): DiffLine[] {
  return texts.map((text) => ({ kind, text }));
}

/** By the longest common subsequence. */
function diffMiddle(old: readonly string[], young: readonly string[]): DiffLine[] {
  if (old.length * young.length > MOST_COMPARISONS) return [...lines("removed", old), ...lines("added", young)];
  const width = young.length + 1;
  /** Length of the longest common subsequence of what is behind both places. */
  const common = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = young.length - 1; j >= 0; j--) {
      const place = i * width + j;
      common[place] =
        old[i] === young[j]
          ? (common[place + width + 1] as number) + 1
          : Math.max(common[place + width] as number, common[place + 1] as number);
    }
  }
  const found: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < young.length) {
    const place = i * width + j;
    if (i < old.length && j < young.length && old[i] === young[j]) {
      found.push({ kind: "same", text: old[i++] as string });
      j++;
    } else if (
      j >= young.length ||
      (i < old.length && (common[place + width] as number) >= (common[place + 1] as number))
    ) {
      found.push({ kind: "removed", text: old[i++] as string });
    } else found.push({ kind: "added", text: young[j++] as string });
  }
  return found;
}

/** Only what changed, with some lines around; null stands for lines that are left out. */
export function condense(diff: readonly DiffLine[], around = 3): (DiffLine | null)[] {
  const isNear = diff.map((_, index) =>
    diff.slice(Math.max(0, index - around), index + around + 1).some(({ kind }) => kind !== "same"),
  );
  return diff.flatMap((line, index) => {
    if (isNear[index]) return [line];
    return index === 0 || isNear[index - 1] ? [null] : [];
  });
}
