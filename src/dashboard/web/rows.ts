// Rows of a list as they are shown: sorted by a column, drawn in part, and as a file for a spreadsheet.

/** What a row is sorted by; nothing stands at the end, in both directions. */
export type SortValue = string | number | null | undefined;

export function sortRows<Row>(rows: readonly Row[], by: (row: Row) => SortValue, isDescending: boolean): Row[] {
  const sign = isDescending ? -1 : 1;
  return rows
    .map((row) => ({ row, value: by(row) ?? undefined }))
    .sort((left, right) => {
      if (left.value === undefined || right.value === undefined) {
        return Number(left.value === undefined) - Number(right.value === undefined);
      }
      return sign * compare(left.value, right.value);
    })
    .map(({ row }) => row);
}

const names = new Intl.Collator("en", { numeric: true });

function compare(left: string | number, right: string | number): number {
  if (typeof left === "number" && typeof right === "number") return left - right;
  return names.compare(String(left), String(right));
}

export interface DrawnRows {
  first: number;
  /** Behind the last one. */
  end: number;
  /** Pixels that stand for the rows before and behind. */
  above: number;
  below: number;
}

/** Rows beyond the edges that are drawn as well, so that a quick scroll shows no gap. */
const MARGIN_ROWS = 20;
const FIRST_ROWS = 60;
/** Up to so many rows all are drawn, so that the browser's own search finds them. */
const MOST_WHOLE = 200;

/**
 * Which rows of a long list are drawn.
 * @param scrolled - pixels from the top of the first row to the top of the window; negative while that is below it
 */
export function drawnRows(count: number, rowHeight: number, scrolled: number, windowHeight: number): DrawnRows {
  if (count <= MOST_WHOLE) return { first: 0, end: count, above: 0, below: 0 };
  // The first rows are measured.
  if (rowHeight <= 0) return { first: 0, end: FIRST_ROWS, above: 0, below: 0 };
  const last = Math.max(0, count - Math.ceil(windowHeight / rowHeight));
  const top = Math.min(last, Math.max(0, Math.floor(scrolled / rowHeight)));
  const first = Math.max(0, top - MARGIN_ROWS);
  const end = Math.min(count, top + Math.ceil(windowHeight / rowHeight) + MARGIN_ROWS);
  return { first, end, above: first * rowHeight, below: (count - end) * rowHeight };
}

/** RFC 4180; a text that a spreadsheet would take for a formula gets a quote in front. */
export function csvText(head: readonly string[], rows: readonly (readonly SortValue[])[]): string {
  const cell = (value: SortValue) => {
    const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [head, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}
