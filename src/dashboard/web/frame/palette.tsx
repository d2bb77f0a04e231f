// Everything by its name (Ctrl-K, on a Mac Cmd-K): pages, backends, models, keys, versions, requests, times and actions.

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { BackendStatus, BackendStatusList } from "../../../admin/backend-schemas.ts";
import type { ConfigHistory } from "../../../admin/config-schemas.ts";
import type { KeyList } from "../../../admin/key-schemas.ts";
import type { Requests } from "../../../admin/request-schemas.ts";
import type { Action } from "../app/actions.ts";
import type { App } from "../app/app.ts";
import { useApp } from "../app/context.ts";
import { useResource } from "../app/resource.ts";
import { dateTime } from "../format.ts";
import { switching } from "../pages/backends.tsx";
import { clearingCache } from "../pages/cache-cards.tsx";
import { resettingCircuit } from "../pages/circuit-reset.ts";
import { Button } from "../parts/button.tsx";
import { linkTo } from "../route.ts";
import { bestMatches } from "../search-words.ts";
import { PRESETS, parseRange, rangeLabel } from "../time-range.ts";
import { offeredPages } from "./pages.ts";

interface FoundEntry {
  kind: string;
  text: string;
  run(): void;
}

const MOST_SHOWN = 12;
/** Shorter parts of an id are in too many. */
const LEAST_ID_LENGTH = 4;

/** The button that opens it, and it. */
export function Palette() {
  const isOpen = useSignal(false);
  useEffect(() => {
    function pressed(event: KeyboardEvent): void {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey)
        return;
      // Another dialog is open, and is to be answered first.
      if (document.querySelector("dialog[open]") !== null) return;
      event.preventDefault();
      isOpen.value = true;
    }
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [isOpen]);
  return (
    <>
      <Button
        kind="small"
        label="Find anything (Ctrl K)"
        onClick={() => {
          isOpen.value = true;
        }}
      >
        Find<span class="wide-only"> anything (Ctrl K)</span>
      </Button>
      {isOpen.value && (
        <PaletteDialog
          close={() => {
            isOpen.value = false;
          }}
        />
      )}
    </>
  );
}

function PaletteDialog({ close }: { close(): void }) {
  const element = useRef<HTMLDialogElement>(null);
  const query = useSignal("");
  const current = useSignal(0);
  const entries = useEntries(() => query.value.trim());
  const found = bestMatches(query.value, entries, ({ kind, text }) => `${kind} ${text}`, MOST_SHOWN);
  useLayoutEffect(() => element.current?.showModal(), []);

  function run(entry: FoundEntry | undefined): void {
    if (entry === undefined) return;
    element.current?.close();
    entry.run();
  }

  function pressed(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) current.value = (current.value + step + found.length) % Math.max(1, found.length);
    else if (event.key === "Enter") run(found[current.value]);
    else return;
    event.preventDefault();
  }

  const chosen = Math.min(current.value, found.length - 1);
  return (
    <dialog ref={element} class="palette" aria-label="Find anything" onClose={close}>
      <input
        type="text"
        role="combobox"
        aria-label="Page, backend, model, key, request id or action"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={chosen >= 0 ? `palette-${chosen}` : undefined}
        placeholder="Page, backend, model, key, request id or action"
        autocomplete="off"
        spellcheck={false}
        value={query.value}
        onInput={(event) => {
          query.value = event.currentTarget.value;
          current.value = 0;
        }}
        onKeyDown={pressed}
      />
      <div id="palette-list" role="listbox" aria-label="Found" tabIndex={-1}>
        {found.map((entry, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keyboard is in the field above
          <div
            key={`${entry.kind} ${entry.text}`}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === chosen}
            tabIndex={-1}
            onClick={() => run(entry)}
          >
            <span>{entry.text}</span>
            <span class="faint">{entry.kind}</span>
          </div>
        ))}
        {found.length === 0 && <p class="empty">Nothing has this name.</p>}
      </div>
    </dialog>
  );
}

/** All that can be found. Requests are looked up by the part of their id that was typed. */
function useEntries(query: () => string): FoundEntry[] {
  const app = useApp();
  const backends = useResource<BackendStatusList>("admin/backends").data.value?.backends ?? [];
  const keys = useResource<KeyList>("admin/keys").data.value?.keys ?? [];
  const versions = useResource<ConfigHistory>("admin/config/history?limit=20").data.value?.history ?? [];
  const requests = useResource<Requests>(() => {
    const id = query();
    return id.length < LEAST_ID_LENGTH || /\s/.test(id)
      ? undefined
      : `admin/requests?limit=5&id=${encodeURIComponent(id)}`;
  }).data.value?.requests;
  const models = [...new Set(backends.flatMap((row) => row.models))].sort();
  const to = (page: string, id?: string, search?: Record<string, string>) => () =>
    location.assign(linkTo(page, id, search));
  return [
    ...offeredPages(app.session).map(([name, { label }]) => ({ kind: "Page", text: label, run: to(name) })),
    ...(requests ?? []).map(({ id, request_id, model }) => ({
      kind: `Request, ${model}`,
      text: request_id.includes(query()) ? request_id : id,
      run: to("request", id),
    })),
    ...backends.map(({ name }) => ({ kind: "Backend", text: name, run: to("requests", undefined, { backend: name }) })),
    ...models.map((name) => ({ kind: "Model", text: name, run: to("requests", undefined, { model: name }) })),
    ...keys.map(({ id }) => ({ kind: "Key", text: id, run: to("requests", undefined, { key: id }) })),
    ...actionsOf(app, backends),
    ...PRESETS.map((text) => ({
      kind: "Time",
      text: rangeLabel(parseRange(text)),
      run: () => app.range.choose(parseRange(text)),
    })),
    ...versions.map(({ version, timestamp, sections_changed }) => ({
      kind: `Version of ${dateTime(timestamp)}`,
      text: `Version ${version}: ${sections_changed.join(", ")}`,
      run: to("configuration"),
    })),
  ];
}

function actionsOf({ actions, session, themes }: App, backends: readonly BackendStatus[]): FoundEntry[] {
  /** Nothing for an action that the role may not do. */
  const toDo = (text: string, action: Action): FoundEntry[] => {
    const asked = action.asked();
    if (asked !== undefined && !session.may(asked)) return [];
    return [{ kind: "Action", text, run: () => actions.act(action) }];
  };
  const entries = backends.flatMap((row): FoundEntry[] => {
    const { name, enabled, phase, circuit } = row;
    if (phase === "draining" && enabled) return []; // removed already
    return [
      ...toDo(`${enabled ? "Drain" : "Enable"} ${name}`, switching(row)),
      ...(circuit === "closed" ? [] : toDo(`Reset the circuit of ${name}`, resettingCircuit(name))),
    ];
  });
  return [
    ...entries,
    ...toDo("Clear the response cache", clearingCache(undefined)),
    { kind: "Action", text: "Switch colours", run: themes.next },
    ...(session.who.value?.via === "session"
      ? [{ kind: "Action", text: "Sign out", run: () => void session.signOut() }]
      : []),
  ];
}
