// A table, in a box that scrolls sideways where the page is narrow.

import type { ComponentChildren } from "preact";

export interface Column<Row> {
  title: string;
  /** Numbers stand at the right, one digit below the other. */
  isNumber?: boolean;
  /** Left out where there is little room. */
  isExtra?: boolean;
  class?: string;
  cell(row: Row): ComponentChildren;
}

interface TableProps<Row> {
  /** Read by screen readers; the heading above says the same to others. */
  caption: string;
  columns: readonly Column<Row>[];
  /** undefined: not known yet. */
  rows: readonly Row[] | undefined;
  keyOf(row: Row): string;
  /** Said where there are no rows. */
  empty: string;
  rowClass?: (row: Row) => string | undefined;
}

export function Table<Row>({ caption, columns, rows, keyOf, empty, rowClass }: TableProps<Row>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is scrolled by the keyboard, too
    <section class="table-box" tabIndex={0} aria-label={caption}>
      <table>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows?.map((row) => (
            <tr key={keyOf(row)} class={rowClass?.(row)}>
              {columns.map((column) => (
                <td key={column.title} class={classOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
          {!rows?.length && (
            <tr key="(none)">
              <td colSpan={columns.length} class="empty">
                {rows === undefined ? "Loading…" : empty}
              </td>
            </tr>
          )}
        </tbody>
      </table>
    </section>
  );
}

function classOf<Row>({ isNumber, isExtra, class: more }: Column<Row>): string | undefined {
  return [isNumber && "number", isExtra && "extra", more].filter(Boolean).join(" ") || undefined;
}
