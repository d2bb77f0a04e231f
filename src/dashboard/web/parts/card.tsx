// Boxes of a page: its head, cards, tiles, and names with their values.

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

interface HeadProps {
  title: string;
  /** On the tab of the browser; default: the title. */
  tab?: string;
  children?: ComponentChildren;
}

export function Head({ title, tab = title, children }: HeadProps) {
  useEffect(() => {
    document.title = `${tab} · Signalbox`;
  }, [tab]);
  return (
    <div class="head">
      <h1 tabIndex={-1}>{title}</h1>
      {children}
    </div>
  );
}

interface CardProps {
  title: string;
  /** Beside the title. */
  aside?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
}

export function Card({ title, aside, class: more = "", children }: CardProps) {
  return (
    <section class={`card ${more}`}>
      {aside === undefined ? (
        <h2>{title}</h2>
      ) : (
        <div class="card-head">
          <h2>{title}</h2>
          {aside}
        </div>
      )}
      {children}
    </section>
  );
}

interface TileProps {
  name: string;
  value: string;
  more?: string;
  isBad?: boolean;
}

/** A number at a glance. */
export function Tile({ name, value, more, isBad = false }: TileProps) {
  return (
    <div class={isBad ? "tile bad" : "tile"}>
      <div class="tile-name">{name}</div>
      <div class="tile-value">{value}</div>
      {more !== undefined && <div class="tile-more">{more}</div>}
    </div>
  );
}

type Fact = readonly [name: string, value: ComponentChildren];

export function Facts({ of }: { of: readonly Fact[] }) {
  return (
    <dl class="facts">
      {of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A bar behind a number: its share of the largest. */
export function Bar({ share, text }: { share: number; text: string }) {
  return (
    <span class="bar" style={{ "--share": Math.max(0, Math.min(1, share)).toFixed(4) }}>
      <span>{text}</span>
    </span>
  );
}

interface LinesProps<Item> {
  /** undefined: not known yet. */
  items: readonly Item[] | undefined;
  keyOf(item: Item): string;
  /** Said where there are no items. */
  empty: string;
  line(item: Item): ComponentChildren;
}

/** A short list, an item a line. */
export function Lines<Item>({ items, keyOf, empty, line }: LinesProps<Item>) {
  return (
    <ul class="lines">
      {items?.map((item) => (
        <li key={keyOf(item)}>{line(item)}</li>
      ))}
      {!items?.length && (
        <li key="(none)" class="empty">
          {items === undefined ? "Loading…" : empty}
        </li>
      )}
    </ul>
  );
}
