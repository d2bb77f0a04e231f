// The menu of the time that the page shows: lengths, parts of the calendar, or from when to when.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { useApp } from "../app/context.ts";
import { Button } from "../parts/button.tsx";
import { fieldTime, isLive, PRESETS, parseRange, rangeLabel, rangeText, zoomed, zoomedOut } from "../time-range.ts";

export function RangePicker() {
  const { range, actions } = useApp();
  const menu = useRef<HTMLDetailsElement>(null);
  const label = rangeLabel(range.chosen.value);
  useEffect(() => {
    function pressed(event: KeyboardEvent): void {
      if (event.key !== "Escape" || event.defaultPrevented || actions.open.peek() !== undefined) return;
      if (menu.current?.open === true) {
        close();
        menu.current.querySelector("summary")?.focus();
      } else range.back();
    }
    function clicked({ target }: MouseEvent): void {
      if (!(target instanceof Node && menu.current?.contains(target))) close();
    }
    addEventListener("keydown", pressed);
    addEventListener("click", clicked);
    return () => {
      removeEventListener("keydown", pressed);
      removeEventListener("click", clicked);
    };
  }, [range, actions]);

  function close(): void {
    if (menu.current !== null) menu.current.open = false;
  }

  return (
    <div class="range">
      {range.canGoBack.value && (
        <Button kind="small" label="Back to the previous time" onClick={range.back}>
          Back
        </Button>
      )}
      <details ref={menu} class="range-menu">
        <summary aria-label={`Time: ${label}`}>{label}</summary>
        <div class="range-choices">
          <ul>
            {PRESETS.map((text) => (
              <li key={text}>
                <Button
                  kind="small"
                  isPressed={rangeText(range.chosen.value) === text}
                  onClick={() => {
                    range.choose(parseRange(text));
                    close();
                  }}
                >
                  {rangeLabel(parseRange(text))}
                </Button>
              </li>
            ))}
          </ul>
          <FromTo key={label} done={close} />
        </div>
      </details>
    </div>
  );
}

function FromTo({ done }: { done(): void }) {
  const { range, clock } = useApp();
  const { from, to } = range.span.peek();
  const first = useSignal(fieldTime(from));
  const last = useSignal(fieldTime(to));
  const asked = zoomed(Date.parse(first.value), Date.parse(last.value));
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (asked !== undefined) range.choose(asked);
        done();
      }}
    >
      {(["From", "To"] as const).map((name) => {
        const value = name === "From" ? first : last;
        return (
          <div key={name} class="field">
            <label for={`range-${name}`}>{name}</label>
            <input
              id={`range-${name}`}
              type="datetime-local"
              value={value.value}
              onInput={(event) => {
                value.value = event.currentTarget.value;
              }}
            />
          </div>
        );
      })}
      <div class="row">
        <button type="submit" class="main small" disabled={asked === undefined}>
          Apply
        </button>
        <Button
          kind="small"
          onClick={() => {
            range.choose(zoomedOut(range.span.peek(), clock.now.peek()));
            done();
          }}
        >
          Zoom out
        </Button>
        {!isLive(range.chosen.value) && <span class="faint">This span does not move on.</span>}
      </div>
    </form>
  );
}
