// A list: a table that is sorted, whose columns are chosen, that the keyboard walks through, and that stays quick with very many
// rows.

import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useApp } from "../app/context.ts";
import { useKept } from "../app/hooks.ts";
import { csvText, type DrawnRows, drawnRows, sortRows } from "../rows.ts";
import { Button } from "./button.tsx";
import { useListKeys } from "./list-keys.ts";
import { readHidden, writeHidden } from "./shown-columns.ts";
import { type Sorting, Table, type TableProps } from "./table.tsx";

interface ListProps<Row> extends TableProps<Row> {
  /** Of the chosen columns and of the file. */
  name: string;
  order: Signal<Sorting | undefined>;
  /** Whether the rows come in this order from the gateway. */
  isSortedBy?: (sorting: Sorting) => boolean;
  /** Where a row leads. */
  hrefOf?: (row: Row) => string;
  /** Beside the buttons. */
  children?: ComponentChildren;
}

/** How a list is sorted, as the address says: `sort=-Duration`. */
export function useOrder(): Signal<Sorting | undefined> {
  const { visits } = useApp();
  return useKept("order", () => {
    const text = visits.current.peek().route.query.get("sort") ?? "";
    const title = text.replace(/^-/, "");
    return title === "" ? undefined : { title, isDescending: text.startsWith("-") };
  });
}

export function List<Row>(props: ListProps<Row>) {
  const { name, rows, columns, order, isSortedBy, hrefOf, children } = props;
  const { visits } = useApp();
  const hidden = useSignal<readonly string[]>(readHidden(name));
  const sorting = order.value;
  const by = columns.find(({ title }) => title === sorting?.title)?.value;
  const isSorted = sorting === undefined || by === undefined || isSortedBy?.(sorting) === true;
  const sorted = rows === undefined || isSorted ? rows : sortRows(rows, by, sorting.isDescending);
  const shown = columns.filter(({ title }) => !hidden.value.includes(title));
  const body = useRef<HTMLTableSectionElement>(null);
  const drawn = useDrawnRows(body, sorted?.length ?? 0);
  const current = useListKeys(body, sorted?.length ?? 0, (index) => {
    const row = sorted?.[index];
    if (row !== undefined && hrefOf !== undefined) location.assign(hrefOf(row));
  });

  function sort(title: string): void {
    const isSame = sorting?.title === title;
    // Large values first, then small ones, then as the rows came.
    order.value = !isSame
      ? { title, isDescending: true }
      : sorting.isDescending
        ? { title, isDescending: false }
        : undefined;
    const next = order.value;
    visits.setQuery({ sort: next && `${next.isDescending ? "-" : ""}${next.title}` });
  }

  return (
    <>
      <div class="row list-tools">
        {children}
        <ColumnMenu
          titles={columns.map(({ title }) => title)}
          hidden={hidden.value}
          hide={(titles) => {
            hidden.value = titles;
            writeHidden(name, titles);
          }}
        />
        <Button
          kind="small"
          isDisabled={!sorted?.length}
          onClick={() => {
            const valued = shown.filter(({ value }) => value !== undefined);
            const cells = (sorted ?? []).map((row) => valued.map(({ value }) => value?.(row)));
            download(
              `${name}.csv`,
              csvText(
                valued.map(({ title }) => title),
                cells,
              ),
            );
          }}
        >
          CSV
        </Button>
      </div>
      <Table
        {...props}
        rows={sorted}
        columns={shown}
        sorting={sorting}
        sort={sort}
        drawn={drawn}
        body={body}
        current={hrefOf === undefined ? undefined : current}
      />
    </>
  );
}

interface ColumnMenuProps {
  titles: readonly string[];
  hidden: readonly string[];
  hide(titles: readonly string[]): void;
}

function ColumnMenu({ titles, hidden, hide }: ColumnMenuProps) {
  return (
    <details class="menu">
      <summary>Columns</summary>
      <div class="menu-box">
        {titles.map((title) => (
          <label key={title}>
            <input
              type="checkbox"
              checked={!hidden.includes(title)}
              // One column is always left.
              disabled={!hidden.includes(title) && hidden.length === titles.length - 1}
              onChange={() =>
                hide(hidden.includes(title) ? hidden.filter((each) => each !== title) : [...hidden, title])
              }
            />
            {title}
          </label>
        ))}
      </div>
    </details>
  );
}

/** Follows the scrolling of the page; all rows while they are few. */
function useDrawnRows(body: { readonly current: HTMLTableSectionElement | null }, count: number): DrawnRows {
  const drawn = useSignal<DrawnRows>(drawnRows(count, 0, 0, 0));
  function update(): void {
    const element = body.current;
    if (element === null) return;
    const row = element.querySelector("tr[data-row]");
    const next = drawnRows(
      count,
      row?.getBoundingClientRect().height ?? 0,
      -element.getBoundingClientRect().top,
      innerHeight,
    );
    const { first, end, above, below } = drawn.peek();
    if (next.first !== first || next.end !== end || next.above !== above || next.below !== below) drawn.value = next;
  }
  useLayoutEffect(update);
  useEffect(() => {
    addEventListener("scroll", update, { passive: true });
    addEventListener("resize", update);
    return () => {
      removeEventListener("scroll", update);
      removeEventListener("resize", update);
    };
  });
  const { value } = drawn;
  const isFresh = value.end <= count && value.above + value.below > 0;
  return isFresh ? value : drawnRows(count, 0, 0, 0);
}

function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
