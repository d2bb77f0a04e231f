// The links to all pages.

import { useEffect, useRef } from "preact/hooks";
import { useApp } from "../app/context.ts";
import { Icon, type IconName } from "../parts/icon.tsx";
import { linkTo } from "../route.ts";
import { offeredPages, PAGES, type PageName } from "./pages.ts";

export function Navigation({ current }: { current: PageName }) {
  const { session } = useApp();
  const list = useRef<HTMLUListElement>(null);
  const shown = PAGES[current].under ?? current;
  // Where the navigation is wider than the screen.
  useEffect(() => {
    list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [shown]);
  return (
    <nav aria-label="Pages">
      <ul ref={list}>
        {offeredPages(session).map(([name, { label }]) => (
          <li key={name}>
            <a href={linkTo(name)} aria-current={name === shown ? "page" : undefined}>
              <Icon name={name as IconName} />
              <span>{label}</span>
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}
