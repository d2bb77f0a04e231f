// Pieces that several pages are made of.

import type { PageContext, Resource } from "./context.ts";
import { mark } from "./marks.ts";
import { type Children, h, type View } from "./view.ts";

export interface Column<Row> {
  title: string;
  /** Numbers stand at the right, one digit below the other. */
  isNumber?: boolean;
  /** Left out where there is little room. */
  isExtra?: boolean;
  class?: string;
  cell(row: Row): Children;
}

interface TableOptions<Row> {
  /** Read by screen readers; the heading above says the same to others. */
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf(row: Row): string;
  /** Said in place of the rows. */
  empty: string;
  rowClass?: (row: Row) => string | undefined;
}

/** In a box that scrolls sideways where the page is narrow. */
export function table<Row>({ caption, columns, rows, keyOf, empty, rowClass }: TableOptions<Row>): View {
  const classOf = ({ isNumber, isExtra, class: more }: Column<Row>) =>
    [isNumber && "number", isExtra && "extra", more].filter(Boolean).join(" ") || undefined;
  const head = columns.map((column) => h("th", { scope: "col", class: classOf(column) }, column.title));
  const lines = rows.map((row) =>
    h(
      "tr",
      { key: keyOf(row), class: rowClass?.(row) },
      columns.map((column) => h("td", { class: classOf(column) }, column.cell(row))),
    ),
  );
  const nothing = h("tr", { key: "(none)" }, h("td", { colspan: columns.length, class: "empty" }, empty));
  return h(
    "div",
    { class: "table-box", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      null,
      h("caption", { class: "unseen" }, caption),
      h("thead", null, h("tr", null, head)),
      h("tbody", null, lines.length > 0 ? lines : [nothing]),
    ),
  );
}

export function card(title: string, ...children: readonly Children[]): View {
  return h("section", { class: "card" }, h("h2", null, title), children);
}

/** A card with something beside its title. */
export function cardWith(title: string, aside: Children, ...children: readonly Children[]): View {
  return h("section", { class: "card" }, h("div", { class: "card-head" }, h("h2", null, title), aside), children);
}

interface ButtonOptions {
  kind?: "plain" | "main" | "danger" | "small";
  label?: string;
  disabled?: boolean;
  pressed?: boolean;
}

export function button(text: Children, onclick: () => void, options: ButtonOptions = {}): View {
  const { kind = "plain", label, disabled = false, pressed } = options;
  return h(
    "button",
    { type: "button", class: kind, onclick, disabled, "aria-label": label, "aria-pressed": pressed?.toString() },
    text,
  );
}

/** One of a few, side by side. */
export function choice(
  label: string,
  options: readonly (readonly [value: string, text: string])[],
  chosen: string,
  choose: (value: string) => void,
): View {
  const buttons = options.map(([value, text]) =>
    button(text, () => choose(value), { kind: "small", pressed: value === chosen }),
  );
  return h("div", { class: "choice", role: "group", "aria-label": label }, buttons);
}

interface FieldOptions {
  type?: string;
  placeholder?: string;
  /** Names to choose from, which others are allowed beside. */
  list?: readonly string[];
  autocomplete?: string;
  min?: number;
  max?: number;
  step?: number | "any";
  made?: (element: HTMLElement) => void;
  isRequired?: boolean;
}

export function field(
  id: string,
  label: string,
  value: string,
  set: (value: string) => void,
  options: FieldOptions = {},
): View {
  const { list, type = "text", made, isRequired = false, autocomplete = "off", ...attributes } = options;
  const oninput = (event: { target: HTMLInputElement }) => set(event.target.value);
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    h("input", {
      id,
      type,
      value,
      oninput,
      autocomplete,
      spellcheck: "false",
      required: isRequired,
      ...attributes,
      ...(made !== undefined && { made }),
      ...(list !== undefined && { list: `${id}-list` }),
    }),
    list !== undefined &&
      h(
        "datalist",
        { id: `${id}-list` },
        list.map((name) => h("option", { value: name })),
      ),
  );
}

export function select(
  id: string,
  label: string,
  options: readonly (readonly [value: string, text: string])[],
  chosen: string,
  choose: (value: string) => void,
): View {
  const onchange = (event: { target: HTMLSelectElement }) => choose(event.target.value);
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    h(
      "select",
      { id, onchange, value: chosen },
      options.map(([value, text]) => h("option", { value }, text)),
    ),
  );
}

/** What kept a page from what it asked for; nothing where all is well. */
export function trouble(...resources: readonly Resource<unknown>[]): View[] {
  const messages = new Set(resources.flatMap(({ error }) => (error === undefined ? [] : [error.message])));
  return [...messages].map((message) =>
    h("p", { class: "notice bad", role: "alert", key: message }, mark("bad"), h("span", null, message)),
  );
}

export function notice(tone: "good" | "bad" | "warn", ...children: readonly Children[]): View {
  return h("p", { class: `notice ${tone}` }, mark(tone), h("span", null, children));
}

/** Copies a text; says so. */
export function copyButton(context: Pick<PageContext, "say">, text: string, what: string, caption = "Copy"): View {
  return button(caption, () => void copy(context, text, what), {
    kind: "small",
    ...(caption === "Copy" && { label: `Copy ${what}` }),
  });
}

async function copy({ say }: Pick<PageContext, "say">, text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied ${what}.`);
  } catch {
    // Browsers give the clipboard to pages of https and of this machine only.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    say(isCopied ? `Copied ${what}.` : "The browser does not let this page copy.", !isCopied);
  }
}

/** A command line with a button beside it. */
export function commandLine(context: Pick<PageContext, "say">, text: string, what = "the command"): View {
  return h("div", { class: "command" }, h("pre", { tabindex: "0" }, text), copyButton(context, text, what));
}

/** A bar behind a number: its share of the largest. */
export function bar(share: number, text: string): View {
  return h(
    "span",
    { class: "bar", vars: { share: Math.max(0, Math.min(1, share)).toFixed(4) } },
    h("span", null, text),
  );
}

export function facts(...pairs: readonly (readonly [name: string, value: Children])[]): View {
  return h(
    "dl",
    { class: "facts" },
    pairs.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
  );
}
