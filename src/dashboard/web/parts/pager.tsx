// Two buttons below a list that is read page by page, the newest first.

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
