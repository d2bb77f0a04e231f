// Tables as CSV (RFC 4180), which spreadsheets open: no cell becomes a formula there.

/**
 * Matches where a spreadsheet could begin a formula: at the start, behind characters that it skips, and behind those that
 * separate cells in some locales even within quotes.
 */
const FORMULA = /(^|[;\t\r\n])(?=[\s\p{Cc}]*[=+\-@\uFF0B\uFF0D\uFF1D\uFF20])|^(?=[\t\r\n])/gu;

const SPECIAL = /[",\r\n]/;

export type Cell = string | number;

export function toCsv(header: readonly string[], rows: Iterable<readonly Cell[]>): string {
  let text = lineOf(header);
  for (const row of rows) text += lineOf(row);
  return text;
}

function lineOf(cells: readonly Cell[]): string {
  return `${cells.map(toCell).join(",")}\r\n`;
}

function toCell(cell: Cell): string {
  if (typeof cell === "number") return String(cell);
  // An apostrophe makes a text of it; names of keys and models may come from clients.
  const text = cell.replace(FORMULA, "$1'");
  return SPECIAL.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
