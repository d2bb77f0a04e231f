// A list that is read page by page, the newest first: where its pages begin, and two buttons below it.

import { useKept } from "../app/hooks.ts";
import { Button } from "./button.tsx";

interface PagerProps {
  /** What the list has: "entries". */
  of: string;
  /** Undefined where there are none. */
  newer: (() => void) | undefined;
  older: (() => void) | undefined;
}

export function Pager({ of, newer, older }: PagerProps) {
  const turns = [
    ["Newer", newer],
    ["Older", older],
  ] as const;
  return (
    <div class="row end">
      {turns.map(([text, turn]) => (
        <Button key={text} isDisabled={turn === undefined} label={`${text} ${of}`} onClick={() => turn?.()}>
          {text}
        </Button>
      ))}
    </div>
  );
}

/** The pages of the list of a page. */
export function usePages() {
  /** Where the pages before the shown one began; the last is that of the shown one. */
  const cursors = useKept<readonly string[]>("cursors", () => []);
  return {
    /** Of the shown page; undefined of the first. */
    cursor: () => cursors.value.at(-1),
    toFirst() {
      cursors.value = [];
    },
    /** @param next - where the page behind begins; null where there is none */
    turns: (next: string | number | null | undefined) => ({
      newer:
        cursors.value.length === 0
          ? undefined
          : () => {
              cursors.value = cursors.peek().slice(0, -1);
            },
      older:
        next === null || next === undefined
          ? undefined
          : () => {
              cursors.value = [...cursors.peek(), String(next)];
            },
    }),
  };
}
