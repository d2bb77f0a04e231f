// Walking through a list by the keyboard: j and k or the arrows move, Enter opens, / searches, Escape leaves the search.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

const TYPED = "input, textarea, select, [contenteditable]";

/** Returns the index of the row that the keyboard is at. */
export function useListKeys(
  body: { readonly current: HTMLTableSectionElement | null },
  count: number,
  open: (index: number) => void,
): number {
  const current = useSignal(0);
  const latest = useRef({ count, open });
  latest.current = { count, open };
  useEffect(() => {
    function moveTo(index: number): void {
      const last = latest.current.count - 1;
      if (last < 0) return;
      current.value = Math.max(0, Math.min(last, index));
      show(current.peek());
    }

    /** A row that is not drawn yet is drawn once the page has scrolled there. */
    function show(index: number): void {
      const row = rowAt(index);
      if (row !== undefined) {
        row.scrollIntoView({ block: "nearest" });
        row.focus({ preventScroll: true });
        return;
      }
      const element = body.current;
      const height = element?.querySelector("tr[data-row]")?.getBoundingClientRect().height ?? 0;
      if (element === null || height === 0) return;
      window.scrollTo(0, scrollY + element.getBoundingClientRect().top + index * height - innerHeight / 2);
      requestAnimationFrame(() => requestAnimationFrame(() => rowAt(index)?.focus({ preventScroll: true })));
    }

    function rowAt(index: number): HTMLElement | undefined {
      return body.current?.querySelector<HTMLElement>(`tr[data-row="${index}"]`) ?? undefined;
    }

    function pressed(event: KeyboardEvent): void {
      const { key, target } = event;
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (!(target instanceof Element) || document.querySelector("dialog[open]") !== null) return;
      if (target.closest(TYPED) !== null) {
        if (key !== "Escape" || target.closest("search") === null) return;
        (target as HTMLElement).blur();
        event.preventDefault();
        return;
      }
      const isInside = body.current?.contains(target) === true;
      const isRow = target.matches("tr[data-row]");
      if (key === "j" || (key === "ArrowDown" && isInside)) moveTo(isInside ? current.peek() + 1 : current.peek());
      else if (key === "k" || (key === "ArrowUp" && isInside)) moveTo(current.peek() - 1);
      else if (key === "Home" && isRow) moveTo(0);
      else if (key === "End" && isRow) moveTo(latest.current.count - 1);
      else if (key === "Enter" && isRow) latest.current.open(current.peek());
      else if (key === "/") search();
      else return;
      event.preventDefault();
    }

    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [body, current]);
  return Math.min(current.value, Math.max(0, count - 1));
}

function search(): void {
  const form = document.querySelector("search");
  if (form?.parentElement instanceof HTMLDetailsElement) form.parentElement.open = true;
  form?.querySelector("input")?.focus();
}
