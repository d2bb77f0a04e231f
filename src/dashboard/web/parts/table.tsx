// A table: on a wide screen in a box that scrolls sideways, on a phone a card for each row.

import type { ComponentChildren, Ref } from "preact";
import type { DrawnRows, SortValue } from "../rows.ts";

export interface Column<Row> {
  title: string;
  /** Numbers stand at the right, one digit below the other. */
  isNumber?: boolean;
  /** Left out where there is little room. */
  isExtra?: boolean;
  class?: string;
  cell(row: Row): ComponentChildren;
  /** What rows are sorted by, and what a spreadsheet gets; left out: it is no column to sort by. */
  value?(row: Row): SortValue;
}

export interface Sorting {
  /** Of a column. */
  title: string;
  isDescending: boolean;
}

export interface TableProps<Row> {
  /** Read by screen readers; the heading above says the same to others. */
  caption: string;
  columns: readonly Column<Row>[];
  /** undefined: not known yet. */
  rows: readonly Row[] | undefined;
  keyOf(row: Row): string;
  /** Said where there are no rows. */
  empty: string;
  rowClass?: (row: Row) => string | undefined;
  sorting?: Sorting | undefined;
  /** Left out: the rows stay as they are. */
  sort?: (title: string) => void;
  /** The part of a long list that is drawn; default: all. */
  drawn?: DrawnRows | undefined;
  /** Index of the row that the keyboard is at; left out: rows are no stops of the keyboard. */
  current?: number | undefined;
  body?: Ref<HTMLTableSectionElement> | undefined;
}

export function Table<Row>(props: TableProps<Row>) {
  const { caption, columns, rows, empty, drawn, body, keyOf } = props;
  const { first = 0, end = rows?.length ?? 0, above = 0, below = 0 } = drawn ?? {};
  const isWindowed = above > 0 || below > 0;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is scrolled by the keyboard, too
    <section class="table-box" tabIndex={0} aria-label={caption}>
      <table
        class={isWindowed ? "windowed" : undefined}
        aria-rowcount={isWindowed ? (rows?.length ?? 0) + 1 : undefined}
      >
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <HeadCell key={column.title} column={column} sorting={props.sorting} sort={props.sort} />
            ))}
          </tr>
        </thead>
        <tbody {...(body !== undefined && { ref: body })}>
          {above > 0 && <Gap key="(above)" height={above} columns={columns.length} />}
          {rows?.slice(first, end).map((row, place) => (
            <BodyRow key={keyOf(row)} {...props} row={row} index={first + place} isWindowed={isWindowed} />
          ))}
          {below > 0 && <Gap key="(below)" height={below} columns={columns.length} />}
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

interface HeadCellProps<Row> {
  column: Column<Row>;
  sorting: Sorting | undefined;
  sort: ((title: string) => void) | undefined;
}

function HeadCell<Row>({ column, sorting, sort }: HeadCellProps<Row>) {
  const { title, value } = column;
  const order = sorting?.title !== title ? undefined : sorting.isDescending ? "descending" : "ascending";
  return (
    <th scope="col" class={classOf(column)} aria-sort={order}>
      {sort === undefined || value === undefined ? (
        title
      ) : (
        <button type="button" class={`sort ${order ?? ""}`} onClick={() => sort(title)}>
          {title}
        </button>
      )}
    </th>
  );
}

type RowProps<Row> = Pick<TableProps<Row>, "columns" | "rowClass" | "current"> & {
  row: Row;
  index: number;
  isWindowed: boolean;
};

function BodyRow<Row>({ columns, rowClass, current, row, index, isWindowed }: RowProps<Row>) {
  return (
    <tr
      class={rowClass?.(row)}
      data-row={index}
      tabIndex={current === undefined ? undefined : index === current ? 0 : -1}
      aria-rowindex={isWindowed ? index + 2 : undefined}
    >
      {columns.map((column) => (
        <td key={column.title} class={classOf(column)} data-title={column.title}>
          {column.cell(row)}
        </td>
      ))}
    </tr>
  );
}

/** Stands for rows that are not drawn. */
function Gap({ height, columns }: { height: number; columns: number }) {
  return (
    <tr class="gap">
      <td colSpan={columns} style={{ height: `${height}px` }} />
    </tr>
  );
}

function classOf<Row>({ isNumber, isExtra, class: more }: Column<Row>): string | undefined {
  return [isNumber && "number", isExtra && "extra", more].filter(Boolean).join(" ") || undefined;
}
